# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What every bench shares: a figure and its target, the loop over rows, and the file of results."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]


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


Row = Callable[[bool], Iterator[Figure]]


def measure(name: str, row: Callable[[], Iterator[Figure]]) -> list[Figure]:
    """Measure a row, printing each figure as it comes; a row that fails is a figure that falls short."""
    found = []
    try:
        for figure in row():
            found.append(figure)
            print(figure.line(), flush=True)
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        found.append(Figure(name, float("nan"), "failed", 0))
        print(found[-1].line(), flush=True)
    return found


def write(results: Path, figures: list[Figure], seconds: float, is_full: bool) -> None:
    """Write the figures as JSON."""
    results.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(figure), "is_ok": figure.is_ok} for figure in figures]
    for row in rows:
        row["value"] = float(row["value"]) if np.isfinite(row["value"]) else None
    content = {"full": is_full, "seconds": round(seconds, 1), "figures": rows}
    results.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    short = [figure.name for figure in figures if not figure.is_ok]
    state = f"{len(short)} short: {', '.join(short)}" if short else "all reached"
    print(f"{len(figures)} figures in {seconds:.0f} s, {state}; {results.relative_to(ROOT)}", file=sys.stderr)


def run(bench: str, description: str | None, rows: dict[str, Row], long: Sequence[str] = ()) -> int:
    """Measure the rows that the command line names; return 1 when a figure falls short.

    Rows of ``long`` run in full, and only with ``--full`` or when they are named.
    """
    parser = argparse.ArgumentParser(prog=f"./run bench {bench}", description=description)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"which to measure (default: all): {', '.join(rows)}")
    also = f", and the long rows: {', '.join(long)}" if long else " and more of them"
    parser.add_argument("--full", action="store_true", help=f"longer runs{also}")
    args = parser.parse_args()
    unknown = [row for row in args.rows if row not in rows]
    if unknown:
        parser.error(f"there is no row {unknown[0]}: give one of {', '.join(rows)}")
    started = time.monotonic()
    figures: list[Figure] = []
    for name in args.rows or [name for name in rows if args.full or name not in long]:

        def row(name: str = name) -> Iterator[Figure]:
            return rows[name](args.full or name in long)

        figures += measure(name, row)
    write(ROOT / "build" / "bench" / f"{bench}.json", figures, time.monotonic() - started, args.full)
    return 0 if figures and all(figure.is_ok for figure in figures) else 1
