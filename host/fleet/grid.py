# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A command at all points of a grid, like lengths x loads x seeds: as tasks, each in a folder of its own, and their rows."""

import base64
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from liteprobe.host.base.errors import ProbeError, UsageError, nearest
from liteprobe.host.base.folders import build_folder
from liteprobe.host.fleet.tasks import Task, TasksOutcome, differences

POINTS_MAX = 100_000
PLACE = re.compile(r"\{(\w+)\}")
VERDICTS = {0: "held", 4: "not held", 5: "not known"}  # Exit codes of a command that has figures.
CSV = "figures.csv"
CLI, SEEDS = "liteprobe.host.cli", "liteprobe.soc.build.seeds"
# A program that ends with the worker that started it, even where that was killed.
PROGRAM = """
import runpy, sys
from liteprobe.host.base.interrupt import end_with
end_with(int(sys.argv.pop(1)))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Grid:
    """Words of a command with places like ``{length}``, and the values for each.

    Raises UsageError, naming the fix, for a place without values, values without a place, and too many points.

    >>> grid = Grid(("train", "--length", "{length}"), {"length": ("60", "1514")})
    >>> grid.points, grid.words(grid.points[1])
    ([{'length': '60'}, {'length': '1514'}], ['train', '--length', '1514'])
    """

    command: tuple[str, ...]
    over: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        places = dict.fromkeys(name for word in self.command for name in PLACE.findall(word))
        for name in self.over:
            if name not in places:
                raise UsageError(f"the command has no {{{name}}} for --over {name}: {_nearest(name, places)}")
        for name in places:
            if name not in self.over:
                raise UsageError(f"{{{name}}} has no values: give --over {name}=VALUES, like {name}=1-5")
        if (count := math.prod(map(len, self.over.values()))) > POINTS_MAX:
            raise UsageError(f"the grid has {count:,} points: give {POINTS_MAX:,} at the most")

    @property
    def points(self) -> list[dict[str, str]]:
        """All points, the values of the last name changing first."""
        return [dict(zip(self.over, values, strict=True)) for values in product(*self.over.values())]

    def words(self, point: Mapping[str, str]) -> list[str]:
        """Return the command at a point."""
        return [PLACE.sub(lambda found: point[found[1]], word) for word in self.command]


def measured(words: Sequence[str], files: Mapping[str, bytes]) -> Task:
    """Return the task of a command that has ``--csv``; ``files``: those that it reads, by the names that its words have."""
    packed = {name: base64.b64encode(content).decode() for name, content in files.items()}
    return Task(f"{__name__}:measure", {"words": list(words), "files": packed})


def routed(words: Sequence[str], tools: Mapping[str, str]) -> Task:
    """Return the task that places and routes a board, with a seed; ``tools``: their versions, as of `tools_of`."""
    return Task(f"{__name__}:route", {"words": list(words), "tools": dict(tools)})


def measure(words: Sequence[str], files: Mapping[str, str]) -> list[dict[str, str]]:
    """Run a command in a new folder, and return the rows of its ``--csv``; ProbeError with what it said where it fails."""
    with tempfile.TemporaryDirectory(prefix="liteprobe-") as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(base64.b64decode(content))
        ended = _ended(CLI, [*words, "--csv", CSV], folder)
        figures = Path(folder) / CSV
        if ended.returncode not in VERDICTS or not figures.exists():
            raise _failed(ended)
        rows = list(csv.DictReader(io.StringIO(figures.read_text(encoding="utf-8"))))
    is_judged = any(word.partition("=")[0] == "--expect" for word in words)
    return [row | ({"verdict": VERDICTS[ended.returncode]} if is_judged else {}) for row in rows]


def route(words: Sequence[str], tools: Mapping[str, str]) -> list[dict[str, Any]]:
    """Place and route a board; ProbeError with what was said where that fails, or the tools are others than ``tools``."""
    if (found := tools_of(words)) != tools:
        raise ProbeError(f"other tools: {differences(tools, found)}")
    return [_printed(_ended(SEEDS, [str(build_folder() / "seeds"), *words]))]


def tools_of(words: Sequence[str]) -> dict[str, str]:
    """Return the versions of Yosys and nextpnr here; ProbeError where one is missing, or the board can't hold what is asked for."""
    return _printed(_ended(SEEDS, ["--tools", *words]))


def rows_of(points: Sequence[Mapping[str, str]], outcome: TasksOutcome) -> list[dict[str, Any]]:
    """Return the rows of all points, in their order, each behind the values of its point; one with ``error`` where it failed."""
    found: list[dict[str, Any]] = []
    for number, point in enumerate(points):
        if number in outcome.errors:
            found.append({**point, "error": outcome.errors[number]})
        # A column that is called as a value is the command's.
        found += [
            {**point, **{name if name not in point else f"{name} measured": value for name, value in row.items()}}
            for row in outcome.results.get(number, ())
        ]
    return found


# # #


def _nearest(name: str, places: Mapping[str, None]) -> str:
    return nearest(name, tuple(places)) if places else "write {" + name + "} where its values go"


def _ended(module: str, words: Sequence[str], folder: str | None = None) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-P", "-c", PROGRAM, str(os.getpid()), module, *words]
    return subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _printed(ended: "subprocess.CompletedProcess[bytes]") -> dict[str, Any]:
    if ended.returncode:
        raise _failed(ended)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def _failed(ended: "subprocess.CompletedProcess[bytes]") -> ProbeError:
    lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
    return ProbeError(f"exit code {ended.returncode}: {lines[-1].removeprefix('liteprobe: ')}")
