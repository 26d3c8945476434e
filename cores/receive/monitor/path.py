# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The receive path of a port that monitors."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.capture.staging import Staging
from liteprobe.cores.measure.measured import measured_layout
from liteprobe.cores.measure.tally import Tally
from liteprobe.cores.receive.arrivals import Arrivals
from liteprobe.cores.receive.monitor.decide import Decision, copied, wait_cycles
from liteprobe.cores.receive.monitor.rss_table import RssTable
from liteprobe.cores.receive.monitor.hashes import FrameHashes
from liteprobe.cores.receive.monitor.events import monitor_events

# Numbers ------------------------------------------------------------------------------------------

arp_type  = 0x0806
broadcast = 2**48 - 1

staging_octets = 4096 # Of the staging memory.

# Monitor Path -------------------------------------------------------------------------------------

class MonitorPath(LiteXModule):
    """Classifies every frame that comes in at a port, says what is to be measured, and hands on what is kept.

    arrivals (mac -> stamp -> parse) -> filter, sample, distribute -> decide -> staging; never stalls, and counts whatever it
    can't keep.

    Parameters
    ----------
    clock : ProbeClock
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
        sampled by count alone; ``sample_by_hash`` stays 0, ``sample_seed`` and the table's inputs do nothing.

    Attributes
    ----------
    sink, management_source : as of `Arrivals`
        Rename eth_rx to the port's own domain.
    measured : Endpoint(measured_layout), out
        One cycle of ``valid`` for each frame that is classified, 32 cycles apart at the least; all is held until the next.
    arrivals : Arrivals
        ``arrivals.passing`` is for the meter's ``fields``.
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
    tally : Tally
        ``tally.bus`` is the Wishbone slave of the snapshot, ``tally.layout`` says where it has each counter.

    Limits: sys from 48 MHz for gigabit.
    """
    def __init__(self, clock, matcher, port=0, management_mac=None, pad_ticks=0, with_fields=False, with_hash=True):
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
        self.clear             = Signal()
        self.latch             = Signal()

        # # #

        self.arrivals = arrivals = Arrivals(clock, True, wait_cycles, with_management=management_mac is not None,
            pad_ticks=pad_ticks, with_fields=with_fields)
        self.sink, self.management_source = arrivals.sink, arrivals.management_source
        self.parser  = arrivals.parser
        self.staging = Staging(staging_octets)
        self.comb   += arrivals.mac.source.connect(self.staging.sink, omit={"ready"})
        self.add_filter(matcher, management_mac)
        if with_hash:
            self.hashes = hashes = FrameHashes(self.parser)
            self.comb += hashes.seed.eq(self.sample_seed)
        self.add_decision(matcher, with_hash)
        self.add_staging(port)
        self.tally = tally = Tally(monitor_events(self))
        self.comb += [tally.clear.eq(self.clear), tally.latch.eq(self.latch)]

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
            found.length.eq(parser.length),
            found.flags.eq(parser.flags),
            found.stamp.eq(self.arrivals.stamp),
            found.hash.eq(flow),
            found.is_probe.eq(parser.is_probe),
            *copied(found, parser.probe, "stream_id", "sequence", "tx_stamp"),
            found.is_own.eq(self.is_own),
            found.snapped.eq(staging.snapped),
            found.is_lost.eq(staging.is_lost),
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
            given.hash.eq(verdict.hash),
            given.has_header.eq(verdict.has_header),
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
