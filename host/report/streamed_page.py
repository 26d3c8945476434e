# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes the report of a replay, or of configuration sets: what was planned, what was sent, and the delays of what came.

Stands alone: its templates take long to load, and ``--report`` alone needs them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from liteprobe.host.analysis.columns import Column, ended
from liteprobe.host.base.output import write_text
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.report import page
from liteprobe.host.report.files import Streamed
from liteprobe.host.report.page import Block, heading, listed, said_of
from liteprobe.host.run.replay import TRACES, WAITED, CheckedTrace, PortReplay, ReplayCheck
from liteprobe.host.run.sets import OF_SETS, PLANNED, PortSets
from liteprobe.host.run.streamed import CAPTURED, DELAYS, PORTS, STREAM, FiguresT, PortFigures, StreamedResult

DEFINED = ("Frame length", "Time stamps", "Late")
DELAY = "least mean p50 p99 p99_9 most"
TRACE = "frames octets duration_s rate_bps share expected_late cut"


def write(path: Path, result: StreamedResult[FiguresT], form: Streamed, content: Mapping[str, Any]) -> None:
    """Write the page of ``result`` to ``path``; ``content`` is that of the JSON file."""
    sent = f"{page.address(content['url'])}: {ended(result.duration_s, result.end, result.is_complete)}."
    replays = [one for one in result.ports if isinstance(one, PortReplay)]
    sets = [one for one in result.ports if isinstance(one, PortSets)]
    counts = [*PORTS.of("port frames late underruns first_underrun"), *STREAM.of("datagrams resent starved")]
    of_replays = [*counts[:2], WAITED, *counts[2:]]
    parts = [
        *said_of([sent]),
        *said_of(result.notes, "note"),
        heading("Planned"),
        *_table(_traces(), replays),
        *_table([*PORTS.of("port asked"), *PLANNED.values()], sets),
        heading("Sent"),
        *_table(of_replays, replays),
        *_table([*counts, *OF_SETS.values()], sets),
        *_delays(result),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    write_text(path, page.document(form.title, content, parts))


def write_check(path: Path, check: ReplayCheck, form: Streamed, content: Mapping[str, Any]) -> None:
    """Write the page of traces that were looked through, and not sent; ``content`` is that of the JSON file."""
    parts = [
        *said_of(["Nothing was sent: these traces were only looked through."]),
        *said_of(check.notes, "note"),
        heading("Planned"),
        listed(_traces(), check.ports),
        *page.definitions(DEFINED),
        *page.made_with(content),
    ]
    path.write_text(page.document(form.title, content, parts), encoding="utf-8")


# # #


def _traces() -> list[Column]:
    return [*PORTS.of("port"), *(replace(one, of=partial(_planned, one.key)) for one in TRACES.of(TRACE))]


def _table(columns: Sequence[Column], rows: Sequence[PortFigures]) -> list[Block]:
    return [listed(columns, rows)] if rows else []


def _planned(key: str, one: PortReplay | CheckedTrace) -> float | None:
    """Return a figure of what a trace comes to; None where it has no end."""
    value: float | None = TRACES[key].value(one.summary) if one.summary else None
    return value


def _delays(result: StreamedResult[FiguresT]) -> list[Block]:
    rows = [one for one in result.ports if one.delays is not None]
    if not rows:
        return []
    trust = f"The clock was {result.clock_state}; {delay_words(result.uncertainty_ns)}."
    is_short = any(one.delays and one.delays.modulo_ns for one in rows)
    shown = [*PORTS.of("port"), *CAPTURED.values(), *DELAYS.of(DELAY + " modulo" * is_short)]
    return [heading("Delay, ns"), *said_of([trust]), listed(shown, rows)]
