# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Writes pieces of several rings into a memory by bursts."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.memory.sdram import BURST_WORDS
from liteprobe.cores.rewind_fifo import RewindFIFO

BUFFER_WORDS = 512 # One block RAM.
COUNT_BITS   = 9   # Of the words of a piece.
LINE_BITS    = log2_int(BURST_WORDS)

class RingWriter(LiteXModule):
    """Writes pieces of up to 510 words, each after the last one of its ring, by bursts of up to 64 words.

    A piece comes as a word that says of what ring it is and how many words follow, then these words. It is written once it
    was kept, all of it; until then it can be taken back.

    Parameters
    ----------
    port : BurstPort
        Of the memory.
    address, words, rings : int
        Where ring 0 begins (words, a multiple of 64); words of a ring, a power of two; one ring lies after the other.
    first : int
        Position that ``clear`` goes to.

    Attributes
    ----------
    sink : Endpoint([("data", 32)]), in
        Words of pieces; the first one of each is ``piece``.
    piece : Signal(32), out
        First word of a piece of ``count`` words of ring ``ring``.
    ring, count : Signal, Signal(9), in
        ``count`` from 1.
    keep, rewind : Signal(), in
        The piece is whole; or all that came since the last one was kept is taken back. Not with a word.
    written : list of Signal(32), out
        Of each ring: position up to which the memory's port has taken the words. Steps with each burst, wraps.
    clear : Signal(rings), in
        Back to position ``first``; only with ``is_empty``.
    is_empty : Signal(), out
        All that was kept is with the memory's port.

    It stalls ``sink`` where it is full. A burst takes three cycles more than the port.
    """
    def __init__(self, port, address, words, rings=1, first=0):
        assert address % BURST_WORDS == 0 and words % BURST_WORDS == 0
        self.sink     = sink = stream.Endpoint([("data", 32)])
        self.piece    = Signal(32)
        self.ring     = Signal(max=max(rings, 2))
        self.count    = Signal(COUNT_BITS)
        self.keep     = Signal()
        self.rewind   = Signal()
        self.written  = [Signal(32, name=f"written{n}") for n in range(rings)]
        self.clear    = Signal(rings)
        self.is_empty = Signal()

        # # #

        self.fifo = fifo = RewindFIFO(32, BUFFER_WORDS)
        left      = Signal(COUNT_BITS, reset_less=True)                 # Words of the piece, less one.
        ring      = Signal(max=max(rings, 2), reset_less=True)
        rest      = Signal(LINE_BITS, reset_less=True)                  # Words of the burst, less one.
        taken     = Signal(LINE_BITS)
        to_line   = Signal(LINE_BITS)                                   # Words to the next multiple of 64, less one.
        is_last   = Signal(reset_less=True)                             # The last burst of the piece.
        position  = Signal(32)
        follows   = Signal(33)
        is_end    = Signal()                                            # The burst's last word is taken.
        place     = Signal(len(port.request.address))
        zeros     = (address & -address).bit_length() - 1 if address else len(place) - 1 # Low bits that no sum changes.
        self.comb += [
            self.piece.eq(Cat(self.count, self.ring)),
            fifo.write.eq(sink.valid & sink.ready),
            fifo.write_data.eq(sink.data),
            sink.ready.eq(fifo.level != BUFFER_WORDS - 1),
            fifo.keep.eq(self.keep),
            fifo.rewind.eq(self.rewind),
            position.eq(Array(self.written)[ring]),
            to_line.eq(~position[:LINE_BITS]),
            place.eq(Cat(position[:log2_int(words)], ring)),
            port.request.address.eq(Cat(place[:zeros], place[zeros:] + (address >> zeros))),
            port.request.rest.eq(rest),
            port.request.write.eq(1),
            port.write_data.eq(fifo.read_data),
            is_end.eq(port.takes & (taken == rest)),
            follows.eq(Cat(C(1, 1), position) + Cat(C(1, 1), rest)), # Position and words of the burst; bit 0 is its carry.
        ]
        self.sync += [
            If(port.takes, taken.eq(taken + 1)),
            If(is_end,
                taken.eq(0),
                left.eq(left + ~Cat(rest, C(0, COUNT_BITS - LINE_BITS))),
            ),
        ]
        for number, written in enumerate(self.written):
            self.sync += [
                If(is_end & (ring == number), written.eq(follows[1:])),
                If(self.clear[number], written.eq(first)),
            ]
        self.fsm = fsm = FSM(reset_state="NEXT")
        self.comb += [
            self.is_empty.eq(fsm.ongoing("NEXT") & ~fifo.is_there),
            fifo.step.eq(port.takes | (fsm.ongoing("NEXT") & fifo.is_there)),
        ]
        fsm.act("NEXT",
            If(fifo.is_there,
                NextValue(left, fifo.read_data[:COUNT_BITS] - 1),
                NextValue(ring, fifo.read_data[COUNT_BITS:]),
                NextState("MEASURE"),
            )
        )
        fsm.act("MEASURE",
            NextValue(is_last, left <= to_line),
            NextValue(rest, Mux(left <= to_line, left[:LINE_BITS], to_line)),
            NextState("ASK"),
        )
        fsm.act("ASK",
            port.request.valid.eq(1),
            If(port.request.ready, NextState("GIVE")),
        )
        fsm.act("GIVE",
            If(is_end, NextState("MEASURE"), If(is_last, NextState("NEXT"))),
        )
