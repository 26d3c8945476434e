# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds blocks until the host has done with them: in block RAM, or in a SDRAM by bursts."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.blocks import ADDRESS_BITS, word_description
from liteprobe.cores.capture.channels import CHANNEL_BITS, UNIT_BITS
from liteprobe.cores.capture.record import SplitMemory
from liteprobe.cores.formats import BLOCK_HEADER_WORDS, BLOCK_WORDS
from liteprobe.cores.memory.ports import NUMBERS, REQUESTS, QueuedPort

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
            *copied(landing, sink, "valid", "data", "head", "close"),
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
        free      = Signal(max=self.depth + 1, reset=self.depth) # In the FIFO, less what is on its way.
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
            free.eq(free - reads + (source.valid & source.ready)),
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
            reads.eq((asked != words) & (free != 0)),
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

LINE_WORDS     = 64 # No burst goes beyond a multiple of these.
LANDING_CYCLES = 16 # From one to the next: the channel's number must be written meanwhile.

# Queued Landing -----------------------------------------------------------------------------------

class QueuedLanding(LiteXModule):
    """Tells of each block whose header is in the memory, behind a port that takes words long before: once its request is through.

    Parameters
    ----------
    port : QueuedPort

    Attributes
    ----------
    valid, data, head, close, landed, number, channel
        As of `Landing`; the word is one that the port takes.
    is_still : Signal(), out
        There is none to tell of.
    """
    def __init__(self, port):
        self.taken    = taken = Landing()
        self.valid    = taken.valid
        self.data     = taken.data
        self.head     = taken.head
        self.close    = taken.close
        self.landed   = Signal()
        self.number   = Signal(32, reset_less=True)
        self.channel  = Signal(CHANNEL_BITS, reset_less=True)
        self.is_still = Signal()

        # # #

        # A header is in one burst, and no other is in it: there are about as many as requests.
        self.requests = requests = stream.SyncFIFO([("request", NUMBERS)], 2*REQUESTS, buffered=False)
        self.blocks   = blocks   = stream.SyncFIFO([("number", 32), ("channel", CHANNEL_BITS)], 2*REQUESTS, buffered=False)
        through = Signal(max=2*REQUESTS + 1) # Of ``blocks``.
        pause   = Signal(max=LANDING_CYCLES)
        self.comb += [
            requests.sink.valid.eq(taken.landed),
            requests.sink.request.eq(port.last),
            requests.source.ready.eq(port.is_through(requests.source.request)),
            blocks.sink.valid.eq(taken.landed),
            *copied(blocks.sink, taken, "number", "channel"),
            blocks.source.ready.eq((through != 0) & (pause == 0)),
            self.is_still.eq(~taken.landed & ~blocks.source.valid),
        ]
        tells = blocks.source.ready
        self.sync += [
            through.eq(through + (requests.source.valid & requests.source.ready) - tells),
            self.landed.eq(tells),
            If(pause != 0, pause.eq(pause - 1)),
            If(tells, pause.eq(LANDING_CYCLES - 1), self.number.eq(blocks.source.number), self.channel.eq(blocks.source.channel)),
        ]

# Burst Ring ---------------------------------------------------------------------------------------

