# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where blocks lie until the host has done with them; here in block RAM."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.capture.blocks import ADDRESS_BITS, word_description
from liteprobe.cores.capture.channels import CHANNEL_BITS, UNIT_BITS
from liteprobe.cores.capture.record import SplitMemory
from liteprobe.cores.formats import BLOCK_HEADER_WORDS, BLOCK_WORDS

WORDS_BITS   = bits_for(BLOCK_WORDS)
UNITS        = ADDRESS_BITS - UNIT_BITS
CHANNEL_BIT  = 8 # Of the last word of a header.

def fetched_description():
    """Return a word of a block that was fetched; ``words``: of the block with its header."""
    return stream.EndpointDescription([("data", 32)], [("words", WORDS_BITS)])

# Landing ------------------------------------------------------------------------------------------

class Landing(LiteXModule):
    """Tells of each block whose header is in the memory.

    Attributes
    ----------
    valid, data, head, close : Signal(), Signal(32), Signal(), Signal(), in
        A word that was written.
    landed : Signal(), out
        One cycle, a cycle after the last word of a header.
    number, channel : Signal(32), Signal(3), out
        Of that block; held until the next one's.
    """
    def __init__(self):
        self.valid   = Signal()
        self.data    = Signal(32)
        self.head    = Signal()
        self.close   = Signal()
        self.landed  = Signal()
        self.number  = Signal(32, reset_less=True)
        self.channel = Signal(CHANNEL_BITS, reset_less=True)

        # # #

        self.sync += [
            self.landed.eq(self.valid & self.close),
            If(self.valid & self.head, self.number.eq(self.data)),
            If(self.valid & self.close, self.channel.eq(self.data[CHANNEL_BIT:CHANNEL_BIT + CHANNEL_BITS])),
        ]

# Block RAM ----------------------------------------------------------------------------------------

class BlockRamRing(LiteXModule):
    """Keeps blocks in block RAM; takes and gives a word a cycle.

    Parameters
    ----------
    blocks : int
        8, 16 or 32: 6, 12 or 24 block RAMs of ECP5.

    Attributes
    ----------
    sink : Endpoint(word_description()), in
        Never stalls.
    is_still : Signal(), out
        All that came is in the memory.
    landing : Landing
    fetch : Endpoint([("unit", 18)]), in
        First word of a block to fetch, in units of 16 words; taken once its words are out.
    source : Endpoint(fetched_description()), out
        The words of that block, with ``first`` and ``last``.
    bus : wishbone.Interface, slave
        The memory, read only. A read waits while a block is fetched at full speed.
    words, blocks, address : int
        Size in words, and in blocks; where it is in the burst port's memory: nowhere.
    """
    depth = 8 # Words between memory and ``source``.

    def __init__(self, blocks=8):
        assert blocks in (8, 16, 32)
        self.blocks   = blocks
        self.words    = 384*blocks
        self.sink     = sink = stream.Endpoint(word_description())
        self.is_still = Signal()
        self.landing  = landing = Landing()
        self.fetch    = stream.Endpoint([("unit", UNITS)])
        self.source   = stream.Endpoint(fetched_description())
        self.bus      = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        self.memory = memory = SplitMemory(self.words)
        self.bits   = len(memory.write_address)
        self.comb  += [
            sink.ready.eq(1),
            self.is_still.eq(~sink.valid),
            memory.write.eq(sink.valid),
            memory.write_address.eq(sink.address),
            memory.write_data.eq(sink.data),
            landing.valid.eq(sink.valid),
            landing.data.eq(sink.data),
            landing.head.eq(sink.head),
            landing.close.eq(sink.close),
        ]
        self.asks    = Signal()          # A block's word is read in this cycle.
        self.address = Signal(self.bits) # Which.
        self.word    = Signal(32, reset_less=True)
        self.sync   += self.word.eq(memory.read_data)
        self.add_bus()
        self.add_fetch()

    def add_bus(self):
        """Let the bus read where no block's word is read."""
        bus  = self.bus
        step = Signal(2)
        self.comb += [
            self.memory.read_address.eq(Mux(self.asks, self.address, bus.adr[:self.bits])),
            bus.dat_r.eq(self.word),
            bus.ack.eq(step[1]),
        ]
        self.sync += step.eq(Cat(bus.cyc & bus.stb & ~self.asks & (step == 0), step[0]))

    def add_fetch(self):
        """Read the length of a block, then all of it."""
        source, words = self.source, self.source.words
        self.fifo = fifo = stream.SyncFIFO([("data", 32)], self.depth, buffered=False)
        arrives   = Signal(2)
        room      = Signal(max=self.depth + 1, reset=self.depth) # In the FIFO, less what is on its way.
        asked     = Signal(WORDS_BITS)
        given     = Signal(WORDS_BITS)
        reads     = Signal()
        wait      = Signal(2)
        self.comb += [
            fifo.sink.valid.eq(arrives[1]),
            fifo.sink.data.eq(self.word),
            fifo.source.connect(source, keep={"valid", "ready", "data"}),
            source.first.eq(given == 0),
            source.last.eq(given == words - 1),
            self.asks.eq(reads | self.fsm_sizes()),
        ]
        self.sync += [
            arrives.eq(Cat(reads, arrives[0])),
            room.eq(room - reads + (source.valid & source.ready)),
            If(source.valid & source.ready, given.eq(given + 1)),
        ]
        fsm = self.fsm
        fsm.act("IDLE",
            NextValue(asked, 0),
            NextValue(given, 0),
            NextValue(wait, 0),
            NextValue(self.address, Cat(C(1, UNIT_BITS), self.fetch.unit)),
            If(self.fetch.valid, NextState("SIZE")),
        )
        fsm.act("SIZE",
            NextValue(wait, wait + 1),
            NextValue(words, self.word[:WORDS_BITS] + BLOCK_HEADER_WORDS),
            If(wait == 2,
                NextValue(self.address, Cat(C(0, UNIT_BITS), self.fetch.unit)),
                NextState("READ"),
            )
        )
        fsm.act("READ",
            reads.eq((asked != words) & (room != 0)),
            If(reads, NextValue(asked, asked + 1), NextValue(self.address, self.address + 1)),
            If(source.valid & source.ready & source.last,
                self.fetch.ready.eq(1),
                NextState("IDLE"),
            )
        )

    def fsm_sizes(self):
        """Return whether the length of a block is read."""
        self.fsm = FSM(reset_state="IDLE")
        return self.fsm.ongoing("SIZE")
