# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds when the next frame is due and when a timed program starts, and extends the ticks of a program for ``sys``."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import TICK_NS_BITS
from liteprobe.cores.transmit.frames import DUE_BITS

HALF = 32

# From a start to tick 0 of its program: the same for all ports, and longer than the longest management frame.
LEAD_TICKS   = 2050
DUE_TO_START = 2  # Ticks from the tick at which a frame is due to its start.
# From the tick whose ``now`` lies TIMED_NS before ``start_time``, to the first start.
TIMED_NS     = 512
FAR_BITS     = 14 # Of nanoseconds: 16 us, beyond any management frame.

# Due Time -----------------------------------------------------------------------------------------

class DueTime(LiteXModule):
    """Counts the ticks of a program and tells when the next frame is due; in ``timebase``.

    All ticks are since the start of the program, modulo 2^20. A frame's tick stands in its descriptor, in absolute time: one
    that starts late moves none that follow.

    Attributes
    ----------
    runs : Signal(), in
        The program has started.
    lead : Signal(12), in
        Ticks from the first one in which ``runs`` is high to tick 0; must stand still for two ticks before.
    elapsed : Signal(20), out
        Present tick; constant while no program runs.
    due : Signal(20), in
        Tick of the frame in waiting: at most 2^19 ticks from now, either way.
    is_there : Signal(), in
        A frame is in waiting.
    is_due : Signal(), out
        From DUE_TO_START ticks after the due tick on, or after the frame came; until as many after it went. Registered.
    is_late : Signal(), out
        Likewise, from a tick later on.
    min_ticks : Signal(11), in
        For ``fits``; must stand still for three ticks before ``fits`` counts.
    fits : Signal(), out
        At least ``min_ticks`` + 1 ticks are left to the due tick of the frame in waiting. Three ticks late.
    """
    def __init__(self):
        self.runs      = Signal()
        self.lead      = Signal(12)
        self.elapsed   = Signal(DUE_BITS, reset_less=True) # Set in each tick.
        self.due       = Signal(DUE_BITS)
        self.is_there  = Signal()
        self.is_due    = Signal()
        self.is_late   = Signal()
        self.min_ticks = Signal(FAR_BITS - TICK_NS_BITS, reset_less=True)
        self.fits      = Signal()

        # # #

        counts  = Signal()
        left    = Signal(DUE_BITS, reset_less=True) # Ticks, less one, a tick ago.
        there   = Signal(2)
        is_past = Signal()
        beyond  = Signal()
        enough  = Signal()
        unused  = Signal()
        self.comb += is_past.eq(left[-1])
        self.sync.timebase += [
            counts.eq(self.runs),
            If(counts, self.elapsed.eq(self.elapsed + 1)).Else(self.elapsed.eq(1 - self.lead)),
            # One subtraction: the borrow comes in through an extra lowest bit.
            Cat(unused, left).eq(Cat(Constant(0, 1), self.due) - Cat(Constant(1, 1), self.elapsed)),
            there.eq(Cat(self.is_there, there)),
            self.is_due.eq(is_past & there[0]),
            self.is_late.eq(is_past & there[0] & (left != 2**DUE_BITS - 1)),
            beyond.eq(left[len(self.min_ticks):-1] != 0),
            enough.eq(~(left[:len(self.min_ticks)] < self.min_ticks)), # Of ``>=`` Yosys makes two comparisons here.
            self.fits.eq((beyond | enough) & ~self.is_due & there[1]),
        ]

# Start Time ---------------------------------------------------------------------------------------

class StartTime(LiteXModule):
    """Compares the present with the time at which a timed program starts; in ``timebase``.

    Attributes
    ----------
    now : Signal(64), in
        Present time (ns), a tick late.
    start_time : Signal(64), in
        ns, of the first SFD; must stand still.
    is_reached : Signal(), out
        ``start_time`` is at most TIMED_NS (plus five ticks) ahead. Registered.
    is_far : Signal(), out
        More than 2^FAR_BITS ns are left. Five ticks late.
    """
    def __init__(self):
        self.now        = Signal(64)
        self.start_time = Signal(64)
        self.is_reached = Signal()
        self.is_far     = Signal()

        # # #

        # Subtract in two halves, a tick apart.
        # -------------------------------------
        high      = Signal(64 - HALF, reset_less=True) # Of the present, a tick ago.
        low       = Signal(HALF, reset_less=True)
        borrow    = Signal(reset_less=True)
        remaining = Signal(64 - HALF, reset_less=True) # High half of the ns left, less one, two ticks ago.
        unused    = Signal(2)
        self.sync.timebase += [
            high.eq(self.now[HALF:]),
            # The borrow comes in through an extra lowest bit. An inverted operand would cost LUTs.
            Cat(unused[0], low, borrow).eq(Cat(Constant(0, 1), self.start_time[:HALF]) - Cat(Constant(1, 1), self.now[:HALF])),
            Cat(unused[1], remaining).eq(Cat(Constant(0, 1), self.start_time[HALF:]) - Cat(borrow, high)),
        ]

        # Compare what remains.
        # ---------------------
        reach   = log2_int(TIMED_NS)
        beyond  = Signal(2) # At or beyond 2^FAR_BITS ns, by half.
        between = Signal()  # Some bit from TIMED_NS to there.
        sooner  = Signal(2) # Both of the low half, which is there a tick before the high one.
        is_past = Signal()
        above   = Signal()
        self.comb += above.eq(beyond != 0)
        self.sync.timebase += [
            sooner.eq(Cat(low[FAR_BITS:] != 0, low[reach:FAR_BITS] != 0)),
            beyond.eq(Cat(sooner[0], remaining != 0)),
            between.eq(sooner[1]),
            is_past.eq(remaining[-1]),
            self.is_reached.eq(is_past | ~(above | between)),
            self.is_far.eq(above & ~is_past),
        ]

# Elapsed Ticks ------------------------------------------------------------------------------------

class Elapsed(LiteXModule):
    """Extends the pacer's count of ticks; in ``sys``.

    Parameters
    ----------
    bits : int

    Attributes
    ----------
    ticks : Signal(20), in
        Ticks since the start of the program, modulo 2^20, as they came across. Must be new every 2^19 ticks or sooner.
    is_running : Signal(), in
        The program has started: ``ticks`` counts.
    elapsed : Signal((bits, True)), out
        Some 30 ticks old; about as many before 0 as pass from a start until then, while the program hasn't started.
    """
    def __init__(self, bits=64):
        self.ticks      = Signal(DUE_BITS)
        self.is_running = Signal()
        self.elapsed    = Signal((bits, True), reset=-LEAD_TICKS)

        # # #

        low, high = self.elapsed[:DUE_BITS], self.elapsed[DUE_BITS:]
        self.sync += If(self.is_running,
            low.eq(self.ticks),
            # They have turned: by less than half of their range they always go on.
            If(low[-1] & ~self.ticks[-1], high.eq(high + 1)),
        ).Else(
            self.elapsed.eq(-LEAD_TICKS),
        )
