# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of RFC 2544's tests as its section 26 asks: a table and a graph of each test, and what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.columns import Column
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, number, said, said_of, table
from liteprobe.host.report.plots import MARKERS, MUTED, SERIES, STYLE, axes_of, series, svg
from liteprobe.host.suites.rfc2544 import COLUMNS, TESTS_2889, Rfc2544Result, SizeFigures, loss_columns

with extras.named():
    import matplotlib

TITLE = "Tests of RFC 2544"
TRIALS_MOST = 400  # Rows of the table of trials; JSON has them all.
RATES = "Frames a second on a logarithmic axis, beside what the line carries (dashed)."
DELAYS = "Of the slower way, at the load of the table; from the least to the greatest delay, with TL and WCL."
LOSSES = "Per cent of the frames sent that did not come, against the load; in a ring: the trial lies."
MEANS = {
    "Throughput": """
        The greatest load at which the device loses no frame (RFC 1242, section 3.17), as a share of what the line carries. The
        figure is the greatest load that was shown to pass; after it stands the least above it that was shown not to.""",
    "Trial that lies": """
        A trial in which a queue fills: the delay grows to its end, or its last frames come more slowly than they are sent. The
        device would lose frames if the trial were longer, so it counts as failed, even if none was lost. It is run again, four
        times as long, first.""",
    "Latency: TL, WCL, PDV": """
        Of every frame of a run: typical latency is the median, worst-case latency the 99.9 percentile, packet delay variation the
        99.9 percentile less the least (RFC 8219, section 7). Of several runs, the median; in brackets the 1 and 99 percentile of
        the runs. Arrival less departure of the start delimiter, so a store-and-forward device has the frame's own time in it.""",
    "Frame loss": """
        Frames that did not come over those sent, from 100 % of the line down, until two loads in a row lose nothing (RFC 2544,
        section 26.3). With a question mark: the trial lies, so it would lose more if it were longer.""",
    "Back-to-back": """
        The longest burst with the least gap that comes whole. Implied buffer time: that burst over the greatest frame rate;
        corrected: less what leaves meanwhile, by the throughput (RFC 9004, section 6).""",
    "Forwarding rates": """
        Frames a second that left the device in the last half of a trial: at 100 % of the line (FRMOL), and the greatest of all
        loads of the test of loss (MFR), with its load (RFC 2889, section 5.6).""",
    "Broadcasts": """
        The greatest load of frames to ff:ff:ff:ff:ff:ff at which none is lost, and delays there (RFC 2889, section 5.10).""",
    "Frames that are too long": """
        Longer than 1518 octets with FCS and without a tag: a device forwards none of them, unless it is set up for jumbo frames
        (RFC 2889, section 5.9). A probe sends no frame with a wrong FCS or of less than 64 octets, so these are not tested.""",
    "Address table": """
        Addresses: the greatest number that the device knows all of when each has sent one frame. Learned a second: the greatest
        rate at which it learns all of a given number (RFC 2889, sections 5.7 and 5.8). Seen through two ports and not three:
        frames to addresses at the port that sends them are filtered where the address is known, else flooded.""",
    "Recovery, reset": """
        Recovery: from the change from 110 % of the throughput (at most the whole line) to half of that until the last frame that
        is lost (RFC 2544, section 26.5). Reset: the frames lost over their rate (RFC 6201).""",
}


