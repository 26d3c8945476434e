# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A register on a Wishbone bus, both ways."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone

# Bus Register -------------------------------------------------------------------------------------

class BusRegister(LiteXModule):
    """Parts a Wishbone master from what decides about its cycle: requests and answers are held in registers.

    The processor's pipeline waits on the answer in the cycle in which it comes, and the interconnect forms that answer from
    all slaves and the time-out; in one cycle that is the longest path of the probe.

    Parameters
    ----------
    master : wishbone.Interface
        Like the buses in address and data width, and in addressing.

    Attributes
    ----------
    sink, source : wishbone.Interface, slave and master
        Each access takes two cycles more. Bursts become single accesses.
    """
    def __init__(self, master):
        self.sink, self.source = sink, source = [
            wishbone.Interface(master.data_width, address_width=master.address_width, addressing=master.addressing)
            for _ in range(2)
        ]

        # # #

        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            *[NextValue(getattr(source, name), getattr(sink, name)) for name in ("adr", "dat_w", "sel", "we")],
            If(sink.cyc & sink.stb, NextState("ASK")),
        )
        fsm.act("ASK",
            source.cyc.eq(1),
            source.stb.eq(1),
            NextValue(sink.dat_r, source.dat_r),
            NextValue(sink.err, source.err),
            If(source.ack | source.err, NextState("ANSWER")),
        )
        fsm.act("ANSWER",
            sink.ack.eq(1),
            NextValue(sink.err, 0),
            NextState("IDLE"),
        )
