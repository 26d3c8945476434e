# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plots of a report, as SVG that stands inside a page and takes its colours from the page's style sheet."""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import OVERHEAD
from liteprobe.host.analysis import arrivals, capacity, theory
from liteprobe.host.analysis.calibration import calibrate
from liteprobe.host.analysis.delay import percentile
from liteprobe.host.analysis.rows import Row
from liteprobe.host.analysis.summary import TrainResult
from liteprobe.host.base import extras
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import GIGABIT
from liteprobe.host.base.text import safe
from liteprobe.host.suites.sweep import Sweep

with extras.named():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Colours that are only names: each becomes a variable of the page, so that light and dark both read well.
INK, MUTED, PAPER = "#010101", "#020202", "#030303"
SERIES = ("#040404", "#050505", "#060606", "#070707")
VARIABLES = {INK: "--ink", MUTED: "--muted", PAPER: "--paper"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
MARKERS = ("o", "s", "^", "D")
WIDTH_IN, HEIGHT_IN = 5.4, 3.5
POINTS_MAX = 1200  # Drawn; figures are computed from all of them.
BINS_MAX = 60

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "liteprobe",
    **{"font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9},
    **{"axes.grid": True, "grid.color": MUTED, "grid.alpha": 0.25, "axes.edgecolor": MUTED},
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
}


DASHES = ("-", "--", ":", "-.")
#: Names are a user's: nothing in them is a formula.
PLAIN: dict[Any, Any] = {**STYLE, "text.parse_math": False}


def svg(figure: Figure, name: str) -> str:
    """Return a figure as an ``<svg>`` element with no address in it; ``name`` keeps its ids apart from others'."""
    stream = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(stream, format="svg")
    text = safe(stream.getvalue())  # Others have named what is in it; XML has no control characters.
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = (
        re.sub(r'\s(?:xmlns(?::\w+)?|width|height)="[^"]*"', "", text.partition(">")[0]) + ">" + text.partition(">")[2]
    )
    text = text.replace("xlink:href", "href")
    text = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{name}-", text)
    text = re.sub(r'(style="[^"]*?)font: ([\d.]+px) [^;"]*', r"\1font-size: \2", text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return re.sub(r"\n\s*", "\n", text)


def thin(x: NDArray[np.number], y: NDArray[np.number], most: int = POINTS_MAX) -> tuple[Any, Any]:
    """Return ``most`` points at most that look the same: the least and the greatest of each stretch stay."""
    if len(x) <= most:
        return x, y
    drawn = []
    for part in np.array_split(np.arange(len(x)), most // 2):
        drawn += sorted({part[np.argmin(y[part])], part[np.argmax(y[part])]})
    return x[drawn], y[drawn]


def axes_of(
    rows: int = 1, height_in: float = HEIGHT_IN, ratios: Sequence[float] | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure as wide as a page's column, and its panels from above."""
    figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    grid = figure.subplots(rows, 1, squeeze=False, height_ratios=ratios, sharex=rows > 1 and ratios is not None)
    return figure, list(grid[:, 0])


def series(place: int) -> dict[str, Any]:
    """Return what the line of a row looks like, of many."""
    return {"color": SERIES[place % len(SERIES)], "ls": DASHES[place // len(SERIES) % len(DASHES)]}


def legend_below(figure: Figure, axes: Axes, lines: Sequence[tuple[str, int]]) -> None:
    """Name lines below a plot, each with its place among the rows; or say that there is nothing to draw."""
    if not lines:
        axes.set_title("nothing to draw", loc="left")
        return
    handles = [Line2D([], [], label=name, **series(place)) for name, place in lines]
    for columns in (3, 2, 1):  # As many as long names leave space for.
        legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns)
        figure.draw_without_rendering()
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def percent_axis(axes: Axes, label: str) -> None:
    """Make the y axis one of per cent, from 0 to all."""
    axes.set_ylim(0, 105)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.set_ylabel(label)


def _size_axis(axes: Axes, lengths: Sequence[int]) -> None:
    """Make the x axis one of frame lengths, doubling from mark to mark."""
    axes.set_xscale("log", base=2)
    marks = sorted(set(lengths))
    shown = [length for n, length in enumerate(marks) if n == len(marks) - 1 or marks[n + 1] / length > 1.15]
    axes.set_xticks(shown, [str(length) for length in shown])
    axes.minorticks_off()
    axes.set_xlabel("frame length without FCS (octets)")


def over_sizes(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """Return the sweeps of several lengths, or all, where there is none: the others have no place over a size axis."""
    return [sweep for sweep in sweeps if len({row["length"] for row in sweep.rows}) > 1] or list(sweeps)


#: Layers of a throughput: name, rate, octets of a frame that are not of it.
LAYERS: Sequence[tuple[str, Callable[[Row], float | None], int]] = (
    ("frame", lambda row: row["frame_bps"], 0),
    ("IP packet", lambda row: row["ip_bps"], 14),
    ("UDP payload", lambda row: row["udp_payload_bps"], 42),
)


def throughput(sweeps: Sequence[Sweep]) -> str:
    """Draw throughput against size: frames, IP and UDP payload, above; how far from theory, below."""
    sweeps = over_sizes(sweeps)
    with matplotlib.rc_context(STYLE):
        figure, (rates, errors) = axes_of(2, 4.6, (2, 1))
        lengths = sorted({row["length"] for sweep in sweeps for row in sweep.rows})
        smooth = np.geomspace(lengths[0], lengths[-1], 80) if len(lengths) > 1 else np.array(lengths, dtype=float)
        theory_bps = sweeps[0].rows[0]["theory_bps"]
        for number, (name, rate_of, less) in enumerate(LAYERS):
            curve = theory_bps * (smooth - less) / (smooth + OVERHEAD) / 1e6
            rates.plot(smooth, curve, color=SERIES[number], lw=1, zorder=1, label=f"{name}: theory")
            for place, sweep in enumerate(sweeps):
                x, y = [row["length"] for row in sweep.rows], [(rate_of(row) or np.nan) / 1e6 for row in sweep.rows]
                fill = SERIES[number] if place == 0 else "none"
                rates.scatter(x, y, s=22 + 30 * place, marker=MARKERS[place], fc=fill, ec=SERIES[number], zorder=2)
        rates.set_ylabel("Mb/s")
        line_bps = sweeps[0].results[0].line.rate_bps
        rates.set_ylim(0, 1.04 * line_bps / 1e6 if theory_bps == line_bps else None)
        rates.legend(loc="lower right")
        _deviations(errors, sweeps)
        _size_axis(errors, lengths)
        rates.set_xlabel("")
    return svg(figure, "throughput")


def _deviations(axes: Axes, sweeps: Sequence[Sweep]) -> None:
    """Draw measured over theory, each with the error that one tick makes."""
    for place, sweep in enumerate(sweeps):
        means = [(row, row["dispersion_rate_bps"]["mean"]) for row in sweep.rows if row["count"] > 1]
        known = [(row, mean) for row, mean in means if mean is not None]
        x = [row["length"] * (1.03 if place else 1) for row, _ in known]
        y = [1e6 * (mean / row["theory_bps"] - 1) for row, mean in known]
        bars = [_reach_ppm(row) for row, _ in known]
        style: dict[str, Any] = {"fmt": MARKERS[place], "ms": 4, "capsize": 2, "lw": 1, "color": SERIES[place]}
        axes.errorbar(x, y, yerr=bars, label=sweep.name, **style)
    axes.axhline(0, color=INK, lw=0.8)
    axes.set_ylabel("off theory (ppm)")


def _reach_ppm(row: Row) -> float:
    """Return the standard deviation of a row's trains, and one tick (ppm)."""
    return 1e6 * (row["dispersion_rate_bps"]["std"] or 0.0) / row["theory_bps"] + (row["resolution_ppm"] or 0.0)


def delay(sweeps: Sequence[Sweep]) -> str:
    """Draw one-way delay against size, with the line of calibration through each sweep."""
    sweeps = over_sizes(sweeps)
    with matplotlib.rc_context(STYLE):
        figure, (axes,) = axes_of()
        lengths = sorted({row["length"] for sweep in sweeps for row in sweep.rows})
        for place, sweep in enumerate(sweeps):
            delays = [(row["length"], row["owd_ns"]) for row in sweep.rows]
            found = [(length, owd["mean"], owd["min"], owd["max"]) for length, owd in delays]
            known = np.array([one for one in found if None not in one], dtype=np.float64).reshape(-1, 4)
            x, y = known[:, 0], known[:, 1] / 1e3
            bars = [(known[:, 1] - known[:, 2]) / 1e3, (known[:, 3] - known[:, 1]) / 1e3]
            label = sweep.name
            try:
                line = calibrate(sweep.rows).line
            except UsageError:
                pass
            else:
                ends = np.array([0, lengths[-1]])
                axes.plot(ends, line.at(ends) / 1e3, color=SERIES[place], lw=1)
                label += f": {line.intercept:.1f} ns + {line.slope:.4f} ns/B"
            style: dict[str, Any] = {"fmt": MARKERS[place], "ms": 4.5, "capsize": 2, "lw": 1, "color": SERIES[place]}
            axes.errorbar(x, y, yerr=bars, label=label, **style)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.12)
        axes.set_xlabel("frame length without FCS (octets)")
        axes.set_ylabel("one-way delay (µs)")
        axes.legend(loc="upper left")
    return svg(figure, "delay")


def over_least(sweep: Sweep) -> tuple[NDArray[np.int64], int]:
    """Return every delay of a sweep over the least of its program (ns), and the frames sent; of whole programs only."""
    whole = [result for result in sweep.results if arrivals.has_all_records(result)]
    over = [arrivals.packets(result).owd_ns for result in whole]
    values = np.concatenate([part - part.min() for part in over if len(part)] or [np.zeros(0, dtype=np.int64)])
    return values, sum(result.sent for result in whole)


def _headed(axes: Axes, sweep: Sweep, values: NDArray[np.int64], more: str = "") -> bool:
    """Head a panel; return whether there is something to draw."""
    missing = sum(not arrivals.has_all_records(result) for result in sweep.results)
    left_out = f", without {missing} rows of which records are missing" if missing else ""
    head = f"{len(values):,} packets{more}" if len(values) else "nothing to draw"
    axes.set_title(f"{sweep.name}: {head}{left_out}", loc="left")
    return bool(len(values))


def histogram(sweeps: Sequence[Sweep]) -> str:
    """Draw how often which delay over the least of its program came, one panel a sweep, from every packet."""
    with matplotlib.rc_context(STYLE):
        figure, panels = axes_of(len(sweeps), 1.1 + 1.25 * len(sweeps))
        for place, (sweep, axes) in enumerate(zip(sweeps, panels, strict=True)):
            values, _ = over_least(sweep)
            if not _headed(axes, sweep, values):
                continue
            edges = bin_edges(values, step_ns(sweep))
            counts, _ = np.histogram(values, edges)
            unit, name = (1e3, "µs") if edges[-1] > 4000 else (1, "ns")
            share = 100 * counts / len(values)
            axes.bar(edges[:-1] / unit, share, np.diff(edges) / unit, align="edge", color=SERIES[place], lw=0)
            axes.set_yscale("log")
            axes.set_ylim(min(0.5 * 100 / len(values), 0.05), 150)
            axes.set_yticks([0.01, 0.1, 1, 10, 100] if len(values) > 5000 else [0.1, 1, 10, 100])
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
            axes.minorticks_off()
            axes.set_ylabel("packets")
            axes.set_xlabel(f"delay over the least of its row ({name})")
    return svg(figure, "histogram")


PERCENTILES = ((50, "p50"), (99, "p99"), (99.9, "p99.9"))


def distribution(sweeps: Sequence[Sweep]) -> str:
    """Draw which part of the frames sent came within which delay over the least, with percentiles, a panel a sweep."""
    with matplotlib.rc_context(STYLE):
        figure, panels = axes_of(len(sweeps), 1.1 + 1.25 * len(sweeps))
        for place, (sweep, axes) in enumerate(zip(sweeps, panels, strict=True)):
            values, sent = over_least(sweep)
            lost = sent - len(values)
            if not _headed(axes, sweep, values, f" of {sent:,}, {100 * lost / max(sent, 1):.3g} % lost"):
                continue
            delays, counts = np.unique(values, return_counts=True)
            unit, name = (1e3, "µs") if delays[-1] > 4000 else (1, "ns")
            x, y = thin(np.append(0, delays), np.append(0, 100 * np.cumsum(counts) / sent))
            axes.step(
                np.append(x, 1.05 * max(x[-1], step_ns(sweep))) / unit,
                np.append(y, y[-1]),
                where="post",
                color=SERIES[place],
            )
            marks = [(percentile(values, percent) / unit, percent, mark) for percent, mark in PERCENTILES]
            for at, percent, _ in marks:
                axes.plot([at], [percent * len(values) / sent], "|", color=INK, ms=9)
            # Below the curve, where there is place: at the marks those of a long tail would lie on one another.
            axes.text(
                0.93, 0.06, "\n".join(f"{mark} {at:g} {name}" for at, _, mark in marks),
                transform=axes.transAxes, ha="right", va="bottom", fontsize=8, color=INK,
            )  # fmt: skip
            percent_axis(axes, "frames sent")
            axes.set_xlabel(f"delay over the least of its row ({name})")
    return svg(figure, "distribution")


def step_ns(sweep: Sweep) -> int:
    """Return the least step of delays that a plot shows (ns): an octet of the line, or a nanosecond where that is less."""
    return max(1, int(sweep.results[0].line.octet_ns))


def bin_edges(values_ns: NDArray[np.int64], step: int = int(GIGABIT.octet_ns)) -> NDArray[np.int64]:
    """Return edges of bins (ns) from below 0 to beyond the greatest: whole steps wide, about ``BINS_MAX`` of them."""
    span = int(values_ns.max()) if len(values_ns) else 0
    width = step * max(1, -(-(span + step) // (step * BINS_MAX)))
    first = -width // 2
    return np.arange(first, span + 2 * width + (4 * width if span == 0 else 0), width)


def typical_train(sweeps: Sequence[Sweep]) -> tuple[Sweep, TrainResult, NDArray[np.int64]]:
    """Return the train that is drawn, with its dispersions (ns): the longest of the last sweep, of longest frames.

    Of programs of which records are missing none is drawn, so that no frame that came looks lost.
    """
    sweep = sweeps[-1]
    whole = [result for result in sweep.results if arrivals.has_all_records(result)]
    result = max(whole or sweep.results, key=lambda result: (result.program.count, result.program.length))
    if not whole:
        return sweep, result, np.zeros(0, dtype=np.int64)
    arrived = arrivals.packets(result)
    first = arrivals.trains(result, arrived)[0]
    return sweep, result, capacity.dispersions(arrived.rx_stamp[first])


def dispersion(sweeps: Sequence[Sweep]) -> str:
    """Draw the times between arrivals of one train, against those between its departures."""
    with matplotlib.rc_context(STYLE):
        figure, (axes,) = axes_of()
        sweep, result, values = typical_train(sweeps)
        number = np.arange(1, len(values) + 1)
        interval_ns = result.program.interval_ns or theory.slot_ns(result.program.length)
        x, y = thin(number, values)
        axes.scatter(x, y / 1e3, s=9, color=SERIES[len(sweeps) - 1], lw=0, alpha=0.8, label=f"received ({sweep.name})")
        axes.axhline(interval_ns / 1e3, color=INK, lw=1, label=f"sent: {interval_ns:g} ns")
        reach = np.append(values, interval_ns) / 1e3
        low, high = float(reach.min()), float(reach.max())
        margin = max(high - low, 0.1) / 4
        axes.set_ylim(low - margin, high + 1.5 * margin)
        axes.set_xlabel("frame of the train")
        axes.set_ylabel("time since the frame before (µs)")
        axes.legend(loc="upper right")
    return svg(figure, "dispersion")
