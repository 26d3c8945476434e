# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes a test a row of a bench: it yields figures, each held to a target; ``./run bench`` runs rows with greater numbers."""

import inspect
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[3]
MARK = "bench"


@dataclass(frozen=True)
class Figure:
    """A measured figure and what it is held to; ``is_least``: the target is the least that will do, else the most."""

    name: str
    value: float
    unit: str
    target: float
    is_least: bool = False

    @property
    def is_ok(self) -> bool:
        """Whether the target is reached; a NaN never is."""
        return bool(self.value >= self.target if self.is_least else self.value <= self.target)

    def line(self) -> str:
        """Return the figure as a line."""
        sign = ">=" if self.is_least else "<="
        return f"{self.name} {self.value:.6g} {self.unit} {sign}{self.target:g} {'ok' if self.is_ok else 'short'}"


def note(*lines: object) -> None:
    """Print lines beside the figures, on stderr."""
    for line in lines:
        print(line, file=sys.stderr, flush=True)


def drawn() -> random.Random:
    """Return random numbers of a new seed, which is printed, so that a run can be repeated."""
    seed = random.randrange(2**32)
    note(f"# seed {seed}")
    return random.Random(seed)


class Size(IntEnum):
    """Says how much a row does: as a test, in a bench, in a bench with ``--full``."""

    TEST = 0
    BENCH = 1
    FULL = 2

    def of(self, test: T, bench: T, full: T | None = None) -> T:
        """Return the number of this size; without ``full``, a full run is as the bench."""
        return (test, bench, bench if full is None else full)[self]


Row = Callable[..., Iterator[Figure]]


def row(
    bench: str, name: str = "", *, is_long: bool = False, is_test: bool = False
) -> Callable[[Row], Callable[..., None]]:
    """Make a generator of figures a row of a bench, under the name of the function without ``test_``.

    Parameters
    ----------
    bench : ``./run bench BENCH`` runs it. A parametrised row has the id of its parameters after its name.
    name : another name than the function's.
    is_long : whether it runs only where it is named, or with ``--full``, and in full then.
    is_test : bool
        Whether it is also run as a test, where a figure that falls short fails; its fixture ``size`` is ``Size.TEST`` then.
    """

    def decorate(function: Row) -> Callable[..., None]:
        @wraps(function)
        def test(figures: "Figures", **fixtures: Any) -> None:
            figures.take(function(**fixtures))

        own = inspect.signature(function).parameters.values()
        given = [inspect.Parameter("figures", inspect.Parameter.KEYWORD_ONLY)]
        given += [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        test.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
        called = name or function.__name__.removeprefix("test_")
        marked: Callable[..., None] = pytest.mark.bench(bench, called, is_long, is_test)(test)
        return marked

    return decorate


class Figures:
    """Takes the figures of one row.

    Parameters
    ----------
    name : of the row.
    in_bench : whether figures are printed as they come, and one that falls short fails nothing; else it fails the test.
    """

    def __init__(self, name: str, in_bench: bool) -> None:
        self.name = name
        self.in_bench = in_bench
        self.found: list[Figure] = []

    def take(self, figures: Iterator[Figure]) -> None:
        """Take all figures; in a bench, a row that fails is a figure that falls short."""
        try:
            for figure in figures:
                self.add(figure)
        except Exception as error:
            if not self.in_bench:
                raise
            print(f"{self.name}: {type(error).__name__}: {error}", file=sys.stderr)
            self.add(Figure(self.name, float("nan"), "failed", 0))
        short = [figure.line() for figure in self.found if not figure.is_ok]
        if short and not self.in_bench:
            pytest.fail("\n".join(short), pytrace=False)

    def add(self, figure: Figure) -> None:
        """Take a figure."""
        self.found.append(figure)
        if self.in_bench:
            print(figure.line(), flush=True)


def row_name(item: pytest.Item) -> str:
    """Return the name of a row, with that of its parameters."""
    name = str(item.get_closest_marker(MARK).args[1])  # type: ignore[union-attr]
    case = getattr(item, "callspec", None)
    return f"{name}_{case.id}" if case else name


class Bench:
    """Chooses the rows of a bench among the tests, and writes its figures to a file; without a bench, leaves tests alone."""

    def __init__(self, config: pytest.Config) -> None:
        self.name: str = config.getoption("--bench") or ""
        self.asked: list[str] = config.getoption("--row")
        self.is_full: bool = config.getoption("--full")
        self.results = Path(config.getoption("--figures") or ROOT / "build" / "bench" / f"{self.name}.json")
        self.started = time.monotonic()
        self.found: list[Figure] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the rows that were asked for, or, without a bench, all tests but the rows that only a bench runs."""
        marked = [(item, item.get_closest_marker(MARK)) for item in items]
        if not self.name:
            kept = [item for item, mark in marked if not mark or mark.args[3]]
        else:
            rows = {row_name(item): (item, mark) for item, mark in marked if mark and mark.args[0] == self.name}
            names = [name for name, (_, mark) in rows.items() if not self.asked and (self.is_full or not mark.args[2])]
            for asked in self.asked:  # A name without that of the parameters: all of them.
                chosen = [name for name, (_, mark) in rows.items() if asked in (name, mark.args[1])]
                if not chosen:
                    raise pytest.UsageError(f"the bench {self.name} has no row {asked}: give one of {', '.join(rows)}")
                names += chosen
            kept = [rows[name][0] for name in dict.fromkeys(names)]
        if dropped := [item for item in items if item not in set(kept)]:
            config.hook.pytest_deselected(items=dropped)
        items[:] = kept

    def size_of(self, item: pytest.Item) -> Size:
        """Return how much a row does."""
        if not self.name:
            return Size.TEST
        return Size.FULL if self.is_full or item.get_closest_marker(MARK).args[2] else Size.BENCH  # type: ignore[union-attr]

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Print no dots between the figures of a bench."""
        return (report.outcome, "", "") if self.name else None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the figures of a bench, and fail where one falls short."""
        if not self.name or not self.found:
            return
        seconds = time.monotonic() - self.started
        rows = [{**asdict(figure), "is_ok": figure.is_ok} for figure in self.found]
        for one in rows:
            one["value"] = float(one["value"]) if np.isfinite(one["value"]) else None
        content = {"full": self.is_full, "seconds": round(seconds, 1), "figures": rows}
        self.results.parent.mkdir(parents=True, exist_ok=True)
        self.results.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        short = [figure.name for figure in self.found if not figure.is_ok]
        state = f"{len(short)} short: {', '.join(short)}" if short else "all reached"
        print(
            f"{len(self.found)} figures in {seconds:.0f} s, {state}; build/bench/{self.results.name}", file=sys.stderr
        )
        if short and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
