# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads a ring of the SDRAM ahead, by bursts, into a buffer of block RAM."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import RING_WORDS
from liteprobe.cores.memory.sdram import BURST_WORDS

BUFFER_WORDS  = 1024
POSITION_BITS = 32 # Of a session.
AHEAD_BITS    = log2_int(RING_WORDS) + 1 # Of the distance of two positions in a ring.

class RingReader(LiteXModule):
    """Gives the words of a ring in their order, read ahead as far as they are written and the buffer has space.

    A position counts the words of a session from 0; position p lies in word p modulo ``words`` of the ring. A burst ends
    where the next multiple of 64 words begins, or what is written. The next one is asked for while the words of the one
    before still come.

    Parameters
    ----------
    port : BurstPort
        Only read from.
    address : int
        Of the ring in the memory, words; a multiple of 64.
    words : int
        Of the ring, a power of two up to RING_WORDS.

    Attributes
    ----------
    written : Signal(32), in
        Position up to which words are in the memory.
    wraps : Signal(), in
        Position 0 follows ``written``, which stands still: what is there comes again and again, without a pause.
    restart : Signal(), in
        Pulse: back to position 0, the buffer is emptied, and what was asked for is thrown away as it comes.
    ready : Signal(), out
        No restart is under way; by then ``written`` must be that of the new session. It takes 1100 cycles at most, and what
        the port takes for two bursts.
    source : Endpoint([("data", 32)]), out
    level : Signal(11), out
        Words in the buffer.
    fetched : Signal(32), out
        Position up to which the ring is needed no more: of the next word that leaves ``source``. While it ``wraps`` it counts on.
    """
    def __init__(self, port, address, words):
        assert address % BURST_WORDS == 0 and words % BURST_WORDS == 0 and words <= RING_WORDS
        self.written = Signal(POSITION_BITS)
        self.wraps   = Signal()
        self.restart = Signal()
        self.ready   = Signal()
        self.source  = stream.Endpoint([("data", 32)])
        self.level   = Signal(max=BUFFER_WORDS + 1)
        self.fetched = Signal(POSITION_BITS)

        # # #

        self.autocsr_exclude = {"buffer"}
        self.port     = port
        self.position = Signal(AHEAD_BITS) # Of the next burst, its low bits.
        self.asks     = Signal()           # For a burst.
        self.asked    = Signal()           # It is taken in this cycle.
        self.left     = Signal()           # A word leaves the buffer.
        self.held     = Signal(max=BUFFER_WORDS + 1) # Words in the buffer, or on their way.
        self.restarts = Signal()
        self.add_buffer()
        self.add_bursts(address, words)
        self.add_restart()

    def add_buffer(self):
        """Keep what comes; during a restart it leaves by itself."""
        self.buffer = buffer = stream.SyncFIFO([("data", 32)], BUFFER_WORDS, buffered=True)
        self.comb += [
            buffer.sink.valid.eq(self.port.gives),
            buffer.sink.data.eq(self.port.read_data),
            self.source.valid.eq(buffer.source.valid & ~self.restarts),
            self.source.data.eq(buffer.source.data),
            buffer.source.ready.eq(self.source.ready | self.restarts),
            self.left.eq(buffer.source.valid & buffer.source.ready),
            self.level.eq(buffer.level),
        ]

    def add_bursts(self, address, words):
        """Ask for a burst where there is a word to read, and space for a whole one."""
        request, position, written = self.port.request, self.position, self.written[:AHEAD_BITS]
        line     = log2_int(BURST_WORDS)
        rest     = request.rest
        is_below = Signal() # What is written goes beyond the line.
        is_there = Signal() # A word to read.
        has_space = Signal()
        unused   = Signal()
        self.comb += [
            is_below.eq(position[line:] != written[line:]),
            is_there.eq(is_below | (position[:line] != written[:line])),
            has_space.eq(~self.held[-1] & (self.held[line:-1] != BUFFER_WORDS//BURST_WORDS - 1)),
            request.valid.eq(self.asks),
            request.write.eq(0),
            request.address.eq(address + position[:log2_int(words)]),
            self.asked.eq(request.valid & request.ready),
        ]
        self.sync += [
            If(self.asked,
                position.eq(position + rest + 1),
                self.asks.eq(0),
            ),
            If(~self.asks,
                self.asks.eq(is_there & has_space & ~self.restarts),
                rest.eq(Mux(is_below, BURST_WORDS - 1, written[:line] - 1) - position[:line]),
                If(self.wraps & ~is_there, position.eq(0)),
            ),
            # One addition: ``rest`` and one more come, and one goes.
            Cat(unused, self.held).eq(
                Cat(Constant(1, 1), self.held)
                + Cat(self.asked & ~self.left, Mux(self.asked, rest, Replicate(self.left, len(self.held))))),
        ]

    def add_restart(self):
        """Begin anew once nothing is on its way, and the buffer is empty."""
        self.comb += self.ready.eq(~self.restarts)
        self.sync += [
            self.fetched.eq(self.fetched + self.left),
            If(self.restarts & (self.held == 0) & ~self.asks,
                self.restarts.eq(0),
                self.position.eq(0),
                self.fetched.eq(0),
            ),
            If(self.restart, self.restarts.eq(1)),
        ]
