# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Receives the frames of a port that go through an emulated network."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.capture.staging import Staging
from liteprobe.cores.emulate.layouts import IP_BITS, arrival_layout
from liteprobe.cores.emulate.reserved import ReservedFrames
from liteprobe.cores.emulate.rules import RuleMatcher
from liteprobe.cores.formats import DAMAGE, Layer3
from liteprobe.cores.formats.emulate import NOW_BITS, RULES
from liteprobe.cores.receive.arrivals import Arrivals
from liteprobe.cores.receive.decide import wait_cycles
from liteprobe.cores.receive.unified.walk import WalkStep
from liteprobe.cores.timebase.clock import PastTime

arp_type  = 0x0806
broadcast = 2**48 - 1

# Tick Clock ---------------------------------------------------------------------------------------

class TickClock(LiteXModule):
    """Lets arrivals be stamped in ticks.

    Attributes
    ----------
    now : Signal(64), timebase
        ``ticks`` of the `TimebaseClock` of the probe.
    past : PastTime
    """
    def __init__(self, clock):
        self.now  = clock.ticks
        self.past = PastTime(self.now)

class ForwardArrivals(Arrivals):
    """Takes in frames as `Arrivals` does; libpcap finds addresses in RARP, too."""
    with_rarp = True

# Forward Path -------------------------------------------------------------------------------------

