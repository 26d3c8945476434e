# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What the pacer must know of a frame goes ahead of its octets."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.crossing import PulseCrossing, StillCrossing
from liteprobe.cores.formats import OVERHEAD
from liteprobe.cores.transmit.frames import descriptor_description, pace_description, timing_layout
from liteprobe.cores.transmit.line import LINE_TICKS

# Announcer ----------------------------------------------------------------------------------------

class Announcer(LiteXModule):
    """Shows each frame to the pacer while it is built; from ``sys`` to ``timebase``.

    A descriptor stands still until its frame is built and the pacer has taken it, so nothing is stored, and no octets of
    the next frame come before that. An ``empty`` descriptor is shown, and nothing is built. Some 30 ticks pass from a
    descriptor that is taken to the first octet of the next frame: less than the shortest slot, 84.

    Attributes
    ----------
    sink : Endpoint(descriptor_description()), in, ``sys``
    build : Endpoint(descriptor_description()), out, ``sys``
        The same, without the empty ones.
    source : Endpoint(pace_description()), out, ``timebase``
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(descriptor_description())
        self.build  = build  = stream.Endpoint(descriptor_description())
        self.source = source = stream.Endpoint(pace_description())

        # # #

        told     = Record(pace_description().payload_layout)
        stream.set_reset_less(told) # Follows the descriptor at once.
        is_new   = Signal(reset=1)  # What stands in ``told`` may be of the descriptor before.
        is_built = Signal()
        is_taken = Signal()
        self.crossing = crossing = StillCrossing(len(told), "sys", "timebase")
        self.taken    = taken    = PulseCrossing("timebase", "sys")
        is_told  = Signal()
        self.comb += [
            sink.connect(build, omit={"valid", "ready"}),
            build.valid.eq(sink.valid & ~is_built & ~sink.empty),
            sink.ready.eq((is_built | sink.empty) & is_taken),
            crossing.i.eq(told.raw_bits()),
            crossing.take.eq(sink.valid & ~is_new & ~is_told),
            source.payload.raw_bits().eq(crossing.o),
            taken.i.eq(source.valid & source.ready),
        ]
        self.sync += [
            told.hold.eq(sink.length + OVERHEAD - LINE_TICKS),
            *[getattr(told, name).eq(getattr(sink, name)) for name, _ in timing_layout],
            is_new.eq(~sink.valid),
            If(crossing.take, is_told.eq(1)),
            If(build.valid & build.ready, is_built.eq(1)),
            If(taken.o, is_taken.eq(1)),
            If(sink.valid & sink.ready,
                is_new.eq(1),
                is_told.eq(0),
                is_built.eq(0),
                is_taken.eq(0),
            ),
        ]
        self.sync.timebase += [
            If(source.ready, source.valid.eq(0)),
            If(crossing.taken, source.valid.eq(1)),
        ]
