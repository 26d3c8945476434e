# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of a replay: what was planned, what was sent, and the delays of what came."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from liteprobe.host.report import page
from liteprobe.host.report.page import count, number, table
from liteprobe.host.run.replay_figures import PortReplay, ReplayResult

TITLE = "Traces, replayed"
DEFINED = ("Frame length", "Time stamps", "Late")
ENDS = {
    "sent": "all was sent",
    "stopped": "it was stopped",
    "interrupted": "it was interrupted",
    "": "it did not start",
}
PLANNED = ["Port", "Frames", "Octets", "Time,<br>s", "Mb/s", "Of the line,<br>%", "Can't start<br>in time", "Cut"]
SENT = ["Port", "Sent", "Late", "Underruns", "First<br>underrun", "Datagrams", "Sent again", "Ready<br>too late"]
DELAYS = ["Port", "Frames", "Without<br>stamp", "Least", "Mean", "p50", "p99", "p99.9", "Greatest"]


def write(path: Path, result: ReplayResult, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file (``files.replay_document``)."""
    sent = f"{page.address(content['url'])}: {number(result.duration_s, 3)} s, until {ENDS[result.end]}."
    parts = [
        f"<h1>{TITLE}</h1>",
        f'<p class="meta">{escape(content["created"])} · <code>{escape(content["command"])}</code></p>',
        f"<p>{escape(sent)}</p>",
        *(f'<p class="note">{escape(note)}.</p>' for note in result.notes),
        f"<h2>Planned</h2>\n{table(PLANNED, [_planned(one) for one in result.ports])}",
        f"<h2>Sent</h2>\n{table(SENT, [_sent(one) for one in result.ports])}",
        _delays(result),
        page.definitions(DEFINED),
        page.made_with(content),
    ]
    path.write_text(page.document(TITLE, parts), encoding="utf-8")


# # #


def _planned(one: PortReplay) -> list[str]:
    summary = one.summary
    if summary is None:
        return [str(one.port), *[number(None)] * (len(PLANNED) - 1)]
    cells = [count(summary.frames), count(summary.octets), number(summary.duration_s, 6)]
    cells += [page.megabits(summary.rate_bps), number(100 * summary.share, 3)]
    return [str(one.port), *cells, count(summary.expected_late), count(summary.cut)]


def _sent(one: PortReplay) -> list[str]:
    values = (
        one.frames,
        one.late,
        one.underruns,
        one.first_underrun,
        one.sent.datagrams,
        one.sent.resent,
        one.sent.starved,
    )
    return [str(one.port), *(count(value) for value in values)]


def _delays(result: ReplayResult) -> str:
    rows = []
    for one in result.ports:
        if one.delays is None:
            continue
        delays = one.delays
        ends = [number(delays.least_ns, 0), number(delays.mean_ns, 1)]
        cells = [*ends, *(number(value, 0) for value in delays.percentiles()), number(delays.most_ns, 0)]
        rows.append([str(one.port), count(delays.frames), count(delays.without), *cells])
    if not rows:
        return ""
    trust = f"The clock was {result.clock_state}; a delay is within {number(result.uncertainty_ns, 1)} ns."
    return f"<h2>Delay, ns</h2>\n<p>{escape(trust)}</p>\n{table(DELAYS, rows)}"
