# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of a one-way delay between two probes: both ways over time, clocks and their bounds, loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.analysis import arrivals
from liteprobe.host.analysis.rows import DELAYS, TRAINS
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, number, said, said_of, table
from liteprobe.host.report.plots import INK, SERIES, STYLE, axes_of, svg, thin
from liteprobe.host.suites.owd import OneWayResult
from liteprobe.host.suites.sweep import Sweep

with extras.named():
    import matplotlib
    from matplotlib.axes import Axes

BINS = 40
TITLE = "One-way delay, measured"
DEFINED = ("Frame length", "Time stamps", "One-way delay", "IPDV, PDV", "Lost, duplicated, reordered", "Late")
SENT = """
    {frames} frames were sent from probe to probe, {names}. The first of each program left at a whole period of the PPS.
    Every figure below is computed from all of them, or left out."""
OVER_TIME = """
    Each packet of programs whose records are all there, at the time at which it was sent. The band is the 95 % bound of
    the error of a delay about the mean of its program; a stroke at the bottom is a packet that was lost. Drawn thinned
    where there are many."""
SHARES = """
    Every packet, in bins of one width a panel."""
CLOCKS = """
    What each probe said of its own clock at the end of each row. The rate is that of its oscillator, free-running,
    against the PPS; that of the line that comes to the receiver is by the receiver's clock, ± 95 %."""
BOUND = """
    A delay is arrival by one clock less departure by another, so it is off by the bounds of both clocks, and by what is
    left of the tick of 8 ns in which an arrival is stamped: that sum is the bound above. It holds what a probe can know
    of itself; delays of the antenna's cable, of the receiver and inside of PHYs are constants, which a calibration over
    a short cable takes out. With both ways, half of the difference between them is the asymmetry of the way and of
    those constants: nothing measured here can tell the two apart."""


@dataclass(frozen=True)
class Points:
    """Packets of a program."""

    length: int  # Of its frames (octets).
    sent_ns: NDArray[np.int64]  # Shape (packets,): when each that arrived was sent, by the sender's clock.
    owd_ns: NDArray[np.float64]  # Shape (packets,).
    lost_ns: NDArray[np.int64]  # Shape (lost packets,): when each that is lost was sent, to within an interval.
    bound_ns: float | None  # 95 % bound of the error of each delay.
    #: The tick of the receive stamps is resolved by the line's clock; else each delay may be half a tick off.
    is_resolved: bool = True

    @staticmethod
    def of(result: OneWayResult, constant_ns: float, bound_ns: float | None) -> Points:
        """Return what is drawn of a result; ``constant_ns`` is taken off each delay.

        Of a program of which records are missing nothing is drawn: what isn't there would look lost.
        """
        arrived, length = result.arrived, result.train.program.length
        if not arrivals.has_all_records(result.train):
            nothing = np.zeros(0, np.int64)
            return Points(length, nothing, np.zeros(0), nothing, bound_ns, False)
        order = np.argsort(arrived.sequence, kind="stable")
        number, sent_ns = arrived.sequence[order], arrived.tx_stamp[order].astype(np.int64)
        lost = np.setdiff1d(np.arange(result.train.sent), number)
        known = len(number) > 0
        start = result.start_time_ns
        lost_ns = start + np.interp(lost, number, sent_ns - start) if known else np.full(len(lost), float(start))
        owd_ns = result.owd_ns[order] - constant_ns
        is_resolved = result.line is not None and result.line.is_resolved
        return Points(length, sent_ns, owd_ns, lost_ns.astype(np.int64), bound_ns, is_resolved)


@dataclass(frozen=True)
class OneWayReport:
    """One direction: what it is called, its figures, and the results that they are of, program by program."""

    name: str
    sweep: Sweep
    results: Sequence[OneWayResult]

    @property
    def ends(self) -> str:
        return page.address(self.sweep.name)

    @property
    def points(self) -> list[Points]:
        """Points of each program's plot, constant delays of a calibration taken off as in the rows."""
        return [
            Points.of(result, row.get("calibration_ns", 0.0), row["uncertainty_ns"])
            for result, row in zip(self.results, self.sweep.rows, strict=True)
        ]


