# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Draws intervals of an exponential distribution."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import EXPONENTIAL_BITS, EXPONENTIAL_INDEX_BITS, LN2, exponential_table

WORD_BITS = 32
HALF_BITS = WORD_BITS//2
FAST      = 4 # Leading zeros that are taken at once.

class ExponentialInterval(LiteXModule):
    """Turns a random number into an interval: mean * -ln(u/2^32), by leading zeros and a table.

    Some 8 cycles, and one for each four leading zeros, and for each of the rest: 17 at most.

    Attributes
    ----------
    start : Signal(), in
        Takes ``u``; ``mean`` may come up to four cycles later, and stays until the next start.
    u : Signal(32), in
        Not 0.
    mean : Signal(32), in
        2^-5 ticks.
    is_ready : Signal(), out
    ticks, fraction : Signal(32), out
        Whole ticks and 2^-32 ticks, while ready.

    Source: formats.exponential_table, with E = z*LN2 + T[i].
    """
    def __init__(self):
        self.start    = Signal()
        self.u        = Signal(WORD_BITS)
        self.mean     = Signal(WORD_BITS)
        self.is_ready = Signal()
        self.ticks    = Signal(WORD_BITS)
        self.fraction = Signal(WORD_BITS)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"table"}
        self.table = table = Memory(EXPONENTIAL_BITS, 2**EXPONENTIAL_INDEX_BITS, init=exponential_table(), name="logarithms")
        port       = table.get_port(mode=READ_FIRST)
        self.specials += table, port
        m     = Signal(WORD_BITS, reset_less=True) # ``u`` without leading zeros, in the end.
        e     = Signal(WORD_BITS, reset_less=True) # -ln, in 5.27 fixed point.
        part  = Signal(EXPONENTIAL_BITS, reset_less=True)
        added = Signal(WORD_BITS)
        fast  = Signal()
        self.comb += [
            port.adr.eq(m[-1 - EXPONENTIAL_INDEX_BITS:-1]),
            fast.eq(m[-FAST:] == 0),
        ]
        self.sync += part.eq(port.dat_r)

        shifts  = Signal()
        adds    = Signal()
        self.fsm = fsm = FSM(reset_state="READY")
        fsm.act("READY",
            self.is_ready.eq(1),
            If(self.start, NextState("SHIFT")),
        )
        fsm.act("SHIFT",
            shifts.eq(~m[-1]),
            If(m[-1], NextState("LOOK-UP")),
        )
        fsm.act("LOOK-UP", NextState("ADD"))
        fsm.act("ADD", adds.eq(1), NextState("MULTIPLY"))
        fsm.act("MULTIPLY", NextState("SUM"))
        fsm.act("SUM",      NextState("READY"))
        self.comb += added.eq(Mux(adds, part, Mux(fast, FAST*LN2, LN2)))
        self.sync += [
            If(self.is_ready, m.eq(self.u)).Elif(shifts, m.eq(Mux(fast, m << FAST, m << 1))),
            If(self.start, e.eq(0)).Elif(shifts | adds, e.eq(e + added)),
        ]
        self.add_product(e)

    def add_product(self, e):
        """Multiply ``mean`` and ``e``, halves by halves."""
        halves  = [Signal(WORD_BITS, name=f"product_{name}", reset_less=True) for name in ("low", "cross", "other", "high")]
        middle  = Signal(WORD_BITS + 1, reset_less=True)
        low, cross, other, high = halves
        mean    = [self.mean[:HALF_BITS], self.mean[HALF_BITS:]]
        number  = [e[:HALF_BITS], e[HALF_BITS:]]
        self.sync += [
            low.eq(mean[0]*number[0]),
            cross.eq(mean[0]*number[1]),
            other.eq(mean[1]*number[0]),
            high.eq(mean[1]*number[1]),
            middle.eq(cross + other),
        ]
        self.comb += Cat(self.fraction, self.ticks).eq(Cat(low, high) + Cat(Constant(0, HALF_BITS), middle))
