# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Walks through the headers of any frame, and takes the words of its unified header as they pass."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import (
    EXTENSION, EXTENSIONS_MAX, EXTENSION_HEADERS, LABELS_MAX, LABEL_KINDS, SIGNATURE, TAGS_MAX, TAG_KINDS, UNIFIED_PLACES,
    IpProtocol, Layer3,
)
from liteprobe.cores.receive.frames import frame_layout

HOP_BY_HOP, _, FRAGMENT, AUTHENTICATION, _ = EXTENSION_HEADERS
TRANSPORTS = (IpProtocol.ICMP, IpProtocol.TCP, IpProtocol.UDP, IpProtocol.ICMPV6, IpProtocol.SCTP)

ARP_KINDS  = (0x0806, 0x8035)

class WalkStep:
    """Numbers the headers that a word may belong to; ``IP`` is the first word of either version."""
    LINK, TAG, LABEL, IP, IPV4, IPV6, EXTENSION, SKIP, TRANSPORT, ARP, DONE = range(11)

def any_of(signal, *values):
    """Return whether a signal has one of these values."""
    found = signal == values[0]
    for value in values[1:]:
        found = found | (signal == value)
    return found

# Word Places --------------------------------------------------------------------------------------

def place(name, number=0):
    """Return a word of the unified header."""
    return UNIFIED_PLACES[name][0] + number

class WordPlaces(LiteXModule):
    """Finds a place for each word of a frame, and takes it as the stream has it or from half a word before.

    Attributes
    ----------
    raw, half : Signal(32), Signal(16), in
        A word of the stream, and the last half of the one before.
    is_first : Signal(), in
        It is the frame's first.
    state, position, walked, tags, labels : Signal(4), Signal(4), Signal(8), Signal(3), Signal(3), in
        As in `UnifiedWalk`.
    address, data : Signal(5), Signal(32), out
        Place in the unified header, 0 for none, and the word.
    """
    def __init__(self):
        self.raw      = Signal(32)
        self.half     = Signal(16)
        self.is_first = Signal()
        self.state    = Signal(4)
        self.position = Signal(4)
        self.walked   = Signal(8)
        self.tags     = Signal(3)
        self.labels   = Signal(3)
        self.address  = Signal(5)
        self.data     = Signal(32)

        # # #

        is_raw      = Signal()
        hides_first = Signal()
        hides_last  = Signal()
        is_udp      = self.walked == IpProtocol.UDP
        is_icmp     = any_of(self.walked, IpProtocol.ICMP, IpProtocol.ICMPV6)
        self.comb += [
            Case(self.state, {
                WalkStep.LINK      : [is_raw.eq(1), If(self.position != 3, self.at(place("destination_mac") | self.position[:2]))],
                WalkStep.TAG       : self.at(place("tags")   | self.tags[:2]),
                WalkStep.LABEL     : self.at(place("labels") | self.labels[:2]),
                WalkStep.IP        : self.at(place("ip")),
                WalkStep.IPV4      : self.at_position({
                    1: place("ip", 1), 2: place("ip", 2), 3: place("source"), 4: place("destination"),
                }),
                # Source and destination follow one another in both headers.
                WalkStep.IPV6      : self.at_position({
                    1: place("ip", 1), **{2 + number: place("source", number) for number in range(8)},
                }),
                WalkStep.EXTENSION : If(self.walked == FRAGMENT, self.at(place("ip", 2))),
                WalkStep.TRANSPORT : [
                    # A probe's words lie half a word further.
                    is_raw.eq(is_udp & self.position[1]),
                    hides_first.eq(is_udp & (self.position == 2)),
                    hides_last.eq(is_icmp),
                    self.at_position({
                        0: place("source_port"),
                        1: place("sequence"),
                        2: Mux(is_udp, place("detail"), 0),
                        3: Mux(is_udp, place("sequence"), place("detail")),
                    }),
                ],
                WalkStep.ARP       : [
                    is_raw.eq(self.position == 3),
                    self.at_position({1: place("ip"), 3: place("source"), 6: place("destination")}),
                ],
            }),
            If(self.is_first,
                self.at(place("destination_mac")),
                is_raw.eq(1), hides_first.eq(0), hides_last.eq(0),
            ),
            self.data[:16].eq(Mux(is_raw, self.raw[:16], self.half)      & Replicate(~hides_first, 16)),
            self.data[16:].eq(Mux(is_raw, self.raw[16:], self.raw[:16])  & Replicate(~hides_last,  16)),
        ]

    def at(self, address):
        """The word goes there."""
        return self.address.eq(address)

    def at_position(self, addresses):
        """Each word of a header has a place of its own, or none."""
        return Case(self.position, {position: self.at(address) for position, address in addresses.items()})

