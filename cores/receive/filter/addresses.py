# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Compares an address of a frame with the rows of its table as they pass."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import Layer3

# Address Match ------------------------------------------------------------------------------------

class AddressMatch(LiteXModule):
    """Collects what the rows that match say.

    Parameters
    ----------
    row : Record(row_layout())
        The row that is compared; its terms and channel, and ``number``, come a cycle later.
    number : Signal(5)

    Attributes
    ----------
    address, layer3 : Signal(128), Signal(2), in
        Of the frame.
    begins, runs : Signal(), in
        The first row of a frame, or any, was compared in the last cycle.
    match : Signal(), out
        It matches.
    seen : Signal(8), out
        Terms of all rows that match. Like all below, a cycle after the row was.
    found, first : Signal(), Signal(5), out
        A row matches; the lowest of them.
    names, channel : Signal(), Signal(3), out
        A row that matches names a channel; that of the lowest of them.
    """
    def __init__(self, row, number):
        self.address = Signal(128)
        self.layer3  = Signal(2)
        self.begins  = Signal()
        self.runs    = Signal()
        self.match   = Signal()
        self.seen    = Signal(8, reset_less=True)
        self.found   = Signal(reset_less=True)
        self.first   = Signal(5, reset_less=True)
        self.names   = Signal(reset_less=True)
        self.channel = Signal(3, reset_less=True)

        # # #

        # Compare.
        # --------
        # An octet is compared as a whole, up to some bit, or not at all.
        differs = Signal(17, reset_less=True)
        for octet in range(16):
            bits = []
            for bit in range(8):
                place = 8*octet + 7 - bit
                is_compared = row.whole[octet] | (row.bits[bit] if bit < 7 else 0)
                bits.append((self.address[place] ^ row.prefix[place]) & is_compared)
            self.sync += differs[octet].eq(row.some[octet] & (Cat(*bits) != 0))
        self.sync += differs[16].eq(
            ~row.is_used | (self.layer3 == Layer3.NONE) | (row.is_ipv4 == (self.layer3 == Layer3.IPV6)))
        self.comb += self.match.eq(self.runs & (differs == 0))

        # Collect.
        # --------
        # Rows go round: those of the second lap, from row 0 on, are lower than all of the first.
        is_fresh = Signal()
        kept     = Signal()
        self.comb += [
            is_fresh.eq(self.begins | (number == 0)),
            kept.eq(~self.begins),
        ]
        self.sync += self.seen.eq((Replicate(kept, 8) & self.seen) | (Replicate(self.match, 8) & row.terms))
        for takes, found, to, value in [
            (self.match,             self.found, self.first,   number),
            (self.match & row.names, self.names, self.channel, row.channel),
        ]:
            in_lap = Signal(reset_less=True) # One was found in this lap.
            self.sync += [
                found.eq((kept & found) | takes),
                in_lap.eq((~is_fresh & in_lap) | takes),
                If(takes & (is_fresh | ~in_lap), to.eq(value)),
            ]
