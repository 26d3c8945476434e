# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the IP packet in a frame ends, by its own word and by the frame's."""

from migen import *

from litex.gen import *

# Packet Bound -------------------------------------------------------------------------------------

class PacketBound(LiteXModule):
    """Counts the words that are left of an IP packet, and tells a length that doesn't fit the frame.

    Attributes
    ----------
    count : Signal(), in
        A whole word passes that is behind the one with the length and, for IPv6, behind the fixed header.
    load_ipv4, load_ipv6 : Signal(), in
        The first word of an IPv4 packet passes with its ``length``, or the second of an IPv6 packet.
    length : Signal(16), in
        Octets: of the whole packet (IPv4), or of what is behind its fixed header (IPv6).
    is_jumbogram : Signal(), in
        With ``load_ipv6``: a length of 0 is none.
    finish, last_be : Signal(), Signal(4), in
        The last word of the frame passes.
    is_inside : Signal(), out
        A whole word of the packet is left. Always, where the length of an IPv4 packet is 0.
    has_half_more : Signal(), out
        With ``is_inside``: half a word is left behind that word.
    is_long : Signal(), out
        The packet is longer than the frame, or says 0 in IPv4; of the frame before, from the cycle after its last word to the
        next load.
    """
    def __init__(self):
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
        odd          = Signal(2,  reset_less=True) # Octets behind them.
        tail         = Signal(2,  reset_less=True) # Octets of the frame behind its last whole word.
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
            If(self.finish,
                tail.eq(Cat(self.last_be[0] | self.last_be[2], self.last_be[0] | self.last_be[3])),
            ),
        ]
