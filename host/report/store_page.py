# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of a store: percentiles over time, days against conditions, loss, and two runs side by side.

Stands alone: matplotlib and templates take long to load, and only a report needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from liteprobe.host.analysis.columns import shown
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.base.units import TIMES, fitting
from liteprobe.host.measure.percentiles import Cells, Measured
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, said_of, table, typeset
from liteprobe.host.report.plots import PLAIN, SERIES, axes_of, percent_axis, svg
from liteprobe.host.store.query import HELD, OF_DAYS, Answer, StoreQuery, named

with extras.named():
    import matplotlib
    from matplotlib import dates as plot_dates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Drawings = list[tuple[str, str, str]]  # SVG, title and text of the caption.
PANELS_MOST = 8  # Of probes and parts.
ROWS_MOST = 400  # Of a table; liteprobe query has them all.
BARS = {HELD[True]: (0.15, SERIES[0]), HELD[False]: (0.75, SERIES[1]), HELD[None]: (0.4, SERIES[3])}  # Height, colour.
OVER_TIME = """
    Percentiles of all delays of a day together, from merged histograms. The band is the bin of each; the clocks' error
    is in the table of days, not here."""
LOSS = "Lost of sent, by day; a day without a count of both has no mark."
CONDITIONS = """
    A bar for each day: thin where the condition held, tall where it did not, of half the height where the limit lies
    within the error of the figure, or nobody measured it."""
COMPARED = "Share of the frames that came within a delay, of both runs, at the upper end of each bin."
MEANS = {
    "Percentile": """
        The least delay that so many per cent of all don't exceed, known to the bin of a merged histogram: 1 ns wide below
        256 ns, then no wider than 1/128 of the value, or as wide as the probe's meter has it.""",
    "Held": """
        A condition held on a day when its figure, with its bounds and the error of the clocks, is on the right side of the
        limit as a whole; it did not hold when it is on the wrong side as a whole; else it is not known.""",
    "Differs": "Two figures differ where their bounds don't meet: neither chance nor a drift is in that.",
}


def write(
    path: Path,
    query: StoreQuery,
    content: Mapping[str, Any],
    percents: Sequence[float] = (50, 99, 99.9),
    conditions: Sequence[str] = (),
    compared: Sequence[str] = (),
) -> list[str]:
    """Write the page of what a query sees, and return the damaged files that were left out.

    Parameters
    ----------
    content : mapping
        Its head, of ``files.head``.
    percents : sequence of float
        Percentiles that are drawn.
    conditions : sequence of str
        Held against each day, like ``p99 < 10ms``.
    compared : sequence of str
        Names of two runs, or how they begin; empty: none.
    """
    runs, days, lines = query.runs(), query.days(conditions), query.percentiles(percents, by_date=True)
    left_out = list(dict.fromkeys([*runs.left_out, *days.left_out, *lines.left_out]))
    probes = sorted({row["probe"] for row in runs.rows})
    ends = [str(row["time"])[:16] for row in (runs.rows[-1:] + runs.rows[:1])]
    whole = f"{len(runs.rows):,} runs of {', '.join(probes[:8])}{' and others' * (len(probes) > 8)}, {' to '.join(ends)} (UTC)"
    cut = [row for row in runs.rows if not row["is_complete"]]
    parts = [
        *said_of([f"{whole}."]),
        *said_of([f"{len(cut):,} of them are incomplete"] * bool(cut), "note"),
        *said_of([f"left out, because it is damaged: {one}" for one in left_out], "note"),
        _tiles(runs, days, lines, conditions),
        heading("Figures"),
        page.figures([*_over_time(lines, percents), *_loss(days), *_conditions(days, conditions)]),
        *_days(days, conditions),
        *(_compared(query, compared) if compared else ()),
        *page.definitions((), MEANS),
        *page.environment([], content),
    ]
    write_text(path, page.document("Results of months", content, parts))
    return left_out


# # #

dates: Any = plot_dates  # It has no types.


