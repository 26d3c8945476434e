# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes programs of configuration sets through the source of the gateware, compiled by Verilator, with a builder behind it."""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.traffic.sets import SetSettings
from liteprobe.sim.bench.replay.sets_module import TABLE_ADDRESS, write_verilog
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.traffic.streams_run import BUILDER, FRAME_DTYPE

MAIN = Path(__file__).with_name("sets_run.cpp")
PARTS = [BUILDER, BUILDER.with_name("draw.h"), MAIN.with_name("sets.h")]
HEAD = struct.Struct("<QqQ4I20I")
LEAD_TICKS = 2070  # Of the start of a program before its tick 0.
TICKS_256 = 640  # Of a cycle at 50 MHz, in 2^-8 ticks.
ARRIVAL_DTYPE = np.dtype([("tick", "<i8"), ("word", "<u4"), ("unused", "<u4")])
DECISION_DTYPE = np.dtype([("cycle", "<u8"), ("elapsed", "<i8"), ("is_repeat", "<u8")])
RESULT_DTYPE = np.dtype(
    [(name, "<u8") for name in ("cycles", "frames", "decisions", "words", "starved")]
    + [(name, "<u4") for name in ("sets", "repeats", "underruns", "first_underrun", "error", "is_over")]
)


@dataclass(frozen=True)
class SetsProgram:
    """A program, and what is around the source while it runs.

    Attributes
    ----------
    settings : SetSettings
    words : array of uint32, shape (words,)
    arrivals : array of int64, shape (words,)
        Tick at which each is in the ring; before tick 0 all that are to come before the start.
    table : array of uint32
    prime, count : int
    stop_tick : int or None
    rate_256, stall_256 : int
        Ticks a cycle, 2^-8; cycles of 256 in which there is no word.
    builder : (int, int, int)
        Of 256 words so many wait; cycles after a frame, and before one, at most.
    table_latency : (int, int, int)
        Cycles at most; of 256 answers so many are slow; cycles of these at most.
    limit : int
        Cycles; then it is stopped.
    """

    settings: SetSettings
    words: NDArray[np.uint32]
    arrivals: NDArray[np.int64]
    table: Sequence[int] = ()
    prime: int = 0
    count: int = 0xFFFFFFFF
    stop_tick: int | None = None
    rate_256: int = TICKS_256
    stall_256: int = 0
    builder: tuple[int, int, int] = (0, 0, 0)
    table_latency: tuple[int, int, int] = (4, 0, 4)
    limit: int = 10_000_000


@dataclass(frozen=True)
class SetsRun:
    """What came of a program: frames of FRAME_DTYPE, decisions, cycles in which words were taken, and the counters.

    ``is_over``: it ended, by itself or by ``stop_tick``; else it was stopped at its limit.
    """

    frames: NDArray[np.void]
    decisions: NDArray[np.void]
    words: NDArray[np.uint64]
    counters: dict[str, int] = field(default_factory=dict)


@cache
def build(with_sdram: bool = True) -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("sets_bench", partial(write_verilog, with_sdram=with_sdram), MAIN, PARTS)


def packed(program: SetsProgram, with_sdram: bool = True) -> bytes:
    """Return a program as the benches read it."""
    settings = program.settings
    stop = -LEAD_TICKS - 1 if program.stop_tick is None else program.stop_tick
    numbers = [settings.length, int(settings.fields), settings.repeats, program.prime, settings.interval]
    numbers += [settings.fraction, program.count, program.rate_256, program.stall_256, *program.builder]
    numbers += [*program.table_latency, len(settings.header), len(program.table), len(program.words)]
    numbers += [not with_sdram, TABLE_ADDRESS]
    arrivals = np.zeros(len(program.words), ARRIVAL_DTYPE)
    arrivals["tick"], arrivals["word"] = program.arrivals, program.words
    head = HEAD.pack(settings.places, stop, program.limit, *settings.template, *numbers)
    memories = np.array([*settings.header, *program.table], np.uint32)
    return head + memories.tobytes() + arrivals.tobytes()


def run(programs: Sequence[SetsProgram], with_sdram: bool = True) -> list[SetsRun]:
    """Run programs one after the other; RuntimeError where the source breaks a rule."""
    executable = build(with_sdram)
    with TemporaryDirectory(dir=executable.parent) as folder:
        given, frames, results = (Path(folder) / name for name in ("programs", "frames", "results"))
        given.write_bytes(b"".join(packed(program, with_sdram) for program in programs))
        done = subprocess.run(
            [str(executable), str(given), str(frames), str(results)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        return _unpacked(np.fromfile(frames, FRAME_DTYPE), results.read_bytes())


# # #


def _unpacked(frames: NDArray[np.void], results: bytes) -> list[SetsRun]:
    runs = []
    at = first = 0
    while at < len(results):
        result = np.frombuffer(results, RESULT_DTYPE, 1, at)[0]
        at += RESULT_DTYPE.itemsize
        decisions = np.frombuffer(results, DECISION_DTYPE, int(result["decisions"]), at)
        at += decisions.nbytes
        words = np.frombuffer(results, "<u8", int(result["words"]), at)
        at += words.nbytes
        own = frames[first : first + int(result["frames"])]
        first += len(own)
        runs.append(SetsRun(own, decisions, words, {name: int(result[name]) for name in RESULT_DTYPE.names or ()}))
    return runs
