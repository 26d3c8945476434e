# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A memory with a burst port, in the place of a SDRAM, for benches."""

from migen import *

from litex.gen import *

from liteprobe.cores.memory.sdram import BurstPort

# Block Memory -------------------------------------------------------------------------------------

class BlockMemory(LiteXModule):
    """Serves a burst port from a memory of its own, a word a cycle.

    ``words``: int; a power of two. Addresses wrap.

    ``burst``: n words take n cycles to write, n + 2 to read, and one more from request to request.
    """
    def __init__(self, words):
        self.burst = burst = BurstPort()

        # # #

        memory  = Memory(32, words)
        port    = memory.get_port(write_capable=True, mode=READ_FIRST)
        address = Signal(max=words, reset_less=True)
        rest    = Signal.like(burst.request.rest, reset_less=True)
        reads   = Signal(2) # Words on their way out of the memory, and out of its output register.
        self.autocsr_exclude = {"memory"}
        self.specials += memory, port
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += [
            port.adr.eq(address),
            port.dat_w.eq(burst.write_data),
            port.we.eq(fsm.ongoing("WRITE")),
            burst.takes.eq(fsm.ongoing("WRITE")),
            burst.gives.eq(reads[1]),
            burst.busy.eq(~fsm.ongoing("IDLE")),
        ]
        self.sync += [
            reads.eq(Cat(fsm.ongoing("READ"), reads[0])),
            burst.read_data.eq(port.dat_r),
        ]
        step = [NextValue(address, address + 1), NextValue(rest, rest - 1)]
        fsm.act("IDLE",
            burst.request.ready.eq(1),
            NextValue(address, burst.request.address),
            NextValue(rest, burst.request.rest),
            If(burst.request.valid, If(burst.request.write, NextState("WRITE")).Else(NextState("READ"))),
        )
        fsm.act("WRITE",
            *step,
            If(rest == 0, NextState("IDLE")),
        )
        fsm.act("READ",
            *step,
            If(rest == 0, NextState("LAST")),
        )
        fsm.act("LAST", # The last two words are on their way.
            If(reads == 0, NextState("IDLE")),
        )