def _tiles(runs: Answer, days: Answer, lines: Answer, conditions: Sequence[str]) -> Block:
    sums = {name: [row[name] for row in days.rows if row[name] is not None] for name in ("sent", "lost")}
    found = [
        (f"{len(runs.rows):,}", "runs"),
        (f"{len({row['date'] for row in days.rows}):,}", "days with results"),
        (f"{sum(row['samples'] for row in lines.rows):,}", "delays, in histograms"),
        *((f"{sum(values):,}" if values else "–", f"{name}, where it is known") for name, values in sums.items()),
    ]
    for text in conditions:
        asked = [row[text] for row in days.rows if row[text]]
        found.append((f"{sum(one == HELD[True] for one in asked):,} of {len(asked):,}", f"{text}: held"))
    return page.tiles_of(found)


def _panels(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return rows by probe and part, as many as are drawn."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["probe"], row["part"], row["date"])):
        found.setdefault((row["probe"], row["part"]), []).append(row)
    return dict(list(found.items())[:PANELS_MOST])


def _left_out(rows: Sequence[Mapping[str, Any]]) -> str:
    more = len({(row["probe"], row["part"]) for row in rows}) - PANELS_MOST
    return f" {more:,} more probes and parts are in the table alone: choose with --of and --part." if more > 0 else ""


def _dates(axes: Axes, days: Sequence[date]) -> None:
    """Make the x axis one of days."""
    axes.xaxis_date()
    locator = dates.AutoDateLocator(minticks=2, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    first, last = (dates.date2num(one) for one in (min(days), max(days)))
    axes.set_xlim(first - 0.5, last + 0.5)


def _over_time(lines: Answer, percents: Sequence[float]) -> Drawings:
    """Draw percentiles by day, a panel for each probe and part."""
    panels = _panels(lines.rows)
    if not panels:
        return []
    days = [row["date"] for row in lines.rows]
    with matplotlib.rc_context(PLAIN):
        figure, all_axes = axes_of(len(panels), 1.0 + 1.9 * len(panels))
        for axes, ((probe, part), rows) in zip(all_axes, panels.items(), strict=True):
            most = max(abs(float(row[named(percents[-1])])) for row in rows)
            unit, size = fitting(most, TIMES)
            scale = float(size)
            at = [dates.date2num(row["date"]) for row in rows]
            for place, percent in enumerate(percents):
                values: list[Measured] = [row[named(percent)] for row in rows]
                colour = SERIES[place % len(SERIES)]
                lows = [one.bounds.least / scale for one in values]
                highs = [one.bounds.most / scale for one in values]
                axes.fill_between(at, lows, highs, color=colour, alpha=0.3, lw=0)
                label = f"p{percent:g}" if axes is all_axes[0] else None
                axes.plot(at, [float(one) / scale for one in values], "o-", ms=3, lw=1, color=colour, label=label)
            axes.set_title(f"{probe}, {part}", loc="left")
            axes.set_ylabel(f"delay ({unit.replace('u', 'µ')})")
            bottom, top = min(0, axes.get_ylim()[0]), axes.get_ylim()[1]
            axes.set_ylim(bottom, top + 0.05 * (top - bottom))  # Marks of one day are whole, too.
            _dates(axes, days)
        figure.legend(loc="outside lower center", ncols=len(percents))
        drawn = svg(figure, "percentiles")
    return [(drawn, "Delay over time.", page.said(OVER_TIME) + _left_out(lines.rows))]


def _loss(days: Answer) -> Drawings:
    """Draw the ratio of lost frames by day."""
    known = [row for row in days.rows if row["loss_ratio"] is not None]
    if not known:
        return []
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, 2.6)
        for place, ((probe, part), rows) in enumerate(_panels(known).items()):
            at = [dates.date2num(row["date"]) for row in rows]
            style: dict[str, Any] = {"color": SERIES[place % len(SERIES)], "ls": ("-", "--")[place // len(SERIES) % 2]}
            axes.plot(
                at, [100 * float(row["loss_ratio"]) for row in rows], "o", ms=3, lw=1, label=f"{probe}, {part}", **style
            )
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("lost")
        _dates(axes, [row["date"] for row in known])
        figure.legend(loc="outside lower center", ncols=2)
        drawn = svg(figure, "loss")
    return [(drawn, "Loss over time.", LOSS + _left_out(known))]


def _conditions(days: Answer, conditions: Sequence[str]) -> Drawings:
    """Draw on which day which condition held."""
    panels = _panels(days.rows)
    lines = [
        (f"{text}: {probe}, {part}", text, rows)
        for text in conditions
        for (probe, part), rows in panels.items()
        if any(row[text] for row in rows)
    ]
    if not lines:
        return []
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, 0.9 + 0.32 * len(lines))
        for place, (_, text, rows) in enumerate(lines):
            for verdict, (height, colour) in BARS.items():
                at = [dates.date2num(row["date"]) for row in rows if row[text] == verdict]
                axes.barh([place] * len(at), 1, height, [one - 0.5 for one in at], color=colour, lw=0)
        axes.set_yticks(range(len(lines)), [name for name, _, _ in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        _dates(axes, [row["date"] for row in days.rows])
        drawn = svg(figure, "conditions")
    return [(drawn, "Days against conditions.", page.said(CONDITIONS) + _left_out(days.rows))]


def _days(days: Answer, conditions: Sequence[str]) -> list[Block]:
    rows = [[_cell(row[name]) for name in ("date", "probe", "part", *OF_DAYS, *conditions)] for row in days.rows]
    heads = [
        "Day",
        "Probe",
        "Part",
        "Sent",
        "Received",
        "Lost",
        "Loss ratio",
        *(f"{one.replace('_', '.')}, ns" for one in OF_DAYS[4:]),
    ]
    more = [f"The last {ROWS_MOST} of {len(rows):,} rows; liteprobe query has them all."] * (len(rows) > ROWS_MOST)
    return [heading("Days"), *said_of(more), table([*heads, *conditions], rows[-ROWS_MOST:])]


def _compared(query: StoreQuery, names: Sequence[str]) -> list[Block]:
    """Return two runs side by side, with their distributions where both have one."""
    found = query.compare(*names)
    rows = [[_cell(row[name]) for name in found.columns] for row in found.rows]
    heads = ["Part", "Figure", "Unit", "First", "Second", "Difference", "Differs"]
    sides = [query.delays_of(name) for name in names]
    both = [part for part in sides[0] if part in sides[1]][:PANELS_MOST]
    drawn = []
    if both:
        with matplotlib.rc_context(PLAIN):
            figure, all_axes = axes_of(len(both), 1.0 + 1.9 * len(both), [1.0] * len(both))
            for axes, part in zip(all_axes, both, strict=True):
                _distributions(axes, part, [side[part] for side in sides], names if axes is all_axes[0] else ())
            figure.legend(loc="outside lower center", ncols=2)
            drawn = [page.figures([(svg(figure, "compared"), "Two runs.", COMPARED)])]
    texts = [f"The first is {names[0]}, the second {names[1]}."]
    return [heading("Two runs compared"), *said_of(texts), *drawn, table(heads, rows)]


def _distributions(axes: Axes, part: str, cells: Sequence[Cells], names: Sequence[str]) -> None:
    unit, size = fitting(max(float(np.abs(one.highs).max()) for one in cells), TIMES)
    for place, one in enumerate(cells):
        order = np.argsort(one.highs)
        x = one.highs[order] / float(size)
        y = 100 * np.cumsum(one.counts[order]) / one.total
        label = f"{('first', 'second')[place]}: {names[place][:16]}" if names else None
        axes.step(np.append(x[:1], x), np.append(0, y), where="post", color=SERIES[place], lw=1.2, label=label)
    axes.set_title(part, loc="left")
    percent_axis(axes, "frames")
    axes.set_xlabel(f"delay ({unit.replace('u', 'µ')})")


def _cell(value: Any) -> str:
    """Return what stands in a table: a number with bounds has its error."""
    if isinstance(value, Measured) and value.bounds.least != value.bounds.most:
        return typeset(shown(value.bounds, 3 * (value.bounds.error < 1)))
    if isinstance(value, float):
        return typeset(shown(float(value), 0 if value == int(value) else 6))
    return typeset(shown(value)) if value is None or type(value) is int else str(value)
