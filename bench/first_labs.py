# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The labs of docs/labs: executed as notebooks, compared with the teacher's answers; their time, and what is off."""

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.sim.drivers.labs import notebook
from liteprobe.sim.drivers.tools.figures import Figure, row

MOST_CPU_S = 600


def cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended (s)."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@row("first-hour")
def test_labs() -> Iterator[Figure]:
    """Execute all eight: figures that are off the teacher's answers, and the machine time of each, its builds included."""
    check = notebook.load("teacher/check")
    for name, expected in check.answers().items():
        with TemporaryDirectory() as folder:
            before_s, started = cpu_s(), time.monotonic()
            wrong = check.faults(expected, notebook.execute(name, Path(folder)))
            lab = name.split("_")[0]
            print("".join(f"{name}: {line}\n" for line in wrong), end="")
            yield Figure(f"{lab}_answers_off", len(wrong), f"of {len(expected)}", 0)
            yield Figure(f"{lab}_cpu", cpu_s() - before_s, "s", MOST_CPU_S)
            yield Figure(f"{lab}_wall", time.monotonic() - started, "s", MOST_CPU_S * (os.cpu_count() or 1))
