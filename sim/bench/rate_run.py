# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes frames of two ports and steps of the clock through the rate meter of the gateware, compiled by Verilator."""

import os
import random
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.compiled import compiled, verilator_environment
from liteprobe.sim.bench.rate import PORTS, write_verilog

MAIN = Path(__file__).with_name("rate_run.cpp")
COMMAND = ["verilator", "--cc", "--exe", "--build", "-O3", "-CFLAGS", "-O2", "-Wno-fatal", "-Wno-WIDTH"]
COMMAND += ["-Wno-CASEINCOMPLETE", "--top-module", "rate_bench", "--Mdir", "obj"]

STEP = np.dtype([("cycle", "<u8"), ("value", "<u8"), ("kind", "<u4"), ("port", "<u4")])
TICK = np.dtype([("now", "<u8"), ("is_tick", "<u4"), ("is_stepped", "<u4")])
SHOWN = np.dtype(
    [("cycle", "<u8"), ("number", "<u4"), ("is_whole", "<u4"), ("frames", "<u4", PORTS), ("octets", "<u4", PORTS)]
)
RESET_CYCLES = 10
SYS_NS, TICK_NS, SYS_PHASE_NS = 20, 8, 3


class Kind(IntEnum):
    """What a step does."""

    FRAME = 0
    SET = 1
    ADJUST = 2
    INCREMENT = 3
    INTERVAL = 4


@dataclass(frozen=True)
class RateRun:
    """What happened: ``ticks`` of timebase, and what was ``shown`` when the number changed."""

    ticks: NDArray[np.void]
    shown: NDArray[np.void]


def compile_run(folder: Path) -> None:
    """Compile the bench in ``folder``."""
    environment = {**os.environ, **verilator_environment()}
    command = [*COMMAND, str(MAIN), "rate_bench.v"]
    run_ = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if run_.returncode:
        raise RuntimeError(f"Verilator failed: {run_.stdout[-2000:]}{run_.stderr[-2000:]}")


def run(steps: NDArray[np.void], cycles: int) -> RateRun:
    """Run steps, in the order of their cycles."""
    folder_ = compiled("rate_bench", write_verilog, compile_run, [MAIN.read_text(), *COMMAND])
    executable = folder_ / "obj" / "Vrate_bench"
    with TemporaryDirectory(dir=executable.parent) as folder:
        script, ticks, shown = (Path(folder) / name for name in ("script", "ticks", "shown"))
        script.write_bytes(steps.tobytes())
        subprocess.run([str(executable), script, ticks, shown, str(cycles)], check=True)
        return RateRun(np.fromfile(ticks, TICK), np.fromfile(shown, SHOWN))


def steps_of(frames: int, interval_ns: int, seed: int) -> tuple[NDArray[np.void], int]:
    """Return frames of both ports, up to two cycles close, with steps of the clock between them; and the cycles of it all."""
    rng = random.Random(seed)
    steps: list[tuple[int, int, Kind, int]] = [(50, interval_ns, Kind.INTERVAL, 0)]
    last = 0
    for port in range(PORTS):
        cycle = 100
        for _ in range(frames // PORTS):
            cycle += rng.choice([2, 2, 3, 32, 34, 34 + rng.randrange(60)])
            steps.append((cycle, rng.randrange(1 << 16), Kind.FRAME, port))
        last = max(last, cycle)
    steps.append((200, rng.getrandbits(60), Kind.SET, 0))
    cycle = 200
    while (cycle := cycle + rng.randrange(8 * interval_ns // SYS_NS)) < last:
        kind = rng.choice([Kind.SET, Kind.ADJUST, Kind.INCREMENT])
        value = {
            Kind.SET: rng.getrandbits(rng.randrange(20, 63)),
            Kind.ADJUST: rng.getrandbits(56) * rng.choice([1, -1]) % (1 << 64),
            Kind.INCREMENT: (8 << 40) + rng.randrange(-(1 << 34), 1 << 34),
        }[kind]
        steps.append((cycle, value, kind, 0))
    return np.array(sorted(steps), dtype=STEP), last + interval_ns


def intervals(ticks: NDArray[np.void], interval_ns: int, first: int) -> list[tuple[int, bool]]:
    """Return the ticks in which ``now`` reached a multiple from tick ``first`` on, and whether no step came since the last.

    A multiple that a step jumps over is none that was reached; nor are those within the time that a step takes.
    """
    number = ticks["now"] // np.uint64(interval_ns)
    stepped = np.flatnonzero(ticks["is_stepped"])
    found, last = [], first
    for at in np.flatnonzero(np.diff(number.astype(np.int64)) == 1) + 1:
        recent = stepped[np.searchsorted(stepped, at) - 1] if stepped.size and stepped[0] < at else -1000
        if at > first and not recent <= at <= recent + 8:
            is_whole = not (stepped[(stepped >= last - 8) & (stepped <= at)]).size and last > first
            found.append((int(at), bool(is_whole)))
            last = at
    return found
