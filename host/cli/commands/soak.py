# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams for hours, and says what went wrong when."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from liteprobe.host.base.defaults import FIGURES_OF_SOAKS
from liteprobe.host.base.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_probe,
    add_results,
    add_waiting_time,
    every_s,
    is_plain,
    of_options,
    open_probe,
)
from liteprobe.host.cli.commands.rfc2544 import usual_file
from liteprobe.host.cli.commands.send import add_stream, asked, streams_of
from liteprobe.host.cli.commands.train import add_headers
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output, whole

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host import probe as probes
    from liteprobe.host.analysis import columns
    from liteprobe.host.cli import results, tables
    from liteprobe.host.clock import timebase
    from liteprobe.host.report import files, soak_page
    from liteprobe.host.suites import soak as suite
    from liteprobe.host.suites import trials

HELP = "send streams for hours, and say what went wrong when"
EXAMPLES = """
liteprobe soak --length imix --rate 900M --probe 'sim://device?loss=0.1%&preset=tester'
liteprobe soak streams.yaml --probe etherbone://192.168.1.50 --duration 24h --report soak.html
liteprobe soak streams.yaml --probe etherbone://192.168.1.50 --duration 24h --resume soak.jsonl
"""
DEFAULT_PROBE = "sim://switch?preset=tester"
REFRESH_S = 0.25
USUAL_S = (3600.0, 60.0)  # The whole, and a segment of it.
SIMULATED_S = (0.02, 0.005)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "streams FILE.yaml", Path, "streams, as docs/traffic.md shows; or one by options", nargs="?")
    add_probe(parser, DEFAULT_PROBE)
    add_stream(parser)
    add_headers(parser, "up to four times")
    add_run(parser, "in all (default: 1h, simulated 20ms)")


def add_run(parser: argparse.ArgumentParser, duration: str) -> None:
    """Add what runs of segments take; ``duration``: the help of that option."""
    group = parser.add_argument_group("run")
    add(group, "--receive PORT", whole, "port that measures (default: where the wire leads)")
    add(group, "--duration TIME", duration_ns, duration)
    add(group, "--segment TIME", duration_ns, "what is kept at once (default: 1min, simulated 5ms)")
    add(group, "--check", bool, "only check the streams, and say how long it takes")
    add(group, "--trials FILE.jsonl", output, "keep each segment there as it ends (default: in the build folder)")
    add(group, "--resume FILE.jsonl", Path, "go on from the segments that are there, with the same options")
    add_waiting_time(group, "frame")
    add_results(parser, "write a report with a graph", "stream")
    add_expect(parser, FIGURES_OF_SOAKS)


def run(args: argparse.Namespace) -> None:
    """Say the plan, run, show, print and write."""
    seconds, segment_s = times_of(args)
    with of_options():
        request = suite.SoakRequest(tuple(streams_of(args)), seconds or usual_s(args)[0], segment_s)
    run_segments(args, request, "soak")


def usual_s(args: argparse.Namespace) -> tuple[float, float]:
    """Return how long the whole and a segment are where no option says it (s)."""
    return SIMULATED_S if args.probe.startswith("sim://") else USUAL_S


def times_of(args: argparse.Namespace) -> tuple[float | None, float]:
    """Return the whole, None where no option says it, and a segment (s)."""
    segment_s = usual_s(args)[1] if args.segment is None else args.segment / 1e9
    return None if args.duration is None else args.duration / 1e9, segment_s


def run_segments(args: argparse.Namespace, request: suite.SoakRequest, name: str) -> None:
    """Send all segments for a command, show, print and write; ``name``: of the command."""
    if args.trials and args.resume:
        raise UsageError("--resume goes on with its own file: leave out --trials")
    said = f"{len(request.segments)} segments, {trials.lasting(request.seconds)} in all."
    say(said, stream=sys.stderr if is_plain(args) else sys.stdout)
    if args.check:
        tables.console().print(asked(request.streams, 1e9 * request.seconds))
        return
    with open_probe(args) as probe:
        if args.waiting_time is not None:
            probe.link.arrival_timeout_s = args.waiting_time / 1e9
        if args.receive is not None:
            ports = {stream.port: args.receive for stream in request.streams}
            request = suite.SoakRequest(**{**vars(request), "receive": ports})
        _run(args, probe, request, name)


