# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plots of streams: which part came within which delay, and the rate that was asked for beside the one that came."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from liteprobe.host.machine import extras
from liteprobe.host.report.plots import HEIGHT_IN, INK, MUTED, SERIES, STYLE, axes_of, svg
from liteprobe.host.run.figures import StreamFigures

with extras.named():
    import matplotlib
    from matplotlib.lines import Line2D

DASHES = ("-", "--", ":", "-.")
#: Names are a user's: nothing in them is a formula.
PLAIN: dict[Any, Any] = {**STYLE, "text.parse_math": False}
ROW_IN = 0.24  # Of a stream.


def distribution(rows: Sequence[StreamFigures]) -> str:
    """Draw which part of each stream's frames came within which delay; a band is what the bins leave open."""
    known = [row for row in rows if row.latency is not None and row.latency.cells.total]
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN + ROW_IN * len(known) / 3)
        most = max((row.latency.most_ns for row in known if row.latency), default=0)
        unit, name = (1e3, "µs") if most > 4000 else (1.0, "ns")
        lines = []
        for place, row in enumerate(rows):
            if row not in known or row.latency is None:
                continue
            colour, dashes = SERIES[place % len(SERIES)], DASHES[place // len(SERIES) % len(DASHES)]
            at, least, greatest = row.latency.cells.distribution()
            ends = np.concatenate([at[:1], at, [most]]) / unit
            low, high = (100 * np.concatenate([[0.0], shares, shares[-1:]]) for shares in (least, greatest))
            axes.fill_between(ends, low, high, step="post", color=colour, alpha=0.2, lw=0)
            axes.step(ends, (low + high) / 2, where="post", color=colour, ls=dashes, lw=1.4)
            lines.append(Line2D([], [], color=colour, ls=dashes, label=row.name))
        if not lines:
            axes.set_title("nothing to draw", loc="left")
        axes.set_ylim(0, 105)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set_xlabel(f"one-way delay ({name})")
        axes.set_ylabel("frames that came")
        if lines:
            figure.legend(handles=lines, loc="outside lower center", ncols=3)
    return svg(figure, "traffic-delays")


def rates(rows: Sequence[StreamFigures]) -> str:
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
