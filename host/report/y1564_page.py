# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of services: the verdict on each, a table of its steps, the rates that were asked for and came.

Stands alone: matplotlib and templates take long to load, and only a report needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.columns import MEGA, NONE, Column
from liteprobe.host.base import extras
from liteprobe.host.base.output import write_text
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import page
from liteprobe.host.report.page import Block, heading, listed, said_of, table
from liteprobe.host.report.plots import INK, SERIES, STYLE, axes_of, svg
from liteprobe.host.suites.suite import Verdict
from liteprobe.host.suites.y1564 import OF_SOME, STEP, STEPS_COLUMNS, EthernetService, Y1564Result

with extras.named():
    import matplotlib

TITLE = "Services, tested (Y.1564)"
RATES = "Bars: the information rate that came; orange: the step has failed. Strokes: what was asked for."


def _limit(key: str, title: str, scale: float, digits: int = 0) -> Column:
    """Return the column of what was agreed on; a dash where it isn't judged."""

    def of(one: EthernetService) -> float | str:
        found = getattr(one, key)
        return NONE if found is None else float(found)

    return Column(key, "", title, digits, scale, of=of)


#: Of what was agreed on for a service.
AGREED = [
    Column("name", "", "Service"),
    _limit("cir_bps", "CIR,\nMb/s", MEGA, 3),
    _limit("eir_bps", "EIR,\nMb/s", MEGA, 3),
    Column("cbs", "", "CBS,\noctets"),
    Column("ebs", "", "EBS,\noctets"),
    Column("policed", "", "Policed", of=lambda one: "yes" if one.is_policed else "no"),
    _limit("loss_ratio", "Loss,\n%", 0.01, 4),
    _limit("delay_ns", "Mean delay,\nµs", 1e3, 3),
    _limit("delay_most_ns", "Greatest,\nµs", 1e3, 3),
    _limit("variation_ns", "Variation,\nµs", 1e3, 3),
    _limit("availability", "Available,\n%", 0.01, 3),
]
MEANS = {
    "Information rate": """
        Octets from the destination MAC to the FCS, as bandwidth profiles count them (MEF 10.3); preamble and gap aren't in it.""",
    "CIR steps": """
        The service alone at a quarter, a half, three quarters and all of its committed rate. Loss, delay and delay variation
        must be within what was agreed on; a queue that fills is a failure.""",
    "EIR, policing": """
        At CIR and EIR, and above both. What was committed must come; above both rates nothing may, but for the bursts.
        Settled: the rate of the second half, when the bursts are spent.""",
    "Burst": """
        Twice CBS and EBS at line rate, after a pause in which the buckets fill: the octets that passed, less what the rates
        let pass meanwhile; known to a frame.""",
    "Delay variation": "The 99.9 percentile less the least delay.",
    "Availability": """
        Share of the time outside of ten or more severely errored blocks in a row: blocks of a second, or of a hundredth of a
        shorter test, that lose more than a half (ITU-T Y.1563).""",
}


def write(path: Path, result: Y1564Result, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    request = result.request
    rates = "verdict offered_bps rate settled burst sent lost loss_ratio"
    delays = "least mean most variation available_ratio"
    parts = [
        *said_of(["; ".join(request.shortfalls)] if request.shortfalls else [], "note"),
        *said_of([f"{page.address(content['url'])}; {delay_words(result.uncertainty_ns)}."]),
        *said_of(["Incomplete: the suite was ended before its end"] * (not result.is_complete), "note"),
        *said_of(result.notes, "note"),
        page.tiles_of(_tiles(result)),
        heading("Verdict"),
        table(
            "Service|Verdict|Why",
            [[name, str(verdict), _why(result, name)] for name, verdict in result.verdicts.items()],
            "words",
        ),
        *_figures(result),
        heading("Steps"),
        *(listed([STEP, *STEPS_COLUMNS.known(result.steps, keys, OF_SOME)], result.steps) for keys in (rates, delays)),
        heading("Services"),
        listed(AGREED, request.services),
        *page.definitions((), MEANS),
        *page.made_with(content),
    ]
    write_text(path, page.document(TITLE, content, parts))


def _why(result: Y1564Result, service: str) -> str:
    said = [f"{one.test}: {one.reason}" for one in result.steps if one.service == service and one.reason]
    return "; ".join(said)


def _tiles(result: Y1564Result) -> list[tuple[str, str]]:
    found = list(result.verdicts.values())
    return [
        (f"{sum(one is Verdict.PASSED for one in found)} of {len(found)}", "services passed"),
        (str(sum(one.verdict == Verdict.FAILED for one in result.steps)), "steps failed"),
        (str(len(result.trials)), "trials"),
    ]


def _figures(result: Y1564Result) -> list[Block]:
    shown = [one for one in result.steps if one.rate is not None and one.test != "burst"]
    if not shown:
        return []
    with matplotlib.rc_context(STYLE):
        figure, (axes,) = axes_of()
        for place, one in enumerate(shown):
            colour = SERIES[1] if one.verdict == Verdict.FAILED else SERIES[0]
            axes.bar(place, one.rate.middle / 1e6 if one.rate else 0.0, 0.6, color=colour)
            axes.plot([place - 0.4, place + 0.4], [one.offered_bps / 1e6] * 2, "-", color=INK, lw=1.5)
        axes.set_xticks(range(len(shown)), [one.name for one in shown], rotation=60, ha="right")
        axes.set_ylabel("information rate (Mb/s)")
        drawn = svg(figure, "rates")
    return [heading("Figures"), page.figures([(drawn, "Rates of the steps.", RATES)])]
