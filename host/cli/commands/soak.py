# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams for hours, and says what went wrong when.

Stands alone: it is a command, as bert is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from liteprobe.host.base.defaults import FIGURES_OF_SOAKS
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_kept,
    add_probe,
    add_results,
    add_waiting_time,
    of_options,
)
from liteprobe.host.cli.commands.send import add_stream, asked, streams_of
from liteprobe.host.cli.commands.train import add_headers
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, whole

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host import probe as probes
    from liteprobe.host.cli import kept, tables
    from liteprobe.host.clock import timebase
    from liteprobe.host.report import files, soak_page
    from liteprobe.host.suites import soak as suite

HELP = "send streams for hours, and say what went wrong when"
EXAMPLES = """
liteprobe soak --length imix --rate 900M --probe 'sim://device?loss=0.1%&preset=tester'
liteprobe soak streams.yaml --probe etherbone://192.168.1.50 --duration 24h --report soak.html
liteprobe soak streams.yaml --probe etherbone://192.168.1.50 --duration 24h --resume soak.jsonl
"""
DEFAULT_PROBE = "sim://switch?preset=tester"


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
    add_kept(group, "segment")
    add_waiting_time(group, "frame")
    add_results(parser, "write a report with a graph", "stream")
    add_expect(parser, FIGURES_OF_SOAKS)


def run(args: argparse.Namespace) -> None:
    """Say the plan, run, show, print and write."""
    seconds, segment_s = times_of(args)
    with of_options():
        request = suite.SoakRequest(tuple(streams_of(args)), seconds or suite.usual_s(args.probe)[0], segment_s)
    run_segments(args, request, "soak")


def times_of(args: argparse.Namespace) -> tuple[float | None, float]:
    """Return the whole, None where no option says it, and a segment (s)."""
    segment_s = suite.usual_s(args.probe)[1] if args.segment is None else args.segment / 1e9
    return None if args.duration is None else args.duration / 1e9, segment_s


def run_segments(args: argparse.Namespace, request: suite.SoakRequest, name: str) -> None:
    """Send all segments for a command, show, print and write; ``name``: of the command."""

    def ready(probe: probes.Probe, request: suite.SoakRequest) -> suite.SoakRequest:
        del probe
        ports = None if args.receive is None else {stream.port: args.receive for stream in request.streams}
        return replace(request, receive=ports)

    shown = partial(asked, request.streams, 1e9 * request.seconds)
    of_suite = kept.KeptSuite(name, files.SOAK_FORMAT, suite.Soak, table_of, final, soak_page.write, shown, True)
    kept.run(args, of_suite, request, ready)


# What is shown ----------------------------------------------------------------------------------


def table_of(rows: Sequence[suite.SoakStream]) -> tables.FittingTable:
    """Return streams as a table."""
    keys = "name verdict sent received lost duplicated reordered late bit_errors checked_bits ber events first_error_s mean most"
    return tables.figures(suite.shown_columns(rows, keys), rows)


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
