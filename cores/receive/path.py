# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receives the frames of a port: takes them in, and measures, records, or filters and keeps them."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import WriteOnlyCSR
from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.capture.record import RecordRing
from liteprobe.cores.capture.staging import Staging
from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.formats import FAULTS, RECORD_SLOTS, RECORD_WINDOW, RecordFlag
from liteprobe.cores.measure.measured import measured_layout
from liteprobe.cores.measure.streams import StreamMeter
from liteprobe.cores.measure.tally import Event, Tally
from liteprobe.cores.receive.arrivals import Arrivals
from liteprobe.cores.receive.decide import Decision, wait_cycles
from liteprobe.cores.receive.hashes import FrameHashes, RssTable
from liteprobe.cores.receive.unified.parser import passing_cycles
from liteprobe.cores.timebase.line_clock import LineClockLatch

# Numbers ------------------------------------------------------------------------------------------

arp_type  = 0x0806
broadcast = 2**48 - 1

staging_octets = 4096 # Of the staging memory.

# Receive Path -------------------------------------------------------------------------------------

class ReceivePath(LiteXModule):
    """Takes in and counts the frames of a port: what the paths below have in common; never stalls, counts what it can't keep.

    Parameters
    ----------
    arrivals : Arrivals

    Attributes
    ----------
    sink, management_source : as of `Arrivals`
        Rename eth_rx to the port's own domain.
    link_up : Signal(), in, asynchronous
        The PHY's; 1 unless driven.
    arrivals : Arrivals
        ``arrivals.passing`` is for the meter's ``fields``.
    clear, latch : Signal(), in, sys
        As the registers.
    tally : Tally
        ``tally.bus`` is the Wishbone slave of the snapshot, ``tally.layout`` says where it has each counter.

    Limits: as of `Arrivals`.
    """
    def __init__(self, arrivals):
        self.link_up  = Signal(reset=1)
        self.clear    = Signal()
        self.latch    = Signal()
        self.arrivals = arrivals
        self.sink, self.management_source = arrivals.sink, arrivals.management_source

    def add_report(self, with_fields=False):
        """Add ``measured``: each frame with a stamp, once that is there, before the next one ends; ``flags`` are faults alone."""
        arrivals, parser = self.arrivals, self.arrivals.parser
        self.measured = measured = stream.Endpoint(measured_layout)
        stream.set_reset_less(measured.payload) # Counts from ``valid`` on.
        self.comb += measured.passed.eq(1)
        self.sync += [
            measured.valid.eq(arrivals.ready & arrivals.has_stamp),
            If(arrivals.ready,
                measured.stamp.eq(arrivals.pairing.stamp),
                measured.length.eq(parser.length),
                measured.flags.eq(parser.flags & int(FAULTS)),
                measured.is_probe.eq(parser.is_probe),
                *copied(measured, parser.passing, "stream_id", "sequence", "tx_stamp"),
            ),
        ]
        if with_fields:
            self.sync += If(arrivals.ready, *copied(measured, arrivals, "bit_errors", "head"))

    def add_tally(self, events):
        """Count events, for the host to read as of one instant."""
        self.tally = tally = Tally(events)
        self.comb += copied(tally, self, "clear", "latch")

    def add_clear_and_latch(self, clear, latch):
        """Add the registers ``clear`` and ``latch``, with what they say that they do."""
        self._clear = CSRStorage(1, name="clear", description=clear)
        self._latch = CSRStorage(1, name="latch", description=latch)
        self.comb += [
            self.clear.eq(self._clear.re),
            self.latch.eq(self._latch.re),
        ]

    def add_link_up(self):
        """Add the register ``link_up``."""
        self._link_up      = CSRStatus(1, name="link_up")
        self.link_crossing = LevelCrossing("sys")
        self.comb += [
            self.link_crossing.i.eq(self.link_up),
            self._link_up.status.eq(self.link_crossing.o),
        ]

    def add_line_clock(self):
        """Latch the clock of the line: registers ``line_*``, as of `LineClockLatch`."""
        self.line = LineClockLatch(self.arrivals.stamper.waiting)

