# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of an emulated network: what became of the frames of each class, rates, queues and delays."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.columns import MEGA, ended
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.device.link.sim_stations import StationsReport
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, count, heading, listed, said_of, table
from liteprobe.host.report.plots import HEIGHT_IN, MUTED, PLAIN, axes_of, legend_below, percent_axis, series, svg
from liteprobe.host.run import emulate
from liteprobe.host.traffic.network.document import change_words, rate_words, treatment, write_network

with extras.named():
    import matplotlib
    from matplotlib.ticker import LogLocator

TITLE = "A network, emulated"
DIRECTION_HEADS = {"there": "From port 0 to port 1", "back": "From port 1 to port 0"}
FATES = f"name arrived sent {' '.join(emulate.DROPS)} duplicated corrupted held_back late"
FIGURES = "name sent_mean_bps frames most least_ns mean_bounds_ns most_ns background background_dropped"
DEFINED = ("Frame length",)
CHANGES_SHOWN = 50
MARKS_NUMBERED = 20
MEAN, QUEUE = "delay_mean_ns", "queue_frames"
FATES_WORDS = (
    "A frame that arrived was sent, was dropped (discarded by its class; lost; in front of a full queue; by RED; for "
    "want of the probe's memory), or waits or is under way still. Late frames left after their tick."
)