def write(path: Path, result: Rfc2544Result, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    request = result.request
    ways = " and ".join(f"port {sends} to port {measures}" for sends, measures in request.ways)
    sent = (
        f"{page.address(content['url'])}: {ways}, all at once. Goal: {request.goal.words}; search: {request.search}; "
        f"{request.addresses} destination address{'es' * (request.addresses > 1)}"
    )
    parts = [
        *said_of(["; ".join(request.shortfalls)] if request.shortfalls else [], "note"),
        *said_of([f"{sent}."]),
        *said_of(
            [*["Incomplete: the suite was ended before its end"] * (not result.is_complete), *result.notes], "note"
        ),
        *said_of([f"{one.size}: {note}" for one in result.sizes for note in one.notes], "note"),
        _tiles(result),
        *_figures(result),
        *_throughput(result),
        *_latency(result),
        *_loss(result),
        *_back_to_back(result),
        *_others(result),
        *_switch(result),
        heading("Trials"),
        *_trials(result),
        *page.definitions((), MEANS),
        *page.made_with(content),
    ]
    write_text(path, page.document(_title(result), content, parts))


def _title(result: Rfc2544Result) -> str:
    title = f"{TITLE}, and RFC 2889's" if {*TESTS_2889} & {*result.request.tests} else TITLE
    return title if not result.request.shortfalls else f"{title} ({result.request.shortfalls[0]})"


def _tiles(result: Rfc2544Result) -> Block:
    shown = [one.share for one in result.sizes if one.throughput]
    least = min((float(one) for one in shown if one is not None), default=None)
    tiles = [(f"{len(result.trials):,}", "trials"), (str(result.lied), "trials that lied, and count as failed")]
    if shown:
        tiles.append(
            (
                f"{number(None if None in shown or least is None else 100 * least, 2)} %",
                "of the line: the least throughput",
            )
        )
        tiles.append((f"{sum(one is not None for one in shown)} of {len(shown)}", "sizes whose throughput is shown"))
    worst = [value for one in result.sizes if (value := COLUMNS["p99_9"].value(one)) is not None]
    if worst:
        tiles.append((f"{number(max(one.most for one in worst) / 1e3, 3)} µs", "the greatest worst-case latency"))
    return page.tiles_of(tiles)


def _figures(result: Rfc2544Result) -> list[Block]:
    """Return the graphs of the tests that were run."""
    drawn = [
        (_rates, [one for one in result.sizes if one.throughput], "Throughput against frame size.", RATES),
        (_delays, [one for one in result.sizes if one.latency], "Latency against frame size.", DELAYS),
        (_losses, [one for one in result.sizes if one.loss], "Loss against load.", LOSSES),
    ]
    captions = [(draw(rows), title, said(text)) for draw, rows, title, text in drawn if rows]
    return [heading("Figures"), page.figures(captions)] if captions else []


def _columns(keys: str) -> list[Column]:
    return COLUMNS.of(keys)


def _throughput(result: Rfc2544Result) -> list[Block]:
    rows = [one for one in result.sizes if one.throughput]
    if not rows:
        return []
    more = [
        Column(
            "not",
            "",
            "Not at,\n%",
            of=lambda one: None if one.throughput.upper is None else f"{100 * one.throughput.upper:.3f}",
        ),
        Column("max", "", "Line,\nframes/s", 0, of=lambda one: one.frame_rate_max),
        Column("trials", "", "Trials", of=lambda one: one.throughput.trials),
        Column("lied", "", "Lied", of=lambda one: one.throughput.lied),
        Column("seconds", "", "Time of\ntrials, s", 2, of=lambda one: one.throughput.seconds),
    ]
    why = [f"{one.size}: {one.throughput.why}" for one in rows if one.throughput]
    return [
        heading("Throughput"),
        listed([*_columns("size share"), more[0], *_columns("rate fps"), *more[1:]], rows),
        *said_of(["Why it is no more:"]),
        Block("items", entries=why),
    ]


def _rates(rows: Sequence[SizeFigures]) -> str:
    with matplotlib.rc_context(STYLE):
        figure, (axes,) = axes_of()
        for is_fixed in (True, False):  # A mix stands alone: no line leads to it.
            of = [(place, one) for place, one in enumerate(rows) if one.size.isdecimal() == is_fixed]
            line, shown = (
                ([x for x, _ in of], [one.frame_rate_max for _, one in of]),
                [(x, one) for x, one in of if one.share is not None],
            )
            axes.plot(
                *line, "--" if is_fixed else "_", color=MUTED, ms=14, label="what the line carries" * is_fixed or None
            )
            rates = [(one.share or 0.0) * one.frame_rate_max for _, one in shown]
            axes.plot(
                [x for x, _ in shown],
                rates,
                "o-" if is_fixed else "o",
                color=SERIES[0],
                label="throughput" * is_fixed or None,
            )
        _sizes(axes, rows)
        axes.set_yscale("log")
        axes.set_ylabel("frames a second")
        axes.legend(loc="best")
    return svg(figure, "rfc2544-throughput")


def _sizes(axes: Any, rows: Sequence[SizeFigures]) -> None:
    axes.set_xticks(range(len(rows)), [one.size for one in rows])
    axes.set_xlabel("frame size with FCS (octets)")


def _latency(result: Rfc2544Result) -> list[Block]:
    rows = [one for one in result.sizes if one.latency]
    if not rows:
        return []
    heads = "Size|Way|Load, %|Runs|Frames|TL, ns|TL of runs|WCL, ns|WCL of runs|PDV, ns|Least, ns|Greatest, ns"
    cells = [
        [
            one.size, way.name, number(100 * way.load, 3), str(way.runs), f"{way.frames:,}", _ends(way.typical),
            f"[{number(way.typical_of_runs[0], 0)}, {number(way.typical_of_runs[1], 0)}]", _ends(way.worst),
            f"[{number(way.worst_of_runs[0], 0)}, {number(way.worst_of_runs[1], 0)}]", _ends(way.pdv), number(way.least, 0),
            number(way.most, 0),
        ]
        for one in rows
        for way in one.latency
    ]  # fmt: skip
    return [
        heading("Latency"),
        table(heads, cells),
        *said_of(
            [
                f"{delay_words(result.uncertainty_ns).capitalize()}, by the probe's own account; bins are as wide as ± says."
            ]
        ),
    ]


def _ends(pair: tuple[float, float]) -> str:
    middle, error = (pair[0] + pair[1]) / 2, (pair[1] - pair[0]) / 2
    return number(middle, 0) if error < 0.5 else f"{number(middle, 0)} ± {number(error, 0)}"


def _delays(rows: Sequence[SizeFigures]) -> str:
    with matplotlib.rc_context(STYLE):
        figure, (axes,) = axes_of()
        for place, one in enumerate(rows):
            way = max(one.latency, key=lambda way: way.worst)
            axes.plot([place, place], [way.least / 1e3, way.most / 1e3], "-", color=MUTED, lw=3, alpha=0.5)
        for name, key, marker, colour in (
            ("TL", "p50", MARKERS[0], SERIES[0]),
            ("WCL", "p99_9", MARKERS[2], SERIES[1]),
        ):
            values = [one.delay_figures[key].middle / 1e3 for one in rows]
            axes.plot(range(len(rows)), values, marker, color=colour, label=name)
        _sizes(axes, rows)
        axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.12)
        axes.set_ylabel("delay (µs)")
        axes.legend(loc="best")
    return svg(figure, "rfc2544-latency")


