# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of a session of STAMP: packets and delays of each way, the distribution of these, what the reflector said.

Stands alone: its templates take long to load, and ``--report`` alone needs them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from liteprobe.host.analysis.columns import ended
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, said, said_of, table
from liteprobe.host.report.plots import HEIGHT_IN, PLAIN, axes_of, legend_below, percent_axis, series, svg, thin
from liteprobe.host.run.stamp import WAY, WAY_DELAYS, StampResult, tlv_words

with extras.named():
    import matplotlib

TITLE = "STAMP session"
DEFINED = ("Time stamps", "Lost, duplicated, reordered")
MEANS = {
    "Ways": """
        There: from the probe to the reflector, T2 - T1. Back: T4 - T3. Both: T4 - T1 less the reflector's own time, T3 - T2.
        Packets lost each way are known where the reflector counts (RFC 8762; RFC 8972, Direct Measurement).""",
}
DISTRIBUTION = """
    Of the packets that were answered, the share whose delay was no greater. Both ways: T4 - T1 less the reflector's own time,
    T3 - T2 (RFC 8762)."""
BOUND = """
    The clock was {state}; of both ways {trust}. T1 and T4 are the probe's stamps at the start delimiter. T2 and T3 are what the
    reflector says."""


def write(path: Path, result: StampResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    session = result.session
    sent = f"{page.address(content['url'])} to {session.address} port {session.port}: "
    parts = [
        *said_of([f"{sent}{ended(result.duration_s, result.end, result.is_complete)}."]),
        *said_of(result.notes, "note"),
        page.tiles_of(_tiles(result)),
        *_figures(result),
        heading("Packets"),
        listed(WAY.of("name sent received lost duplicated reordered loss_ratio"), result.ways),
        heading("Delay, ns"),
        *said_of([said(BOUND, state=result.clock_state, trust=delay_words(result.uncertainty_ns))]),
        listed([*WAY.of("name"), *WAY_DELAYS.values()], result.ways),
        *_tlvs(result),
        *page.definitions(DEFINED, MEANS),
        *page.made_with(content),
    ]
    write_text(path, page.document(TITLE, content, parts))


# # #


def _figures(result: StampResult) -> list[Block]:
    if not result.delays_by_part:
        return []
    return [heading("Figures"), page.figures([(draw_delays(result), "Distribution of delay.", said(DISTRIBUTION))])]


def _tlvs(result: StampResult) -> list[Block]:
    if not result.tlvs:
        return []
    rows = [[one.name, page.count(one.returned), page.count(one.unrecognized), tlv_words(one)] for one in result.tlvs]
    return [heading("TLVs"), table("TLV|In answers|Unknown to the reflector|Last value", rows, "words")]


def _tiles(result: StampResult) -> list[tuple[str, str]]:
    """Return what came of both ways together, and what of it each way lost, as far as that is known."""
    ways = {one.name: one for one in result.ways}
    both, lost = ways["both"], WAY["lost"]
    return [
        (f"{WAY['received'].text(both)} of {WAY['sent'].text(both)}", "packets were answered"),
        *((page.typeset(lost.text(ways[name])), f"lost {name}") for name in ("there", "back") if name in ways),
        (
            f"{page.typeset(WAY_DELAYS['mean'].text(both))} ns",
            "mean delay of both ways, without the reflector's own time",
        ),
        (f"{page.typeset(WAY_DELAYS['most'].text(both))} ns", "the greatest"),
    ]


def draw_delays(result: StampResult) -> str:
    """Draw which part of the packets had which delay, for each way that is known."""
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN)
        lines = []
        for place, (name, delays) in enumerate(result.delays_by_part.items()):
            at = np.sort(delays)
            x, y = thin(at / 1e3, 100 * (np.arange(len(at)) + 1) / max(len(at), 1))
            axes.step(x, y, where="post", lw=1.4, **series(place))
            lines.append((name, place))
        percent_axis(axes, "packets")
        axes.ticklabel_format(axis="x", useOffset=False)
        axes.set_xlabel("delay (µs)")
        legend_below(figure, axes, lines)
    return svg(figure, "stamp-delays")
