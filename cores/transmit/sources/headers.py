# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The headers of all streams, which are edited in place and read while frames are built."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, STREAMS

HALFWORD_BITS = 16
ADDRESS_BITS  = log2_int(STREAMS*HEADER_WORDS_OF_STREAM)

header_read_layout = [
    ("adr", ADDRESS_BITS, DIR_M_TO_S), # Word, 32 for each stream.
    ("re",  1,            DIR_M_TO_S),
    ("dat", 32,           DIR_S_TO_M), # In the cycle after ``re``, and until the next.
]

# Header Store -------------------------------------------------------------------------------------

class HeaderStore(LiteXModule):
    """Keeps the headers in two banks of halfwords, so that a window of 32 bits at any halfword is one access.

    A header is octets; octet 0 is in bits 7..0 of word 0. Bank 0 has bits 15..0 of each word, bank 1 bits 31..16.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Whole words: ``sel`` is ignored. It has a cycle that the engine leaves free, and an access takes three.
    edit : Signal(), in
        The engine has the port: it reads both banks, and writes those of ``writes``.
    adrs : list of two Signal(9), in
        Of each bank.
    writes : Signal(2), in
    dat_w : Signal(32), in
    value : Signal(32), out
        What was read, for one cycle: the second after ``edit``.
    read : Record(header_read_layout)
        For the builder, at any time. A word must not be written in the cycle in which it is read.
    """
    def __init__(self):
        self.bus    = bus = wishbone.Interface(data_width=2*HALFWORD_BITS, address_width=32, addressing="word")
        self.edit   = Signal()
        self.adrs   = [Signal(ADDRESS_BITS, name=f"adr_{n}") for n in range(2)]
        self.writes = Signal(2)
        self.dat_w  = Signal(2*HALFWORD_BITS)
        self.value  = Signal(2*HALFWORD_BITS, reset_less=True)
        self.read   = Record(header_read_layout)

        # # #

        self.autocsr_exclude = {"memory_0", "memory_1"}
        step = Signal(2)
        take = Signal()
        self.comb += [
            take.eq(bus.cyc & bus.stb & (step == 0) & ~self.edit),
            bus.ack.eq(step[1]),
            bus.dat_r.eq(self.value),
        ]
        self.sync += step.eq(Cat(take, step[0]))
        for n in range(2):
            part   = slice(HALFWORD_BITS*n, HALFWORD_BITS*(n + 1))
            memory = Memory(HALFWORD_BITS, 2**ADDRESS_BITS, name=f"halfwords_{n}")
            edit   = memory.get_port(write_capable=True, mode=NO_CHANGE)
            read   = memory.get_port(has_re=True, mode=READ_FIRST)
            setattr(self, f"memory_{n}", memory)
            self.specials += memory, edit, read
            self.comb += [
                edit.adr.eq(Mux(self.edit, self.adrs[n], bus.adr[:ADDRESS_BITS])),
                edit.dat_w.eq(Mux(self.edit, self.dat_w[part], bus.dat_w[part])),
                edit.we.eq(Mux(self.edit, self.writes[n], take & bus.we)),
                read.adr.eq(self.read.adr),
                read.re.eq(self.read.re),
                self.read.dat[part].eq(read.dat_r),
            ]
            self.sync += self.value[part].eq(edit.dat_r)