def _loss(result: Rfc2544Result) -> list[Block]:
    rows = [one for one in result.sizes if one.loss]
    if not rows:
        return []
    said = said_of(["Per cent of what was sent, by load."])
    return [heading("Frame loss rate"), *said, listed(loss_columns(rows), rows)]


def _losses(rows: Sequence[SizeFigures]) -> str:
    with matplotlib.rc_context(STYLE):
        figure, (axes,) = axes_of()
        for place, one in enumerate(rows):
            x, y = [100 * step.load for step in one.loss], [100 * step.loss_ratio for step in one.loss]
            axes.plot(x, y, label=one.size, marker=MARKERS[place % len(MARKERS)], ms=4, **series(place))
            doubted = [step for step in one.loss if not step.is_shown]
            ends = [100 * step.load for step in doubted], [100 * step.loss_ratio for step in doubted]
            axes.plot(*ends, "o", mfc="none", ms=9, color=SERIES[place % len(SERIES)])
        axes.set_xlabel("load (% of the line)")
        axes.set_ylabel("frames lost (%)")
        figure.legend(loc="outside lower center", ncols=4)
    return svg(figure, "rfc2544-loss")


def _back_to_back(result: Rfc2544Result) -> list[Block]:
    rows = [one for one in result.sizes if one.back_to_back]
    if not rows:
        return []
    cells = []
    for one in rows:
        found = one.back_to_back
        assert found is not None
        more = "at least " * (not found.is_limit)
        cells.append(
            [
                one.size, f"{more}{number(found.average, 1)}", str(len(found.bursts)),
                f"{min(found.bursts):,}", f"{max(found.bursts):,}",
                number(found.deviation, 1), more + number(found.implied_ns / 1e3, 3),
                number(None if found.corrected_ns is None else found.corrected_ns / 1e3, 3),
            ]
        )  # fmt: skip
    heads = "Size|Mean burst, frames|Runs|Least|Greatest|Std|Implied buffer time, µs|Corrected, µs"
    return [heading("Back-to-back frames"), table(heads, cells)]


