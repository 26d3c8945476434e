# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives out a PPS: edges of the probe's own time."""

from migen import *

from litex.gen import *

TIME_BITS = 48 # Of ns that are compared: an edge is at most 39 hours ahead.
HALF      = TIME_BITS//2
# From the tick of a ``now`` to the first that the pin can be high for it.
LEAD_TICKS = 4
LEAD_NS    = 8*LEAD_TICKS

class PpsOutput(LiteXModule):
    """Raises a pin whenever ``now`` reaches the next of equally spaced times; in ``timebase``.

    The pin rises in the first tick whose ``now`` is at least the time asked for, or, where the clock is slewed, a tick
    beside it. Times are added up, so nothing drifts.

    Attributes
    ----------
    now : Signal(64), in
        ns.
    first : Signal(64), in
        Time of the first edge (ns). At most 39 hours ahead.
    period : Signal(32), in
        ns from edge to edge, from 256 ns; 0: no more edges.
    width : Signal(32), in
        Ticks that the pin stays high, from 3; less than the period.
    arm : Signal(), in
        One pulse: take the three. They must stand still as long as they are in use. A pulse that is high ends in its time.
    pin : Signal(), out
        Registered.
    late : Signal(), out
        One tick for each edge left out because its time had passed; so it is with the first one, when it is less than
        16 ticks ahead.

    After ``now`` was stepped, arm it again: a step forward counts each edge that was passed over as late, a step back
    waits.
    """
    def __init__(self):
        self.now    = Signal(64)
        self.first  = Signal(64)
        self.period = Signal(32)
        self.width  = Signal(32)
        self.arm    = Signal()
        self.pin    = Signal()
        self.late   = Signal()

        # # #

        self.is_past = Signal()
        self.target  = Signal(TIME_BITS, reset=2**TIME_BITS - LEAD_NS) # Of ``now``, as the pipeline sees it.
        self.clear   = Signal()
        self.load    = Signal() # Adds ``first``, not the period.
        self.add     = Signal()
        self.begin  = Signal()
        self.add_target()
        self.add_comparison()
        self.add_pulse()
        self.add_states()

    def add_target(self):
        """Add in two halves, a tick apart; set to minus the lead, it costs nothing to load."""
        addend   = Signal(TIME_BITS, reset_less=True)
        add_low  = Signal()
        add_high = Signal()
        carry    = Signal(reset_less=True)
        unused   = Signal()
        target   = self.target
        self.sync.timebase += [
            addend.eq(Mux(self.load, self.first[:TIME_BITS], self.period)),
            add_low.eq(self.add),
            add_high.eq(add_low),
            If(add_low, Cat(target[:HALF], carry).eq(target[:HALF] + addend[:HALF])),
            # One adder: the carry comes in through an extra lowest bit.
            If(add_high, Cat(unused, target[HALF:]).eq(Cat(Constant(1, 1), target[HALF:]) + Cat(carry, addend[HALF:]))),
            If(self.clear, target.eq(target.reset)),
        ]

    def add_comparison(self):
        """Subtract the target from the present in two halves, a tick apart."""
        high    = Signal(HALF, reset_less=True)
        borrow  = Signal(reset_less=True)
        result  = Signal(HALF + 1)
        unused  = Signal(HALF)
        # One subtraction: the borrow comes in through an extra lowest bit. No inverted operand: that would cost LUTs.
        self.comb += result.eq(Cat(Constant(0, 1), high) - Cat(borrow, self.target[HALF:]))
        self.sync.timebase += [
            Cat(unused, borrow).eq(self.now[:HALF] - self.target[:HALF]),
            high.eq(self.now[HALF:TIME_BITS]),
            self.is_past.eq(~result[-1]),
        ]

    def add_pulse(self):
        """Count the ticks of a pulse."""
        # From 2: two ticks pass between the comparison and the pin.
        count = Signal(32, reset=2)
        ends  = Signal()
        self.sync.timebase += [
            count.eq(count + 1),
            ends.eq(~(count < self.width) & ~self.begin), # Of ``>=`` Yosys makes two comparisons here.
            If(ends, self.pin.eq(0)),
            If(self.begin,
                self.pin.eq(1),
                count.eq(count.reset),
            ),
        ]

    def add_states(self):
        """Wait, raise the pin, add the period; look only once the comparison has followed."""
        settle   = 3 # Bits.
        timer    = Signal(settle + 1)
        is_first = Signal() # The first look: what is past already is late.
        is_asked = Signal()
        self.sync.timebase += If(self.arm, is_asked.eq(1)).Elif(self.clear, is_asked.eq(0))
        self.fsm = fsm = ClockDomainsRenamer("timebase")(FSM(reset_state="IDLE"))
        fsm.act("IDLE", If(is_asked, NextState("CLEAR")))
        fsm.act("CLEAR",
            self.clear.eq(1),
            NextValue(self.load, 1),
            If(self.period == 0, NextState("IDLE")).Else(NextState("ADD"))
        )
        fsm.act("ADD",
            self.add.eq(1),
            NextValue(timer, 0),
            NextState("SETTLE")
        )
        fsm.act("SETTLE",
            NextValue(timer, timer + 1),
            NextValue(is_first, 1),
            If(timer[-1], NextValue(self.load, 0), NextState("WAIT")),
            If(is_asked, NextState("CLEAR")),
        )
        fsm.act("WAIT",
            NextValue(is_first, 0),
            If(self.is_past, NextState("ADD")),
            If(is_asked, NextState("CLEAR")),
        )
        past = Signal()
        self.comb += past.eq(fsm.ongoing("WAIT") & self.is_past)
        self.sync.timebase += [
            self.begin.eq(past & ~is_first),
            self.late.eq(past & is_first),
        ]
