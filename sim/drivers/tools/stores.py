# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes runs to be stored, and knows by whole numbers in which bin a value belongs."""

import subprocess
import sys
from pathlib import Path

from liteprobe.host.measure.percentiles import Bounds, Cells, Measured
from liteprobe.host.store.tables import StoredRun

DAY_NS = 86_400 * 10**9
BEGIN_NS = 20_000 * DAY_NS  # 2024-10-04.


def bin_of(value: int) -> tuple[int, int]:
    """Return the ends of the bin of a value, by whole numbers alone."""
    if value < 0:
        low, high = bin_of(-value - 1)
        return -high - 1, -low - 1
    width = 1 << max(value.bit_length() - 8, 0)
    return value // width * width, value // width * width + width - 1


def a_run(
    part: str = "voice", lost: int = 0, values: tuple[int, ...] = (1000,), url: str = "sim://switch"
) -> StoredRun:
    """Return a run with three figures at most and a histogram."""
    p99 = Measured.of(Bounds(4096, 4351))
    return StoredRun("send", {part: {"lost": lost, "p99": p99, "mean": None}}, {part: Cells.of_values(values)}, url=url)


WRITER = """
from liteprobe.sim.drivers.tools.stores import BEGIN_NS, a_run
from liteprobe.host.store.store import ResultStore
store = ResultStore({place!r})
number = 0
while number < {most}:
    print(store.keep(a_run({part!r}, number, (number, 10 * number)), BEGIN_NS + number), flush=True)
    number += 1
"""


def writer(place: Path | str, part: str, most: int = 10**9, is_loud: bool = False) -> "subprocess.Popen[str]":
    """Start a process that keeps runs, and prints the name of each once it is there; ``is_loud``: and its errors."""
    code = WRITER.format(place=str(place), part=part, most=most)
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT if is_loud else None, text=True
    )
