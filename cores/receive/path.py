# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path of a port that keeps a record of each probe frame."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteprobe.cores.capture.record import RecordRing
from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.formats import RECORD_SLOTS, RECORD_WINDOW, RecordFlag
from liteprobe.cores.measure.streams import StreamMeter
from liteprobe.cores.measure.tally import Tally
from liteprobe.cores.receive.arrivals import Arrivals
from liteprobe.cores.receive.report import FrameReport
from liteprobe.cores.receive.unified.parser import passing_cycles
from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.timebase.line_clock import LineClockLatch

# Receive Path -------------------------------------------------------------------------------------

class ReceivePath(LiteXModule):
    """Measures what comes in at a port, and records its probe frames; never stalls, and counts whatever it can't keep.

    arrivals (mac -> stamp -> parse) -> measure -> record. Frames that are not a probe's go to management.

    Parameters
    ----------
    clock : ProbeClock
        Gives ``now`` (ns) in timebase.
    with_management : bool
        Gives good frames that carry no probe signature to ``management_source``.
    record_depth : int
        Records of the ring; a power of two.
    with_line_clock : bool
        Latches the clock of the line: registers ``line_*``, as of `LineClockLatch`.
    pad_ticks : int
        As of `ArrivalStamper`.

    Attributes
    ----------
    sink, management_source : as of `Arrivals`
        Rename eth_rx to the port's own domain.
    link_up : Signal(), in, asynchronous
        The PHY's; 1 unless driven.
    streams : StreamMeter
        ``streams.bus`` is the Wishbone slave of the accumulators. Slot 1 is the stream ``stream_id``, slot 0 has all others.
    records : RecordRing, sys
        ``records.bus`` is the Wishbone slave of the ring, ``records.words`` its length (words).
    stream_id, clear, latch, records_read, records_enable : in, sys
        As the registers.
    tally : Tally
        ``tally.bus`` is the Wishbone slave of the snapshot, ``tally.layout`` says where it has each counter.

    Limits: as of `Arrivals`.
    """
    def __init__(self, clock, with_management=False, record_depth=1024, with_line_clock=False, with_csr=True,
        pad_ticks=0):
        self.link_up        = Signal(reset=1)
        self.clear          = Signal()
        self.latch          = Signal()
        self.records_enable = Signal(reset=1)

        # # #

        self.arrivals = arrivals = Arrivals(clock, with_headers=False, wait=passing_cycles, with_management=with_management,
            pad_ticks=pad_ticks)
        self.sink, self.management_source = arrivals.sink, arrivals.management_source
        self.streams  = streams = StreamMeter(RECORD_SLOTS, RECORD_WINDOW)
        self.records  = records = RecordRing(record_depth)
        self.tally    = tally   = Tally(arrivals.events)
        self.stream_id, self.records_read = streams.stream_base, records.read
        self.comb += [
            arrivals.for_management.eq(~arrivals.parser.walk.has_probe),
            *[part.clear.eq(self.clear) for part in (streams, records, tally)],
            *[part.latch.eq(self.latch) for part in (streams, tally)],
        ]
        self.report = FrameReport(arrivals)
        self.comb  += self.report.measured.connect(streams.measured)
        self.add_records()
        if with_csr:
            self.add_csr()
        if with_line_clock:
            self.line = LineClockLatch(arrivals.stamper.waiting)

    def add_records(self):
        """Keep a record of each probe frame, once it is known whether it is in order."""
        streams, records = self.streams, self.records
        measured = streams.measured
        flags    = Signal(16)
        self.comb += [
            records.keep.eq(streams.ordered & measured.is_probe & self.records_enable),
            records.sequence.eq(measured.sequence),
            records.tx_stamp.eq(measured.tx_stamp),
            records.rx_stamp.eq(measured.stamp),
            records.length.eq(measured.length),
            records.flags.eq(flags),
            flags.eq(measured.flags),
        ]
        for flag, condition in [
            (RecordFlag.DUPLICATE,      streams.is_duplicate  & ~streams.is_foreign),
            (RecordFlag.REORDERED,      streams.is_reordered  & ~streams.is_foreign),
            (RecordFlag.BEYOND_WINDOW,  streams.is_beyond     & ~streams.is_foreign),
            (RecordFlag.FOREIGN_STREAM, streams.is_foreign),
        ]:
            self.comb += flags[log2_int(int(flag))].eq(condition)

    def add_csr(self):
        """Add the registers of the contract ("Registers", ``port<n>_rx``)."""
        self._stream_id       = WriteOnlyCSR(16, name="stream_id", description="Stream that is measured.")
        self._clear           = CSRStorage(1, name="clear", description="Write: clear accumulators, window and ring.")
        self._latch           = CSRStorage(1, name="latch", description="Write: snapshot of all accumulators.")
        self._records_read    = CSRStorage(32, name="records_read", write_from_dev=True)
        self._records_written = CSRStatus(32, name="records_written")
        self._records_lost    = CSRStatus(32, name="records_lost")
        self._records_enable  = CSRStorage(1, name="records_enable", reset=1)
        self._link_up         = CSRStatus(1, name="link_up")

        # # #

        self.link_crossing = LevelCrossing("sys")
        self.comb += [
            self.stream_id.eq(self._stream_id.storage),
            self.clear.eq(self._clear.re),
            self.latch.eq(self._latch.re),
            self.records_read.eq(self._records_read.storage),
            self._records_read.we.eq(self.clear),
            self._records_read.dat_w.eq(0),
            self._records_written.status.eq(self.records.written),
            self._records_lost.status.eq(self.records.lost),
            self.records_enable.eq(self._records_enable.storage),
            self.link_crossing.i.eq(self.link_up),
            self._link_up.status.eq(self.link_crossing.o),
        ]
