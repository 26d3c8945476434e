# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Benches: how figures are judged, printed and written, and which rows run; the arithmetic of that of trains on known starts."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import train as bench

from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.tools.figures import Figure, Size

ROOT = Path(__file__).resolve().parents[2]
ROWS = """
from liteprobe.sim.drivers.tools.figures import Figure, row

@row("b")
def test_short(size):
    for value in {values}:
        yield Figure("short", value, f"ns {{size.name}}", 8)
    assert {values}, "it broke"

@row("b", is_long=True)
def test_long(size):
    yield Figure("long", 1, f"ns {{size.name}}", 8)

@row("b", "case", is_test=True)
@__import__("pytest").mark.parametrize("one", ["x", "y"])
def test_that_is_a_test_too(one, size):
    yield Figure(one, size.of(*{tested}), f"ns {{size.name}}", 8)
"""


def run(folder: Path, *arguments: str, values: tuple[float, ...] = (1,), tested: tuple[float, ...] = (1, 2, 3)) -> Any:
    """Run the rows above under our conftest.py; return the process, and its figures as they were written."""
    (folder / "test_rows.py").write_text(ROWS.format(values=values, tested=tested))
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"))
    file = folder / "figures.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "--figures", str(file), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done, json.loads(file.read_text())["figures"] if file.exists() else []


@pytest.mark.parametrize(
    ("value", "target", "is_least", "line"),
    [
        (8, 8, False, "x 8 ns <=8 ok"),
        (9, 8, False, "x 9 ns <=8 short"),
        (0.5, 0.5, True, "x 0.5 ns >=0.5 ok"),
        (99.9999, 100, True, "x 99.9999 ns >=100 short"),
        (float("nan"), 0, False, "x nan ns <=0 short"),
        (float("nan"), 0, True, "x nan ns >=0 short"),
    ],
)
def test_a_figure_is_held_to_its_target(value: float, target: float, is_least: bool, line: str) -> None:
    assert Figure("x", value, "ns", target, is_least).line() == line


@pytest.mark.parametrize(("values", "code"), [((1, 8), 0), ((1, 9), 1), ((), 1)])
def test_bench_ends_with_1_when_a_figure_falls_short_or_a_row_breaks(
    tmp_path: Path, values: tuple[float, ...], code: int
) -> None:
    done, figures = run(tmp_path, "--bench=b", "--row=short", values=values)
    assert done.returncode == code
    assert [figure["is_ok"] for figure in figures] == ([value <= 8 for value in values] or [False])
    lines = [f"short {value} ns BENCH <=8 {'ok' if value <= 8 else 'short'}" for value in values]
    assert [line for line in done.stdout.splitlines() if " <=" in line] == (lines or ["short nan failed <=0 short"])


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        ([], [("short", "BENCH"), ("x", "BENCH"), ("y", "BENCH")]),
        (["--row=long"], [("long", "FULL")]),
        (["--full"], [("short", "FULL"), ("long", "FULL"), ("x", "FULL"), ("y", "FULL")]),
        (["--row=short", "--row=long"], [("short", "BENCH"), ("long", "FULL")]),
        (["--row=case"], [("x", "BENCH"), ("y", "BENCH")]),
        (["--row=case_y"], [("y", "BENCH")]),
    ],
)
def test_long_rows_run_in_full_and_only_when_asked_for(
    tmp_path: Path, arguments: list[str], ran: list[tuple[str, str]]
) -> None:
    done, figures = run(tmp_path, "--bench=b", *arguments)
    assert done.returncode == 0
    assert [(figure["name"], figure["unit"].removeprefix("ns ")) for figure in figures] == ran


def test_row_that_there_is_not_is_wrong_use(tmp_path: Path) -> None:
    done, figures = run(tmp_path, "--bench=b", "--row=rwo")
    assert (done.returncode, figures) == (pytest.ExitCode.USAGE_ERROR, [])
    assert "the bench b has no row rwo: give one of short, long, case_x, case_y" in done.stderr


def test_without_a_bench_a_row_is_no_test_or_a_small_one_that_fails_where_a_figure_falls_short(tmp_path: Path) -> None:
    done, figures = run(tmp_path)
    assert (done.returncode, figures, "2 passed, 2 deselected" in done.stdout) == (0, [], True)
    done, _ = run(tmp_path, tested=(9, 1, 1))
    assert (done.returncode, "x 9 ns TEST <=8 short" in done.stdout) == (1, True)


def test_a_size_chooses_its_number() -> None:
    assert [Size(number).of(1, 2, 3) for number in range(3)] == [1, 2, 3]
    assert [Size(number).of(1, 2) for number in range(3)] == [1, 2, 2]


def test_starts_are_held_to_their_tick() -> None:
    program = TrainProgram(60, 5, interval_ns=804.0)  # 100.5 ticks.
    exact = np.array([7, 107, 208, 308, 409])
    assert bench.start_errors(program, exact).tolist() == [0, -0.5, 0, -0.5, 0]
    assert bench.on_tick(bench.start_errors(program, exact)) == 1.0
    assert bench.on_tick(bench.start_errors(program, np.add(exact, [0, 1, 0, 0, 0]))) == 0.8
    assert bench.on_tick(bench.start_errors(program, np.subtract(exact, [0, 0, 1, 0, 0]))) == 0.8
