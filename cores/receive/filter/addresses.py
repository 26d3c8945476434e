# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Collects what the rows that an address matches say, as they pass."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FILTER_ROWS, Layer3

# Address Match ------------------------------------------------------------------------------------

class AddressMatch(LiteXModule):
    """Collects what the rows that match say.

    Parameters
    ----------
    row : Record(row_layout())
        The row that is compared; its terms and channel come a cycle later.
    compared, number : Signal(5), Signal(5)
        Its number, then and then.

    Attributes
    ----------
    rows, layer3 : Signal(32), Signal(2), in
        Of the frame: rows whose prefix it has, as of `PrefixVectors`.
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
    def __init__(self, row, compared, number):
        self.rows    = Signal(FILTER_ROWS)
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
        has_prefix = Signal()
        is_alike   = Signal()
        fits       = Signal(reset_less=True)
        self.comb += [
            has_prefix.eq(self.rows >> compared),
            is_alike.eq((self.layer3 != Layer3.NONE) & (row.is_ipv4 == (self.layer3 != Layer3.IPV6))),
            self.match.eq(self.runs & fits),
        ]
        self.sync += fits.eq(has_prefix & is_alike & row.is_used)

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
