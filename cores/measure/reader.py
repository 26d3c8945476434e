# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lets the bus read a memory through a port that others use too."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

class SharedReader(LiteXModule):
    """Lets the bus read a memory in cycles in which nobody else does.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Read only, 32 bits, words; writes are acknowledged and do nothing.
    is_free : Signal(), in
        The bus may have the port in this cycle.
    take : Signal(), out
        It has it: the port's address is ``bus.adr``.
    value : Signal(32), in
        What was read, two cycles after ``take``: the memory's output after a register.
    """
    def __init__(self):
        self.bus     = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.is_free = Signal()
        self.take    = Signal()
        self.value   = Signal(32)

        # # #

        step = Signal(2)
        self.sync += step.eq(Cat(self.take, step[0]))
        self.comb += [
            self.take.eq(bus.cyc & bus.stb & self.is_free & (step == 0)),
            bus.ack.eq(step[1]),
            bus.dat_r.eq(self.value),
        ]