def write(path: Path, reports: Sequence[OneWayReport], content: Mapping[str, Any]) -> None:
    """Write the page of ``reports`` to ``path``; ``content`` is that of the JSON file (``files.document``)."""
    sweeps = [one.sweep for one in reports]
    parts = [
        *said_of([_sent(reports)]),
        *page.notes(sweeps),
        _tiles(sweeps),
        *_figures(reports),
        *(part for one in reports for part in _delays(one)),
        *_clocks(reports),
        heading("Accuracy"),
        *said_of([said(BOUND)]),
        *page.definitions(DEFINED),
        *page.environment(sweeps, content),
    ]
    write_text(path, page.document(TITLE, content, parts))


def _sent(reports: Sequence[OneWayReport]) -> str:
    rows = [row for one in reports for row in one.sweep.rows]
    return said(
        SENT,
        frames=f"{sum(row['sent'] for row in rows):,}",
        names="; ".join(f"{one.name.lower()} {one.ends}" for one in reports),
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


def _tiles(sweeps: Sequence[Sweep]) -> Block:
    rows = [row for sweep in sweeps for row in sweep.rows]
    bounds = [row["uncertainty_ns"] for row in rows]
    known = [bound for bound in bounds if bound is not None]
    bound = max(known) if len(known) == len(bounds) else None
    deviations = [row["owd_ns"]["std"] for row in rows if row["owd_ns"]["std"] is not None]
    tiles = [
        (f"{sum(row['sent'] for row in rows):,}", "frames sent"),
        (page.total(rows, "lost"), "lost"),
        (f"{number(bound, 1)} ns", "bound of a delay's error (95 %), the worst row"),
        (f"{number(max(deviations, default=None), 1)} ns", "standard deviation of delay, the greatest of all rows"),
    ]
    if (half := asymmetry_ns(sweeps)) is not None:
        tiles.append((f"{number(half, 1)} ns", "half of there less back: asymmetry of the way, or clocks apart"))
    return page.tiles_of(tiles)


def _figures(reports: Sequence[OneWayReport]) -> list[Block]:
    named = [(one.name, one.points) for one in reports]
    captions = [
        (over_time(named), "One-way delay over time.", said(OVER_TIME)),
        (shares(named), "How often which delay.", said(SHARES)),
    ]
    return [heading("Figures"), page.figures(captions)]


def _delays(report: OneWayReport) -> list[Block]:
    delays = [replace(one, digits=2) for one in DELAYS.of("mean std least most p99 p99_9")]
    ends = [replace(TRAINS["ipdv_std"], digits=2), *TRAINS.of("bound counts")]
    head = [heading(report.name), Block("address", text=report.ends), heading("One-way delay, ns", 3)]
    return [*head, listed([*TRAINS.of("length trains"), *delays, *ends], report.sweep.rows)]


def _clocks(reports: Sequence[OneWayReport]) -> list[Block]:
    heads = "Direction, length|Probe|State|Bound, ns (95 %)|Last offset, ns|Oscillator, ppm|Edges refused|Its line, ppm"
    rows = []
    for one in reports:
        for row in one.sweep.rows:
            for end in ("sender", "receiver"):
                clock = row[end]
                cells = [f"{one.name}, {row['length']}", end, clock["clock_state"]]
                cells += [number(clock["uncertainty_ns"], 1), number(clock["offset_ns"], 2)]
                line = row["line_clock"] if end == "receiver" else None
                rate = "-" if line is None else f"{number(line['rate_ppm'], 4)} ± {number(line['rate_error_ppm'], 4)}"
                rows.append([*cells, number(clock["rate_ppb"] / 1e3, 4), str(clock["rejected"]), rate])
    return [heading("Clocks"), *said_of([said(CLOCKS)]), table(heads, rows)]


# Plots --------------------------------------------------------------------------------------------


def _colour(points: Points, named: Sequence[tuple[str, Sequence[Points]]]) -> str:
    lengths = sorted({one.length for _, drawn in named for one in drawn})
    return SERIES[lengths.index(points.length) % len(SERIES)]


def _begin(named: Sequence[tuple[str, Sequence[Points]]]) -> tuple[int, float, str]:
    """Return the first moment (ns), and what the time since then is divided by, with its unit."""
    moments = [part for _, drawn in named for one in drawn for part in (one.sent_ns, one.lost_ns) if len(part)]
    if not moments:
        return 0, 1e9, "s"
    first, last = min(int(part.min()) for part in moments), max(int(part.max()) for part in moments)
    return first, *((1e6, "ms") if last - first < 10**9 else (1e9, "s"))


def _named(name: str, drawn: Sequence[Points]) -> str:
    """Return the title of a panel, which says where half a tick is not resolved."""
    unresolved = sorted({one.length for one in drawn if len(one.sent_ns) and not one.is_resolved})
    if not unresolved:
        return name
    lengths = " and ".join(str(length) for length in unresolved)
    return f"{name}; not resolved within the tick, ± {TICK_NS / 2:g} ns: {lengths} octets"


def _one_axis(panels: Sequence[Axes]) -> None:
    """Give all panels the same x axis, so that both ways can be compared moment by moment."""
    ends = [axes.get_xlim() for axes in panels]
    for axes in panels:
        axes.set_xlim(min(least for least, _ in ends), max(most for _, most in ends))


def _bins(delays: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the edges of the bins that all delays fall into."""
    everything = np.concatenate(delays) if delays else np.zeros(1)
    return np.linspace(everything.min() - 0.5, everything.max() + 0.5, BINS + 1)


def over_time(named: Sequence[tuple[str, Sequence[Points]]]) -> str:
    """Draw the delay of each packet at the time at which it was sent, the band of its bound, what was lost below.

    All panels have one time axis. Where the tick of the receive stamps is not resolved, each delay has half a tick either way.
    """
    first_ns, factor, unit = _begin(named)
    with matplotlib.rc_context(STYLE):
        figure, panels = axes_of(len(named), 0.9 + 2.1 * len(named))
        for axes, (name, drawn) in zip(panels, named, strict=True):
            axes.set_title(_named(name, drawn), loc="left")
            shown: set[int] = set()
            for one in drawn:
                label = None if one.length in shown else f"{one.length} octets"
                shown.add(one.length)
                _program(axes, one, (first_ns, factor), _colour(one, named), label)
            axes.set_ylabel("delay (ns)")
            axes.ticklabel_format(axis="y", useOffset=False)
            axes.margins(y=0.15)
            if any(len(one.sent_ns) for one in drawn):
                axes.legend(loc="upper right", ncols=4, markerscale=2)
        _one_axis(panels)
        panels[-1].set_xlabel(f"time since the first frame ({unit})")
    return svg(figure, "owd-time")


def _program(axes: Axes, one: Points, time: tuple[int, float], colour: str, label: str | None) -> None:
    first_ns, factor = time
    at = (one.sent_ns - first_ns) / factor
    if len(at):
        x, y = thin(at, one.owd_ns)
        if one.is_resolved:
            axes.plot(x, y, ".", ms=3, color=colour, label=label)
        else:
            axes.errorbar(x, y, TICK_NS / 2, fmt="o", ms=3, mfc="none", color=colour, elinewidth=0.5, label=label)
        if one.bound_ns is not None:
            mean = float(one.owd_ns.mean())
            ends = [float(at[0]), float(at[-1])]
            axes.fill_between(ends, mean - one.bound_ns, mean + one.bound_ns, color=colour, alpha=0.15, lw=0)
    for moment in (one.lost_ns - first_ns) / factor:
        axes.axvline(moment, 0, 0.06, color=INK, lw=1)


def shares(named: Sequence[tuple[str, Sequence[Points]]]) -> str:
    """Draw how often which delay came, a panel each way on one axis of delays, one outline a length."""
    with matplotlib.rc_context(STYLE):
        figure, panels = axes_of(len(named), 0.9 + 1.6 * len(named))
        edges = _bins([one.owd_ns for _, drawn in named for one in drawn if len(one.owd_ns)])
        for axes, (name, drawn) in zip(panels, named, strict=True):
            axes.set_title(_named(name, drawn), loc="left")
            axes.set_xlim(edges[0], edges[-1])
            delays = [one.owd_ns for one in drawn if len(one.owd_ns)]
            if not delays:
                axes.set_title(f"{name}: nothing to draw", loc="left")
                continue
            for length in sorted({one.length for one in drawn}):
                of_length = [one for one in drawn if one.length == length]
                counts, _ = np.histogram(np.concatenate([one.owd_ns for one in of_length]), edges)
                share = 100 * counts / max(1, counts.sum())
                axes.stairs(share, edges, color=_colour(of_length[0], named), lw=1.4, label=f"{length} octets")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
            axes.ticklabel_format(axis="x", useOffset=False)
            axes.legend(loc="best")
        panels[-1].set_xlabel("one-way delay (ns)")
    return svg(figure, "owd-shares")
