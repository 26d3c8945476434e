# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tests services as ITU-T Y.1564 asks: steps up to the committed rate and above, policing, bursts, then all at once."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path

from liteprobe.host.base.defaults import FIGURES_OF_Y1564
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import read_text
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_kept,
    add_probe,
    add_results,
    add_waiting_time,
    of_options,
)
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, share, span_ns, words

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host.analysis import columns
    from liteprobe.host.cli import kept, tables
    from liteprobe.host.report import files, y1564_page
    from liteprobe.host.suites import y1564 as suite

HELP = "test services as Y.1564 asks: their rates, policing, bursts, and all at once"
EXAMPLES = """
liteprobe y1564 services.yaml --probe 'sim://device?service0=vlan:100,cir:50M,cbs:12000&preset=tester'
liteprobe y1564 services.yaml --probe etherbone://192.168.1.50 --performance 15min --report y1564.html
liteprobe y1564 services.yaml --probe etherbone://192.168.1.50 --resume y1564.jsonl
"""
DEFAULT_PROBE = "sim://switch?preset=tester"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "streams FILE.yaml", Path, "services, as docs/y1564.md shows", nargs="?")
    add_probe(parser, DEFAULT_PROBE)
    group = parser.add_argument_group("tests (times: those of Y.1564; short ones where the probe is simulated)")
    add(
        group,
        "--tests NAME[,NAME...]",
        words,
        "configuration, performance (default: both)",
        ["configuration", "performance"],
    )
    what = "of the committed rate (default: 25,50,75,100)"
    add(group, "--steps PERCENT[,PERCENT...]", _steps, what)
    add(group, "--duration TIME", duration_ns, "of a step (default: 60s, simulated 20ms)")
    add(group, "--performance TIME", duration_ns, "all services at once (default: 15min, simulated 20ms)")
    add(group, "--pause TIME", span_ns, "after each step, at least (default: 2s, simulated 1ms)")
    group = parser.add_argument_group("run")
    add_kept(group)
    add(group, "--schema", bool, "print the JSON schema of such a file, and end")
    add_waiting_time(group, "frame")
    add_results(parser, "write a report with tables and a graph", "step")
    add_expect(parser, FIGURES_OF_Y1564)


def _steps(text: str) -> list[Fraction]:
    """Return the shares of a list with commas."""
    return [share(word) for word in words(text)]


def request_of(args: argparse.Namespace) -> suite.Y1564Request:
    """Return what was asked for, checked; raises UsageError where it can't be."""
    if args.streams is None:
        raise UsageError("no services are given: name a file of them, as docs/y1564.md shows")
    services = suite.read_services(read_text(args.streams, "a file of services"), str(args.streams))
    given = (args.duration, args.performance, args.pause)
    step_s, performance_s, pause_s = (
        one if ns is None else ns / 1e9 for ns, one in zip(given, suite.usual_s(args.probe), strict=True)
    )
    with of_options():
        return suite.Y1564Request(
            services=tuple(services),
            tests=tuple(args.tests),
            steps=tuple(args.steps or suite.STEPS),
            step_s=step_s,
            performance_s=performance_s,
            pause_s=pause_s,
        )


def run(args: argparse.Namespace) -> None:
    """Say the plan, run, show, print and write."""
    if args.schema:
        print(json.dumps(suite.schema(), indent=2))
        return
    request = request_of(args)
    of_suite = kept.KeptSuite(
        "y1564", files.Y1564_FORMAT, suite.Y1564, table_of, final, y1564_page.write, partial(asked, request)
    )
    kept.run(args, of_suite, request)


# What is shown ----------------------------------------------------------------------------------


def asked(request: suite.Y1564Request) -> rich.console.RenderableType:
    """Return what services are, and what share of the line their committed rates take."""
    shown = tables.table("service", "port", "length", "CIR Mb/s", "EIR Mb/s", "CBS", "EBS", "of the line", text=1)
    for one in request.services:
        least, most = one.stream.length.least, one.stream.length.greatest
        shown.add_row(
            rich.text.Text(one.name),
            str(one.stream.port),
            str(least) if least == most else f"{least} to {most}",
            columns.shown(float(one.cir_bps), 3, columns.MEGA),
            columns.shown(float(one.eir_bps), 3, columns.MEGA),
            f"{one.cbs:,}",
            f"{one.ebs:,}",
            f"{float(100 * one.share_at(one.total_bps)):.3f} %",
        )
    return shown


def table_of(steps: Sequence[suite.StepFigures]) -> tables.FittingTable:
    """Return steps as a table."""
    keys = "verdict offered_bps rate settled burst sent lost mean most variation available_ratio"
    return tables.figures([suite.STEP, *suite.STEPS_COLUMNS.known(steps, keys, suite.OF_SOME)], steps)


def final(found: suite.Y1564Result) -> rich.console.RenderableType:
    """Return what came of the suite."""
    why = [rich.text.Text(f"{one.name}: {one.reason}") for one in found.steps if one.reason]
    said = [rich.text.Text(f"{name}: {verdict}", "bold") for name, verdict in found.verdicts.items()]
    rates = "Mb/s are information rates: octets from the destination MAC to the FCS."
    return rich.console.Group(
        *(rich.text.Text(one, "bold yellow") for one in found.request.marks),
        table_of(found.steps),
        rich.text.Text(rates),
        *why,
        *map(rich.text.Text, found.notes),
        *said,
    )
