# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Whether edges come once a period: which are missing, and which don't belong."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import TICK_NS_BITS

TICK_BITS   = 32 - TICK_NS_BITS
LOST_BITS   = 3
LOST_AFTER  = 1 << (LOST_BITS - 1) # Periods without an edge, after which the next one sets the phase.

# PpsWatchdog -----------------------------------------------------------------------------------------

class PpsWatchdog(LiteXModule):
    """Compares edges with a period, by the oscillator's own ticks; in ``timebase``.

    An edge that is neither spurious nor the first one sets the phase anew, so the oscillator's error counts over one
    period only. After LOST_AFTER periods without any such edge, the next one sets the phase whenever it comes.

    Attributes
    ----------
    enable : Signal(), in
        While low, everything is forgotten.
    period : Signal(32), in
        ns, taken in whole ticks; from 64 ticks. Must stand still.
    window : Signal(32), in
        ns, taken in whole ticks; 0: no edge is spurious. Must stand still.
    edge : Signal(), in
        One tick for each edge, a fixed time after it.
    is_spurious : Signal(), out
        With ``edge``: it is further than ``window`` from a whole number of periods after the last one that was not. Registered.
    missed : Signal(), out
        One tick for each period without an edge: 1.5 periods after the last one, and so on. Registered.
    is_present : Signal(), out
        An edge that was not spurious came within the last 1.5 periods. Registered.
    """
    def __init__(self):
        self.enable      = Signal()
        self.period      = Signal(32)
        self.window      = Signal(32)
        self.edge        = Signal()
        self.is_spurious = Signal()
        self.missed      = Signal()
        self.is_present  = Signal()

        # # #

        left   = Signal(TICK_BITS) # Ticks to the end of the lap, which is half a period after the edge.
        period = Signal(TICK_BITS)
        center = Signal(TICK_BITS) # Ticks left at an edge; its two lowest bits are 0.
        near   = Signal() # Three ticks before the end of the lap were left a tick ago.
        lap    = Signal()
        accept = Signal()
        was_accepted = Signal()
        silent = Signal(LOST_BITS, reset=LOST_AFTER)
        seen   = Signal()
        self.comb += [
            period.eq(self.period[TICK_NS_BITS:]),
            center.eq(Cat(Constant(0, 2), self.period[TICK_NS_BITS + 3:])),
            accept.eq(self.edge & ~self.is_spurious),
        ]
        self.sync.timebase += [
            was_accepted.eq(accept),
            near.eq(left == 3),
            lap.eq(near & ~accept & ~was_accepted),
            left.eq(left - 1),
            If(lap, left.eq(period)),
            If(accept | ~self.enable, left.eq(center)),

            self.missed.eq(0),
            If(accept,
                seen.eq(1),
            ).Elif(lap,
                seen.eq(0),
                self.missed.eq(~seen),
            ),
            # A tick behind what it follows, for its logic is long.
            If(was_accepted,
                silent.eq(0),
            ).Elif(self.missed & ~silent[-1],
                silent.eq(silent + 1),
            ),
            If(~self.enable,
                seen.eq(0),
                silent.eq(LOST_AFTER),
                lap.eq(0),
                self.missed.eq(0),
            ),
            self.is_present.eq(silent == 0),
        ]
        self.add_verdict(left, center, silent[-1])

    def add_verdict(self, left, center, is_lost):
        """Form |left - center| - window in three steps.

        The verdict is of ``left`` three ticks before, and ``left`` is set to the center in the tick after an edge: so an edge
        after exactly one period finds ``center + 4`` there, and 4 is what the lowest bits leave out.
        """
        low      = 2
        distance = Signal(TICK_BITS + 1, reset_less=True)
        size     = Signal(TICK_BITS, reset_less=True) # One less than the distance, where that is negative.
        negative = Signal(reset_less=True)
        above    = Signal(TICK_BITS - low + 2)
        excess   = Signal(TICK_BITS + 2)
        is_on    = Signal()
        self.comb += [
            # One subtraction each: the borrow comes in through an extra lowest bit.
            above.eq(Cat(Constant(0, 1), left[low:]) - Cat(Constant(1, 1), center[low:])),
            excess.eq(Cat(Constant(0, 1), self.window[TICK_NS_BITS:]) - Cat(negative, size)),
        ]
        self.sync.timebase += [
            distance.eq(Cat(left[:low], above[1:])),
            size.eq(Mux(distance[-1], ~distance[:-1], distance[:-1])),
            negative.eq(distance[-1]),
            is_on.eq((self.window != 0) & ~is_lost),
            self.is_spurious.eq(excess[-1] & is_on),
        ]
