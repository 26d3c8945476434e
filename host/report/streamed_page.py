# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The report of a replay, or of configuration sets: what was planned, what was sent, and the delays of what came."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import page
from liteprobe.host.report.files import Streamed
from liteprobe.host.report.page import Part, count, heading, number, said_of, table
from liteprobe.host.run.replay_figures import PortReplay
from liteprobe.host.run.sets_figures import PortSets
from liteprobe.host.run.streamed_figures import FiguresT, StreamedResult

DEFINED = ("Frame length", "Time stamps", "Late")
ENDS = {
    "sent": "all was sent",
    "stopped": "it was stopped",
    "interrupted": "it was interrupted",
    "": "it did not start",
}
TRACES = "Port|Frames|Octets|Time, s|Mb/s|Of the line,\n%|Can't start\nin time|Cut"
SETS = (
    "Port|Frames|Fields|Octets\nof a set|Entries of\nthe table|Repeats\nallowed|"
    "Frames\na second|Mb/s|Of the line,\n%|Stream to the\nprobe, Mb/s"
)
SENT = "Port|Sent|Late|Underruns|First\nunderrun|Datagrams|Sent again|Ready\ntoo late"
OF_SETS = "|Of sets|Repeats"
DELAYS = "Port|Frames|Without\nstamp|Least|Mean|p50|p99|p99.9|Greatest"


def write(path: Path, result: StreamedResult[FiguresT], form: Streamed, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file (``files.streamed_document``)."""
    sent = f"{page.address(content['url'])}: {number(result.duration_s, 3)} s, until {ENDS[result.end]}."
    replays = [one for one in result.ports if isinstance(one, PortReplay)]
    sets = [one for one in result.ports if isinstance(one, PortSets)]
    parts = [
        *said_of([sent]),
        *said_of(result.notes, "note"),
        heading("Planned"),
        *_table(TRACES, [_trace(one) for one in replays]),
        *_table(SETS, [_sets(one) for one in sets]),
        heading("Sent"),
        *_table(SENT, [_sent(one) for one in replays]),
        *_table(SENT + OF_SETS, [_sent(one) + _of_sets(one) for one in sets]),
        *_delays(result),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    path.write_text(page.document(form.title, content, parts), encoding="utf-8")


# # #


def _table(heads: str, rows: Sequence[Sequence[str]]) -> list[Part]:
    return [table(heads, rows)] if rows else []


def _trace(one: PortReplay) -> list[str]:
    summary = one.summary
    if summary is None:
        return [str(one.port), *[number(None)] * TRACES.count("|")]
    cells = [count(summary.frames), count(summary.octets), number(summary.duration_s, 6)]
    cells += [page.megabits(summary.rate_bps), number(100 * summary.share, 3)]
    return [str(one.port), *cells, count(summary.expected_late), count(summary.cut)]


def _sets(one: PortSets) -> list[str]:
    summary = one.summary
    fields = ", ".join(summary.fields) or number(None)
    counts = [count(value) for value in (summary.set_octets, summary.entries, summary.repeats)]
    rates = [number(summary.frames_per_s, 1), page.megabits(summary.rate_bps), number(100 * summary.share, 3)]
    return [str(one.port), count(one.asked), fields, *counts, *rates, page.megabits(summary.stream_bps)]


def _sent(one: FiguresT) -> list[str]:
    stream = one.sent
    values = (one.frames, one.late, one.underruns, one.first_underrun, stream.datagrams, stream.resent, stream.starved)
    return [str(one.port), *(count(value) for value in values)]


def _of_sets(one: PortSets) -> list[str]:
    return [count(one.counts.sets), count(one.counts.repeats)]


def _delays(result: StreamedResult[FiguresT]) -> list[Part]:
    rows = []
    for one in result.ports:
        if one.delays is None:
            continue
        delays = one.delays
        ends = [number(delays.least_ns, 0), number(delays.mean_ns, 1)]
        cells = [*ends, *(number(value, 0) for value in delays.percentiles()), number(delays.most_ns, 0)]
        rows.append([str(one.port), count(delays.frames), count(delays.without), *cells])
    if not rows:
        return []
    trust = f"The clock was {result.clock_state}; {delay_words(result.uncertainty_ns)}."
    return [heading("Delay, ns"), *said_of([trust]), table(DELAYS, rows)]