# Packet Bound -------------------------------------------------------------------------------------

class PacketBound(LiteXModule):
    """Counts the words that are left of an IP packet, and tells a length that doesn't fit the frame.

    Attributes
    ----------
    count : Signal(), in
        A whole word passes that is after the one with the length and, for IPv6, after the fixed header.
    load_ipv4, load_ipv6 : Signal(), in
        The first word of an IPv4 packet passes with its ``length``, or the second of an IPv6 packet.
    length : Signal(16), in
        Octets: of the whole packet (IPv4), or of what is after its fixed header (IPv6).
    is_jumbogram : Signal(), in
        With ``load_ipv6``: a length of 0 is none.
    finish, last_be : Signal(), Signal(4), in
        The last word of the frame passes.
    is_inside : Signal(), out
        A whole word of the packet is left. Always, where the length of an IPv4 packet is 0.
    has_half_more : Signal(), out
        With ``is_inside``: half a word is left after that word.
    is_long : Signal(), out
        The packet is longer than the frame, or says 0 in IPv4; of the frame before, from the cycle after its last word to the
        next load.
    skip, skipped : Signal(), Signal(14), in
        With ``with_skip``: in a cycle without ``count``, so many words pass at once, not the frame's last eight octets.
    """
    def __init__(self, with_skip=False):
        self.count         = Signal()
        self.load_ipv4     = Signal()
        self.load_ipv6     = Signal()
        self.length        = Signal(16)
        self.is_jumbogram  = Signal()
        self.finish        = Signal()
        self.last_be       = Signal(4)
        self.is_inside     = Signal()
        self.has_half_more = Signal()
        self.is_long       = Signal()

        # # #

        left         = Signal(14, reset_less=True) # Whole words.
        odd          = Signal(2,  reset_less=True) # Octets after them.
        tail         = Signal(2,  reset_less=True) # Octets of the frame after its last whole word.
        is_unbounded = Signal(reset_less=True)
        is_zero_ipv4 = Signal(reset_less=True)

        # The first word of IPv4 is the packet's, too. A length of 0 becomes the greatest.
        before = Signal(14)
        less   = Signal()
        load   = Signal()
        self.comb += [
            load.eq(self.load_ipv4 | self.load_ipv6),
            before.eq(Mux(load, self.length[2:], left)),
            less.eq(self.load_ipv4 | (self.load_ipv6 & self.is_jumbogram) | (self.count & self.is_inside & ~load)),
            self.is_inside.eq(left != 0),
            self.has_half_more.eq((left[1:] != 0) | odd[1]),
            self.is_long.eq(Mux(is_unbounded, is_zero_ipv4, (left != 0) | (odd > tail))),
        ]
        self.sync += [
            left.eq(before - less),
            If(load,
                odd.eq(self.length[:2]),
                is_unbounded.eq(Mux(self.load_ipv4, self.length == 0, self.is_jumbogram)),
                is_zero_ipv4.eq(self.load_ipv4),
            ).Elif(self.count & ~self.is_inside,
                odd.eq(0) # The frame has a word there.
            ),
            # Headers lie half a word further than the stream's words.
            If(self.finish, tail.eq(Cat(self.last_be[0] | self.last_be[2], self.last_be[0] | self.last_be[3]))),
        ]
        if with_skip:
            self.skip    = Signal()
            self.skipped = Signal(len(left))
            rest         = Signal(len(left) + 1)
            self.comb += rest.eq(left - self.skipped)
            # ``odd`` is seen to by the frame's last words.
            self.sync += If(self.skip, left.eq(rest), If(rest[-1], left.eq(0)))

