# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames through the unified parser of the gateware."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import RECORD_HEAD_WORDS
from liteprobe.cores.receive.unified.parser import UnifiedParser
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench

PORT = 1 # That the headers say.
HASH = 0xfee1600d

# Unified Bench ------------------------------------------------------------------------------------

class UnifiedBench(PinnedBench):
    """A parser on pins: ``sys_clk``, ``sys_rst``, ``sink_*``, ``source_*``, ``lost``.

    All headers are read, one after the other. What the parser leaves to others is added: the stamp of each frame is its
    length, and more of the same, enough to tell them apart; the flow hash is always `HASH`.
    """
    def __init__(self):
        PinnedBench.__init__(self)
        self.parser = parser = UnifiedParser()
        self.add_inputs(parser.sink, ["valid", "last", "data", "last_be", "fcs_error", "symbol_error", "overflow"], "sink_")
        self.source = source = stream.Endpoint([("data", 32)])
        self.add_source("source", source, ["last", "data"])
        headers = parser.headers
        self.waiting = waiting = stream.SyncFIFO([("length", 16), ("flags", 16), ("place", 4)], 32)
        self.comb += [
            # What is not classified, and what has no place.
            self.add_pin("lost", 1).eq((parser.seen & ~parser.ended) | (parser.ended & ~headers.has_place)),
            waiting.sink.valid.eq(parser.ended & headers.has_place),
            waiting.sink.length.eq(parser.length),
            waiting.sink.flags.eq(parser.flags),
            waiting.sink.place.eq(headers.place),
        ]
        self.add_reader()

    def add_reader(self):
        """Give whole headers: the words that the parser knows nothing of, then those that it keeps."""
        source, headers, waiting = self.source, self.parser.headers, self.waiting.source
        word, is_head = Signal(3), Signal()
        self.comb += [
            is_head.eq(word < RECORD_HEAD_WORDS),
            headers.hash.eq(HASH),
            headers.opened.eq(waiting.place),
            # Its words are there once the head has gone.
            headers.open.eq(source.valid & source.ready & (word == 0)),
            If(is_head,
                source.valid.eq(waiting.valid & ((word != 0) | ~(headers.is_open | headers.busy))),
                Case(word, {
                    0 : source.data.eq(Cat(waiting.length, Constant(0x1234, 16))),
                    1 : source.data.eq(waiting.length),
                    2 : source.data.eq(Cat(waiting.length, waiting.length)),
                    3 : source.data.eq(Cat(waiting.flags, Constant(0, 8), Constant(PORT << 4, 8))),
                }),
            ).Else(
                headers.source.connect(source),
                waiting.ready.eq(source.valid & source.ready & source.last),
            ),
        ]
        self.sync += If(source.valid & source.ready,
            If(is_head, word.eq(word + 1)).Elif(source.last, word.eq(0)),
        )

BENCH = CompiledBench(UnifiedBench, Path(__file__).with_name("unified.cpp"))

# Runs ---------------------------------------------------------------------------------------------

LINE_RATE = 0
"""Spacing: words and frames as they come at 1 Gb/s with sys at 50 MHz."""


@dataclass(frozen=True)
class UnifiedRun:
    """Holds what came out: octets of all headers, how many were dropped, and how long it took."""

    octets: bytes
    frames: int
    lost: int
    cycles: int


def run(frames: Sequence[bytes], errors: Sequence[int] = (), spacing: int = LINE_RATE, stall: int = 0) -> UnifiedRun:
    """Send frames (without FCS) and return their headers.

    Parameters
    ----------
    frames : octets of each.
    errors : of each frame, bit 0 FCS, bit 1 symbol, bit 2 overflow; none unless given.
    spacing : cycles from end to end at least, a word a cycle; ``LINE_RATE`` for 1 Gb/s.
    stall : of 256 cycles, those in which nobody takes headers.
    """
    sent = b"".join(
        struct.pack("<II", len(frame), errors[number] if errors else 0) + frame for number, frame in enumerate(frames)
    )
    done = BENCH.run({"frames": sent}, {"spacing": spacing, "stall": stall})
    count, headers, lost, cycles = done.numbers
    octets = done.files["headers"]
    assert len(octets) == 128 * headers, (len(octets), headers)
    return UnifiedRun(octets, count, lost, cycles)