def _run(args: argparse.Namespace, probe: probes.Probe, request: suite.SoakRequest, name: str) -> None:
    facts = probe.info()
    path = args.resume or args.trials or usual_file(name)
    head = {"suite": name, "url": args.probe, "request": request.to_dict()}
    looks = results.looks_of(args)
    with (
        trials.Journal(path, head, resume=args.resume is not None) as journal,
        tables.watched(
            not is_plain(args), partial(_screen, args, name), REFRESH_S, line_of=(line, every_s(args))
        ) as show,
    ):
        say(f"segments: {path}" + f", {journal.kept} of them are there" * bool(journal.kept), stream=sys.stderr)
        one = suite.Soak(probe, request, journal, looks.beside(show, _look))
        try:
            found = one.run()
        except LeaseLostError:
            raise
        except (ProbeError, KeyboardInterrupt) as end:
            if journal.trials:
                kept = f"{len(journal.trials)} segments are kept: go on with --resume {shlex.quote(str(path))}"
                end.args = (f"{end}; {kept}",)
                with suppress(ProbeError):
                    _finish(args, one.result(), facts, end)
            raise
    _finish(args, found, facts)


def _look(look: suite.SoakLook) -> dict[str, Any]:
    return {name: getattr(look, name) for name in ("segment", "segments", "elapsed_s", "lost", "bit_errors")}


def _finish(
    args: argparse.Namespace,
    found: suite.SoakResult,
    facts: dict[str, int | float | str | bool],
    cause: BaseException | None = None,
) -> None:
    content = {**files.of_run(files.SOAK_FORMAT, args.probe, facts, results.typed()), **found.to_dict()}

    def write_page(path: Path, plain: dict[str, Any]) -> None:
        soak_page.write(path, found, plain)

    results.publish(args, final(found), content, write_page, cause, found)


# What is shown ----------------------------------------------------------------------------------


def _screen(args: argparse.Namespace, name: str, look: suite.SoakLook) -> rich.console.RenderableType:
    def head(page: str) -> rich.console.RenderableType:
        said = line(look, look)
        return rich.text.Text.assemble(
            (f"liteprobe {name} ", "bold"), args.probe, f"\n{said}", f"   {page}" * bool(page)
        )

    note = rich.text.Text("Ctrl-C stops; --resume goes on.")
    shown = table_of(look.rows)
    return tables.Paged(
        head, rich.console.Group(shown, note), note, [(None, [shown])], int(time.monotonic() / tables.TURN_S)
    )


def line(before: suite.SoakLook, look: suite.SoakLook) -> str:
    """Return how far a run is, and what was wrong until now, in a line."""
    del before
    wrong = f"{look.lost:,} lost, {look.bit_errors:,} bit errors"
    return f"segment {look.segment} of {look.segments}, {columns.time_text(1e9 * look.elapsed_s)}: {wrong}"


def table_of(rows: Sequence[suite.SoakStream]) -> tables.FittingTable:
    """Return streams as a table."""
    keys = "name verdict sent received lost duplicated reordered late bit_errors checked_bits ber events first_error_s mean most"
    own = ("bit_errors", "checked_bits", "ber", "first_error_s")
    shown = [
        one
        for one in suite.SOAK_COLUMNS.of(keys)
        if one.key not in own or any(one.value(row) is not None for row in rows)
    ]
    return tables.figures(
        [one for one in shown if one.key != "checked_bits" or any(row.checked_bits for row in rows)], rows
    )


def final(found: suite.SoakResult) -> rich.console.RenderableType:
    """Return what came of a run."""
    events = [rich.text.Text(one.words()) for one in found.events[: suite.EVENTS_SHOWN]]
    left = len(found.events) - len(events)
    said = f"{len(found.trials)} segments; {timebase.delay_words(found.uncertainty_ns)}."
    return rich.console.Group(
        table_of(found.rows),
        rich.text.Text(said),
        *events,
        *[rich.text.Text(f"and {left:,} more events (--json has all)")] * bool(left),
        *(rich.text.Text(f"{row.name}: {row.reason}") for row in found.rows if row.reason),
        *map(rich.text.Text, found.notes),
        rich.text.Text(f"verdict: {found.outcome}", "bold"),
    )
