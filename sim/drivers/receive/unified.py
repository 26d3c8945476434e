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

from liteprobe.cores.formats import RECORD_HEAD_WORDS, UNIFIED_OCTETS, UnifiedFlag
from liteprobe.cores.receive.unified.parser import UnifiedParser
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.receive.unified import unified_header

PORT = 1  # That the headers say.
HASH = 0xFEE1600D

# Header Reader ------------------------------------------------------------------------------------


class HeaderReader(LiteXModule):
    """Reads all headers of a parser, one after the other.

    What the parser leaves to others is added: the stamp of each frame is its length, and more of the same, enough to tell them
    apart; the flow hash is always `HASH`.

    Attributes
    ----------
    source : Endpoint([("data", 32)]), out
    lost : Signal(), out
        A frame was not classified, or its header has no place.
    """

    def __init__(self, parser):
        self.source = stream.Endpoint([("data", 32)])
        self.lost = Signal()

        # # #

        self.headers = headers = parser.headers
        self.waiting = waiting = stream.SyncFIFO([("length", 16), ("flags", 16), ("place", 4)], 32)
        self.comb += [
            self.lost.eq((parser.seen & ~parser.ended) | (parser.ended & ~headers.has_place)),
            waiting.sink.valid.eq(parser.ended & headers.has_place),
            waiting.sink.length.eq(parser.length),
            waiting.sink.flags.eq(parser.flags),
            waiting.sink.place.eq(headers.place),
        ]
        self.add_reader()

    def add_reader(self):
        """Give whole headers: the words that the parser knows nothing of, then those that it keeps."""
        source, headers, waiting = self.source, self.headers, self.waiting.source
        word, is_head = Signal(3), Signal()
        self.comb += [
            is_head.eq(word < RECORD_HEAD_WORDS),
            headers.hash.eq(HASH),
            headers.opened.eq(waiting.place),
            # Its words are there once the head has gone.
            headers.open.eq(source.valid & source.ready & (word == 0)),
            If(
                is_head,
                source.valid.eq(waiting.valid & ((word != 0) | ~(headers.is_open | headers.busy))),
                Case(
                    word,
                    {
                        0: source.data.eq(Cat(waiting.length, Constant(0x1234, 16))),
                        1: source.data.eq(waiting.length),
                        2: source.data.eq(Cat(waiting.length, waiting.length)),
                        3: source.data.eq(Cat(waiting.flags, Constant(0, 8), Constant(PORT << 4, 8))),
                    },
                ),
            ).Else(
                headers.source.connect(source),
                waiting.ready.eq(source.valid & source.ready & source.last),
            ),
        ]
        self.sync += If(
            source.valid & source.ready,
            If(is_head, word.eq(word + 1)).Elif(source.last, word.eq(0)),
        )


# Unified Bench ------------------------------------------------------------------------------------


class UnifiedBench(PinnedBench):
    """A parser on pins, and a `HeaderReader`: ``sys_clk``, ``sys_rst``, ``sink_*``, ``source_*``, ``lost``."""

    def __init__(self):
        PinnedBench.__init__(self)
        self.parser = parser = UnifiedParser()
        self.reader = reader = HeaderReader(parser)
        self.add_inputs(
            parser.sink, ["valid", "last", "data", "last_be", "fcs_error", "symbol_error", "overflow"], "sink_"
        )
        self.add_source("source", reader.source, ["last", "data"])
        self.add_output("lost", reader.lost)


BENCH = CompiledBench(UnifiedBench, Path(__file__).with_name("unified.cpp"))

# Runs ---------------------------------------------------------------------------------------------


def expected(frame: bytes, verdict: UnifiedFlag = UnifiedFlag.NONE) -> bytes:
    """Return the header of the model, with the stamp that `HeaderReader` notes."""
    header = unified_header(frame, PORT, verdict=verdict)
    header.stamp = header.length | 0x1234 << 16 | header.length << 32
    header.hash = HASH
    return header.octets()


def differing(frames: Sequence[bytes], found: bytes, verdicts: Sequence[UnifiedFlag] = ()) -> list[int]:
    """Return the numbers of the frames whose headers, as they were found one after the other, aren't the model's."""
    wanted = b"".join(expected(frame, verdicts[n] if verdicts else UnifiedFlag.NONE) for n, frame in enumerate(frames))
    assert len(found) == len(wanted), (len(found), len(wanted))
    places = range(0, len(wanted), UNIFIED_OCTETS)
    return [
        at // UNIFIED_OCTETS for at in places if found[at : at + UNIFIED_OCTETS] != wanted[at : at + UNIFIED_OCTETS]
    ]


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
