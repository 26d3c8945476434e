# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays and configuration sets as tables: what they come to, how far they are, and what came of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Group, RenderableType
from rich.text import Text

from liteprobe.host.cli import tables
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.run.replay_figures import PortReplay
from liteprobe.host.run.sets_figures import PortSets
from liteprobe.host.run.streamed import Show, StreamLook
from liteprobe.host.run.streamed_figures import Delays, FiguresT, StreamedResult
from liteprobe.host.traffic.trace.records import Summary

LINE_BPS = 1e9
REPLAY = ("sent", "of", "late", "had to", "underruns", "first")
SETS = ("sent", "of", "of sets", "repeats", "late", "underruns", "first")
STREAM = ("Mb/s", "of line", "resent")
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


@contextmanager
def progress() -> Iterator[Show]:
    """Give what shows looks while ports are streamed to; it shows nothing where nobody looks."""
    with tables.progress_bars() as bars:
        tasks: dict[int, int] = {}

        def show(look: StreamLook) -> None:
            for port, frames in look.frames.items():
                if port not in tasks:
                    tasks[port] = int(bars.add_task(f"port {port}", total=look.asked[port]))
                late = f", {look.underruns[port]} too late" if look.underruns[port] else ""
                bars.update(tasks[port], completed=frames, description=f"port {port}{late}")  # type: ignore[arg-type]

        yield show


def final(result: StreamedResult[FiguresT]) -> RenderableType:
    """Return what came of a replay, or of sets."""
    columns = REPLAY if any(isinstance(one, PortReplay) for one in result.ports) else SETS
    wide = tables.table("port", *columns, *STREAM, *DELAYS, text=1)
    counts, others = (
        tables.table("port", *columns, text=1, is_tight=True),
        tables.table("port", *STREAM, *DELAYS, text=1, is_tight=True),
    )
    for one in result.ports:
        shown, port = _counts(one), str(one.port)
        cells, stream = ([shown[name] for name in names] for names in (columns, STREAM))
        times = _delays(one.known_delays)
        wide.add_row(port, *cells, *stream, *times)
        counts.add_row(port, *cells)
        others.add_row(port, *stream, *times)
    whole = "" if result.is_complete else ", incomplete"
    lines = [
        f"{result.duration_s:,.3f} s, {ENDS[result.end]}{whole}. Clock {result.clock_state}; "
        f"{delay_words(result.uncertainty_ns)}. Mb/s as planned, on the wire, frame + 24 octets.",
        *result.notes,
    ]
    return Group(tables.Either(wide, Group(counts, others)), *(Text(line) for line in lines))


# # #


def _counts(one: FiguresT) -> dict[str, RenderableType]:
    """Return the cells of a port by their column."""
    shown: dict[str, RenderableType] = {
        "sent": f"{one.frames:,}",
        "of": tables.counted(one.asked),
        "late": tables.bad(one.late),
        "underruns": tables.bad(one.underruns),
        "first": tables.counted(one.first_underrun),
        "Mb/s": tables.megabits(one.rate_bps),
        "of line": tables.NONE if one.rate_bps is None else f"{100 * one.rate_bps / LINE_BPS:.2f} %",
        "resent": f"{one.sent.resent:,}",
    }
    if isinstance(one, PortReplay):
        shown["had to"] = tables.counted(one.expected_late)
    if isinstance(one, PortSets):
        shown |= {"of sets": f"{one.counts.sets:,}", "repeats": f"{one.counts.repeats:,}"}
    return shown


def _delays(delays: Delays | None) -> list[str]:
    if delays is None:
        return [tables.NONE] * len(DELAYS)
    whole = [delays.least_ns, *delays.percentiles(), delays.most_ns]
    cells = [tables.NONE if value is None else f"{value:,.0f}" for value in whole]
    return [cells[0], tables.NONE if delays.mean_ns is None else f"{delays.mean_ns:,.1f}", *cells[1:]]
