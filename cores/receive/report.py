# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a port without a filter tells its meters of each frame."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import FAULTS
from liteprobe.cores.measure.measured import measured_layout

# Frame Report -------------------------------------------------------------------------------------

class FrameReport(LiteXModule):
    """Hands on each frame of `Arrivals` once its stamp is there, before the next one ends.

    Parameters
    ----------
    arrivals : Arrivals
        Its ``wait`` is ``passing_cycles`` at the most.
    with_fields : bool
        As of ``arrivals``.

    Attributes
    ----------
    measured : Endpoint(measured_layout), out
        Of each frame with a stamp; ``flags`` are faults alone. Can't be stalled.
    """
    def __init__(self, arrivals, with_fields=False):
        self.measured = measured = stream.Endpoint(measured_layout)

        # # #

        parser = arrivals.parser
        self.comb += measured.passed.eq(1)
        self.sync += [
            measured.valid.eq(arrivals.ready & arrivals.has_stamp),
            If(arrivals.ready,
                measured.stamp.eq(arrivals.pairing.stamp),
                measured.length.eq(parser.length),
                measured.flags.eq(parser.flags & int(FAULTS)),
                measured.is_probe.eq(parser.is_probe),
                *[getattr(measured, name).eq(getattr(parser.passing, name)) for name in ("stream_id", "sequence", "tx_stamp")],
            ),
        ]
        if with_fields:
            self.sync += If(arrivals.ready,
                measured.bit_errors.eq(arrivals.bit_errors),
                measured.head.eq(arrivals.head),
            )
