# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The bus's view of a memory that is still while it is read."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

# Snapshot Reader ----------------------------------------------------------------------------------

class SnapshotReader(LiteXModule):
    """Lets the bus read a memory, but not while it changes.

    Parameters
    ----------
    port : read port of the memory

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Read only, 32 bits, words; writes are acknowledged and do nothing.
    wait : Signal(), in
        Holds the acknowledge; what is read after it is what is there after it.
    """
    def __init__(self, port):
        self.bus  = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.wait = Signal()

        # # #

        step = Signal(2)
        self.comb += port.adr.eq(bus.adr[:len(port.adr)])
        self.sync += [
            bus.dat_r.eq(port.dat_r),
            step.eq(0),
            bus.ack.eq(0),
            If(bus.cyc & bus.stb & ~self.wait,
                step.eq(Cat((step == 0) & ~bus.ack, step[0])),
                bus.ack.eq(step[1]),
            ),
        ]
