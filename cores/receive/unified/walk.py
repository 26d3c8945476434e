# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Walks through the headers of any frame, and takes the words of its unified header as they pass."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import (
    EXTENSION, EXTENSION_HEADERS, EXTENSIONS_MAX, LABEL_KINDS, LABELS_MAX, SIGNATURE, TAG_KINDS, TAGS_MAX, Layer3,
)
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.receive.unified.bound import PacketBound
from liteprobe.cores.receive.unified.numbers import *
from liteprobe.cores.receive.unified.words import WordPlaces

# Unified Walk -------------------------------------------------------------------------------------

class UnifiedWalk(LiteXModule):
    """Walks through the headers of a frame, a word a cycle, and hands on those words that its unified header keeps.

    Behind the 14 octets of Ethernet all headers lie at 2 mod 4: half a word from the stream's. So a word of a header is
    the last half of one word of the stream and the first half of the next; the addresses of ARP and the probe's header
    lie half a word further, and are taken as the stream has them. Without ``with_headers`` nobody asks whether what is
    neither TCP nor UDP was cut, and the walk ends where ports would be.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Frames; always ready.
    address, data : Signal(5), Signal(32), out
        With ``sink.valid``, a word of the unified header; none at address 0.
        Words that come to nothing are there, too: what holds is said by the signals below.
    is_behind, aligned : Signal(), Signal(32), out
        ``aligned`` is one of the first four whole words behind the IP header (IPv6: the fixed one), within the packet.
    behind : Signal(3), out
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
    def __init__(self, with_headers=True):
        self.with_headers      = with_headers
        self.sink              = sink = stream.Endpoint(frame_layout(32))
        self.address           = Signal(5)
        self.data              = Signal(32)
        self.is_behind         = Signal()
        self.aligned           = Signal(32)
        self.behind            = Signal(3)
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
            *[getattr(words, name).eq(getattr(self, name)) for name in ("state", "position", "walked", "tags", "labels")],
            words.raw.eq(sink.data),
            words.half.eq(half),
            words.is_first.eq(is_first),
            self.address.eq(words.address),
            self.data.eq(words.data),
        ]

        # Walk.
        # -----
        self.bound = bound = PacketBound()
        self.comb += [
            bound.count.eq(self.take & any_of(self.state, ipv4, extension, skip, transport, done)),
            bound.finish.eq(sink.valid & sink.last),
            bound.last_be.eq(sink.last_be),
        ]
        self.add_walk(sink.valid & is_first)
        self.add_behind(sink.valid & is_first)
        self.add_verdict()

    def add_state(self):
        """Add what the walk remembers."""
        self.state     = Signal(max=done + 1)
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
                    link      : self.walk_link(),
                    tag       : self.walk_tag(),
                    label     : self.walk_label(),
                    ip        : self.walk_ip(),
                    ipv4      : self.walk_ipv4(),
                    ipv6      : self.walk_ipv6(),
                    extension : self.within(self.walk_extension()),
                    skip      : self.within(self.walk_skip()),
                    transport : self.within(self.walk_transport()),
                    arp       : self.walk_arp(),
                }),
            ),
            If(starts,
                self.state.eq(link),
                self.position.eq(1),
                *[signal.eq(0) for signal in [self.layer3, self.tags, self.labels, self.ethertype, self.kinds,
                    *self.extensions, self.has_link, self.has_transport, self.has_tcp, self.has_probe, self.has_fragment,
                    self.has_stamp, self.stopped, self.was_cut, self.bad_total]],
            ),
        ]

    def add_behind(self, starts):
        """Tell the first words behind the IP header, whatever they are."""
        is_body = any_of(self.state, transport, done) | (self.is_ipv6 & any_of(self.state, extension, skip))
        self.comb += self.is_behind.eq(self.take & self.layer3[1] & is_body & self.bound.is_inside & ~self.behind[2])
        self.sync += [
            If(self.is_behind, self.behind.eq(self.behind + 1)),
            If(starts, self.behind.eq(0)),
        ]

    def add_verdict(self):
        """Say how the walk ended: once the frame has, a header that still waits for words was cut."""
        is_ip = self.layer3[1]
        self.comb += [
            self.is_payload.eq((self.state == transport) & (self.walked == udp) & (self.position[1:] != 0)),
            self.is_cut.eq(self.was_cut | ((self.state != done) & ~self.is_payload)),
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
        """What follows is not parsed."""
        return [*self.leave(done), self.stopped.eq(1)]

    def within(self, step):
        """Stop where the IP packet ends."""
        return If(self.bound.is_inside, *step).Else(*self.leave(done), self.was_cut.eq(~self.is_payload))

    # Ethernet, tags, labels, ARP: what a word of each does.
    # -------------------------------------------------------
    def walk_type(self):
        """The ethertype in the last half of the word says what the next one is."""
        low    = self.low
        is_tag = any_of(low, *TAG_KINDS)
        return [
            self.ethertype.eq(low),
            *self.leave(done),
            self.versions.eq(Cat(low == 0x0800, low == 0x86dd)),
            If(any_of(low, 0x0800, 0x86dd), self.state.eq(ip)),
            If(any_of(low, *LABEL_KINDS), self.state.eq(label), self.versions.eq(0b11)),
            If(low == 0x0806, self.state.eq(arp)),
            If(is_tag, self.state.eq(tag)),
            If(is_tag & (self.state == tag) & (self.tags == TAGS_MAX - 1), *self.stop()),
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
        """A label; IP may be behind the last."""
        return [
            self.labels.eq(self.labels + 1),
            If(self.octets[2][0], *self.leave(ip)).Elif(self.labels == LABELS_MAX - 1, *self.stop()),
        ]

    def walk_arp(self):
        """ARP, of IPv4 over Ethernet."""
        return [Case(self.position, {
            0 : If((self.high != 1) | (self.low != 0x0800), *self.stop()),
            1 : If(self.high != 0x0604, *self.stop()),
            6 : [self.layer3.eq(int(Layer3.ARP)), *self.leave(done)],
        })]

    # IP, and what is behind it.
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
            self.bound.load_ipv4.eq(self.take & (self.state == ip) & is_ipv4),
            self.bound.length.eq(Mux(self.state == ip, total, self.high)),
        ]
        return [
            self.is_ipv6.eq(is_ipv6),
            self.is_later.eq(0),
            self.is_more.eq(0),
            self.skipped.eq(words - 5),
            self.position.eq(1),
            If(is_ipv4,
                self.state.eq(ipv4),
                If(words < 5, *self.stop()).Elif(is_short, self.bad_total.eq(1), *self.stop()),
            ).Elif(is_ipv6,
                self.state.eq(ipv6),
            # Behind labels may be anything.
            ).Elif(self.versions == 0b11,
                self.state.eq(done),
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
                If(self.skipped != 0, *self.leave(skip), self.skipped.eq(self.skipped - 1)),
            ],
        })]

    def walk_ipv6(self):
        """IPv6 from its second word on."""
        self.comb += [
            self.bound.load_ipv6.eq(self.take & (self.state == ipv6) & (self.position == 1)),
            self.bound.is_jumbogram.eq((self.high == 0) & (self.octets[2] == hop_by_hop)),
        ]
        return [Case(self.position, {
            1 : self.walked.eq(self.octets[2]),
            9 : [self.layer3.eq(int(Layer3.IPV6)), *self.walk_next()],
        })]

    def walk_next(self):
        """Whole headers lie behind: ``walked`` says what comes."""
        is_extension = self.is_ipv6 & any_of(self.walked, *EXTENSION_HEADERS)
        return [
            *self.leave(done),
            If(~self.is_later,
                If(any_of(self.walked, icmp, tcp, udp, icmpv6, sctp), self.state.eq(transport)),
                If(is_extension,
                    self.state.eq(extension),
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
            *self.leave(skip),
            self.skipped.eq(Cat(0, octets[1])), # Length in pairs of words, without the first pair.
            Case(self.walked, {
                authentication : self.skipped.eq(octets[1]), # In words, without the first two.
                fragment       : [
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
        """What is behind IP: ports, and some of what is behind them."""
        is_tcp, is_udp, signature = self.walked == tcp, self.walked == udp, Cat(self.low, self.high)
        last = [self.walked == icmpv6, self.walked == icmp, ~is_tcp & ~(is_udp & (signature == SIGNATURE))] # Of SCTP the last.
        if not self.with_headers:
            last = [~is_tcp & ~is_udp, None, is_udp & (signature != SIGNATURE)]
        leave = {position: [If(ends, *self.leave(done))] for position, ends in enumerate(last) if ends is not None}
        return [Case(self.position, {
            **leave,
            0 : [self.has_transport.eq(1), *leave[0]],
            3 : If(is_tcp,
                If(self.octets[0][4:] < 5, *self.stop()).Else(self.has_tcp.eq(1), *self.leave(done))
            ),
            4 : self.has_probe.eq(1),
            # The stamp ends half a word behind this one.
            5 : [self.has_stamp.eq(self.bound.has_half_more & self.is_raw_whole), *self.leave(done)],
        })]