def _others(result: Rfc2544Result) -> list[Block]:
    made = []
    for title, name, scale in (("System recovery", "recovery_ns", 1e3), ("Reset", "reset_ns", 1e3)):
        rows = [one for one in result.sizes if getattr(one, name) is not None]
        if rows:
            cells = [[one.size, *(number(end / scale, 3) for end in getattr(one, name))] for one in rows]
            made += [heading(title), table("Size|At least, µs|At most, µs", cells)]
    return made


def _switch(result: Rfc2544Result) -> list[Block]:
    """Return what RFC 2889 asks beyond."""
    made: list[Block] = []
    rates = [one for one in result.sizes if one.forwarding]
    if rates:
        load = Column("load", "", "MFR at,\n%", 1, of=lambda one: 100 * one.forwarding[1].load)
        made += [heading("Forwarding rates"), listed([*_columns("size frmol mfr"), load], rates)]
    sent = [one for one in result.sizes if one.broadcast]
    if sent:
        delays = [
            Column("typical", "", "TL,\nns", of=lambda one: _slowest(one, "typical")),
            Column("worst", "", "WCL,\nns", of=lambda one: _slowest(one, "worst")),
        ]
        made += [heading("Broadcasts"), listed([*_columns("size broadcast"), *delays], sent)]
        made.append(Block("items", entries=[f"{one.size}: {one.broadcast.why}" for one in sent if one.broadcast]))
    long = [step for one in result.sizes for step in one.oversize]
    if long:
        cells = [[str(one.size), f"{one.sent:,}", f"{one.received:,}"] for one in long]
        made += [heading("Frames that are too long"), table("Size with FCS|Sent|Forwarded", cells)]
    known = [one for one in result.sizes if one.addresses or one.learning_fps]
    if known:
        made += [
            heading("Address table"),
            listed(COLUMNS.known(known, "addresses learning", "addresses learning"), known),
        ]
    return made


def _slowest(one: SizeFigures, name: str) -> Bounds | None:
    found = [Bounds(*getattr(way, name)) for way in one.broadcast_latency]
    return max(found, key=lambda bounds: bounds.most, default=None)


def _trials(result: Rfc2544Result) -> list[Block]:
    shown = result.trials[:TRIALS_MOST]
    cells = [
        [
            str(one.number), one.name, number(100 * one.load, 4), number(1e3 * one.seconds, 2), f"{one.sent:,}", f"{one.lost:,}",
            one.verdict, one.reason,
        ]
        for one in shown
    ]  # fmt: skip
    made = [table("Number|Test, size|Load, %|ms|Sent|Lost|Verdict|Why", cells, "words")]
    left = len(result.trials) - len(shown)
    return [*made, *said_of([f"The JSON file has {left:,} more."] * bool(left))]