def write(path: Path, result: emulate.EmulationResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    title = f"{TITLE}: {result.network.name}" if result.network else TITLE
    ran = f"{page.address(content['url'])}: {ended(result.last.there.seconds, result.end or 'running')}."
    about = [result.network.about] if result.network and result.network.about else []
    parts = [
        *said_of([ran, *about]),
        *said_of(result.notes, "note"),
        _tiles(result),
        *(part for direction in result.last.directions for part in _direction(result, direction)),
        *(_stations(result.stations) if result.stations else ()),
        heading("How to read it"),
        *said_of([FATES_WORDS]),
        *(page.asked_for(write_network(result.network)) if result.network else ()),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    write_text(path, page.document(title, content, parts))


# # #


def _tiles(result: emulate.EmulationResult) -> Block:
    classes = [one for direction in result.last.directions for one in direction.classes]
    tiles = [
        (count(sum(one.counts.arrived for one in classes)), "frames arrived"),
        (count(sum(one.counts.sent for one in classes)), "sent"),
        (count(sum(one.counts.lost for one in classes)), "lost by loss models"),
        (count(sum(one.counts.full + one.counts.early for one in classes)), "dropped by queues"),
        (count(sum(one.counts.no_store for one in classes)), "dropped for want of memory"),
        (count(sum(one.counts.late for one in classes)), "late: left after their tick"),
    ]
    return page.tiles_of(tiles)


def _stations(report: StationsReport) -> list[Block]:
    return [
        heading("Stations"),
        listed(list(emulate.STATIONS.values()), emulate.stations_of(report)),
        *said_of([report.sentence]),
    ]


def _direction(result: emulate.EmulationResult, last: emulate.DirectionLook) -> list[Block]:
    name = last.way
    outside = (
        f"{count(last.damaged)} frames with bad FCS, too short or too long; {count(last.overflows)} for which there "
        f"was no space at the input; {count(last.management)} for the probe itself; {count(last.reserved)} that no bridge forwards."
    )
    marked = f" Dotted: {count(marks)} change{'s' * (marks > 1)}." if (marks := len(_marks(result, name))) else ""
    captions = [
        (draw_rates(result, name), "Rate of what left.", f"Means from look to look.{marked}"),
        (
            draw_queues(result, name),
            "Queue.",
            f"Frames that wait for the link at each look, background among them.{marked}",
        ),
        (
            draw_means(result, name),
            "Mean delay, over time.",
            f"Of the frames that left from look to look; shaded: as far as it is known.{marked}",
        ),
        (
            draw_delays(last),
            "Delay.",
            "Which part of the frames was due within it: known at the dots, whose delays double, and at both ends.",
        ),
    ]
    return [
        heading(DIRECTION_HEADS[name]),
        *_asked(result, name),
        *_changes(result, name),
        listed(emulate.CLASSES.of(FATES), last.classes),
        listed(emulate.CLASSES.of(FIGURES), last.classes),
        *said_of([outside]),
        page.figures(captions),
    ]


def _asked(result: emulate.EmulationResult, name: str) -> list[Block]:
    if result.network is None:
        return []
    classes = getattr(result.network, name).numbered.values()
    rows = [[one.name, one.match_text or "the rest", treatment(one)] for one in classes]
    return [table(["Class", "Matches", "What its frames meet"], rows, "words")]


def _marks(result: emulate.EmulationResult, name: str) -> list[float]:
    """Return when a direction changed while it ran (s)."""
    changes = change_words(result.network, name) if result.network else []
    return [at for at, _ in changes if at <= getattr(result.last, name).seconds]


def _changes(result: emulate.EmulationResult, name: str) -> list[Block]:
    """Return the rate of a direction over time in a sentence, and a row of each change."""
    if result.network is None:
        return []
    changes, made = change_words(result.network, name), len(_marks(result, name))
    rows = [
        [count(number), f"{at:g} s" if number <= made else f"{at:g} s (not reached)", "; ".join(said)]
        for number, (at, said) in enumerate(changes[:CHANGES_SHOWN], 1)
    ]
    more = len(changes) - len(rows)
    left_out = [f"{count(more)} more changes are in the document below."] * bool(more)
    return [
        *said_of([f"{name}: {rate_words(result.network, name)}."]),
        *([table(["Change", "From", "What holds then"], rows, "words")] if rows else []),
        *said_of(left_out),
    ]


# Plots --------------------------------------------------------------------------------------------


def draw_rates(result: emulate.EmulationResult, way: str) -> str:
    """Draw the rate at which each class left, over time."""
    label = "octets of frames without FCS (Mb/s)"
    return _over_time(result, way, ("sent_bps", MEGA), label, "rates")


def draw_queues(result: emulate.EmulationResult, way: str) -> str:
    """Draw what waited of each class, over time."""
    return _over_time(result, way, (QUEUE, 1), "frames that wait for the link", "queues")


def draw_means(result: emulate.EmulationResult, way: str) -> str:
    """Draw the mean delay of each class, over time, with its bounds."""
    return _over_time(result, way, (MEAN, 1e6), "delay, SFD to SFD (ms)", "means")


def draw_delays(look: emulate.DirectionLook) -> str:
    """Draw which part of the frames of each class was due within which delay: known at the dots."""
    known = [one for one in look.classes if any(one.delays.counts)]
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN)
        lines = []
        for place, one in enumerate(look.classes):
            if one not in known:
                continue
            ends, shares = _steps(one.delays)
            axes.plot(ends, shares, marker="o", ms=3, lw=1.4, **series(place))
            lines.append((one.name, place))
        if lines and axes.dataLim.x1 > 5 * axes.dataLim.x0:  # Else it would have a tick or none.
            axes.set_xscale("log", subs=())
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        legend_below(figure, axes, lines)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("delay, SFD to SFD (ms)")
        percent_axis(axes, "frames that were due")
    return svg(figure, f"emulate-delays-{look.way}")


# # #


def _steps(delays: emulate.ClassDelays) -> tuple[list[float], list[float]]:
    """Return delays (ms), and per cent of the frames that were due within them: at the ends, and where bins meet."""
    total, within = sum(delays.counts), 0
    least, most = (delays.least_ns or 0.0, delays.most_ns or 0.0)
    ends, shares = [least / 1e6], [0.0]
    for within_bin, edge in zip(delays.counts, delays.edges_ns[1:], strict=True):
        within += within_bin
        if least < edge < most:
            ends.append(edge / 1e6)
            shares.append(100 * within / total)
    return [*ends, most / 1e6], [*shares, 100.0]


def _steps_of(values: Sequence[float | None], scale: float) -> list[float]:
    """Return each value at the begin and at the end of its time; nothing is drawn where it isn't known."""
    return [math.nan if one is None else one / scale for one in values for _ in range(2)]


def _over_time(
    result: emulate.EmulationResult,
    way: str,
    figure_of: tuple[str, float],
    label: str,
    name: str,
) -> str:
    key, scale = figure_of
    rows, last = result.series, getattr(result.last, way)
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN)
        lines = []
        for place, one in enumerate(last.classes):
            spans = [
                (before, row["seconds"], each)
                for before, row in zip([result.last.since_s, *(row["seconds"] for row in rows)], rows, strict=False)
                for each in row[way]["classes"]
                if each["name"] == one.name
            ]
            if all(each[key] is None for *_, each in spans):
                continue
            times = [at for start, end, _ in spans for at in (start, end)]
            values = _steps_of([each[key] for *_, each in spans], scale)
            if key == QUEUE:
                times, values = times[1::2], values[1::2]
            axes.plot(times, values, lw=1.4, **series(place))
            if key == MEAN:
                bounds = [each["delay_mean_bounds_ns"] or (None, None) for *_, each in spans]
                low, high = (_steps_of([one[end] for one in bounds], scale) for end in (0, 1))
                axes.fill_between(times, low, high, alpha=0.2, lw=0, color=series(place)["color"])
            lines.append((one.name, place))
        legend_below(figure, axes, lines)
        axes.set_xlim(0, last.seconds or 1.0)
        axes.set_ylim(0, max(0.0 if key == MEAN and lines else 1.0, axes.get_ylim()[1]))
        marks = _marks(result, way)
        axes.vlines(marks, 0, 1, transform=axes.get_xaxis_transform(), colors=MUTED, ls=":", lw=1)
        for number, at in enumerate(marks[:MARKS_NUMBERED] if len(marks) <= MARKS_NUMBERED else (), 1):
            axes.annotate(
                f"{number}", (at, 1), xycoords=axes.get_xaxis_transform(), color=MUTED, size=8, ha="center", va="bottom"
            )
        axes.set_xlabel("since the start (s)")
        axes.set_ylabel(label)
    return svg(figure, f"emulate-{name}-{way}")
