# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes frames off the wire, stamps them, reads their headers and checks their fill: the same for every port."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import DAMAGE, FAULTS, PRBS_BITS, Layer3, UnifiedFlag
from liteprobe.cores.measure.measured import ERROR_BITS, HEADS, passing_layout
from liteprobe.cores.measure.tally import Event
from liteprobe.cores.prbs import LANE, first_word, place_of, prbs_advance
from liteprobe.cores.receive.mac import ReceiveMAC
from liteprobe.cores.receive.management import FrameStore
from liteprobe.cores.receive.stamp import ArrivalStamper, StampPairing
from liteprobe.cores.receive.unified.parser import UnifiedParser
from liteprobe.cores.receive.unified.walk import WalkStep

# Fill Check ---------------------------------------------------------------------------------------

class FillCheck(LiteXModule):
    """Counts the bits of a frame's fill that are not those of PRBS-31, which starts anew in each frame.

    The fill begins with the word after ``starts`` and ends with the frame, whatever its IP header says; with ``is_ipv6`` two
    octets before that, which mend the UDP checksum.

    Attributes
    ----------
    valid, data, last, last_be : Signal(), Signal(32), Signal(), Signal(4), in
        Words of the frame, as of the receive MAC.
    starts : Signal(), in
        The word that passes is the last one before the fill.
    is_ipv6 : Signal(), in
        With ``last``: of the frame.
    ended : Signal(), in
        Two cycles after ``last``: take what was counted.
    errors : Signal(17), out
        Of the frame that ``ended`` was for, from two cycles after it to one after the next one. Wraps beyond giants.
    """
    def __init__(self):
        self.valid   = Signal()
        self.data    = Signal(LANE)
        self.last    = Signal()
        self.last_be = Signal(LANE//8)
        self.starts  = Signal()
        self.is_ipv6 = Signal()
        self.ended   = Signal()
        self.errors  = Signal(ERROR_BITS, reset_less=True)

        # # #

        # Difference.
        # -----------
        in_fill    = Signal()
        checks     = Signal()
        expected   = Signal(LANE, reset_less=True) # The next word of the fill.
        difference = Signal(LANE, reset_less=True)
        has_word   = Signal() # ``difference`` isn't counted yet.
        ends       = Signal() # It is the frame's last.
        keep       = self.add_mask()
        # The generator's state is what was sent last, the last bit lowest.
        following, _ = prbs_advance(Cat(*[expected[place_of(LANE - 1 - n)] for n in range(PRBS_BITS)]))
        self.comb += checks.eq(self.valid & in_fill)
        self.sync += [
            If(self.valid, in_fill.eq((self.starts | in_fill) & ~self.last)),
            If(checks,
                expected.eq(following),
                difference.eq((self.data ^ expected) & Cat(*[Replicate(keeps, 8) for keeps in keep])),
            ),
            If(self.valid & self.starts, expected.eq(first_word())),
            has_word.eq((has_word & ~ends) | checks),
            ends.eq(checks & self.last),
        ]
        self.add_count(difference, has_word & (checks | ends), checks & self.hides_before)

    def add_mask(self):
        """Return which octets of a word are of the fill, and tell whether the one before this word isn't."""
        keep  = [Signal(name=f"keeps_{octet}") for octet in range(4)]
        three = self.last_be[2] | self.last_be[3] # Octets of the last word, or more.
        four  = self.last_be[3]
        two   = self.last_be[1:] != 0
        self.hides_before = Signal()
        for octet, (plain, shorter) in enumerate([(1, three), (two, four), (three, 0), (four, 0)]):
            self.comb += keep[octet].eq(~self.last | Mux(self.is_ipv6, shorter, plain))
        self.comb += self.hides_before.eq(self.last & self.is_ipv6 & ~two)
        return keep

    def add_count(self, difference, counts, hides):
        """Add up what differs."""
        octets  = [Signal(4, name=f"wrong_{octet}", reset_less=True) for octet in range(4)]
        counted = Signal()
        total   = Signal(ERROR_BITS, reset_less=True)
        is_done = Signal()
        for octet, wrong in enumerate(octets):
            self.sync += wrong.eq(sum(difference[8*octet + bit] for bit in range(8)))
        self.sync += [
            If(hides, octets[3].eq(0)),
            counted.eq(counts),
            If(counted, total.eq(total + (octets[0] + octets[1]) + (octets[2] + octets[3]))),
            If(self.valid & self.starts, total.eq(0)),
            is_done.eq(self.ended),
            If(is_done, self.errors.eq(total)),
        ]

# Arrivals -----------------------------------------------------------------------------------------

class Arrivals(LiteXModule):
    """Takes in the frames of a port with their stamps and what their headers say; never stalls.

    mac -> stamp -> parse. What is for management leaves by a port of its own.

    Parameters
    ----------
    clock : TimebaseClock
        Gives the time (ns) in timebase.
    with_headers : bool
        As of `UnifiedParser`.
    wait : int
        Cycles from the end of a frame until its stamp is taken, 31 the most. It is found after four, and one more for each SFD
        before it that became no frame.
    with_management : bool
        Stores frames ``for_management``.
    is_packed : bool
        As of `FrameStore`, of that.
    with_fields : bool
        With ``bit_errors``, ``passing`` and ``head``.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, eth_rx
        The PHY's source.
    management_source : Endpoint(eth_phy_description(32)), out
        Whole good frames; what finds no space is dropped and counted.
    for_management : Signal(), in
        In the cycle after a frame's last word (``parser.asks``, where it is classified): it is for management.
    mac, stamper, parser : ReceiveMAC, ArrivalStamper, UnifiedParser
        ``stamper.waiting`` is what `LineClockLatch` takes.
    ready : Signal(), out
        One cycle, ``wait`` cycles after ``parser.ended``: the stamp should be there. Where it isn't, that is counted.
    stamp, has_stamp : Signal(64), Signal(), out
        Of the frame that was classified last, from ``ready`` to the next ``parser.ended``: its stamp (ns), 0 where it has none.
    events : list of Event
        What a port counts of any frame.
    bit_errors : Signal(17), out
        As of `FillCheck`: of the frame that was classified last, from two cycles after ``parser.ended`` to one after the next.
    passing : Record(passing_layout()), out
        Words of the frames as they come.
    head : Signal(2), out
        ``passing.head`` of the frame that was classified last, from ``parser.ended`` to the next.

    Limits: sys from 48 MHz for gigabit. At least 32 cycles lie between frames that are classified.
    """
    with_rarp = False # As of `UnifiedParser`.

    def __init__(self, clock, with_headers, wait, with_management, pad_ticks=0, with_fields=False, is_packed=False):
        self.sink              = stream.Endpoint(eth_phy_description(8))
        self.management_source = stream.Endpoint(eth_phy_description(32))
        self.for_management    = Signal()
        self.ready             = Signal()
        self.stamp             = Signal(64)
        self.has_stamp         = Signal()
        self.bit_errors        = Signal(ERROR_BITS)
        self.passing           = Record(passing_layout())
        self.head              = Signal(max=HEADS, reset_less=True)

        # # #

        self.mac     = mac     = ReceiveMAC()
        self.stamper = stamper = ArrivalStamper(pad_ticks)
        self.parser  = parser  = UnifiedParser(with_headers, self.with_rarp)
        self.pairing = pairing = StampPairing()
        self.comb += [
            self.sink.connect(mac.sink),
            stamper.sfd.eq(mac.sfd),
            stamper.past.eq(clock.past.ago(stamper.past_ticks)),
            mac.source.connect(parser.sink),
            stamper.source.connect(pairing.stamps),
            pairing.report.eq(parser.seen),
            pairing.number.eq(parser.frame.number),
            pairing.is_wanted.eq(parser.frame.is_classified),
            If(self.has_stamp, self.stamp.eq(pairing.stamp)),
        ]
        age = Signal(max=wait + 1) # Of the frame, since its end.
        self.sync += [
            If(pairing.paired, self.has_stamp.eq(1)),
            If(age != 0, age.eq(age + 1)),
            If(self.ready, age.eq(0)),
            If(parser.ended, age.eq(1), self.has_stamp.eq(0)),
        ]
        self.comb += self.ready.eq(age == wait)
        if with_management:
            self.add_management(is_packed)
        if with_fields:
            self.add_fields()
        self.events = self.add_events(with_management)

    def add_management(self, is_packed):
        """Store what is for the probe; a word later, when the parser knows."""
        self.store = store = FrameStore(is_packed=is_packed)
        source, sink = self.mac.source, store.sink
        stream.set_reset_less(sink.payload)
        self.sync += copied(sink, source, "valid", "last", "payload")
        self.comb += [
            store.refuse.eq(~self.for_management),
            store.source.connect(self.management_source),
        ]

    def add_fields(self):
        """Check the fill of probe frames, and let others keep the first octets of all."""
        source, parser, passing = self.mac.source, self.parser, self.passing
        walk = parser.walk
        self.check = check = FillCheck()
        self.comb += [
            *copied(check, source, "valid", "data", "last", "last_be"),
            # The word with the stamp's last octets: only a probe's header comes so far.
            check.starts.eq(walk.take & (walk.state == WalkStep.TRANSPORT) & (walk.position == 5)),
            check.is_ipv6.eq(walk.layer3 == Layer3.IPV6),
            check.ended.eq(parser.ended),
            self.bit_errors.eq(check.errors),
            *copied(passing, source, "valid", "last", "data"),
        ]
        self.sync += [
            If(parser.classifies, passing.head.eq(passing.head + 1)),
            If(parser.asks,       self.head.eq(passing.head - 1)),
        ]

    def add_events(self, with_management):
        """Return the events, by the names of their counters.

        Widths: `Tally`. In 128 octet times come up to 16 of the shortest carriers with an SFD, or 64 without.
        """
        parser, seen, frame = self.parser, self.parser.seen, self.parser.frame
        stored  = self.store.stored  if with_management else Constant(0, 1)
        dropped = self.store.dropped if with_management else Constant(0, 1)
        length  = Signal(16)
        self.comb += If(seen, length.eq(frame.length))
        # Of a probe frame that isn't damaged: its IP length is wrong, or it ends in the probe's header.
        def has(flags):
            return (parser.flags & int(flags)) != 0
        length_error = (parser.ended & has(UnifiedFlag.PROBE) & ~has(DAMAGE) &
            (has(UnifiedFlag.LENGTH_ERROR) | ~parser.is_probe))
        # With the probe's header, but in no stream.
        bad_probe = parser.ended & parser.is_probe & has(FAULTS)
        return [
            Event("all_frames",         seen,                        6),
            Event("all_octets",         length,                     18),
            Event("fcs_errors",         seen & frame.fcs_error,      6),
            Event("length_errors",      length_error,                3),
            Event("bad_probes",         bad_probe,                   3),
            Event("runts",              seen & frame.runt,           6),
            Event("giants",             seen & frame.giant,          3),
            Event("preamble_errors",    self.mac.preamble_errors,    8),
            Event("symbol_errors",      seen & frame.symbol_error,   6),
            Event("overflows",          self.mac.overflows,          6),
            Event("stamp_errors",       self.ready & ~self.has_stamp, 3),
            Event("management_frames",  stored,                      5),
            Event("management_dropped", dropped,                     5),
            Event("unclassified",       seen & ~frame.is_classified, 6),
        ]
