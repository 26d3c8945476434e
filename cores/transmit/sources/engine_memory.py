# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives an engine a block RAM that the bus reads and writes in the cycles left."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

WORD_BITS = 32

class EngineMemory(LiteXModule):
    """Words with one port to read and one to write; the bus has them in cycles in which the engine has neither.

    Parameters
    ----------
    depth : int
        Words.
    banks : int
        Words that the engine reads at once, a power of two: word n is in bank n mod ``banks``.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Whole words: ``sel`` is ignored. An access takes three cycles where the engine leaves one free.
    read, read_adr : Signal(), Signal(max=depth//banks), in
    values : list of Signal(32), out
        What was read, of each bank, for one cycle: the second after ``read``.
    writes, write_adr, write_dat : lists of Signal() and Signal(32), in; Signal(max=depth//banks), in
        Each bank. A word must not be read in the cycle of its write.
    """
    def __init__(self, depth, banks=1):
        self.bus       = bus = wishbone.Interface(data_width=WORD_BITS, address_width=32, addressing="word")
        self.read      = Signal()
        self.read_adr  = Signal(max=depth//banks)
        self.write_adr = Signal(max=depth//banks)
        self.values    = [Signal(WORD_BITS, name=f"value_{n}", reset_less=True) for n in range(banks)]
        self.writes    = [Signal(name=f"write_{n}")                             for n in range(banks)]
        self.write_dat = [Signal(WORD_BITS, name=f"write_dat_{n}")              for n in range(banks)]

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {f"memory_{n}" for n in range(banks)}
        low   = log2_int(banks)
        step  = Signal(2)
        take  = Signal()
        bank  = bus.adr[:low] if low else Constant(0, 1)
        adr   = bus.adr[low:low + len(self.read_adr)]
        self.comb += [
            take.eq(bus.cyc & bus.stb & (step == 0) & ~self.read & (Cat(*self.writes) == 0)),
            bus.ack.eq(step[1]),
            bus.dat_r.eq(Array(self.values)[bank]),
        ]
        self.sync += step.eq(Cat(take & ~bus.we, step[0] | (take & bus.we)))
        for n in range(banks):
            memory = Memory(WORD_BITS, depth//banks, name=f"bank_{n}")
            read   = memory.get_port(mode=READ_FIRST)
            write  = memory.get_port(write_capable=True, mode=READ_FIRST)
            setattr(self, f"memory_{n}", memory)
            self.specials += memory, read, write
            self.comb += [
                read.adr.eq(Mux(self.read, self.read_adr, adr)),
                write.adr.eq(Mux(self.writes[n], self.write_adr, adr)),
                write.dat_w.eq(Mux(self.writes[n], self.write_dat[n], bus.dat_w)),
                write.we.eq(self.writes[n] | (take & bus.we & (bank == n))),
            ]
            self.sync += self.values[n].eq(read.dat_r)
