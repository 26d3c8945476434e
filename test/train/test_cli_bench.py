# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The bench of trains: how figures are judged, printed and written; its arithmetic on starts that are known."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from liteprobe.host.traffic.train import TrainProgram

FILE = Path(__file__).resolve().parents[2] / "bench" / "train.py"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FILE.parent))  # As for a program that is run.
    spec = importlib.util.spec_from_file_location("bench_train", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(sys.modules["_figures"], "ROOT", tmp_path)
    return module


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
def test_a_figure_is_held_to_its_target(bench: Any, value: float, target: float, is_least: bool, line: str) -> None:
    assert bench.Figure("x", value, "ns", target, is_least).line() == line


def rows(bench: Any, monkeypatch: pytest.MonkeyPatch, *values: float) -> None:
    def row(_: Any) -> Iterator[Any]:
        for value in values:
            yield bench.Figure("x", value, "ns", 8)
        if not values:
            raise RuntimeError("it broke")

    monkeypatch.setattr(bench, "ROWS", {"row": row})
    monkeypatch.setattr(sys, "argv", ["train.py", "row"])


@pytest.mark.parametrize(("values", "code"), [((1, 8), 0), ((1, 9), 1), ((), 1)])
def test_bench_ends_with_1_when_a_figure_falls_short_or_a_row_breaks(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, values: tuple[float, ...], code: int
) -> None:
    rows(bench, monkeypatch, *values)
    assert bench.main() == code
    figures = json.loads((tmp_path / "build" / "bench" / "train.json").read_text())["figures"]
    assert [figure["is_ok"] for figure in figures] == ([value <= 8 for value in values] or [False])


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        ([], [("short", False)]),
        (["long"], [("long", True)]),
        (["--full"], [("short", True), ("long", True)]),
        (["short", "long"], [("short", False), ("long", True)]),
    ],
)
def test_long_rows_run_in_full_and_only_when_asked_for(
    bench: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], ran: list[tuple[str, bool]]
) -> None:
    found = []

    def named(name: str) -> Any:
        def row(made: Any) -> Iterator[Any]:
            found.append((name, made.is_full))
            yield bench.Figure("x", 1, "ns", 8)

        return row

    monkeypatch.setattr(bench, "ROWS", {"short": named("short"), "long": named("long")})
    monkeypatch.setattr(bench, "LONG", ("long",))
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
    assert bench.main() == 0
    assert found == ran


def test_row_that_there_is_not_is_wrong_use(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["train.py", "rwo"])
    with pytest.raises(SystemExit) as ended:
        bench.main()
    assert ended.value.code == 2


def test_starts_are_held_to_their_tick(bench: Any) -> None:
    program = TrainProgram(60, 5, interval_ns=804.0)  # 100.5 ticks.
    exact = np.array([7, 107, 208, 308, 409])
    assert bench.start_errors(program, exact).tolist() == [0, -0.5, 0, -0.5, 0]
    assert bench.on_tick(bench.start_errors(program, exact)) == 1.0
    assert bench.on_tick(bench.start_errors(program, np.add(exact, [0, 1, 0, 0, 0]))) == 0.8
    assert bench.on_tick(bench.start_errors(program, np.subtract(exact, [0, 0, 1, 0, 0]))) == 0.8
