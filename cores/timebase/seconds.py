# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parts the time into seconds and nanoseconds: the truncated format of PTPv2."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import HeldCrossing, PulseCrossing, StillCrossing

SECOND_NS    = 10**9
SECONDS_BITS = 32
NS_BITS      = 32
NOW_BITS     = 64
YOUNG_BITS = 20 # Of the nanoseconds for which a second isn't shown: one millisecond.
REMAINDER_BITS = 31 # One more than a remainder takes: it is shifted before it is compared.

# Seconds Clock ------------------------------------------------------------------------------------

class SecondsClock(LiteXModule):
    """Knows the second that ``now`` is in, by dividing it again and again.

    Attributes
    ----------
    now : Signal(64), in, ``timebase``
        Present time (ns).
    seconds, base : Signal(32), out, ``sys``
        A second that began a millisecond ago or more, up to a second more, and its first nanosecond, modulo 2^32.
    timebase_seconds, timebase_base : Signal(32), out, ``timebase``
        The same there.

    Limits: after a step of ``now`` it takes up to a millisecond.
    """
    def __init__(self):
        self.now     = Signal(NOW_BITS)
        self.seconds = Signal(SECONDS_BITS)
        self.base    = Signal(NS_BITS)
        self.timebase_seconds = Signal(SECONDS_BITS)
        self.timebase_base    = Signal(NS_BITS)

        # # #

        self.take   = take   = PulseCrossing("sys", "timebase")
        self.sample = sample = HeldCrossing(NOW_BITS, "timebase", "sys")
        self.shown  = shown  = StillCrossing(SECONDS_BITS + NS_BITS, "sys", "timebase")
        low       = Signal(NS_BITS, reset_less=True)  # Of the sample.
        quotient  = Signal(NOW_BITS, reset_less=True) # With what is left of the dividend above it.
        remainder = Signal(REMAINDER_BITS, reset_less=True)
        shifted   = Signal(REMAINDER_BITS + 1)
        less      = Signal(REMAINDER_BITS + 2)
        left      = Signal(max=NOW_BITS + 1)
        self.comb += [
            sample.i.eq(self.now),
            sample.take.eq(take.o),
            shifted.eq(Cat(quotient[-1], remainder)),
            less.eq(shifted - SECOND_NS),
            shown.i.eq(Cat(self.seconds, self.base)),
        ]
        self.fsm = fsm = FSM(reset_state="ASK")
        fsm.act("ASK",
            take.i.eq(1),
            NextState("WAIT")
        )
        fsm.act("WAIT",
            NextValue(quotient, sample.o),
            NextValue(low, sample.o),
            NextValue(remainder, 0),
            NextValue(left, NOW_BITS),
            If(sample.taken, NextState("DIVIDE")),
        )
        fsm.act("DIVIDE",
            NextValue(remainder, Mux(less[-1], shifted, less)),
            NextValue(quotient, Cat(~less[-1], quotient[:-1])),
            NextValue(left, left - 1),
            If(left == 1, NextState("SHOW")),
        )
        # A second is shown when nobody asks for a time before it any more.
        fsm.act("SHOW",
            NextState("ASK"),
            If(remainder[YOUNG_BITS:] != 0,
                NextValue(self.seconds, quotient),
                NextValue(self.base, low - remainder),
                NextState("TELL"),
            ),
        )
        fsm.act("TELL",
            shown.take.eq(1),
            NextState("ASK"),
        )
        self.sync.timebase += If(shown.taken, Cat(self.timebase_seconds, self.timebase_base).eq(shown.o))

# Second Of ----------------------------------------------------------------------------------------

class SecondOf(LiteXModule):
    """Parts a time of the last millisecond into seconds and nanoseconds; three cycles of its clock.

    Attributes
    ----------
    time, seconds, base : Signal(32), in
        The low word of the time (ns); as of `SecondsClock`.
    second, nanosecond : Signal(32), out
        Three cycles later.
    """
    def __init__(self):
        self.time       = Signal(NS_BITS)
        self.seconds    = Signal(SECONDS_BITS)
        self.base       = Signal(NS_BITS)
        self.second     = Signal(SECONDS_BITS, reset_less=True)
        self.nanosecond = Signal(NS_BITS, reset_less=True)

        # # #

        since  = Signal(NS_BITS, reset_less=True)
        kept   = Signal(NS_BITS, reset_less=True)
        less   = Signal(NS_BITS, reset_less=True)
        of     = Signal(SECONDS_BITS, reset_less=True)
        of_kept = Signal(SECONDS_BITS, reset_less=True)
        is_next = Signal()
        self.comb += is_next.eq(~less[-1])
        self.sync += [
            since.eq(self.time - self.base),
            of.eq(self.seconds),
            kept.eq(since),
            less.eq(since - SECOND_NS),
            of_kept.eq(of),
            self.nanosecond.eq(Mux(is_next, less, kept)),
            self.second.eq(of_kept + is_next),
        ]
