# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of an experiment on many probes: delays and loss of each pair, as a matrix too, the clocks, who was left out.

Stands alone: matplotlib and templates take long to load, and only a report needs them.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.columns import in_unit, shown
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.fleet.experiment import ExperimentResult, PairFigures, unit_of
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, number, said, said_of, table
from liteprobe.host.report.plots import HEIGHT_IN, PLAIN, axes_of, legend_below, percent_axis, series, svg, thin

with extras.named():
    import matplotlib

TITLE = "Experiment on many probes"
DEFINED = ("Frame length", "Time stamps", "One-way delay", "Lost, duplicated, reordered", "Late")
LINES_MOST = 16  # Of a plot: those of the greatest delays.
MATRIX_MOST = 32  # Probes: more of them don't fit beside each other.
DISTRIBUTION = """
    Share of the frames sent that came within a delay: each line ends at the share that came at all. {which}"""
BOUND = """
    A delay is arrival by one clock less departure by another: its bound (95 %) is that of both clocks while it was measured,
    and what is left of the tick in which an arrival is stamped. Pairs whose clocks were not trusted from start to end have no
    delay, and say why. Constant delays of antennas, receivers and PHYs are not in the bound."""


def write(path: Path, result: ExperimentResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    unit, scale, digits = unit_of(result)
    columns = result.COLUMNS
    delays = in_unit(columns.of("least mean p50 p99 p99_9 most bound"), unit, scale, digits)
    starts = len({one.start_time_ns for one in result.pairs if one.start_time_ns is not None})
    missing = [one for one in result.pairs if one.why or one.note]
    parts = [
        *said_of(
            [
                f"{len(result.pairs)} {result.of_what} of {len(_names(result))} probes, in {starts} "
                f"{'starts, each' if starts != 1 else 'start,'} at one instant."
            ]
            * bool(result.pairs)
        ),
        *said_of([f"{name} was left out: {why}" for name, why in result.faults.items()], "note"),
        *said_of([one.said for one in result.captures if not one.is_complete], "note"),
        *said_of([one.said for one in result.captures if one.is_complete]),
        *said_of(result.notes, "note"),
        page.tiles_of(_tiles(result)),
        *_figures(result, unit, scale),
        *_matrix(result, unit, scale, digits),
        *(
            [
                heading(f"Pairs, delays in {unit}"),
                listed([*columns.of("name sent received lost duplicated reordered"), *delays], result.pairs),
            ]
            if result.pairs
            else []
        ),
        *_suites(result),
        *([heading("Without a delay, or with a note"), _reasons(missing)] if missing else []),
        *(
            [
                heading("Clocks"),
                *said_of([said(BOUND)]),
                table("Pair|Start|Sender's clock|Bound, ns|Receiver's clock|Bound, ns", _clocks(result), "words"),
            ]
            if result.pairs
            else []
        ),
        *page.definitions(DEFINED),
        *page.made_with({**content, "probe": {}}),
    ]
    write_text(path, page.document(TITLE, content, parts))


# # #


def _names(result: ExperimentResult) -> list[str]:
    return list(dict.fromkeys(name for one in result.pairs for name in (one.sender, one.receiver)))


def _tiles(result: ExperimentResult) -> list[tuple[str, str]]:
    greatest = result.uncertainty_ns
    left_out = (page.count(len(result.faults)), "probes left out")
    done = sum(one.is_complete for one in result.suites)
    suites = [(f"{done} of {len(result.suites)}", "suites are complete")] * bool(result.suites)
    if not result.pairs:
        return [*suites, left_out]
    return [
        *suites,
        (f"{len(result.measured)} of {len(result.pairs)}", f"{result.of_what} have delays"),
        (page.count(sum(one.count("sent") or 0 for one in result.pairs)), "frames sent"),
        (page.count(sum(one.count("lost") or 0 for one in result.pairs)), "lost, of pairs that were measured"),
        (f"{number(greatest)} ns", "the greatest bound of a delay"),
        left_out,
    ]


def _figures(result: ExperimentResult, unit: str, scale: float) -> list[Block]:
    delays = result.cells_by_part
    if not delays:
        return []
    chosen = sorted(delays, key=lambda name: int(delays[name].highs.max(initial=0)), reverse=True)[:LINES_MOST]
    which = f"The {LINES_MOST} pairs with the greatest delays, of {len(delays)}." if len(delays) > LINES_MOST else ""
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN + 0.06 * len(chosen))
        for place, name in enumerate(chosen):
            at, came = result.distribution(name)
            x, y = thin(at / scale, 100 * came / max(result.parts[name].count("sent") or came[-1], 1))
            if len(x):  # From 0 on: all may have come in one bin.
                axes.step([x[0], *x], [0, *y], where="post", lw=1.4, **series(place))
        percent_axis(axes, "frames sent")
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set_xlabel(f"delay ({unit})")
        legend_below(figure, axes, [(name, place) for place, name in enumerate(chosen)])
    drawn = svg(figure, "experiment")
    return [heading("Figures"), page.figures([(drawn, "Distribution of delay.", said(DISTRIBUTION, which=which))])]


def _matrix(result: ExperimentResult, unit: str, scale: float, digits: int) -> list[Block]:
    names = _names(result)
    if not 2 < len(names) <= MATRIX_MOST:
        return []
    found = result.matrix()
    rows = [[a, *(page.typeset(shown(found.get(a, {}).get(b), digits, scale)) for b in names)] for a in names]
    return [heading(f"Mean delay, {unit}"), table(["From", *(f"to {name}" for name in names)], rows)]


def _suites(result: ExperimentResult) -> list[Block]:
    """Return the verdict of each suite, and its figures."""
    if not result.suites:
        return []
    rows = []
    for one in result.suites:
        start = "" if one.start_time_ns is None else _instant(one.start_time_ns)
        ended = one.outcome or ("done" if one.is_complete else "incomplete" if one.is_measured else "-")
        rows.append([one.name, start, ended, one.why or one.note])
    found: list[Block] = [heading("Suites"), table("Suite|Start|Verdict|Why", rows, "words")]
    for one in result.suites:
        if one.shown:
            found += [heading(one.name), *said_of(one.marks, "note"), listed(one.shown, [*one.rows.items()])]
    return found


def _instant(tai_ns: int) -> str:
    return f"{datetime.fromtimestamp(tai_ns // 10**9, UTC).isoformat(sep=' ').removesuffix('+00:00')} TAI"


def _reasons(pairs: list[PairFigures]) -> Block:
    return table("Pair|Why", [[one.name, one.why or one.note] for one in pairs], "words")


def _clocks(result: ExperimentResult) -> list[list[str]]:
    rows = []
    for one in result.pairs:
        if (figures := one.figures) is None or one.start_time_ns is None:
            continue
        start = _instant(one.start_time_ns)
        ends = [figures["sender"], figures["receiver"]]
        cells = [cell for end in ends for cell in (end["clock_state"], number(end["uncertainty_ns"]))]
        rows.append([one.name, start, *cells])
    return rows
