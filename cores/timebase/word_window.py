# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shows words of a memory as registers."""

from migen import *

from litex.gen import *

from liteprobe.cores.bus import WORD_BITS, WordStatus

# Word Window --------------------------------------------------------------------------------------

class WordWindow(LiteXModule):
    """Lets the bus see words of a memory as registers of their own, through one wire for each bit of a word.

    Every bit of an ordinary register has a wire of its own into the multiplexer of the bus.

    Parameters
    ----------
    registers : list of (WordStatus or CSR, list of int)
        Each register, and the numbers of its words in the memory, the highest word first. A CSR has one, and can be written.

    Attributes
    ----------
    number : Signal, out
        Word that the bus reads or writes in this cycle, if it does.
    value : Signal(32), in
        Word ``number``, in the same cycle.
    is_written : Signal(), out
        The bus writes word ``number`` in this cycle.
    written : Signal(32), out
        With ``is_written``; what a narrower register has no bits for may be anything.
    """
    def __init__(self, registers):
        self.number     = Signal(max=max(number for _, numbers in registers for number in numbers) + 1)
        self.value      = Signal(WORD_BITS)
        self.is_written = Signal()
        self.written    = Signal(WORD_BITS)

        # # #

        asked, writes = [], []
        for register, numbers in registers:
            if isinstance(register, WordStatus):
                self.comb += register.status.eq(Cat(*[self.value]*len(numbers)))
                asked     += [(register.asked[n], number) for n, number in enumerate(numbers)]
            else:
                register.is_of_memory = True
                self.comb += register.w.eq(self.value)
                asked     += [(register.we | register.re, *numbers)]
                writes    += [register]
        self.comb += self.number.eq(Reduce("OR", [Mux(strobe, number, 0) for strobe, number in asked]))
        if writes:
            widest = max(writes, key=lambda register: register.size) # Each shows what the bus writes, to any of them.
            self.comb += [
                self.is_written.eq(Reduce("OR", [register.re for register in writes])),
                self.written.eq(widest.r),
            ]
