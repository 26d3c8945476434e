# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Adds to the words of a block RAM, one a cycle."""

from migen import *

from litex.gen import *

from liteprobe.cores.measure.reader import SharedReader

WORD_BITS = 32

def late(module, signal, cycles=1, cancel=None):
    """Return what ``signal`` was some cycles ago; 0 from a cycle on in which ``cancel`` was 1 on its way."""
    for _ in range(cycles):
        delayed      = Signal.like(signal, reset_less=cancel is None)
        module.sync += delayed.eq(signal)
        if cancel is not None:
            module.sync += If(cancel, delayed.eq(0))
        signal = delayed
    return signal

class WordAdder(LiteXModule):
    """Reads a word in each cycle, adds a value to it or puts the value in its place, and writes it five cycles later.

    What is added is A - B and a carry. A is a value; B is 0, or the word itself: then the sum is A, and A - B says what came
    since the word was written. Longer numbers have their words one after the other, the lowest first.

    Parameters
    ----------
    depth : int
        Words.

    Attributes
    ----------
    address, target : Signal, in
        The word that a step reads; and where it writes it.
    writes, is_fresh : Signal(), in
        It writes; the word counts as 0.
    cancel : Signal(), in
        One cycle: steps that have not come to their third cycle write nothing; nor does the one in its first.
    values : list of (Signal(), Signal(32)), in
        A, in the cycle after: of the step's signals at most one is 1. Add them before the logic is finalized.
    subtracts : Signal(), in
        In the cycle after: B is the word.
    borrows : Signal(), in
        Two cycles after: the difference goes on where that of the step before ended.
    difference : Signal(32), out
        A - B, three cycles after. ``is_less``, two cycles after a step of the highest word: A is less than B, both signed.
    keeps, adds, carries : Signal(), in
        Three cycles after: the word stays what it is; one is added; the carry of the step before is.
    reader : SharedReader
        For the bus, in cycles without a step. `is_fresh` holds for its words too.
    """
    def __init__(self, depth):
        self.address    = Signal(max=depth)
        self.target     = Signal(max=depth)
        self.writes     = Signal()
        self.is_fresh   = Signal()
        self.cancel     = Signal()
        self.values     = []
        self.subtracts  = Signal()
        self.borrows    = Signal()
        self.difference = Signal(WORD_BITS, reset_less=True)
        self.is_less    = Signal()
        self.keeps      = Signal()
        self.adds       = Signal()
        self.carries    = Signal()
        self.reader     = reader = SharedReader()

        # # #

        memory = Memory(WORD_BITS, depth)
        read   = memory.get_port(mode=READ_FIRST)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, read, write
        self.comb     += read.adr.eq(self.address)

        # A and B.
        # --------
        word       = Signal(WORD_BITS, reset_less=True)
        self.value = a = Signal(WORD_BITS, reset_less=True)
        b          = Signal(WORD_BITS, reset_less=True)
        fresh_1    = late(self, self.is_fresh)
        self.sync += [
            word.eq(read.dat_r),
            If(fresh_1, word.eq(0)),
            b.eq(read.dat_r),
            If(fresh_1 | ~self.subtracts, b.eq(0)),
        ]
        self.comb += reader.value.eq(word)

        # A - B.
        # ------
        # One subtractor: the borrow comes in through an extra lowest bit.
        wide   = Signal(WORD_BITS + 2)
        unused = Signal()
        borrow = Signal()
        self.comb += [
            wide.eq(Cat(Constant(0, 1), a, Constant(0, 1)) - Cat(borrow & self.borrows, b)),
            self.is_less.eq(Mux(a[-1] ^ b[-1], a[-1], wide[WORD_BITS])),
        ]
        self.sync += Cat(unused, self.difference, borrow).eq(wide)

        # Sum.
        # ----
        added   = Signal(WORD_BITS, reset_less=True)
        total   = Signal(WORD_BITS, reset_less=True)
        adds    = Signal()
        carries = Signal()
        carry   = Signal()
        dropped = Signal()
        word_4  = late(self, word, 2)
        self.sync += [
            added.eq(self.difference),
            If(self.keeps, added.eq(0)),
            adds.eq(self.adds),
            carries.eq(self.carries),
            Cat(dropped, total, carry).eq(Cat(Constant(1, 1), word_4) + Cat(Mux(carries, carry, adds), added)),
        ]

        # Write.
        # ------
        is_word = late(self, self.writes, 3, cancel=self.cancel)
        self.comb += [
            write.adr.eq(late(self, self.target, 5)),
            write.dat_w.eq(total),
            write.we.eq(late(self, is_word, 2)),
        ]

    def do_finalize(self):
        # Each LUT takes two of the values.
        self.sync += self.value.eq(Reduce("OR", [Replicate(enable, WORD_BITS) & value for enable, value in self.values]))
