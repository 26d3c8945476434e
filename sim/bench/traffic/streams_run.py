# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes programs of streams through the source of the gateware, compiled by Verilator, with a builder behind it."""

import struct
import subprocess
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.traffic.streams_module import write_verilog

MAIN = Path(__file__).with_name("streams_run.cpp")
BUILDER = Path(__file__).with_name("builder.h")
COMMAND = struct.Struct("<IIQ")

#: A descriptor, when it was there and taken (cycles), and the words of its header as they were read.
FRAME_DTYPE = np.dtype(
    [("shown", "<u8"), ("taken", "<u8"), ("elapsed", "<i8"), ("due", "<i8"), ("sequence", "<u4"), ("checksum_seed", "<u4"),
     ("length", "<u2")]
    + [(name, "u1") for name in (
        "stream", "flags", "header_words", "with_probe", "fill", "payload_offset", "checksum_enable", "stamp_enable",
        "stamp_offset", "stamp_octets", "stamp_shift", "stamp_nibble", "stamp_mend", "padding")]
    + [("header", "<u4", 32)],
    align=True,
)
FINAL, EMPTY = 1, 2  # Of ``flags``.


class Kind(IntEnum):
    """What a command does; see streams_run.cpp."""

    WRITE = 0
    READ = 1
    ARM = 2
    PRIMED = 3
    CLOCK = 4
    STOP = 5
    HOLD = 6
    BEGIN = 7
    END = 8
    CYCLES = 9
    FRAMES = 10
    BUILDER = 11
    BACKGROUND = 12
    FOREVER = 13
    IDLE = 14


class Memory(IntEnum):
    """The memories on the bus of the bench."""

    SCHEDULE = 0
    MODIFIERS = 1
    LISTS = 2
    HEADERS = 3


def address(memory: Memory, word: int) -> int:
    """Return where a word is on the bus."""
    return memory << 16 | word


@dataclass
class Script:
    """What happens, in this order."""

    octets: bytearray = field(default_factory=bytearray)

    def do(self, kind: Kind, a: int = 0, b: int = 0) -> None:
        """Add a command."""
        self.octets += COMMAND.pack(kind, a, b % (1 << 64))

    def write(self, memory: Memory, first: int, words: list[int]) -> None:
        """Write words to the bus."""
        for n, word in enumerate(words):
            self.do(Kind.WRITE, address(memory, first + n), word)

    def builder(self, stall_256: int = 0, rest: int = 0, wait: int = 0) -> None:
        """Let the builder stall so many of 256 words, rest after a frame and wait before one up to so many cycles."""
        self.do(Kind.BUILDER, stall_256 | rest << 8 | wait << 20)


@dataclass(frozen=True)
class StreamsRun:
    """What came: frames of FRAME_DTYPE, and the words that READ read."""

    frames: NDArray[np.void]
    reads: NDArray[np.uint32]
    cycles: int


@cache
def build() -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("streams_bench", write_verilog, MAIN, [BUILDER, BUILDER.with_name("draw.h")])


def run(script: Script) -> StreamsRun:
    """Run a script; RuntimeError where the source breaks a rule."""
    executable = build()
    with TemporaryDirectory(dir=executable.parent) as folder:
        commands, frames, reads = (Path(folder) / name for name in ("script", "frames", "reads"))
        commands.write_bytes(script.octets)
        done = subprocess.run(
            [str(executable), str(commands), str(frames), str(reads)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        return StreamsRun(np.fromfile(frames, FRAME_DTYPE), np.fromfile(reads, np.uint32), int(done.stdout))
