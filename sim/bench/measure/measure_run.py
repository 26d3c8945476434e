# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes frames through the meters of the gateware, compiled by Verilator."""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import BIN_SLOT_WORDS, STREAM_SLOT_WORDS, STREAM_SLOTS, STREAM_WINDOW, BinKind
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.measure.module import write_verilog
from liteprobe.sim.models.streams import BinSettings, MeasuredFrame

MAIN = Path(__file__).with_name("measure_run.cpp")

STEP = struct.Struct("<QQQIIHHHHII")


class Kind(IntEnum):
    """What a step does."""

    FRAME = 0
    LATCH = 1
    CLEAR = 2
    SET = 3
    READ_STREAMS = 4
    READ_BINS = 5


@dataclass
class Script:
    """What happens in which cycle; several steps may share one."""

    octets: bytearray = field(default_factory=bytearray)
    reads: list[Kind] = field(default_factory=list)

    def frame(self, cycle: int, frame: MeasuredFrame) -> None:
        """Bring a frame."""
        stamps = (frame.stamp % (1 << 64), frame.tx_stamp % (1 << 64))
        bits = frame.is_probe | frame.passed << 1 | frame.is_bare << 2
        fields = (frame.length, frame.flags, frame.stream_id, bits, frame.bit_errors, 0)
        self.octets += STEP.pack(cycle, *stamps, Kind.FRAME, frame.sequence, *fields)

    def set(self, cycle: int, settings: BinSettings, stream_base: int, measure_passed: bool, prbs: int = 0) -> None:
        """Set origins, shifts, and what is measured."""
        origins, shifts = settings.origins, settings.shifts
        packed = sum(shifts[kind] << 5 * kind for kind in BinKind)
        self.octets += STEP.pack(
            cycle,
            origins[BinKind.DELAY] % (1 << 64),
            0,
            Kind.SET,
            origins[BinKind.ARRIVAL],
            origins[BinKind.LENGTH],
            packed,
            stream_base,
            measure_passed << 1,
            prbs,
            0,
        )

    def do(self, cycle: int, kind: Kind) -> None:
        """Latch or clear, or begin to read when what was to be read before is read."""
        self.octets += STEP.pack(cycle, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0)
        if kind in (Kind.READ_STREAMS, Kind.READ_BINS):
            self.reads.append(kind)


@dataclass(frozen=True)
class MeasureRun:
    """What the bus read: snapshots (32 words a slot), bins (128 words a slot) and whether they were saturated."""

    snapshots: list[NDArray[np.uint32]]
    bins: list[NDArray[np.uint32]]
    saturated: list[bool]
    cycles: int


@cache
def build(count_bits: int, slots: int, window: int, with_fields: bool) -> Path:
    """Return the executable, compiled if need be."""
    write = partial(write_verilog, count_bits=count_bits, slots=slots, window=window, with_fields=with_fields)
    return compiled_program("measure_bench", write, MAIN)


def run(
    script: Script,
    count_bits: int = 32,
    slots: int = STREAM_SLOTS,
    window: int = STREAM_WINDOW,
    with_fields: bool = False,
) -> MeasureRun:
    """Run a script on meters whose bins have ``count_bits``."""
    executable = build(count_bits, slots, window, with_fields)
    with TemporaryDirectory(dir=executable.parent) as folder:
        steps, got = Path(folder) / "script", Path(folder) / "words"
        steps.write_bytes(script.octets)
        done = subprocess.run([str(executable), str(steps), str(got), str(slots)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        words = np.fromfile(got, np.uint32)
    return sorted_reads(words, script.reads, int(done.stdout), slots)


def sorted_reads(words: NDArray[np.uint32], reads: Sequence[Kind], cycles: int, slots: int) -> MeasureRun:
    """Return what each read got of meters with ``slots``."""
    result, first = MeasureRun([], [], [], cycles), 0
    for kind in reads:
        count = slots * (STREAM_SLOT_WORDS if kind == Kind.READ_STREAMS else BIN_SLOT_WORDS)
        got, first = words[first : first + count], first + count
        if kind == Kind.READ_STREAMS:
            result.snapshots.append(got)
        else:
            result.bins.append(got)
            result.saturated.append(bool(words[first]))
            first += 1
    assert first == len(words), (first, len(words))
    return result
