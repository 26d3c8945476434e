# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays as tables: what files come to, and what came of them."""

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from liteprobe.host.cli import tables
from liteprobe.host.run.replay_figures import Delays, PortReplay, ReplayResult
from liteprobe.host.traffic.trace.summary import Summary

NONE = "-"
COLUMNS = ("sent", "of", "late", "had to", "underruns", "first", "Mb/s", "of line", "resent")
DELAYS = ("least\nns", "mean", "P50", "P99", "P99.9", "most")
ENDS = {"sent": "all was sent", "stopped": "stopped", "interrupted": "interrupted", "": "not started"}


def asked(summaries: Mapping[int, Summary]) -> RenderableType:
    """Return what traces come to, by port."""
    shown = tables.table("port", "frames", "octets", "s", "Mb/s", "of the line", "can't start\nin time", "cut", text=1)
    notes = []
    for port, one in summaries.items():
        late = f"{one.expected_late:,}"
        cells = (f"{one.frames:,}", f"{one.octets:,}", f"{one.duration_s:,.6f}", f"{one.rate_bps / 1e6:,.3f}")
        shown.add_row(str(port), *cells, f"{100 * one.share:.3f} %", late, f"{one.cut:,}")
        if one.expected_late:
            notes.append(
                f"port {port}: {late} frames can't start when they are due, number {one.first_late} first: the frame before is "
                "still on the line"
            )
        if one.stamped is not None and one.stamped < one.frames:
            notes.append(f"port {port}: {one.frames - one.stamped:,} frames have no place for the stamp")
        notes += [f"port {port}: {note}" for note in one.notes]
    return Group(shown, *(Text(note) for note in notes))


def final(result: ReplayResult) -> RenderableType:
    """Return what came of a replay."""
    wide = tables.table("port", *COLUMNS, *DELAYS, text=1)
    counts, delays = (
        tables.table("port", *COLUMNS, text=1, is_tight=True),
        tables.table("port", *DELAYS, text=1, is_tight=True),
    )
    for one in result.ports:
        cells, times = _counts(one), _delays(one.known_delays)
        wide.add_row(str(one.port), *cells, *times)
        counts.add_row(str(one.port), *cells)
        delays.add_row(str(one.port), *times)
    whole = "" if result.is_complete else ", incomplete"
    lines = [
        f"{result.duration_s:,.3f} s, {ENDS[result.end]}{whole}. Clock {result.clock_state}; a delay is within "
        f"{result.uncertainty_ns:.1f} ns. Mb/s as planned, on the wire, frame + 24 octets.",
        *result.notes,
    ]
    return Group(tables.Either(wide, Group(counts, delays)), *(Text(line) for line in lines))


# # #


def _counts(one: PortReplay) -> list[RenderableType]:
    summary = one.summary
    first = NONE if one.first_underrun is None else f"{one.first_underrun:,}"
    return [
        f"{one.frames:,}",
        NONE if one.asked is None else f"{one.asked:,}",
        _bad(one.late),
        NONE if one.expected_late is None else f"{one.expected_late:,}",
        _bad(one.underruns),
        first,
        NONE if summary is None else f"{summary.rate_bps / 1e6:,.3f}",
        NONE if summary is None else f"{100 * summary.share:.2f} %",
        f"{one.sent.resent:,}",
    ]


def _bad(value: int) -> Text:
    return Text(f"{value:,}", "red" if value else "")


def _delays(delays: Delays | None) -> list[str]:
    if delays is None:
        return [NONE] * len(DELAYS)
    whole = [delays.least_ns, *delays.percentiles(), delays.most_ns]
    cells = [NONE if value is None else f"{value:,.0f}" for value in whole]
    return [cells[0], NONE if delays.mean_ns is None else f"{delays.mean_ns:,.1f}", *cells[1:]]