class BurstRing(LiteXModule):
    """Keeps blocks in a memory that is written and read by bursts of up to 64 words.

    Words that follow one another make one burst, across records, up to the next multiple of 64.

    Parameters
    ----------
    port : BurstPort or QueuedPort
        Of the memory's controller, or of `BurstPorts`.
    blocks : int
    address : int
        Of block 0 in the memory, words; a multiple of 64.

    Attributes
    ----------
    sink, is_still, landing, fetch, source, blocks, address
        As of `BlockRamRing`; ``sink`` stalls where the memory is slower.
    """
    write_depth, read_depth, segments = 256, 256, 16
    bus, words = None, 0 # The memory's own.

    def __init__(self, port, blocks, address):
        assert address % 64 == 0
        self.blocks   = blocks
        self.address  = address
        self.sink     = stream.Endpoint(word_description())
        self.is_still = Signal()
        self.landing  = QueuedLanding(port) if isinstance(port, QueuedPort) else Landing()
        self.fetch    = stream.Endpoint([("unit", UNITS)])
        self.source   = stream.Endpoint(fetched_description())

        # # #

        self.port = port
        self.add_write()
        self.add_segments()
        self.add_fetch()
        self.add_turns()

    def add_write(self):
        """Keep words until their burst."""
        port, landing = self.port, self.landing
        self.buffer = buffer = stream.SyncFIFO([("data", 32), ("head", 1), ("close", 1)], self.write_depth, buffered=True)
        self.comb += [
            buffer.sink.valid.eq(self.sink.valid & self.sink.ready),
            *copied(buffer.sink, self.sink, "data", "head", "close"),
            port.write_data.eq(buffer.source.data),
            buffer.source.ready.eq(port.takes),
            landing.valid.eq(port.takes),
            *copied(landing, buffer.source, "data", "head", "close"),
        ]

    def add_segments(self):
        """Gather words into bursts."""
        sink = self.sink
        self.queue = queue = stream.SyncFIFO([("address", ADDRESS_BITS), ("rest", 6)], self.segments, buffered=False)
        start    = Signal(ADDRESS_BITS, reset_less=True)
        count    = Signal(6)  # Words of the segment, less one.
        follows  = Signal(ADDRESS_BITS)
        is_open  = Signal()
        is_done  = Signal() # Nothing may be added.
        extends  = Signal()
        ends     = Signal()
        is_still = ~sink.valid & ~is_open & ~queue.source.valid & ~self.port.busy & ~self.landing.landed
        if isinstance(self.landing, QueuedLanding):
            is_still &= self.landing.is_still
        self.comb += [
            extends.eq(is_open & ~is_done & (sink.address == follows)),
            ends.eq(sink.close | (sink.address[:6] == 63)),
            queue.sink.valid.eq(is_open & (is_done | (sink.valid & ~extends & self.buffer.sink.ready))),
            queue.sink.address.eq(start),
            queue.sink.rest.eq(count),
            sink.ready.eq(self.buffer.sink.ready & queue.sink.ready), # Not of ``extends``: it comes late.
            self.is_still.eq(is_still),
        ]
        self.sync += [
            If(queue.sink.valid & queue.sink.ready, is_open.eq(0), is_done.eq(0)),
            If(sink.valid & sink.ready,
                is_open.eq(1),
                is_done.eq(ends),
                follows.eq(sink.address + 1),
                count.eq(count + 1),
                If(~extends, start.eq(sink.address), count.eq(0)),
            ),
        ]

    def add_fetch(self):
        """Keep what was read until it is given away."""
        source, words, port = self.source, self.source.words, self.port
        self.fifo = fifo = stream.SyncFIFO([("data", 32)], self.read_depth, buffered=True)
        self.read_valid = Signal()
        self.read_taken = Signal()
        self.next  = Signal(ADDRESS_BITS, reset_less=True)
        self.count = Signal(7)           # Of the next burst; two cycles after ``next`` and ``left``.
        to_line    = Signal(7)
        self.to_ask   = left     = Signal(WORDS_BITS)
        self.got      = got      = Signal(WORDS_BITS)
        self.given    = given    = Signal(WORDS_BITS)
        self.held     = held     = Signal(max=self.read_depth + 1) # Words here or on their way.
        self.is_known = is_known = Signal()                        # How long the block is.
        is_wanted = Signal()
        taken     = Signal()
        self.comb += [
            is_wanted.eq(~is_known | (got != words)),
            fifo.sink.valid.eq(port.gives & is_wanted),
            fifo.sink.data.eq(port.read_data),
            source.data.eq(fifo.source.data),
            source.first.eq(given == 0),
            source.last.eq(given == words - 1),
            taken.eq(source.valid & source.ready),
        ]
        self.sync += [
            to_line.eq(LINE_WORDS - self.next[:6]),
            self.count.eq(Mux(left > to_line, to_line, left)),
            held.eq(held + Mux(self.read_taken, self.count, 0) - taken - (port.gives & ~is_wanted)),
            If(taken, given.eq(given + 1)),
            If(port.gives & is_wanted, got.eq(got + 1)),
        ]
        # A block is out when all of it was given; then nothing is asked either.
        self.fsm  = fsm = FSM(reset_state="IDLE")
        self.ends = taken & source.last
        self.comb += [
            source.valid.eq(fifo.source.valid & is_known & ~(source.last & ~fsm.ongoing("READ"))),
            fifo.source.ready.eq(taken),
            self.fetch.ready.eq(self.ends),
        ]
        self.add_read()

    def add_read(self):
        """Read a block, as if it were full until its header says how long it is; where there is space for a burst."""
        port, words, fsm, left, got = self.port, self.source.words, self.fsm, self.to_ask, self.got
        asked = Signal(7) # Of the first burst.
        fsm.act("IDLE",
            NextValue(self.next, Cat(C(0, UNIT_BITS), self.fetch.unit)),
            NextValue(left, BLOCK_WORDS),
            # What the last block didn't want has come when nothing is held.
            If(self.fetch.valid & (self.held == 0),
                NextValue(self.given, 0),
                NextValue(got, 0),
                NextValue(self.is_known, 0),
                NextState("SETTLE-FIRST"),
            ),
        )
        fsm.act("SETTLE-FIRST", NextState("SETTLE-FIRST-2"))
        fsm.act("SETTLE-FIRST-2", NextState("FIRST"))
        fsm.act("FIRST",
            self.read_valid.eq(1),
            NextValue(asked, self.count),
            If(self.read_taken, NextValue(self.next, self.next + self.count), NextState("LENGTH")),
        )
        fsm.act("LENGTH",
            NextValue(words, port.read_data[:WORDS_BITS] + BLOCK_HEADER_WORDS),
            If(port.gives & (got == 1), NextValue(self.is_known, 1), NextState("REST")),
        )
        fsm.act("REST",
            NextValue(left, 0),
            If(words > asked, NextValue(left, words - asked)),
            NextState("SETTLE"),
        )
        fsm.act("SETTLE", NextState("SETTLE-2"))
        fsm.act("SETTLE-2", NextState("READ"))
        fsm.act("READ",
            self.read_valid.eq((left != 0) & (self.held <= self.read_depth - LINE_WORDS)),
            If(self.read_taken,
                NextValue(left, left - self.count),
                NextValue(self.next, self.next + self.count),
                NextState("SETTLE"),
            ),
            If(self.ends, NextState("IDLE")),
        )

    def add_turns(self):
        """Give the port to writes and reads in turns."""
        port, queue = self.port, self.queue.source
        was_write = Signal()
        writes    = Signal()
        self.comb += [
            writes.eq(queue.valid & ~(was_write & self.read_valid)),
            port.request.valid.eq(queue.valid | self.read_valid),
            port.request.write.eq(writes),
            port.request.address.eq(Mux(writes, queue.address, self.next) + self.address),
            port.request.rest.eq(Mux(writes, queue.rest, self.count - 1)),
            queue.ready.eq(port.request.ready & writes),
            self.read_taken.eq(port.request.ready & port.request.valid & ~writes),
        ]
        self.sync += If(port.request.valid & port.request.ready, was_write.eq(writes))
