# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Masters at the burst ports and at the bus of the gateware, compiled by Verilator, against a chip that knows its times."""

import json
import subprocess
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from liteprobe.sim.bench.memory.arithmetic import Arithmetic
from liteprobe.sim.bench.memory.module import write_verilog
from liteprobe.sim.bench.tools.compiled import compiled_program

MAIN = Path(__file__).with_name("memory_run.cpp")
PORTS = 4


@dataclass(frozen=True)
class Setting:
    """Clocks of a run.

    ``mhz`` is of the SDRAM; ``sys_ps`` is None where it runs on ``sys``, else the period of ``sys``; words that are read come
    ``late`` cycles later than from LiteDRAM's PHY.
    """

    mhz: float
    sys_ps: int | None = None
    late: int = 0

    @property
    def arithmetic(self) -> Arithmetic:
        """What it can do at most."""
        return Arithmetic(self.mhz, self.sys_ps and 1e6 / self.sys_ps, self.late)

    @property
    def memory_ps(self) -> int:
        """Period of the controller."""
        return round(1e6 / self.mhz)


@cache
def build(mhz: float, with_crossing: bool, late: int) -> Path:
    """Return the executable, compiled if need be."""
    write = partial(write_verilog, clk_freq=mhz * 1e6, with_crossing=with_crossing, late=late)
    parts = [MAIN.with_name(name) for name in ("chip.h", "checks.h", "memory_parts.h")]
    return compiled_program("memory_bench", write, MAIN, parts)


def run(setting: Setting, **options: int) -> dict[str, Any]:
    """Run masters; return what the bench counted. RuntimeError when a word or a signal isn't as it should be.

    ``options`` are those of memory_run.cpp; spans are lists of worst, sum and count (cycles of ``sys``).
    """
    executable = build(setting.mhz, setting.sys_ps is not None, setting.late)
    clocks = {"mhz": setting.mhz, "sys_ps": setting.sys_ps or setting.memory_ps}
    if setting.sys_ps is not None:
        clocks["memory_ps"] = setting.memory_ps
    command = [str(executable), *[f"{name}={value}" for name, value in {**clocks, **options}.items()]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr[-1000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
