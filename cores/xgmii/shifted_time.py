# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Moves times by cycles and columns, which aren't whole nanoseconds at 10 Gb/s."""

from migen import *

from litex.gen import *

PART_BITS = 8 # Of a nanosecond: 4 ps.
TIME_BITS = 64 + PART_BITS
HALF      = 32

def time_of(now, fraction):
    """Return a time with its part of a nanosecond, as an expression."""
    return Cat(fraction[-PART_BITS:], now)

class ShiftedTime(LiteXModule):
    """Adds one of two constants to a time, two cycles later, and cuts off the part of a nanosecond; in ``timebase``.

    Parameters
    ----------
    ps, other_ps : int
        Picoseconds to add, negative ones too; ``other_ps`` where ``choose``.

    Attributes
    ----------
    time : Signal(72), in
        2^-8 ns.
    choose : Signal(), in
    ns : Signal(64), out
    """
    def __init__(self, ps, other_ps):
        self.time   = Signal(TIME_BITS)
        self.choose = Signal()
        self.ns     = Signal(64, reset_less=True)

        # # #

        addends = [Constant(round(one*2**PART_BITS/1000) & (2**TIME_BITS - 1), TIME_BITS) for one in (ps, other_ps)]
        cut     = HALF + PART_BITS
        addend  = Signal(TIME_BITS)
        low     = Signal(cut + 1, reset_less=True)
        high    = Signal(64 - HALF, reset_less=True)
        self.comb += addend.eq(Mux(self.choose, addends[1], addends[0]))
        self.sync.timebase += [
            low.eq(self.time[:cut] + addend[:cut]),
            high.eq(self.time[cut:] + addend[cut:]),
            self.ns.eq(Cat(low[PART_BITS:cut], high + low[-1])),
        ]