class ForwardPath(LiteXModule):
    """Takes in the good frames of a port, each with the tick of its SFD and its class; never stalls, and counts what it drops.

    arrivals (mac -> stamp -> parse) -> rules -> staging.

    Parameters
    ----------
    clock : TimebaseClock
        Gives ``ticks`` in timebase.
    rules : int
        As of `RuleMatcher`.
    management_mac : int, 48 bits, or None
        As of `MonitorPath`: frames for the probe itself don't go through the network. Broadcast ARP goes both ways.
    longest : int
        Octets of a frame without FCS; a longer one is dropped.
    staging_octets : int
        Of the staging memory; a power of two, more than twice ``longest``.
    pad_ticks : int
        As of `ArrivalStamper`.
    with_marks : bool
        Of each frame is known whether it can be marked, and where: ``ect``, ``ip``.

    Attributes
    ----------
    sink, management_source : as of `Arrivals`
        Rename eth_rx to the port's own domain.
    origin : Signal(48), in
        Tick at which the time of the emulation is 0.
    runs : Signal(), in
        The emulation goes on: frames from ``origin`` on are taken.
    forwards_reserved : Signal(), in
        Frames that no bridge forwards are taken, too (`ReservedFrames`).
    source : Endpoint(arrival_layout), out
        In order, as they are classified.
    descriptor, data, skip : as of `Staging`
        Endpoint(descriptor_layout()), Endpoint([("data", 32)]), out; Signal(), in. Of each frame of ``source``, in order.
    arrivals : Arrivals
        ``arrivals.events`` are counted by who makes the path.
    matcher : RuleMatcher
        ``matcher.memory.bus``, ``matcher.looks``.
    damaged, overflows, own, reserved : Signal(), out
        Pulses: a frame with a wrong FCS, a runt, a giant or one longer than ``longest`` was dropped; a good one found no place;
        one was for the probe itself; one that no bridge forwards was dropped. ``overflows`` doesn't count what
        ``arrivals.events`` has.

    Limits: as of `Arrivals`.
    """
    def __init__(self, clock, rules=RULES, management_mac=None, longest=1536, staging_octets=4096, pad_ticks=0,
        with_marks=True):
        assert 2*longest < staging_octets
        self.origin     = Signal(NOW_BITS)
        self.runs       = Signal()
        self.forwards_reserved = Signal()
        self.source     = stream.Endpoint(arrival_layout)
        self.descriptor = stream.Endpoint(descriptor_layout())
        self.data       = stream.Endpoint([("data", 32)])
        self.skip       = Signal()
        self.damaged    = Signal()
        self.overflows  = Signal()
        self.own        = Signal()
        self.reserved   = Signal()

        # # #

        self.ticks    = ticks    = TickClock(clock)
        self.arrivals = arrivals = ForwardArrivals(ticks, True, wait_cycles, with_management=management_mac is not None,
            pad_ticks=pad_ticks, is_packed=True)
        self.sink, self.management_source = arrivals.sink, arrivals.management_source
        self.parser  = parser = arrivals.parser
        self.staging = staging = Staging(staging_octets)
        self.matcher = matcher = RuleMatcher(rules)
        self.is_own  = Signal(reset_less=True)
        self.comb   += [
            arrivals.mac.source.connect(staging.sink, omit={"ready"}),
            staging.classifies.eq(parser.classifies),
            staging.descriptor.connect(self.descriptor),
            staging.skip.eq(self.skip),
            staging.data.connect(self.data),
            *matcher.joined(parser),
            parser.headers.drop.eq(parser.ended & parser.headers.has_place),
            parser.headers.dropped.eq(parser.headers.place),
        ]
        if management_mac is not None:
            self.add_own(management_mac)
        self.frames      = frames = ReservedFrames()
        self.is_reserved = Signal(reset_less=True)
        self.comb       += copied(frames, arrivals.mac.source, "valid", "last", "data")
        self.sync       += If(parser.asks, self.is_reserved.eq(frames.is_reserved & ~self.forwards_reserved))
        self.ect = Signal(reset_less=True) # Its ECN codepoint isn't 0;
        self.ip  = Signal(IP_BITS, reset_less=True) # where its IP header is.
        if with_marks:
            self.add_ecn()
        self.add_decision(matcher, longest)

    def add_own(self, management_mac):
        """See whether a frame is for the probe itself."""
        key    = self.parser.key
        is_mac = Signal()
        is_arp = Signal()
        self.comb += [
            is_mac.eq(key.has_macs & (key.destination_mac == management_mac)),
            is_arp.eq(key.has_macs & (key.destination_mac == broadcast) & (self.parser.walk.ethertype == arp_type)),
            self.arrivals.for_management.eq(is_mac | is_arp),
        ]
        self.sync += If(self.parser.asks, self.is_own.eq(is_mac))

    def add_ecn(self):
        """Find the ECN codepoint of a frame, and keep where its IP header is."""
        walk   = self.parser.walk
        passes = Signal(2, reset_less=True)
        version  = walk.octets[0][4:]
        self.sync += [
            If(walk.take & (walk.state == WalkStep.IP),
                passes.eq(Mux(version == 6, walk.octets[1][4:6], walk.octets[1][:2])),
            ),
            If(self.parser.asks,
                self.ect.eq(walk.layer3[1] & (passes != 0)),
                self.ip.eq(Cat((walk.tags + walk.labels)[:IP_BITS - 1], walk.layer3 == Layer3.IPV6)),
            ),
        ]

    def add_decision(self, matcher, longest):
        """Hand on a frame once its stamp is known and the rules have answered; by then the next one may have ended."""
        arrivals, parser, staging, source = self.arrivals, self.parser, self.staging, self.source
        stamp      = Signal(NOW_BITS, reset_less=True)
        length     = Signal(16, reset_less=True)
        is_bad     = Signal(reset_less=True)
        is_own     = Signal(reset_less=True)
        is_reserved = Signal(reset_less=True)
        ecn        = Signal(1 + IP_BITS, reset_less=True)
        has_stamp  = Signal(reset_less=True)
        snapped    = Signal(16, reset_less=True)
        is_lost    = Signal(reset_less=True)
        is_due     = Signal()
        has_answer = Signal()
        since      = Signal(NOW_BITS)
        is_good    = Signal()
        decides    = Signal()
        wanted     = Signal()
        self.comb += [
            decides.eq(is_due & has_answer),
            since.eq(stamp - self.origin),
            is_good.eq(~is_bad & ~is_own & ~is_reserved),
            wanted.eq(is_good & self.runs & has_stamp & ~since[-1]),
            staging.decide.eq(decides),
            staging.keep.eq(wanted & ~is_lost & source.ready),
            staging.given_octets.eq(snapped),
            source.valid.eq(staging.is_placed),
            source.time.eq(since),
            source.length.eq(length),
            source.number.eq(matcher.number),
            Cat(source.ect, source.ip).eq(ecn),
            self.damaged.eq(decides & is_bad),
            self.own.eq(decides & is_own & ~is_bad),
            self.reserved.eq(decides & is_reserved & ~is_own & ~is_bad),
            self.overflows.eq(decides & wanted & ~staging.is_placed),
        ]
        self.sync += [
            If(arrivals.ready,
                stamp.eq(arrivals.stamp),
                has_stamp.eq(arrivals.has_stamp),
                length.eq(parser.length),
                is_bad.eq(((parser.flags & int(DAMAGE)) != 0) | (parser.length > longest)),
                is_own.eq(self.is_own),
                is_reserved.eq(self.is_reserved),
                ecn.eq(Cat(self.ect, self.ip)),
                snapped.eq(staging.snapped),
                is_lost.eq(staging.is_lost),
            ),
            If(decides, is_due.eq(0), has_answer.eq(0)),
            If(arrivals.ready, is_due.eq(1)),
            If(matcher.done, has_answer.eq(1)),
        ]
