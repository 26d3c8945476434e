# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Registers that are only written: a memory beside the bus remembers what a read shall show."""

from migen import *

from litex.soc.interconnect.csr import CSR, CSRStorage

class WriteOnlyCSR(CSRStorage):
    """A register whose bits don't go back to the bus, each through the bus's multiplexer: `ReadBack` shows what was written.

    Of the registers of a probe, settings are the most bits. In a bank without a `ReadBack` it reads 0.

    Parameters
    ----------
    size, reset, name, description : as of CSRStorage
        ``reset`` is the value at power-up. A reset of the SoC leaves a setting as it is, like the memory that shows it; so what
        acts upon a setting must be something that a reset does stop.

    Attributes
    ----------
    storage : Signal(size), out
    re : Signal(), out
        A pulse behind a write of the low word, as CSRStorage's.
    is_written : Signal(), out
        Any word is written in this cycle.
    """
    def __init__(self, size, name, description, reset=0):
        CSRStorage.__init__(self, size, reset=reset, reset_less=True, name=name, description=description)
        self.is_written = Signal()

    def do_finalize(self, busword, ordering):
        assert ordering == "big"
        for low in reversed(range(0, self.size, busword)):
            part = self.storage[low:low + busword]
            word = CSR(len(part), f"{self.name}{low//busword}")
            self.simple_csrs.append(word)
            self.sync += If(word.re, part.eq(word.r))
        self.sync += self.re.eq(word.re)
        self.comb += self.is_written.eq(Cat(*[word.re for word in self.simple_csrs]) != 0)

    def initial_words(self, busword):
        """Return the words at power-up, the highest first."""
        return [self.storage.reset.value >> low & (1 << busword) - 1 for low in reversed(range(0, self.size, busword))]
