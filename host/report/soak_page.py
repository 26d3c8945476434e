# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of a soak test or a test of bit errors: the verdict on each stream, its events, and when they were.

Stands alone: matplotlib and templates take long to load, and only a report needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.columns import time_text
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.base.units import TIMES, fitting
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, said_of, table
from liteprobe.host.report.plots import PLAIN, SERIES, axes_of, svg
from liteprobe.host.suites.soak import SOAK_COLUMNS, SoakEvent, SoakResult, shown_columns
from liteprobe.host.suites.trials import lasting

with extras.named():
    import matplotlib

EVENTS_MOST = 1000  # Rows; JSON has them all.
WHEN = "A stroke for each block with errors, from its beginning to its end."
MEANS = {
    "Event": """
        Blocks with errors that follow one another: lost frames (by sequence, seen with the next that comes), bit errors, or
        nothing that came at all. A block is a second, or a fiftieth of a shorter segment.""",
    "Bit errors": """
        Bits of the PRBS-31 payload that are wrong in frames whose FCS is right. A frame that is lost, or whose FCS is wrong,
        counts as one bit error at least.""",
    "Bit error ratio": """
        What is credible by Poisson statistics, each end with the confidence that was asked for: without an error, below 3.0
        over the bits checked for 95 % (Garwood, 1936; ITU-T O.201).""",
    "Segments": "The run is sent in segments; between two of them the line is idle for some milliseconds.",
}


def write(path: Path, result: SoakResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    request, rows = result.request, result.rows
    title = "Bit errors, tested" if request.is_bert else "Soak test"
    segments = f"{len(result.trials)} of {len(request.segments)} segments of {lasting(request.segment_s)}"
    sent = f"{page.address(content['url'])}: {segments}"
    shown = result.events[:EVENTS_MOST]
    counts = "name verdict sent received lost loss_ratio duplicated reordered late events first_error_s error_free_s"
    others = "name bit_errors checked_bits ber least mean most"
    seconds = rows[0].seconds if rows else 0.0
    parts = [
        *said_of([f"{sent}; {delay_words(result.uncertainty_ns)}."]),
        *said_of(["Incomplete: it was ended before its end"] * (not result.is_complete), "note"),
        *said_of(result.notes, "note"),
        page.tiles_of(
            [
                (str(result.outcome), "verdict"),
                (f"{len(result.events):,}", "events"),
                (time_text(1e9 * seconds), "sent"),
                *(
                    (one.text(row), f"bit error ratio of {row.name}")
                    for one in [SOAK_COLUMNS["ber"]]
                    for row in rows[:4]
                    if row.checked_bits
                ),
            ]
        ),
        heading("Streams"),
        listed(shown_columns(rows, counts), rows),
        listed(shown_columns(rows, others), rows),
        *said_of([f"{row.name}: {row.reason}." for row in rows if row.reason]),
        *_figures(result),
        *(
            [heading("Events"), table("Stream|From, s|To, s|What went wrong", [_event(one) for one in shown], "words")]
            if shown
            else []
        ),
        *page.asked_for(content["request"]["streams"]),
        *page.definitions((), MEANS),
        *page.made_with(content),
    ]
    write_text(path, page.document(title, content, parts))


def _event(one: SoakEvent) -> list[str]:
    return [one.stream, f"{one.at_s:.6f}", f"{one.until_s:.6f}", one.what]


def _figures(result: SoakResult) -> list[Block]:
    if not result.events:
        return []
    names, seconds = list(result.parts), max(row.seconds for row in result.rows)
    unit, size = fitting(1e9 * seconds, TIMES)
    scale = 1e9 / float(size)
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, 0.9 + 0.35 * len(names))
        for one in result.events:
            place = names.index(one.stream)
            ends = [scale * one.at_s, scale * one.until_s]
            axes.plot(ends, [place, place], "-", lw=8, solid_capstyle="butt", color=SERIES[place % len(SERIES)])
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, scale * seconds)
        axes.set_xlabel(f"time ({unit.replace('u', 'µ')})")
        drawn = svg(figure, "events")
    return [heading("Figures"), page.figures([(drawn, "When it went wrong.", WHEN)])]
