# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Blocks in a SDRAM, written and read by bursts."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.capture.channels import UNIT_BITS
from liteprobe.cores.capture.open_block import ADDRESS_BITS, word_description
from liteprobe.cores.capture.ring_memory import UNITS, WORDS_BITS, Landing, fetched_description
from liteprobe.cores.formats import BLOCK_HEADER_WORDS

HEADER_BURST = BLOCK_HEADER_WORDS # Words of a first burst, which tell how long the block is.
LINE_WORDS   = 64                 # No burst goes beyond a multiple of these.

# Burst Ring ---------------------------------------------------------------------------------------

class BurstRing(LiteXModule):
    """Keeps blocks in a memory that is written and read by bursts of up to 64 words.

    Words that follow one another make one burst, across records, up to the next multiple of 64.

    Parameters
    ----------
    port : BurstPort
        Of the memory's controller.
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
        self.landing  = Landing()
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
            *[getattr(buffer.sink, name).eq(getattr(self.sink, name)) for name in ("data", "head", "close")],
            port.write_data.eq(buffer.source.data),
            buffer.source.ready.eq(port.takes),
            landing.valid.eq(port.takes),
            *[getattr(landing, name).eq(getattr(buffer.source, name)) for name in ("data", "head", "close")],
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
        self.comb += [
            extends.eq(is_open & ~is_done & (sink.address == follows)),
            ends.eq(sink.close | (sink.address[:6] == 63)),
            queue.sink.valid.eq(is_open & (is_done | (sink.valid & ~extends & self.buffer.sink.ready))),
            queue.sink.address.eq(start),
            queue.sink.rest.eq(count),
            sink.ready.eq(self.buffer.sink.ready & (extends | ~is_open | queue.sink.ready)),
            self.is_still.eq(~sink.valid & ~is_open & ~queue.source.valid & ~self.port.busy & ~self.landing.landed),
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
        """Read the header of a block, then the rest of it, where there is room for a burst."""
        source, words, port = self.source, self.source.words, self.port
        self.fifo = fifo = stream.SyncFIFO([("data", 32)], self.read_depth, buffered=True)
        self.read_valid = Signal()
        self.read_taken = Signal()
        self.next  = Signal(ADDRESS_BITS, reset_less=True)
        self.count = Signal(7)  # Of the next burst.
        left     = Signal(WORDS_BITS)
        got      = Signal(2)    # Words of the header that came.
        given    = Signal(WORDS_BITS)
        held     = Signal(max=self.read_depth + 1)
        to_line  = Signal(7)    # Words to the next multiple of 64.
        self.comb += [
            fifo.sink.valid.eq(port.gives),
            fifo.sink.data.eq(port.read_data),
            source.data.eq(fifo.source.data),
            source.first.eq(given == 0),
            source.last.eq(given == words - 1),
        ]
        taken = source.valid & source.ready
        self.sync += [
            held.eq(held + Mux(self.read_taken, self.count, 0) - taken),
            If(taken, given.eq(given + 1)),
            to_line.eq(64 - self.next[:6]),
            self.count.eq(Mux(left > to_line, to_line, left)),
        ]
        self.fsm = fsm = FSM(reset_state="IDLE")
        fsm.act("IDLE",
            NextValue(self.next, Cat(C(0, UNIT_BITS), self.fetch.unit)),
            NextValue(left, HEADER_BURST),
            NextValue(given, 0),
            NextValue(got, 0),
            If(self.fetch.valid, NextState("SETTLE-HEADER")),
        )
        fsm.act("SETTLE-HEADER", NextState("SETTLE-HEADER-2"))
        fsm.act("SETTLE-HEADER-2", NextState("ASK-HEADER"))
        fsm.act("ASK-HEADER",
            self.read_valid.eq(1),
            If(self.read_taken, NextValue(self.next, self.next + HEADER_BURST), NextState("HEADER")),
        )
        fsm.act("HEADER",
            If(port.gives,
                NextValue(got, got + 1),
                If(got == 1,
                    NextValue(left, port.read_data[:WORDS_BITS]),
                    NextValue(words, port.read_data[:WORDS_BITS] + BLOCK_HEADER_WORDS),
                ),
                If(got == HEADER_BURST - 1, NextState("SETTLE")),
            )
        )
        fsm.act("SETTLE", NextState("READ"))
        fsm.act("READ",
            self.read_valid.eq((left != 0) & (held <= self.read_depth - 64)),
            If(self.read_taken,
                NextValue(left, left - self.count),
                NextValue(self.next, self.next + self.count),
                NextState("SETTLE-2"),
            ),
            If(taken & source.last,
                self.fetch.ready.eq(1),
                NextState("IDLE"),
            )
        )
        fsm.act("SETTLE-2", NextState("SETTLE-3"))
        fsm.act("SETTLE-3", NextState("READ"))
        self.comb += If(fsm.ongoing("READ") | fsm.ongoing("SETTLE-2") | fsm.ongoing("SETTLE-3"),
            source.valid.eq(fifo.source.valid & ~(source.last & ~fsm.ongoing("READ"))),
            fifo.source.ready.eq(source.ready & ~(source.last & ~fsm.ongoing("READ"))),
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