# Unified Walk -------------------------------------------------------------------------------------

class UnifiedWalk(LiteXModule):
    """Walks through the headers of a frame, a word a cycle, and hands on those words that its unified header keeps.

    Behind the 14 octets of Ethernet all headers lie at 2 mod 4: half a word from the stream's. So a word of a header is
    the last half of one word of the stream and the first half of the next; the addresses of ARP and the probe's header
    lie half a word further, and are taken as the stream has them. Without ``with_headers`` nobody asks whether what is
    neither TCP nor UDP was cut, and the walk ends where ports would be. ``with_rarp``: RARP is walked through like ARP.
    ``with_skip``: as of `PacketBound`; words may be passed over once ``state`` was DONE for four of them.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Frames; always ready.
    address, data : Signal(5), Signal(32), out
        With ``sink.valid``, a word of the unified header; none at address 0.
        Words that come to nothing are there, too: what holds is said by the signals below.
    is_after_ip, aligned : Signal(), Signal(32), out
        ``aligned`` is one of the first four whole words after the IP header (IPv6: the fixed one), within the packet.
    after_ip : Signal(3), out
        How many there were.
    is_cut, is_unparsed, is_bad_length : Signal(), out
        How the walk ended. Like all below, of the last frame until the cycle after the next one's first word.
    has_link, has_transport, has_tcp, has_probe, has_fragment, has_stamp : Signal(), out
        MACs, ports, words of TCP or of a probe, first word of a fragment header (IPv6), all of a probe's stamp are there.
    is_fragment, is_first_fragment : Signal(), out
    layer3, tags, labels : Signal(2), Signal(3), Signal(3), out
    ethertype, protocol, kinds : Signal(16), Signal(8), Signal(8), out
        As in the unified header.
    extensions : Array of two Signal(8), out

    Source: docs/design/unified-header.md; sim/models/receive/unified.py says the same in plain Python.
    """
    def __init__(self, with_headers=True, with_rarp=False, with_skip=False):
        self.with_headers      = with_headers
        self.arp_kinds         = ARP_KINDS if with_rarp else ARP_KINDS[:1]
        self.sink              = sink = stream.Endpoint(frame_layout(32))
        self.address           = Signal(5)
        self.data              = Signal(32)
        self.is_after_ip         = Signal()
        self.aligned           = Signal(32)
        self.after_ip            = Signal(3)
        self.is_cut            = Signal()
        self.is_unparsed       = Signal()
        self.is_bad_length     = Signal()
        self.has_link          = Signal()
        self.has_transport     = Signal()
        self.has_tcp           = Signal()
        self.has_probe         = Signal()
        self.has_fragment      = Signal()
        self.has_stamp         = Signal()
        self.is_fragment       = Signal()
        self.is_first_fragment = Signal()
        self.layer3            = Signal(2)
        self.tags              = Signal(3)
        self.labels            = Signal(3)
        self.ethertype         = Signal(16)
        self.protocol          = Signal(8)
        self.kinds             = Signal(8)
        self.extensions        = [Signal(8, name=f"extension{number}") for number in range(EXTENSIONS_MAX)]

        # # #

        self.add_state()

        # Words.
        # ------
        # A header's word: the last half of one of the stream's, and the first half of the next.
        half        = Signal(16, reset_less=True)
        self.octets = octets = [half[:8], half[8:], sink.data[:8], sink.data[8:16]]
        self.high, self.low  = Cat(octets[1], octets[0]), Cat(octets[3], octets[2])
        is_whole    = Signal()
        is_first    = Signal(reset=1)
        self.take   = Signal() # A whole word of a header.
        self.is_raw_whole = Signal() # One of the stream.
        self.comb += [
            sink.ready.eq(1),
            is_whole.eq(~sink.last | (sink.last_be[1:] != 0)),
            self.take.eq(sink.valid & is_whole & ~is_first),
            self.is_raw_whole.eq(~sink.last | sink.last_be[3]),
            self.aligned.eq(Cat(half, sink.data[:16])),
        ]
        self.sync += If(sink.valid, half.eq(sink.data[16:]), is_first.eq(sink.last))

        self.words = words = WordPlaces()
        self.comb += [
            *copied(words, self, "state", "position", "walked", "tags", "labels"),
            words.raw.eq(sink.data),
            words.half.eq(half),
            words.is_first.eq(is_first),
            *copied(self, words, "address", "data"),
        ]

        # Walk.
        # -----
        self.bound = bound = PacketBound(with_skip)
        self.comb += [
            bound.count.eq(self.take & any_of(self.state,
                WalkStep.IPV4, WalkStep.EXTENSION, WalkStep.SKIP, WalkStep.TRANSPORT, WalkStep.DONE)),
            bound.finish.eq(sink.valid & sink.last),
            bound.last_be.eq(sink.last_be),
        ]
        self.add_walk(sink.valid & is_first)
        self.add_behind(sink.valid & is_first)
        self.add_verdict()

    def add_state(self):
        """Add what the walk remembers."""
        self.state     = Signal(max=WalkStep.DONE + 1)
        self.position  = Signal(4)                  # Word of the header.
        self.walked    = Signal(8, reset_less=True) # Protocol of the header that comes next.
        self.skipped   = Signal(9, reset_less=True) # Words to pass over, less the last.
        self.is_later  = Signal(reset_less=True)    # Fragment offset is not 0.
        self.is_more   = Signal(reset_less=True)    # Fragments follow.
        self.is_ipv6   = Signal(reset_less=True)
        self.versions  = Signal(2, reset_less=True) # Of IP that may come: 4, 6.
        self.stopped   = Signal()                   # Malformed, or beyond a limit.
        self.was_cut   = Signal()                   # By the end of the IP packet.
        self.bad_total = Signal()                   # IPv4 packet shorter than its header.
        self.is_payload = Signal()                  # Of UDP: it may end anywhere.

    def add_walk(self, starts):
        """Take a step with each word."""
        self.sync += [
            If(self.take,
                self.position.eq(self.position + 1),
                Case(self.state, {
                    WalkStep.LINK      : self.walk_link(),
                    WalkStep.TAG       : self.walk_tag(),
                    WalkStep.LABEL     : self.walk_label(),
                    WalkStep.IP        : self.walk_ip(),
                    WalkStep.IPV4      : self.walk_ipv4(),
                    WalkStep.IPV6      : self.walk_ipv6(),
                    WalkStep.EXTENSION : self.within(self.walk_extension()),
                    WalkStep.SKIP      : self.within(self.walk_skip()),
                    WalkStep.TRANSPORT : self.within(self.walk_transport()),
                    WalkStep.ARP       : self.walk_arp(),
                }),
            ),
            If(starts,
                self.state.eq(WalkStep.LINK),
                self.position.eq(1),
                *[signal.eq(0) for signal in [self.layer3, self.tags, self.labels, self.ethertype, self.kinds,
                    *self.extensions, self.has_link, self.has_transport, self.has_tcp, self.has_probe, self.has_fragment,
                    self.has_stamp, self.stopped, self.was_cut, self.bad_total]],
            ),
        ]

    def add_behind(self, starts):
        """Tell the first words after the IP header, whatever they are."""
        is_more = any_of(self.state, WalkStep.EXTENSION, WalkStep.SKIP)
        is_body = any_of(self.state, WalkStep.TRANSPORT, WalkStep.DONE) | (self.is_ipv6 & is_more)
        self.comb += self.is_after_ip.eq(self.take & self.layer3[1] & is_body & self.bound.is_inside & ~self.after_ip[2])
        self.sync += [
            If(self.is_after_ip, self.after_ip.eq(self.after_ip + 1)),
            If(starts, self.after_ip.eq(0)),
        ]

    def add_verdict(self):
        """Say how the walk ended: once the frame has, a header that still waits for words was cut."""
        is_ip = self.layer3[1]
        self.comb += [
            self.is_payload.eq((self.state == WalkStep.TRANSPORT) & (self.walked == IpProtocol.UDP) & (self.position[1:] != 0)),
            self.is_cut.eq(self.was_cut | ((self.state != WalkStep.DONE) & ~self.is_payload)),
            self.is_unparsed.eq(self.is_cut | self.stopped),
            self.is_bad_length.eq(self.bad_total | (is_ip & self.bound.is_long)),
            self.is_fragment.eq(is_ip & (self.is_later | self.is_more)),
            self.is_first_fragment.eq(is_ip & self.is_more & ~self.is_later),
            self.protocol.eq(self.walked & Replicate(is_ip, 8)),
        ]

    # What steps have in common.
    # --------------------------
    def leave(self, state):
        """The next word belongs to another header."""
        return [self.state.eq(state), self.position.eq(0)]

    def stop(self):
        """Parse nothing of what follows."""
        return [*self.leave(WalkStep.DONE), self.stopped.eq(1)]

    def within(self, step):
        """Stop where the IP packet ends."""
        return If(self.bound.is_inside, *step).Else(*self.leave(WalkStep.DONE), self.was_cut.eq(~self.is_payload))

    # Ethernet, tags, labels, ARP: what a word of each does.
    # -------------------------------------------------------
    def walk_type(self):
        """The ethertype in the last half of the word says what the next one is."""
        low    = self.low
        is_tag = any_of(low, *TAG_KINDS)
        return [
            self.ethertype.eq(low),
            *self.leave(WalkStep.DONE),
            self.versions.eq(Cat(low == 0x0800, low == 0x86dd)),
            If(any_of(low, 0x0800, 0x86dd), self.state.eq(WalkStep.IP)),
            If(any_of(low, *LABEL_KINDS), self.state.eq(WalkStep.LABEL), self.versions.eq(0b11)),
            If(any_of(low, *self.arp_kinds), self.state.eq(WalkStep.ARP)),
            If(is_tag, self.state.eq(WalkStep.TAG)),
            If(is_tag & (self.state == WalkStep.TAG) & (self.tags == TAGS_MAX - 1), *self.stop()),
        ]

    def walk_link(self):
        """Ethernet: the type is in the fourth word of the stream."""
        return [If(self.position == 3, self.has_link.eq(1), *self.walk_type())]

    def walk_tag(self):
        """A tag; ``ethertype`` still says of which kind: 0x8100, 0x88a8 and 0x9100 differ in bits 11 and 12."""
        kind = Cat(~self.ethertype[11], self.ethertype[11] | self.ethertype[12])
        return [
            Case(self.tags, {number: self.kinds[2*number:2*number + 2].eq(kind) for number in range(TAGS_MAX)}),
            self.tags.eq(self.tags + 1),
            *self.walk_type(),
        ]

    def walk_label(self):
        """A label; IP may be after the last."""
        return [
            self.labels.eq(self.labels + 1),
            If(self.octets[2][0], *self.leave(WalkStep.IP)).Elif(self.labels == LABELS_MAX - 1, *self.stop()),
        ]

    def walk_arp(self):
        """ARP, of IPv4 over Ethernet."""
        return [Case(self.position, {
            0 : If((self.high != 1) | (self.low != 0x0800), *self.stop()),
            1 : If(self.high != 0x0604, *self.stop()),
            6 : [self.layer3.eq(int(Layer3.ARP)), *self.leave(WalkStep.DONE)],
        })]

    # IP, and what is after it.
    # --------------------------
    def walk_ip(self):
        """The first word of IP: which version, and how long."""
        version, words, total = self.octets[0][4:], self.octets[0][:4], self.low
        is_ipv4  = Signal()
        is_ipv6  = Signal()
        is_short = Signal()
        self.comb += [
            is_ipv4.eq((version == 4) & self.versions[0]),
            is_ipv6.eq((version == 6) & self.versions[1]),
            is_short.eq((total != 0) & (total[6:] == 0) & (total[2:6] < words)),
            self.bound.load_ipv4.eq(self.take & (self.state == WalkStep.IP) & is_ipv4),
            self.bound.length.eq(Mux(self.state == WalkStep.IP, total, self.high)),
        ]
        return [
            self.is_ipv6.eq(is_ipv6),
            self.is_later.eq(0),
            self.is_more.eq(0),
            self.skipped.eq(words - 5),
            self.position.eq(1),
            If(is_ipv4,
                self.state.eq(WalkStep.IPV4),
                If(words < 5, *self.stop()).Elif(is_short, self.bad_total.eq(1), *self.stop()),
            ).Elif(is_ipv6,
                self.state.eq(WalkStep.IPV6),
            # Behind labels may be anything.
            ).Elif(self.versions == 0b11,
                self.state.eq(WalkStep.DONE),
            ).Else(*self.stop()),
        ]

    def walk_ipv4(self):
        """IPv4 from its second word on."""
        return [Case(self.position, {
            1 : [self.is_later.eq(self.low[:13] != 0), self.is_more.eq(self.low[13])],
            2 : self.walked.eq(self.octets[1]),
            4 : [
                self.layer3.eq(int(Layer3.IPV4)),
                *self.walk_next(),
                # ``skipped`` is less one already, with options.
                If(self.skipped != 0, *self.leave(WalkStep.SKIP), self.skipped.eq(self.skipped - 1)),
            ],
        })]

    def walk_ipv6(self):
        """IPv6 from its second word on."""
        self.comb += [
            self.bound.load_ipv6.eq(self.take & (self.state == WalkStep.IPV6) & (self.position == 1)),
            self.bound.is_jumbogram.eq((self.high == 0) & (self.octets[2] == HOP_BY_HOP)),
        ]
        return [Case(self.position, {
            1 : self.walked.eq(self.octets[2]),
            9 : [self.layer3.eq(int(Layer3.IPV6)), *self.walk_next()],
        })]

    def walk_next(self):
        """Whole headers follow: ``walked`` says what comes."""
        is_extension = self.is_ipv6 & any_of(self.walked, *EXTENSION_HEADERS)
        return [
            *self.leave(WalkStep.DONE),
            If(~self.is_later,
                If(any_of(self.walked, *TRANSPORTS), self.state.eq(WalkStep.TRANSPORT)),
                If(is_extension,
                    self.state.eq(WalkStep.EXTENSION),
                    If(self.extensions[-1][-1], *self.stop()), # One too many.
                ),
            ),
        ]

    def walk_extension(self):
        """The first word of an extension header of IPv6."""
        octets, (first, second) = self.octets, self.extensions
        return [
            If(first[-1], second.eq(self.walked | EXTENSION)).Else(first.eq(self.walked | EXTENSION)),
            self.walked.eq(octets[0]),
            *self.leave(WalkStep.SKIP),
            self.skipped.eq(Cat(0, octets[1])), # Length in pairs of words, without the first pair.
            Case(self.walked, {
                AUTHENTICATION : self.skipped.eq(octets[1]), # In words, without the first two.
                FRAGMENT       : [
                    self.skipped.eq(0),
                    self.has_fragment.eq(1),
                    self.is_later.eq(self.low[3:] != 0),
                    self.is_more.eq(self.low[0]),
                ],
            }),
        ]

    def walk_skip(self):
        """A word that nothing is taken from."""
        return [
            self.skipped.eq(self.skipped - 1),
            If(self.skipped == 0, *self.walk_next()),
        ]

    def walk_transport(self):
        """Walk through ports, and some of what is after them."""
        is_tcp, is_udp, signature = self.walked == IpProtocol.TCP, self.walked == IpProtocol.UDP, Cat(self.low, self.high)
        # Of SCTP the last.
        last = [self.walked == IpProtocol.ICMPV6, self.walked == IpProtocol.ICMP, ~is_tcp & ~(is_udp & (signature == SIGNATURE))]
        if not self.with_headers:
            last = [~is_tcp & ~is_udp, None, is_udp & (signature != SIGNATURE)]
        leave = {position: [If(ends, *self.leave(WalkStep.DONE))] for position, ends in enumerate(last) if ends is not None}
        return [Case(self.position, {
            **leave,
            0 : [self.has_transport.eq(1), *leave[0]],
            3 : If(is_tcp,
                If(self.octets[0][4:] < 5, *self.stop()).Else(self.has_tcp.eq(1), *self.leave(WalkStep.DONE))
            ),
            4 : self.has_probe.eq(1),
            # The stamp ends half a word after this one.
            5 : [self.has_stamp.eq(self.bound.has_half_more & self.is_raw_whole), *self.leave(WalkStep.DONE)],
        })]
