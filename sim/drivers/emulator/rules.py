# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames through the parser and the rules of an emulator."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.rules import RuleMatcher
from liteprobe.cores.receive.unified.parser import UnifiedParser
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench

Case = tuple[Mapping[int, int], int, Sequence[bytes]] # Words of the rules by address, ``rule_words``, frames of 60 octets or more.

# Rules Bench --------------------------------------------------------------------------------------

class RulesBench(PinnedBench):
    """A parser and the rules on pins: ``sink_*``, ``looks``, ``done``, ``number``, and a bus."""
    def __init__(self, rules=32):
        PinnedBench.__init__(self)
        self.parser  = parser  = UnifiedParser(with_rarp=True)
        self.matcher = matcher = RuleMatcher(rules)
        self.add_inputs(parser.sink, ["valid", "last", "data", "last_be"], "sink_")
        self.add_inputs(matcher, ["looks"])
        self.add_outputs(matcher, ["done", "number"])
        self.add_bus([matcher.memory.bus])
        self.comb += matcher.joined(parser) + [
            parser.headers.drop.eq(parser.ended & parser.headers.has_place),
            parser.headers.dropped.eq(parser.headers.place),
        ]

BENCH = CompiledBench(RulesBench, Path(__file__).with_name("rules.cpp"))

# Runs ---------------------------------------------------------------------------------------------

def run(cases: Iterable[Case], spacing: int = 0) -> tuple[NDArray[np.uint32], tuple[int, int]]:
    """Return the class of each frame of all cases, and the least and the most cycles that one took.

    Words that a case doesn't have are as the case before left them. ``spacing``: cycles from end to end, 0: as at 1 Gb/s.
    """
    work = b"".join(
        b"".join(struct.pack("<3I", 0, address, word) for address, word in memory.items()) + struct.pack("<3I", 1, looks, 0) +
        b"".join(struct.pack("<3I", 2, len(frame), 0) + frame + bytes(-len(frame) % 4) for frame in frames)
        for memory, looks, frames in cases
    )
    done = BENCH.run({"work": work}, {"spacing": spacing})
    least, most = done.numbers
    return np.frombuffer(done.files["classes"], np.uint32), (least, most)
