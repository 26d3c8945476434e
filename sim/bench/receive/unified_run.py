# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends frames through the unified parser of the gateware, compiled by Verilator."""

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.bench.receive.unified_module import write_verilog

MAIN = Path(__file__).with_name("unified_run.cpp")

LINE_RATE = 0
"""Spacing: words and frames as they come at 1 Gb/s with sys at 50 MHz."""


@dataclass(frozen=True)
class UnifiedRun:
    """What came out: octets of all headers, how many were dropped, and how long it took."""

    octets: bytes
    frames: int
    lost: int
    cycles: int


@cache
def build() -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("unified_bench", write_verilog, MAIN)


def run(frames: Sequence[bytes], errors: Sequence[int] = (), spacing: int = LINE_RATE, stall: int = 0) -> UnifiedRun:
    """Send frames (without FCS) and return their headers.

    Parameters
    ----------
    frames : octets of each.
    errors : of each frame, bit 0 FCS, bit 1 symbol, bit 2 overflow; none unless given.
    spacing : cycles from end to end at least, a word a cycle; ``LINE_RATE`` for 1 Gb/s.
    stall : of 256 cycles, those in which nobody takes headers.
    """
    executable = build()
    with TemporaryDirectory(dir=executable.parent) as folder:
        sent, got = Path(folder) / "frames", Path(folder) / "headers"
        with sent.open("wb") as file:
            for number, frame in enumerate(frames):
                file.write(struct.pack("<II", len(frame), errors[number] if errors else 0) + frame)
        command = [str(executable), str(sent), str(got), str(spacing), str(stall)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        count, headers, lost, cycles = map(int, done.stdout.split())
        octets = got.read_bytes()
    assert len(octets) == 128 * headers, (len(octets), headers)
    return UnifiedRun(octets, count, lost, cycles)
