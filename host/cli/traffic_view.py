# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Streams as tables: what is asked for, what they do while they run, what came of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.text import Text

from liteprobe.cores.formats import LINE_RATE_BPS, OVERHEAD, TICK_NS
from liteprobe.host.cli import tables
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.measure.percentiles import Bounds
from liteprobe.host.run.figures import StreamFigures, TrafficLook, TrafficResult
from liteprobe.host.traffic.load import percent, share_of
from liteprobe.host.traffic.stream import Stream

COUNTS = ("sent", "received", "lost", "dup", "reord", "late", "bit err")
DELAYS = ("least", "mean", "P50", "P99", "P99.9", "most")
RATE = "Mb/s"


@dataclass(frozen=True)
class Unit:
    """What delays are shown in: its length (ns), and the digits behind the point."""

    name: str
    ns: float
    digits: int

    @staticmethod
    def of(rows: Sequence[StreamFigures]) -> "Unit":
        """Return the unit in which the greatest delay has few digits."""
        most = max((abs(row.latency.most_ns) for row in rows if row.latency), default=0)
        if most < 10**6:
            return Unit("ns", 1.0, 0)
        return Unit("µs", 1e3, int(most < 10**7)) if most < 10**9 else Unit("ms", 1e6, int(most < 10**10))


def asked(streams: Sequence[Stream]) -> RenderableType:
    """Return what streams are, and the share of the line that each takes."""
    shown = tables.table("stream", "id", "port", "length", "frames", "frames/s", RATE, "of the line", text=1)
    for stream in streams:
        share = share_of(stream)
        frames_per_s = share * 10**9 / (TICK_NS * (stream.length.mean + OVERHEAD))
        least, greatest = stream.length.least, stream.length.greatest
        shown.add_row(
            Text(stream.name),
            str(stream.stream_id) if stream.probe else tables.NONE,
            str(stream.port),
            str(least) if least == greatest else f"{least} to {greatest}",
            "no end" if stream.count is None else f"{stream.count:,}",
            f"{float(frames_per_s):,.1f}",
            f"{float(share * LINE_RATE_BPS) / 1e6:,.3f}",
            percent(share),
        )
    sums = []
    for port in sorted({stream.port for stream in streams}):
        total = sum((share_of(stream) for stream in streams if stream.port == port), Fraction(0))
        sums.append(f"port {port}: {percent(total)} of the line, where all are sent at once")
    return Group(shown, *sums)


def live(look: TrafficLook, url: str, turn: int = 0) -> RenderableType:
    """Return a screen of streams that run; ``turn``: which of two tables, where the terminal is too low for both."""
    colour = "green" if look.clock_state == "locked" else "yellow"
    head = Text.assemble(
        ("liteprobe send ", "bold"),
        url,
        f"   {look.elapsed_s:,.1f} s   clock ",
        (look.clock_state, colour),
        f", {delay_words(look.uncertainty_ns)}",
    )
    return Group(head, streams(look.rows, turn), "Delays ± by the width of a bin. Ctrl-C stops.")


def final(result: TrafficResult) -> RenderableType:
    """Return what came of streams."""
    ends = {"sent": "all was sent", "stopped": "stopped", "interrupted": "interrupted"}
    whole = "" if result.is_complete else ", incomplete"
    lines = [
        f"{time_text(result.duration_s)}, {ends[result.end]}{whole}. Clock {result.clock_state}; "
        f"{delay_words(result.uncertainty_ns)}. Delays ± by the width of a bin; Mb/s on the wire, frame + 24 octets.",
        *result.notes,
    ]
    return Group(streams(result.rows), *(Text(line) for line in lines))


def streams(rows: Sequence[StreamFigures], turn: int | None = None) -> RenderableType:
    """Return streams in one table, or in two where that is too wide: of these only one, by ``turn``, where both are too high."""
    unit = Unit.of(rows)
    delays_of = [f"{name}\n{unit.name}" if name == DELAYS[0] else name for name in DELAYS]
    wide = tables.table("stream", *COUNTS, RATE, *delays_of, text=1)
    counts = tables.table("stream", *COUNTS, RATE, text=1, is_tight=True)
    delays = tables.table("stream", *delays_of, text=1, is_tight=True)
    for row in rows:
        name = Text(row.name, "bold" if row.is_active else "")
        wide.add_row(name, *_counts(row), _rate(row), *_delays(row, unit))
        counts.add_row(name, *_counts(row), _rate(row))
        delays.add_row(name, *_delays(row, unit))
    return tables.Either(wide, Group(counts, delays) if turn is None else tables.InTurn((counts, delays), turn))


def bounded(bounds: Bounds | None, digits: int = 0, scale: float = 1.0) -> str:
    """Return a figure over ``scale``, with its error, which is left out where the digits hide it; a dash where there is none."""
    if bounds is None:
        return tables.NONE
    error = f"{bounds.error / scale:,.{digits}f}"
    shown = f"{bounds.middle / scale:,.{digits}f}"
    return shown if float(error.replace(",", "")) == 0 else f"{shown}±{error}"


def time_text(seconds: float) -> str:
    """Return a time in the unit that shows it with three digits or more."""
    scale, unit = next(((scale, unit) for scale, unit in ((1, "s"), (1e3, "ms")) if seconds * scale >= 1), (1e6, "us"))
    return f"{seconds * scale:,.3f} {unit}"


# # #


def _counts(row: StreamFigures) -> list[RenderableType]:
    bad = (row.lost, row.duplicated, row.reordered, row.late, row.bit_errors)
    return [f"{row.sent:,}", tables.counted(row.received), *(tables.bad(count) for count in bad)]


def _delays(row: StreamFigures, unit: Unit) -> list[str]:
    if row.latency is None:
        return [tables.NONE] * len(DELAYS)
    latency = row.latency
    mean = tables.NONE if math.isnan(latency.mean_ns) else f"{latency.mean_ns / unit.ns:,.{unit.digits or 1}f}"
    percentiles = [bounded(one, unit.digits, unit.ns) for one in (latency.p50, latency.p99, latency.p99_9)]
    ends = [f"{end / unit.ns:,.{unit.digits}f}" for end in (latency.least_ns, latency.most_ns)]
    return [ends[0], mean, *percentiles, ends[1]]


def _rate(row: StreamFigures) -> str:
    return bounded(row.received_bps, 3, 1e6)
