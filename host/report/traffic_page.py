# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of streams: a row of figures each, which part came within which delay, the rates that were asked for and came."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from liteprobe.host.analysis.columns import Column, ended
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, number, said, said_of
from liteprobe.host.report.plots import (
    HEIGHT_IN,
    INK,
    MUTED,
    PLAIN,
    SERIES,
    axes_of,
    legend_below,
    percent_axis,
    series,
    svg,
)
from liteprobe.host.run.figures import OUTSIDE, STREAMS, StreamFigures, TrafficResult, delay_columns, totals

with extras.named():
    import matplotlib

TITLE = "Streams, measured"
DEFINED = ("Frame length", "Time stamps", "Lost, duplicated, reordered", "Late", "Bit errors")
PORTS = Column(
    "ports", "", "Port", of=lambda row: " → ".join(str(x) for x in (row.stream.port, row.receive) if x is not None)
)
ROW_IN = 0.24  # Of a stream in a plot.
DISTRIBUTION = """
    Of the frames that came, the share that had come within a delay. A band is what the bins of the probe's histogram
    leave open: the line is in its middle. Least and greatest delay are exact."""
RATES = """
    Bars: the rate at which a stream came, first frame to last one. Strokes: the mean that was asked for."""
BINS = """
    Arrival less departure of each frame (RFC 7679). Least, mean, deviation and greatest are of all frames that came,
    exact to a tick. Percentiles are known by the bins of a histogram: half the width of the bin is their error."""
BOUND = """
    The clock was {state}; {trust}, by the probe's own account: a departure is stamped by the clock
    that sends it; an arrival may come to its stamp up to one tick late. Rates of arrival are by the stamps of the first
    and the last frame. Lost is what was sent and had not come when the waiting time after the last frame was over."""


def write(path: Path, result: TrafficResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    parts = [
        *said_of([f"{page.address(content['url'])}: {ended(result.duration_s, result.end, result.is_complete)}."]),
        *said_of(result.notes, "note"),
        _tiles(result),
        *_figures(result),
        *_counts(result),
        *_delays(result),
        heading("Accuracy"),
        *said_of([_trust(result)]),
        *page.asked_for(content["document"]),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    write_text(path, page.document(TITLE, content, parts))


# # #


def _trust(result: TrafficResult) -> str:
    return said(BOUND, state=result.clock_state, trust=delay_words(result.uncertainty_ns))


def _tiles(result: TrafficResult) -> Block:
    total = totals(result.rows)
    known = [row.latency.longest_ns for row in result.rows if row.latency]
    tiles = [
        (page.count(total["sent"]), "frames sent"),
        (page.count(total["received"]), "received"),
        (page.count(total["lost"]), "lost"),
        (page.count(total["late"]), "late by the tester"),
        (f"{number(max(known, default=None), 0)} ns", "greatest delay"),
    ]
    checked = [row for row in result.rows if row.bit_errors is not None]
    if checked:
        kind = "stream" if len(checked) == 1 else "streams"
        tiles.append((page.count(sum(row.bit_errors or 0 for row in checked)), f"bit errors, of {len(checked)} {kind}"))
    return page.tiles_of(tiles)


def _figures(result: TrafficResult) -> list[Block]:
    captions = [
        (draw_delays(result.rows), "Distribution of delay, and loss.", said(DISTRIBUTION)),
        (draw_rates(result.rows), "Rates.", said(RATES)),
    ]
    return [heading("Figures"), page.figures(captions)]


def _counts(result: TrafficResult) -> list[Block]:
    shown = [
        *STREAMS.of("name stream_id"),
        PORTS,
        *STREAMS.of("offered_bps received_bps sent received lost duplicated"),
    ]
    shown += STREAMS.of("reordered waited late")
    shown += STREAMS.of("beyond_window") * any(row.beyond_window for row in result.rows)
    shown += STREAMS.of("bit_errors bit_error_ratio") * any(row.bit_errors is not None for row in result.rows)
    own = {"stream_id": _identifier, "bit_errors": _bit_errors, "bit_error_ratio": _ratio}
    shown = [replace(one, of=own[one.key]) if one.key in own else one for one in shown]
    return [heading("Frames"), listed(shown, result.rows)]


def _identifier(row: StreamFigures) -> str | None:
    return str(row.stream.stream_id) if row.stream.probe else None


def _bit_errors(row: StreamFigures) -> str:
    if row.damaged_bit_errors:
        return f"{page.count(row.bit_errors)}, in damaged\nframes {page.count(row.damaged_bit_errors)}"
    return page.count(row.bit_errors)


def _ratio(row: StreamFigures) -> str | None:
    ratio = row.bit_error_ratio
    if ratio is None:
        return None
    return f"{ratio.middle:.2e}±{ratio.error:.1e}" if row.bit_errors else f"< {ratio.most:.1e}"


def _delays(result: TrafficResult) -> list[Block]:
    shown = [STREAMS["name"], *delay_columns(result.rows, "least mean std p50 p99 p99_9 most"), OUTSIDE]
    return [heading("One-way delay, ns"), *said_of([said(BINS)]), listed(shown, result.rows)]


# Plots --------------------------------------------------------------------------------------------


def draw_delays(rows: Sequence[StreamFigures]) -> str:
    """Draw which part of each stream's frames came within which delay; a band is what the bins leave open."""
    known = [row for row in rows if row.latency is not None and row.latency.cells.total]
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN + ROW_IN * len(known) / 3)
        most = max((row.latency.longest_ns for row in known if row.latency), default=0)
        unit, name = (1e3, "µs") if most > 4000 else (1.0, "ns")
        lines = []
        for place, row in enumerate(rows):
            if row not in known or row.latency is None:
                continue
            at, least, greatest = row.latency.cells.distribution()
            ends = np.concatenate([at[:1], at, [most]]) / unit
            low, high = (100 * np.concatenate([[0.0], shares, shares[-1:]]) for shares in (least, greatest))
            axes.fill_between(ends, low, high, step="post", color=series(place)["color"], alpha=0.2, lw=0)
            axes.step(ends, (low + high) / 2, where="post", lw=1.4, **series(place))
            lines.append((row.name, place))
        percent_axis(axes, "frames that came")
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set_xlabel(f"one-way delay ({name})")
        legend_below(figure, axes, lines)
    return svg(figure, "traffic-delays")


def draw_rates(rows: Sequence[StreamFigures]) -> str:
    """Draw the rate of each stream that was asked for, and that which came."""
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, 1.2 + ROW_IN * len(rows))
        places = np.arange(len(rows))
        offered = [row.offered_bps / 1e6 for row in rows]
        axes.barh(places, [_received(row) for row in rows], 0.6, color=SERIES[0], label="came")
        axes.plot(offered, places, "|", ms=11, mew=2, color=INK, label="asked for")
        for place, row in enumerate(rows):
            if row.received_bps is None:
                axes.annotate(
                    "not measured", (0, place), (4, 0), textcoords="offset points", va="center", fontsize=8, color=MUTED
                )
        axes.set_yticks(places, [row.name for row in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0, 1.05 * max([*offered, *map(_received, rows), 1e-6]))
        axes.set_xlabel("on the wire, frame + 24 octets (Mb/s)")
        figure.legend(loc="outside lower center", ncols=2)
    return svg(figure, "traffic-rates")


def _received(row: StreamFigures) -> float:
    return row.received_bps.middle / 1e6 if row.received_bps else 0.0
