# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Measures all of a port that needs no frame to be stored: counts, order, delays, histograms.

Stands alone: it is what probes and pages take of all files here.
"""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import STREAM_SLOTS, STREAM_WINDOW
from liteprobe.cores.measure.field_delay import FieldDelay
from liteprobe.cores.measure.histogram import Histograms
from liteprobe.cores.measure.streams import StreamMeter
from liteprobe.cores.bus import WriteOnlyCSR

class PortMeter(LiteXModule):
    """Counts the frames of a port and of its streams, and sorts them into histograms.

    Parameters
    ----------
    count_bits : int
        Of a bin.
    slots, window : int
        As of `StreamMeter`.
    with_fields : bool
        Counts bit errors, and takes TX stamps from fields: with ``fields``.

    Attributes
    ----------
    measured : Endpoint(measured_layout), in
    clear, latch, measure_passed, stream_base, prbs : in
        As the registers, and as of `StreamMeter`.
    streams, histograms, fields : StreamMeter, Histograms, FieldDelay
        ``streams.bus``, ``histograms.bus`` and ``fields.bus`` are their Wishbone slaves.
    """
    def __init__(self, with_csr=True, count_bits=32, slots=STREAM_SLOTS, window=STREAM_WINDOW, with_fields=False):
        self.with_fields = with_fields
        self.streams     = streams    = StreamMeter(slots, window, with_fields)
        self.histograms  = histograms = Histograms(count_bits, slots)
        self.measured       = streams.measured
        self.prbs           = streams.prbs
        self.clear          = streams.clear
        self.latch          = streams.latch
        self.measure_passed = streams.measure_passed
        self.stream_base    = streams.stream_base

        # # #

        self.comb += copied(histograms, streams, "sample", "clear")
        if with_fields:
            self.fields   = fields = FieldDelay(slots)
            self.measured = fields.measured
            self.comb += [
                *copied(fields, streams, "stream_base", "clear"),
                fields.source.connect(streams.measured),
            ]
        if with_csr:
            self.add_csr()

    def add_csr(self):
        """Add the registers (docs/cores/measure-streams.md)."""
        self._stream_base    = WriteOnlyCSR(16, name="stream_base", description="Stream of slot 1; the other slots follow.")
        self._measure_passed = CSRStorage(1, name="measure_passed", description="Measure only frames that the filter lets pass.")
        self._clear          = CSRStorage(1, name="clear", description="Write: clear accumulators and histograms.")
        self._latch          = CSRStorage(1, name="latch", description="Write: snapshot of all accumulators.")
        self._saturated      = CSRStatus(1, name="saturated", description="A bin was full and has missed values.")
        if self.with_fields:
            slots            = self.streams.slots
            self._prbs       = WriteOnlyCSR(slots, name="prbs", description="Slots whose streams' fill is PRBS-31.")
            self.comb       += self.prbs.eq(self._prbs.storage)
        self._length_origin  = WriteOnlyCSR(16, name="length_origin", description="Least length of the first bin (octets).")
        self._delay_origin   = WriteOnlyCSR(64, name="delay_origin", description="Least delay of the first bin (ns, signed).")
        self._arrival_origin = WriteOnlyCSR(32, name="arrival_origin", description="Least interarrival time of the first bin (ns).")
        self._length_shift   = WriteOnlyCSR(5, name="length_shift", reset=6, description="Width of a bin: 2^shift.")
        self._delay_shift    = WriteOnlyCSR(5, name="delay_shift", reset=8, description="Width of a bin: 2^shift.")
        self._arrival_shift  = WriteOnlyCSR(5, name="arrival_shift", reset=8, description="Width of a bin: 2^shift.")

        # # #

        histograms = self.histograms
        self.comb += [
            self.stream_base.eq(self._stream_base.storage),
            self.measure_passed.eq(self._measure_passed.storage),
            self.clear.eq(self._clear.re),
            self.latch.eq(self._latch.re),
            self._saturated.status.eq(histograms.saturated),
        ]
        for name in ("length", "delay", "arrival"):
            for what in ("origin", "shift"):
                self.comb += getattr(histograms, f"{name}_{what}").eq(getattr(self, f"_{name}_{what}").storage)
