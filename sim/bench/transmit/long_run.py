# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Runs programs of many frames on a TransmitBench without cocotb, ten times faster."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.sim.bench.tools.compiled import QUIET, compiled, verilate
from liteprobe.sim.bench.transmit.module import write_verilog

BENCH = Path(__file__).with_name("transmit_run.sv")
COMMAND = ["verilator", "--binary", "--timing", "-O3", *QUIET]
COMMAND += ["--top-module", "transmit_run", "--Mdir", "obj"]


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
    """What one port did: ticks at which TX_EN rose and fell, counters at the end."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sent: int
    late: int
    underruns: int


def compile_run(folder: Path) -> None:
    """Compile the bench in ``folder``."""
    verilate([*COMMAND, str(BENCH), "transmit_bench.v"], folder)


def build() -> Path:
    """Return the executable, compiled if need be."""
    return compiled("transmit_bench", write_verilog, compile_run, [BENCH.read_text(), *COMMAND]) / "obj" / "Vtransmit_run"


def run(executable: Path, program: LongProgram) -> list[PortRun]:
    """Run a program to its end and return what each port did."""
    with TemporaryDirectory(dir=executable.parent) as folder:
        log = Path(folder) / "starts.txt"
        arguments = [f"+{name}={value}" for name, value in vars(program).items()]
        subprocess.run([str(executable), *arguments, f"+file={log}"], check=True, capture_output=True)
        text = log.read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines()]
    ports = []
    for port in range(2):
        rows = np.array([line[1:] for line in lines if line[0] == str(port)], dtype=np.int64).reshape(-1, 2)
        (counters,) = (line[2:] for line in lines if line[:2] == ["counters", str(port)])
        ports.append(PortRun(rows[:, 0], rows[:, 1], *(int(value) for value in counters)))
    return ports