# Record Path --------------------------------------------------------------------------------------

class RecordPath(ReceivePath):
    """Measures what comes in at a port, and records its probe frames.

    arrivals (mac -> stamp -> parse) -> measure -> record. Frames that are not a probe's go to management.

    Parameters
    ----------
    clock : TimebaseClock
        Gives ``now`` (ns) in timebase.
    with_management : bool
        Gives good frames that carry no probe signature to ``management_source``.
    record_depth : int
        Records of the ring; a power of two.
    pad_ticks : int
        As of `ArrivalStamper`.

    Attributes
    ----------
    sink, management_source, link_up, arrivals, clear, latch, tally : as of `ReceivePath`
    streams : StreamMeter
        ``streams.bus`` is the Wishbone slave of the accumulators. Slot 1 is the stream ``stream_id``, slot 0 has all others.
    records : RecordRing, sys
        ``records.bus`` is the Wishbone slave of the ring, ``records.words`` its length (words).
    stream_id, records_read, records_enable : in, sys
        As the registers.
    """
    def __init__(self, clock, with_management=False, record_depth=1024, pad_ticks=0):
        ReceivePath.__init__(self, Arrivals(clock, with_headers=False, wait=passing_cycles, with_management=with_management,
            pad_ticks=pad_ticks))
        self.records_enable = Signal(reset=1)

        # # #

        self.streams = streams = StreamMeter(RECORD_SLOTS, RECORD_WINDOW)
        self.records = records = RecordRing(record_depth)
        self.add_tally(self.arrivals.events)
        self.stream_id, self.records_read = streams.stream_base, records.read
        self.comb += [
            self.arrivals.for_management.eq(~self.arrivals.parser.walk.has_probe),
            *[part.clear.eq(self.clear) for part in (streams, records)],
            streams.latch.eq(self.latch),
        ]
        self.add_report()
        self.comb += self.measured.connect(streams.measured)
        self.add_records()

    def add_records(self):
        """Keep a record of each probe frame, once it is known whether it is in order."""
        streams, records = self.streams, self.records
        measured = streams.measured
        flags    = Signal(16)
        self.comb += [
            records.keep.eq(streams.ordered & measured.is_probe & self.records_enable),
            *copied(records, measured, "sequence", "tx_stamp"),
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
        self.add_clear_and_latch("Write: clear accumulators, window and ring.", "Write: snapshot of all accumulators.")
        self._records_read    = CSRStorage(32, name="records_read", write_from_dev=True)
        self._records_written = CSRStatus(32, name="records_written")
        self._records_lost    = CSRStatus(32, name="records_lost")
        self._records_enable  = CSRStorage(1, name="records_enable", reset=1)
        self.add_link_up()
        self.comb += [
            self.stream_id.eq(self._stream_id.storage),
            self.records_read.eq(self._records_read.storage),
            self._records_read.we.eq(self.clear),
            self._records_read.dat_w.eq(0),
            self._records_written.status.eq(self.records.written),
            self._records_lost.status.eq(self.records.lost),
            self.records_enable.eq(self._records_enable.storage),
        ]

# Measure Path -------------------------------------------------------------------------------------

class MeasurePath(ReceivePath):
    """Reports every frame that comes in to the meters of a port, and keeps none.

    arrivals (mac -> stamp -> parse) -> report -> meters (`PortMeter` with fields). Frames that are not a probe's go to
    management.

    Parameters
    ----------
    clock, with_management, pad_ticks
        As of `RecordPath`.

    Attributes
    ----------
    sink, management_source, link_up, arrivals, clear, latch, tally : as of `ReceivePath`
    measured : Endpoint(measured_layout), out
        Of each frame with a stamp; ``flags`` are faults alone. Can't be stalled.
    """
    def __init__(self, clock, with_management=False, pad_ticks=0):
        ReceivePath.__init__(self, Arrivals(clock, with_headers=False, wait=passing_cycles, with_management=with_management,
            pad_ticks=pad_ticks, with_fields=True))

        # # #

        self.add_report(with_fields=True)
        self.add_tally(self.arrivals.events)
        self.comb += self.arrivals.for_management.eq(~self.arrivals.parser.walk.has_probe)

    def add_csr(self):
        """Add the registers of the contract ("Registers of a generator", ``port<n>_rx``)."""
        self.add_clear_and_latch("Write: clear the counters.", "Write: snapshot of all counters.")
        self.add_link_up()

# Monitor Path -------------------------------------------------------------------------------------

class MonitorPath(ReceivePath):
    """Classifies every frame that comes in at a port, says what is to be measured, and hands on what is kept.

    arrivals (mac -> stamp -> parse) -> filter, sample, distribute -> decide -> staging.

    Parameters
    ----------
    clock : TimebaseClock
        Gives ``now`` (ns) in timebase.
    matcher : FilterMatcher
        This port's; the path starts it and takes its answer.
    port : int
        Number of the port, for records.
    management_mac : int, 48 bits, or None
        Of the probe, first octet highest: frames for it, and broadcast ARP, go to ``management_source`` where they are
        whole. None: no port for management.
    pad_ticks : int
        As of `ArrivalStamper`.
    with_fields : bool
        As of `Arrivals`.
    with_hash : bool
        Hash every frame. Without: the hash of a flow is 0, a frame goes to channel 0 unless a rule names another, and frames are
        sampled by count alone; ``sample_by_hash`` stays 0, ``sample_seed`` and the table's inputs do nothing. There are no
        registers ``sample_seed`` and ``channel_table``, and no bit ``by_hash``.

    Attributes
    ----------
    sink, management_source, link_up, arrivals, tally : as of `ReceivePath`
    measured : Endpoint(measured_layout), out
        One cycle of ``valid`` for each frame that is classified, 32 cycles apart at the least; all is held until the next.
    descriptor, header, data : Endpoint(descriptor_layout()), Endpoint([("data", 32)]), Endpoint([("data", 32)]), out
        Of each frame that is kept: its descriptor; then words 4 to 31 of its unified header where ``has_header``, and
        ``words`` words of its octets, both with ``last``.
    skip : Signal(), in
        In the cycle in which a descriptor is accepted: nothing of it follows.
    snap_length : Signal(16), in
        Octets that are kept of a frame, at most; 0: none.
    keep_headers, keep_damaged, keep_own, enable : Signal(), in
        As of `Decision`.
    sample_shift, sample_by_hash, sample_seed : Signal(3), Signal(), Signal(32), in
        As of `Sampler` and `PacketHash`.
    table_write, table_number, table_value : Signal(), Signal(7), Signal(3), in
        As of `RssTable`.
    clear, latch : Signal(), in
        Of the tally; ``clear`` also begins a new count of samples.

    Limits: sys from 48 MHz for gigabit.
    """
    def __init__(self, clock, matcher, port=0, management_mac=None, pad_ticks=0, with_fields=False, with_hash=True):
        ReceivePath.__init__(self, Arrivals(clock, True, wait_cycles, with_management=management_mac is not None,
            pad_ticks=pad_ticks, with_fields=with_fields))
        self.measured          = stream.Endpoint(measured_layout)
        self.descriptor        = stream.Endpoint(descriptor_layout())
        self.header            = stream.Endpoint([("data", 32)])
        self.data              = stream.Endpoint([("data", 32)])
        self.skip              = Signal()
        self.snap_length       = Signal(16, reset=0xffff)
        self.keep_headers      = Signal()
        self.keep_damaged      = Signal()
        self.keep_own          = Signal()
        self.enable            = Signal(reset=1)
        self.sample_shift      = Signal(3)
        self.sample_by_hash    = Signal()
        self.sample_seed       = Signal(32)
        self.table_write       = Signal()
        self.table_number      = Signal(7)
        self.table_value       = Signal(3)

        # # #

        self.with_hash = with_hash
        self.parser    = self.arrivals.parser
        self.staging   = Staging(staging_octets)
        self.comb     += self.arrivals.mac.source.connect(self.staging.sink, omit={"ready"})
        self.add_filter(matcher, management_mac)
        if with_hash:
            self.hashes = hashes = FrameHashes(self.parser)
            self.comb += hashes.seed.eq(self.sample_seed)
        self.add_decision(matcher, with_hash)
        self.add_staging(port)
        self.add_tally([*self.arrivals.events, *self.events()])

    def add_filter(self, matcher, management_mac):
        """Start the matcher, and see whether a frame is for the probe itself."""
        parser, key = self.parser, self.parser.key
        self.is_own = Signal(reset_less=True)
        self.comb += [
            matcher.start.eq(parser.asks),
            matcher.key.eq(key),
        ]
        if management_mac is not None:
            is_mac = Signal()
            is_arp = Signal()
            self.comb += [
                is_mac.eq(key.has_macs & (key.destination_mac == management_mac)),
                is_arp.eq(key.has_macs & (key.destination_mac == broadcast) & (parser.walk.ethertype == arp_type)),
                self.arrivals.for_management.eq((is_mac | is_arp) & ~parser.walk.has_probe),
            ]
            self.sync += If(parser.asks, self.is_own.eq(is_mac))

    def add_decision(self, matcher, with_hash):
        """Gather what the stages found."""
        parser, staging = self.parser, self.staging
        self.decision = decision = Decision()
        found, answer, sampler   = decision.found, decision.answer, decision.sampler
        packet, flow, by_flow = 0, 0, []
        if with_hash:
            packet, flow = self.hashes.packet, self.hashes.flow
            self.table = table = RssTable()
            by_flow = [
                table.hash.eq(decision.flow),
                decision.flow_channel.eq(table.channel),
                table.write.eq(self.table_write),
                table.number.eq(self.table_number),
                table.value.eq(self.table_value),
            ]
        place     = Signal(4, reset_less=True)
        has_place = Signal(reset_less=True)
        self.sync += If(parser.asks, place.eq(parser.headers.place), has_place.eq(parser.headers.has_place))
        self.comb += [
            *copied(decision, self, "enable", "keep_headers", "keep_damaged", "keep_own"),
            sampler.shift.eq(self.sample_shift),
            sampler.by_hash.eq(self.sample_by_hash),
            sampler.hash.eq(packet),
            sampler.clear.eq(self.clear),
            decision.takes.eq(self.arrivals.ready),
            *copied(found, parser, "length", "flags"),
            found.stamp.eq(self.arrivals.stamp),
            found.hash.eq(flow),
            found.is_probe.eq(parser.is_probe),
            *copied(found, parser.probe, "stream_id", "sequence", "tx_stamp"),
            found.is_own.eq(self.is_own),
            *copied(found, staging, "snapped", "is_lost"),
            found.place.eq(place),
            found.has_place.eq(has_place),
            *copied(found, self.arrivals, "bit_errors", "head"),
            decision.answered.eq(matcher.done),
            *copied(answer, matcher, "matched", "passed", "rule", "names_channel", "channel"),
            *by_flow,
            decision.measured.connect(self.measured),
        ]

    def add_staging(self, port):
        """Hand on what is kept."""
        staging, headers, verdict, measured = self.staging, self.parser.headers, self.decision.verdict, self.decision.measured
        given = staging.given
        self.comb += [
            staging.snap_length.eq(self.snap_length),
            staging.classifies.eq(self.parser.classifies),
            staging.decide.eq(measured.valid),
            staging.keep.eq(verdict.keep),
            given.head0.eq(measured.stamp[:32]),
            given.head1.eq(measured.stamp[32:]),
            given.head2.eq(Cat(measured.length, verdict.snapped)),
            given.head3.eq(Cat(measured.flags, verdict.rule, verdict.channel, Constant(0, 1), Constant(port, 4))),
            *copied(given, verdict, "hash", "has_header"),
            given.lost.eq(verdict.is_lost),
            staging.given_octets.eq(verdict.snapped),
            staging.given_place.eq(verdict.place),
            headers.drop.eq(measured.valid & verdict.has_place & ~(staging.is_placed & verdict.has_header)),
            headers.dropped.eq(verdict.place),
            headers.open.eq(staging.opens),
            headers.skip.eq(staging.skips),
            headers.opened.eq(staging.place),
            headers.hash.eq(staging.descriptor.hash),
            staging.is_reading.eq(headers.is_open),
            staging.descriptor.connect(self.descriptor),
            staging.skip.eq(self.skip),
            staging.data.connect(self.data),
            headers.source.connect(self.header),
        ]

    def events(self):
        """Return what it counts beside the events of any port, by the names of the counters.

        Frames that are classified are 32 cycles apart, so few come in a pass of the tally.
        """
        decision, verdict = self.decision, self.decision.verdict
        decides, placed   = decision.measured.valid, self.staging.is_placed
        lacks_header      = self.keep_headers & ~verdict.is_lost & ~verdict.has_header
        return [
            Event("classified",         self.parser.seen & self.parser.frame.is_classified,   3),
            Event("matched",            decides & decision.matched,                           3),
            Event("passed",             decides & decision.measured.passed,                   3),
            Event("sampled",            decides & decision.sampled,                           3),
            Event("kept",               placed,                                               3),
            Event("damaged",            decides & decision.damaged,                           3),
            Event("own_frames",         decides & decision.own,                               3),
            Event("staging_dropped",    placed & verdict.is_lost,                             3),
            Event("headers_lost",       placed & lacks_header,                                3),
            Event("unplaced",           self.staging.keep & self.staging.decide & ~placed,    3),
        ]

    def add_csr(self):
        """Add the registers (docs/cores/monitor.md)."""
        self._keep = CSRStorage(4, name="keep", description="What a record of a frame is kept of.", fields=[
            CSRField("packets", size=1, description="The frame, up to snap_length."),
            CSRField("headers", size=1, description="The whole unified header."),
            CSRField("damaged", size=1, description="Frames with a wrong FCS or symbol errors, runts and giants, too."),
            CSRField("own",     size=1, description="Frames for the probe itself, too."),
        ])
        by_hash = [CSRField("by_hash", size=1, description="By the hash of the packet, not by count.")]*self.with_hash
        self._sample = CSRStorage(3 + self.with_hash, name="sample", description="Which of the frames that pass are kept.", fields=[
            CSRField("shift",   size=3, description="One of 2^shift, 0 to 4."),
            *by_hash,
        ])
        self._snap_length = WriteOnlyCSR(16, name="snap_length", reset=0xffff, description="Octets kept of a frame, at most.")
        if self.with_hash:
            self._sample_seed = WriteOnlyCSR(32, name="sample_seed", description="Of the hash of the packet.")
            self._table       = CSR(16, name="channel_table")
        self.add_clear_and_latch("Write: clear the counters, begin a new count of samples. "
            "A frame on its way is counted by those that come later (matched and on).", "Write: snapshot of all counters.")
        self.add_link_up()
        keep, sample = self._keep.fields, self._sample.fields
        of_hash = [
            self.sample_by_hash.eq(sample.by_hash),
            self.sample_seed.eq(self._sample_seed.storage),
            # Entry in the upper octet, channel in the lower one.
            self.table_write.eq(self._table.re),
            self.table_number.eq(self._table.r[8:]),
            self.table_value.eq(self._table.r),
        ] if self.with_hash else []
        self.comb += [
            self.enable.eq(keep.packets | keep.headers),
            self.snap_length.eq(self._snap_length.storage & Replicate(keep.packets, 16)),
            self.keep_headers.eq(keep.headers),
            self.keep_damaged.eq(keep.damaged),
            self.keep_own.eq(keep.own),
            self.sample_shift.eq(sample.shift),
            *of_hash,
        ]
