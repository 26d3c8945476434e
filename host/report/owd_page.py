# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of a one-way delay between two probes: both ways over time, clocks and their bounds, loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.rows import count_of
from liteprobe.host.report import owd_plots, page, words
from liteprobe.host.report.owd_plots import Points
from liteprobe.host.report.page import Part, heading, number, said_of, table
from liteprobe.host.report.words import words as said
from liteprobe.host.suites.owd import OneWayResult
from liteprobe.host.suites.sweep import Sweep

TITLE = "One-way delay, measured"
DEFINED = ("Frame length", "Time stamps", "One-way delay", "IPDV, PDV", "Lost, duplicated, reordered", "Late")
COUNTS = ("lost", "duplicated", "reordered", "late")


@dataclass(frozen=True)
class Direction:
    """One direction: what it is called, its figures, and the results that they are of, program by program."""

    name: str
    sweep: Sweep
    results: Sequence[OneWayResult]

    @property
    def ends(self) -> str:
        """From where to where."""
        return page.address(self.sweep.name)

    @property
    def points(self) -> list[Points]:
        """What is drawn of each program, constant delays of a calibration taken off as in the rows."""
        return [
            Points.of(result, row.get("calibration_ns", 0.0), row["uncertainty_ns"])
            for result, row in zip(self.results, self.sweep.rows, strict=True)
        ]


def write(path: Path, ways: Sequence[Direction], content: Mapping[str, Any]) -> None:
    """Write the page of ``ways`` to ``path``; ``content`` is that of the JSON file (``files.document``)."""
    sweeps = [way.sweep for way in ways]
    parts = [
        *said_of([_sent(ways)]),
        *page.notes(sweeps),
        _tiles(sweeps),
        *_figures(ways),
        *(part for way in ways for part in _delays(way)),
        *_clocks(ways),
        heading("How far to trust it"),
        *said_of([said(words.OWD_BOUND)]),
        *page.definitions(DEFINED),
        *page.environment(sweeps, content),
    ]
    path.write_text(page.document(TITLE, content, parts), encoding="utf-8")


def _sent(ways: Sequence[Direction]) -> str:
    rows = [row for way in ways for row in way.sweep.rows]
    return said(
        words.OWD_SENT,
        frames=f"{sum(row['sent'] for row in rows):,}",
        names="; ".join(f"{way.name.lower()} {way.ends}" for way in ways),
    )


def asymmetry_ns(sweeps: Sequence[Sweep]) -> float | None:
    """Return half of what the mean delay there is above that back, over the rows that both ways have; None: one way."""
    if len(sweeps) != 2:
        return None
    pairs = [
        (there["owd_ns"]["mean"], back["owd_ns"]["mean"]) for there, back in zip(*(s.rows for s in sweeps), strict=True)
    ]
    known = [(there - back) / 2 for there, back in pairs if there is not None and back is not None]
    return sum(known) / len(known) if known else None


def _tiles(sweeps: Sequence[Sweep]) -> Part:
    rows = [row for sweep in sweeps for row in sweep.rows]
    bounds = [row["uncertainty_ns"] for row in rows]
    known = [bound for bound in bounds if bound is not None]
    bound = max(known) if len(known) == len(bounds) else None
    deviations = [row["owd_ns"]["std"] for row in rows if row["owd_ns"]["std"] is not None]
    tiles = [
        (f"{sum(row['sent'] for row in rows):,}", "frames sent"),
        (page.total(rows, "lost"), "lost"),
        (f"{number(bound, 1)} ns", "bound of a delay's error (95 %), the worst row"),
        (f"{number(max(deviations, default=None), 1)} ns", "deviation of delay, the worst row"),
    ]
    if (half := asymmetry_ns(sweeps)) is not None:
        tiles.append((f"{number(half, 1)} ns", "half of there less back: asymmetry of the way, or clocks apart"))
    return page.tiles_of(tiles)


def _figures(ways: Sequence[Direction]) -> list[Part]:
    named = [(way.name, way.points) for way in ways]
    captions = [
        (owd_plots.over_time(named), "One-way delay over time.", said(words.OWD_OVER_TIME)),
        (owd_plots.shares(named), "How often which delay.", said(words.OWD_SHARES)),
    ]
    return [heading("Figures"), page.figures(captions)]


def _delays(way: Direction) -> list[Part]:
    heads = ["Length", "Trains", "Mean", "Std", "Least", "Greatest", "p99", "p99.9", "IPDV std", "Bound (95 %)"]
    heads.append("Lost, doubled,\nreordered, late")
    rows = []
    for row in way.sweep.rows:
        delay = row["owd_ns"]
        cells = [str(row["length"]), f"{row['repeat']} × {row['count']}"]
        cells += [number(delay[name], 2) for name in ("mean", "std", "min", "max", "p99", "p99_9")]
        cells += [number(row["ipdv_ns"]["std"], 2), number(row["uncertainty_ns"], 1)]
        rows.append([*cells, " · ".join(page.count(count_of(row, name)) for name in COUNTS)])
    head = [heading(way.name), Part("address", text=way.ends), heading("One-way delay, ns", 3)]
    return [*head, table(heads, rows)]


def _clocks(ways: Sequence[Direction]) -> list[Part]:
    heads = "Direction, length|Probe|State|Bound, ns (95 %)|Last offset, ns|Oscillator, ppm|Edges refused|Its line, ppm"
    rows = []
    for way in ways:
        for row in way.sweep.rows:
            for end in ("sender", "receiver"):
                clock = row[end]
                cells = [f"{way.name}, {row['length']}", end, clock["clock_state"]]
                cells += [number(clock["uncertainty_ns"], 1), number(clock["offset_ns"], 2)]
                line = row["line_clock"] if end == "receiver" else None
                rate = "-" if line is None else f"{number(line['rate_ppm'], 4)} ± {number(line['rate_error_ppm'], 4)}"
                rows.append([*cells, number(clock["rate_ppb"] / 1e3, 4), str(clock["rejected"]), rate])
    return [heading("Clocks"), *said_of([said(words.OWD_CLOCKS)]), table(heads, rows)]
