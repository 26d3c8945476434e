# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs programs of many frames on transmit ports without cocotb, ten times faster."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.transmit.driver import TransmitBench

BENCH = CompiledBench(TransmitBench, Path(__file__).with_name("long.cpp"))


@dataclass(frozen=True)
class LongProgram:
    """A program for both ports at once; ``sys_half_ps`` is half a period of ``sys``."""

    length: int
    count: int
    repeats: int = 1
    ticks: int = 0
    fraction: int = 0
    gap: int = 0
    sys_half_ps: int = 10_668


@dataclass(frozen=True)
class PortRun:
    """Holds what one port did: ticks at which TX_EN rose and fell, counters at the end."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sent: int
    late: int
    underruns: int


def run(program: LongProgram) -> list[PortRun]:
    """Run a program to its end and return what each port did."""
    done = BENCH.run(options=vars(program))
    ports = []
    for port, line in enumerate(done.output.splitlines()):
        rows = done.array(f"starts{port}", np.int64).reshape(-1, 2)
        ports.append(PortRun(rows[:, 0], rows[:, 1], *map(int, line.split())))
    return ports
