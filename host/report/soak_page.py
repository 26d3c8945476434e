# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of a soak test or a test of bit errors: the verdict on each stream, its events, and when they were.

Stands alone: matplotlib and templates take long to load, and only a report needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, said, said_of, table
from liteprobe.host.report.plots import PLAIN, SERIES, axes_of, svg
from liteprobe.host.suites.soak import SOAK_COLUMNS, SoakResult

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
    title = "Bit errors, tested" if result.request.is_bert else "Soak test"
    shown = result.events[:EVENTS_MOST]
    rows = [
        [one.stream, f"{one.at_s:.6f}", f"{one.until_s:.6f}", f"{one.lost:,}", f"{one.bit_errors:,}"] for one in shown
    ]
    parts = [
        *said_of(["Incomplete: it was ended before its end"] * (not result.is_complete), "note"),
        *said_of(result.notes, "note"),
        page.tiles_of(
            [
                (str(result.outcome), "verdict"),
                (f"{len(result.events):,}", "events"),
                (f"{result.rows[0].seconds:,.6g} s" if result.rows else "-", "sent"),
            ]
        ),
        heading("Streams"),
        listed([one for one in SOAK_COLUMNS.values() if one.title], result.rows),
        *said_of([f"{row.name}: {row.reason}." for row in result.rows if row.reason]),
        *_figures(result),
        *([heading("Events"), table(["Stream", "From, s", "To, s", "Lost", "Bit errors"], rows)] if rows else []),
        *page.asked_for(content["request"]["streams"]),
        heading("Definitions"),
        Block("terms", entries=[(name, said(text)) for name, text in MEANS.items()]),
        *page.made_with(content),
    ]
    write_text(path, page.document(title, content, parts))


def _figures(result: SoakResult) -> list[Block]:
    if not result.events:
        return []
    names = list(result.parts)
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of()
        for one in result.events:
            place = names.index(one.stream)
            axes.plot([one.at_s, one.until_s], [place, place], "-", lw=8, color=SERIES[place % len(SERIES)])
        axes.set_yticks(range(len(names)), names)
        axes.set_xlim(0, max(row.seconds for row in result.rows))
        axes.set_xlabel("time (s)")
        drawn = svg(figure, "events")
    return [heading("Figures"), page.figures([(drawn, "When it went wrong.", WHEN)])]
