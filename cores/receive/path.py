# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path of a test port."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteeth.common import eth_phy_description

from liteprobe.cores.capture.record import RecordRing
from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.measure.frames import FrameMeter
from liteprobe.cores.measure.tally import Event, Tally
from liteprobe.cores.receive.mac import ReceiveMAC
from liteprobe.cores.receive.management import FrameStore
from liteprobe.cores.receive.parse import FrameParser
from liteprobe.cores.receive.stamp import ArrivalStamper, StampPairing
from liteprobe.cores.bus.write_only_csr import WriteOnlyCSR
from liteprobe.cores.timebase.line_clock import LineClockLatch

# Receive Path -------------------------------------------------------------------------------------

class ReceivePath(LiteXModule):
    """Measures and records what comes in at a port; never stalls, and counts whatever it can't keep.

    mac -> stamp -> parse -> (filter, sample: later) -> measure -> capture; good other frames go to management.

    Parameters
    ----------
    clock : Clock
        Gives ``now`` (ns) in timebase.
    data_width : int
        32 or 64 (bits), of the words in sys.
    with_management : bool
        Gives good frames that carry no probe signature to ``management_source``.
    record_depth : int
        Records of the ring; a power of two.
    with_line_clock : bool
        Latches the clock of the line (``line_*``); needs ``with_csr``.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, eth_rx
        The PHY's source. Rename eth_rx to the port's own domain.
    link_up : Signal(), in, asynchronous
        The PHY's; 1 unless driven.
    management_source : Endpoint(eth_phy_description(32)), out, sys
        Whole good frames; what finds no room is dropped and counted.
    records : RecordRing, sys
        ``records.bus`` is the Wishbone slave of the ring, ``records.words`` its length (words).
    stream_id, stream_any, clear, latch, records_read, records_enable : in, sys
        As the registers.
    tally : Tally
        ``tally.bus`` is the Wishbone slave of the snapshot, ``tally.layout`` says where it has each accumulator.

    Limits: sys from 45 MHz for gigabit.
    """
    def __init__(self, clock, data_width=32, with_management=False, record_depth=1024, with_line_clock=False, with_csr=True):
        self.sink              = stream.Endpoint(eth_phy_description(8))
        self.link_up           = Signal(reset=1)
        self.management_source = stream.Endpoint(eth_phy_description(32))
        self.stream_id         = Signal(16)
        self.stream_any        = Signal(reset=1)
        self.clear             = Signal()
        self.latch             = Signal()
        self.records_read      = Signal(32)
        self.records_enable    = Signal(reset=1)

        # # #

        # MAC, stamp, parse.
        # ------------------
        self.mac     = mac     = ReceiveMAC(data_width)
        self.stamper = stamper = ArrivalStamper()
        self.parser  = parser  = FrameParser(data_width)
        self.pairing = pairing = StampPairing()
        self.comb += [
            self.sink.connect(mac.sink),
            stamper.sfd.eq(mac.sfd),
            stamper.now.eq(clock.now),
            mac.source.connect(parser.sink),
            pairing.report.eq(parser.source.valid),
            pairing.number.eq(parser.source.number),
            pairing.is_wanted.eq(parser.source.is_probe),
            # Shorter frames may end before their stamp is here.
            pairing.is_owed.eq(parser.source.is_probe | ~parser.source.runt),
            parser.source.ready.eq(1),
            stamper.source.connect(pairing.stamps),
        ]

        # Measure.
        # --------
        self.meter  = meter  = FrameMeter()
        report = parser.source
        self.comb += [
            meter.frame.eq(pairing.paired),
            meter.rx_stamp.eq(pairing.stamp),
            meter.length.eq(report.probe_length),
            meter.faults.eq(report.probe_flags),
            *[getattr(meter, name).eq(getattr(report, name)) for name in ("sequence", "tx_stamp", "stream_id")],
            meter.stream_any.eq(self.stream_any),
            meter.wanted_id.eq(self.stream_id),
        ]

        # Capture.
        # --------
        self.records = records = RecordRing(record_depth)
        self.comb += [
            records.keep.eq(meter.done & self.records_enable),
            records.flags.eq(meter.flags),
            records.read.eq(self.records_read),
            *[getattr(records, name).eq(getattr(meter, name))
                for name in ("sequence", "tx_stamp", "rx_stamp", "length")],
        ]

        # Management.
        # -----------
        if with_management:
            self.add_management(data_width)

        # Tally.
        # ------
        self.tally = tally = Tally([*meter.events, *self.port_events(with_management)], meter.entries)
        self.comb += [part.clear.eq(self.clear) for part in (meter, records, tally)]
        self.comb += [
            tally.start.eq(meter.start),
            tally.latch.eq(self.latch),
        ]

        if with_csr:
            self.add_csr()
            if with_line_clock:
                self.add_line_clock()

    def port_events(self, with_management):
        """Return what is counted whatever the frames carry.

        A pass of the tally takes up to 150 cycles while frames come as close as can be, and some 40 without. In that
        time come up to 20 of the shortest carriers with an SFD, or 60 without (at 45 MHz).
        """
        report, mac = self.parser.source, self.mac
        stored  = self.store.stored  if with_management else Constant(0, 1)
        dropped = self.store.dropped if with_management else Constant(0, 1)
        length  = Signal(16)
        self.comb += If(report.valid, length.eq(report.length))
        return [
            Event("all_frames",         report.valid,                       6),
            Event("all_octets",         length,                            18, words=2),
            Event("fcs_errors",         report.valid & report.fcs_error,    6),
            Event("runts",              report.valid & report.runt,         6),
            Event("giants",             report.valid & report.giant,        3),
            Event("preamble_errors",    mac.preamble_errors,                8),
            Event("symbol_errors",      report.valid & report.symbol_error, 6),
            Event("overflows",          mac.overflows,                      6),
            Event("stamp_errors",       self.pairing.stamp_error,           6),
            Event("management_frames",  stored,                             5),
            Event("management_dropped", dropped,                            5),
        ]

    def add_management(self, data_width):
        """Store what is not a probe frame; a word later, when the parser knows."""
        self.store = store = FrameStore(data_width)
        source, sink = self.mac.source, store.sink
        self.sync += [
            sink.valid.eq(source.valid),
            sink.last.eq(source.last),
            sink.payload.eq(source.payload),
        ]
        self.comb += [
            store.refuse.eq(self.parser.headers.has_signature),
            store.source.connect(self.management_source),
        ]

    def add_csr(self):
        """Add the registers of the contract ("Registers", ``port<n>_rx``)."""
        self._stream_id       = WriteOnlyCSR(16, name="stream_id", description="Stream that is measured, unless stream_any.")
        self._stream_any      = CSRStorage(1, name="stream_any", reset=1)
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
            self.stream_any.eq(self._stream_any.storage),
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

    def add_line_clock(self):
        """Add the clock of the line with its registers."""
        self._line_latch = CSRStorage(1, name="line_latch", description="Write: take a tick of the line and its time.")
        self._line_count = CSRStatus(32, name="line_count", description="Ticks of the line since reset, at the latch; wraps.")
        self._line_now   = CSRStatus(64, name="line_now", description="Stamp of an SFD in that tick (ns).")

        # # #

        self.line_clock = line_clock = LineClockLatch()
        self.comb += [
            line_clock.waiting.eq(self.stamper.waiting),
            line_clock.take.eq(self._line_latch.re),
            self._line_count.status.eq(line_clock.count),
            self._line_now.status.eq(line_clock.now),
        ]
