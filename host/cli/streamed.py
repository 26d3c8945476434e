# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs what is streamed to ports for a command: shown while it runs, and its result printed and written, whatever ends it."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from liteprobe.host.analysis.columns import ended, in_unit
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.base.output import OutputError
from liteprobe.host.base.text import say
from liteprobe.host.cli import results, tables
from liteprobe.host.cli.arguments import every_s, is_plain, open_probe
from liteprobe.host.clock.timebase import delay_words
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run.replay import TRACES, WAITED, PortReplay, ReplayCheck
from liteprobe.host.run.sets import OF_SETS
from liteprobe.host.run.streamed import DELAYS, PORTS, STREAM, FiguresT, Show, StreamedResult, StreamLook
from liteprobe.host.traffic.trace.records import Summary


def run(
    args: argparse.Namespace, send: Callable[[Probe, Show], StreamedResult[FiguresT]], form: files.Streamed
) -> None:
    """Open the probe, send, show, print and write; ``form``: what it is called in files."""
    with open_probe(args) as probe:
        facts = probe.info()
        try:
            with progress(args) as show:
                result = send(probe, results.looks_of(args).beside(show, asdict))
        except (Interrupted, OutputError) as end:
            for part in end.results:
                if isinstance(end, Interrupted):
                    end.args = (f"{end}; what was sent until then is incomplete",)
                _finish(args, part, facts, form, end)
            raise
        _finish(args, result, facts, form)


def remark(line: str) -> None:
    """Print what a person should see meanwhile."""
    say(line, stream=sys.stderr)


def publish_check(
    args: argparse.Namespace, check: ReplayCheck, form: files.Streamed, facts: dict[str, int | float | str | bool]
) -> None:
    """Print and write traces that were looked through, and not sent; ``facts``: of the probe, where one is asked."""
    content = files.of_run(form.format, args.probe, facts, results.typed()) | check.document()

    def write_page(path: Path, plain: dict[str, Any]) -> None:
        from liteprobe.host.report.streamed_page import write_check  # Templates take long to load.

        write_check(path, check, form, plain)

    results.publish(args, asked(check), content, write_page)


def asked(check: ReplayCheck) -> RenderableType:
    """Return what traces come to, by port."""
    keys = "frames octets duration_s rate_bps share expected_late cut"
    columns = [replace(TRACES["share"], of=_percent) if one.key == "share" else one for one in TRACES.of(keys)]
    shown = tables.table("port", *(column.head for column in columns))
    for one in check.ports:
        shown.add_row(str(one.port), *(column.text(one.summary) for column in columns))
    return Group(shown, *map(Text, check.notes))


def _percent(one: Summary) -> str:
    return f"{100 * one.share:.3f} %"


@contextmanager
def progress(args: argparse.Namespace) -> Iterator[Show]:
    """Give what shows looks while ports are streamed to."""
    with tables.progress(not is_plain(args), every_s(args)) as show:

        def seen(look: StreamLook) -> None:
            late = {port: f", {count:,} too late" * bool(count) for port, count in look.underruns.items()}
            show([(f"port {port}{late[port]}", frames, look.asked[port]) for port, frames in look.frames.items()])

        yield seen


def final(result: StreamedResult[FiguresT]) -> RenderableType:
    """Return what came of a replay, or of sets."""
    port, first = PORTS.of("port"), PORTS.of("frames asked")
    if any(isinstance(one, PortReplay) for one in result.ports):
        counts = [*first, WAITED, *PORTS.of("late underruns first_underrun")]
    else:
        counts = [*first, *OF_SETS.values(), *PORTS.of("late underruns first_underrun")]
    is_short = any(one.known_delays and one.known_delays.modulo_ns for one in result.ports)
    delays = in_unit(DELAYS.of("least mean p50 p99 p99_9 most" + " modulo" * is_short), "ns", 1.0, 0)
    others = [*STREAM.of("rate_bps share resent"), *delays]
    said = (
        f"{ended(result.duration_s, result.end, result.is_complete)}. Clock {result.clock_state}; "
        f"{delay_words(result.uncertainty_ns)}. Mb/s as planned, on the wire, frame + 24 octets."
    )
    table = tables.figures([*port, *counts, *others], result.ports)
    more = [tables.more(table.columns, one.row(), "port") for one in result.ports[:1]]
    return Group(table, Text(said), *more, *map(Text, result.notes))


# # #


def _finish(
    args: argparse.Namespace,
    result: StreamedResult[FiguresT],
    facts: dict[str, int | float | str | bool],
    form: files.Streamed,
    cause: BaseException | None = None,
) -> None:
    """Print and write a result; ``cause``: what ended it, or else an error of what was captured meanwhile."""
    content = files.of_run(form.format, args.probe, facts, results.typed()) | result.to_dict()

    def write_page(path: Path, plain: dict[str, Any]) -> None:
        from liteprobe.host.report.streamed_page import write  # Templates take long to load.

        write(path, result, form, plain)

    results.publish(args, final(result), content, write_page, cause, result)
