# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""When the next frame is due."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import TICK_NS_BITS

TICK_BITS = 61 # A tick is 8 ns, so ticks and nanoseconds share one 64-bit comparison.
HALF      = 32
AFTER_BITS = 33 # Ticks from frame to frame: an interval and a gap.

# From an event to the first start: the same for all ports, and longer than the longest management frame.
LEAD_TICKS  = 2048
# From the tick whose ``now`` lies TIMED_NS before ``start_time``, to the first start.
TIMED_NS    = 512
FAR_BITS    = 14 # Of nanoseconds: 16 us, beyond any management frame.
SETTLE_BITS = 4  # 16 ticks after an event all outputs follow it.

# Due Time -----------------------------------------------------------------------------------------

class DueTime(LiteXModule):
    """Keeps the tick at which the next frame is due, in absolute time; in ``timebase``.

    Each advance adds to the tick that was due, not to the tick of the start: a late frame moves none that follow.

    Attributes
    ----------
    now : Signal(64), in
        Present time (ns), a tick late.
    ticks : Signal(61), out
        Counts ticks. A count of its own, because 61 wires from the one of the clock, across the chip to each port, crowd it.
    after, carry : Signal(33), Signal(), in
        Ticks from the frame that is due to the next one, and one more; count in the tick after ``advance``.
    start_time : Signal(64), in
        ns, of the first SFD; must stand still.
    is_timed : Signal(), in
        While high, outputs are about ``start_time`` and ``now``; else about the next frame.
    begin : Signal(), in
        One pulse: the first frame is due ``lead`` ticks after the next one.
    lead : Signal(12), in
        With ``begin``.
    advance : Signal(), in
        One pulse as a frame starts: the next one is due ``after`` ticks later.
    disturb : Signal(), in
        Holds ``is_settled`` back, as an event does: a mode will change.
    is_due : Signal(), out
        Four ticks after the due tick, until the next advance; only when settled. Registered.
    is_reached : Signal(), out
        ``start_time`` is at most TIMED_NS (plus six ticks) ahead. Registered.
    is_far : Signal(), out
        More than 2^FAR_BITS ns are left. Six ticks late.
    min_ticks : Signal(11), in
        For ``fits``; must stand still for three ticks before ``fits`` counts.
    fits : Signal(), out
        At least ``min_ticks`` + 1 ticks are left to the due tick. Five ticks late.
    is_settled : Signal(), out
    """
    def __init__(self):
        self.now               = Signal(64)
        self.ticks             = Signal(TICK_BITS)
        self.after             = Signal(AFTER_BITS)
        self.carry             = Signal()
        self.start_time        = Signal(64)
        self.is_timed          = Signal()
        self.begin             = Signal()
        self.lead              = Signal(12)
        self.advance           = Signal()
        self.disturb           = Signal()
        self.is_due            = Signal()
        self.is_reached        = Signal()
        self.is_far            = Signal()
        self.min_ticks         = Signal(FAR_BITS - TICK_NS_BITS)
        self.fits              = Signal()
        self.is_settled        = Signal()

        # # #

        # Numbers go without a reset: they count only once settled.
        self.due       = Signal(TICK_BITS, reset_less=True) # Tick.
        self.remaining = Signal(64, reset_less=True)        # ns left, less one, three ticks ago.
        self.add_schedule()
        self.add_remaining()
        self.add_verdicts()

    def add_schedule(self):
        """Add what is between two frames in two halves, a tick each."""
        begin    = Signal() # Events are registered: they come late in the tick and go far.
        advance  = Signal()
        lead     = Signal(12, reset_less=True)
        carry    = Signal(reset_less=True)
        carry_d  = Signal(reset_less=True)
        step     = Signal(AFTER_BITS, reset_less=True)
        add_low  = Signal()
        add_high = Signal()
        unused   = Signal(2)
        self.sync.timebase += [
            self.ticks.eq(self.ticks + 1),
            begin.eq(self.begin),
            advance.eq(self.advance),
            lead.eq(self.lead),
            add_low.eq(begin | advance),
            add_high.eq(add_low),
            If(advance,
                step.eq(self.after),
                carry.eq(self.carry),
            ),
            If(begin,
                step.eq(lead),
                carry.eq(0),
                self.due.eq(self.ticks),
            ),
            If(add_low,
                # One adder each: the carry comes in through an extra lowest bit.
                Cat(unused[0], self.due[:HALF], carry_d).eq(
                    Cat(Constant(1, 1), self.due[:HALF]) + Cat(carry, step[:HALF])),
            ),
            If(add_high,
                Cat(unused[1], self.due[HALF:]).eq(
                    Cat(Constant(1, 1), self.due[HALF:]) + Cat(carry_d, step[HALF:])),
            ),
        ]

    def add_remaining(self):
        """Subtract the present from what is waited for, in two halves, a tick apart."""
        is_timed  = Signal() # Registered: it goes to every bit.
        target    = Signal(64, reset_less=True)
        present   = Signal(64, reset_less=True)
        present_d = Signal(64 - HALF, reset_less=True)
        low       = Signal(HALF, reset_less=True)
        borrow    = Signal(reset_less=True)
        unused    = Signal(2)
        self.sync.timebase += [
            is_timed.eq(self.is_timed),
            target.eq(Mux(is_timed, self.start_time, Cat(Constant(0, TICK_NS_BITS), self.due))),
            present.eq(Mux(is_timed, self.now, Cat(Constant(0, TICK_NS_BITS), self.ticks))),
            present_d.eq(present[HALF:]),
            # One subtraction each: the borrow comes in through an extra lowest bit. An inverted operand would cost LUTs.
            Cat(unused[0], low, borrow).eq(Cat(Constant(0, 1), target[:HALF]) - Cat(Constant(1, 1), present[:HALF])),
            self.remaining[:HALF].eq(low),
            Cat(unused[1], self.remaining[HALF:]).eq(Cat(Constant(0, 1), target[HALF:]) - Cat(borrow, present_d)),
        ]

    def add_verdicts(self):
        """Compare what remains."""
        reach    = log2_int(TIMED_NS)
        is_past  = self.remaining[-1]
        beyond   = Signal(2) # At or beyond 2^FAR_BITS ns, by half.
        above    = Signal()
        between  = Signal() # Some bit from TIMED_NS to there.
        past_d   = Signal()
        enough   = Signal()
        settling = Signal(SETTLE_BITS + 1)
        self.comb += above.eq(beyond != 0)
        self.sync.timebase += [
            self.is_reached.eq((past_d | ~(above | between)) & self.is_settled),
            self.is_far.eq(above & ~past_d & self.is_settled),
            beyond.eq(Cat(self.remaining[FAR_BITS:HALF] != 0, self.remaining[HALF:] != 0)),
            between.eq(self.remaining[reach:FAR_BITS] != 0),
            past_d.eq(is_past),
            self.is_due.eq(is_past & self.is_settled),
            enough.eq(self.remaining[TICK_NS_BITS:FAR_BITS] >= self.min_ticks),
            self.fits.eq((above | enough) & ~past_d & self.is_settled),
            If(self.begin | self.advance | self.disturb,
                settling.eq(0),
                self.is_settled.eq(0),
            ).Elif(~settling[-1],
                settling.eq(settling + 1),
            ).Else(
                self.is_settled.eq(1),
            ),
        ]
