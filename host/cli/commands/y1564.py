# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tests services as ITU-T Y.1564 asks: steps up to the committed rate and above, policing, bursts, then all at once."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from liteprobe.host.base.defaults import FIGURES_OF_Y1564
from liteprobe.host.base.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.base.text import read_text, say
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
from liteprobe.host.cli.commands.rfc2544 import usual_file, words
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output, share, span_ns

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host import probe as probes
    from liteprobe.host.analysis import columns
    from liteprobe.host.cli import results, tables
    from liteprobe.host.report import files, y1564_page
    from liteprobe.host.suites import trials
    from liteprobe.host.suites import y1564 as suite

HELP = "test services as Y.1564 asks: their rates, policing, bursts, and all at once"
EXAMPLES = """
liteprobe y1564 services.yaml --probe 'sim://device?service0=vlan:100,cir:50M,cbs:12000&preset=tester'
liteprobe y1564 services.yaml --probe etherbone://192.168.1.50 --performance 15min --report y1564.html
liteprobe y1564 services.yaml --probe etherbone://192.168.1.50 --resume y1564.jsonl
"""
DEFAULT_PROBE = "sim://switch?preset=tester"
REFRESH_S = 0.25


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
    add(group, "--check", bool, "only check the services, and say how long it takes")
    add(group, "--schema", bool, "print the JSON schema of such a file, and end")
    add(group, "--trials FILE.jsonl", output, "keep each trial there as it ends (default: in the build folder)")
    add(group, "--resume FILE.jsonl", Path, "go on from the trials that are there, with the same options")
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
    is_simulated = args.probe.startswith("sim://")
    usual = (0.02, 0.02, 0.001) if is_simulated else (suite.STEP_S, suite.PERFORMANCE_S, suite.PAUSE_S)
    given = (args.duration, args.performance, args.pause)
    step_s, performance_s, pause_s = (one if ns is None else ns / 1e9 for ns, one in zip(given, usual, strict=True))
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
    if args.trials and args.resume:
        raise UsageError("--resume goes on with its own file: leave out --trials")
    request = request_of(args)
    out = sys.stderr if is_plain(args) else sys.stdout
    for line in (f"{request.plan().words(args.probe.startswith('sim://'))}.", *_marked(request)):
        say(line, stream=out)
    if args.check:
        tables.console().print(asked(request))
        return
    with open_probe(args) as probe:
        if args.waiting_time is not None:
            probe.link.arrival_timeout_s = args.waiting_time / 1e9
        _run(args, probe, request)


def _run(args: argparse.Namespace, probe: probes.Probe, request: suite.Y1564Request) -> None:
    facts = probe.info()
    path = args.resume or args.trials or usual_file("y1564")
    head = {"suite": "y1564", "url": args.probe, "request": request.to_dict()}
    looks = results.looks_of(args)
    with (
        trials.Journal(path, head, resume=args.resume is not None) as journal,
        tables.watched(not is_plain(args), partial(_screen, args), REFRESH_S, line_of=(line, every_s(args))) as show,
    ):
        say(f"trials: {path}" + f", {journal.kept} of them are there" * bool(journal.kept), stream=sys.stderr)
        one = suite.Y1564(probe, request, journal, looks.beside(show, _look))
        try:
            found = one.run()
        except LeaseLostError:
            raise
        except (ProbeError, KeyboardInterrupt) as end:
            if journal.trials:
                kept = f"{len(journal.trials)} trials are kept: go on with --resume {shlex.quote(str(path))}"
                end.args = (f"{end}; {kept}",)
                with suppress(ProbeError):
                    _finish(args, one.result(), facts, end)
            raise
    _finish(args, found, facts)


def _look(look: suite.Y1564Look) -> dict[str, Any]:
    return {"doing": look.doing, "trials": look.done, "most": look.most, "elapsed_s": look.elapsed_s}


def _finish(
    args: argparse.Namespace,
    found: suite.Y1564Result,
    facts: dict[str, int | float | str | bool],
    cause: BaseException | None = None,
) -> None:
    content = {**files.of_run(files.Y1564_FORMAT, args.probe, facts, results.typed()), **found.to_dict()}

    def write_page(path: Path, plain: dict[str, Any]) -> None:
        y1564_page.write(path, found, plain)

    results.publish(args, final(found), content, write_page, cause, found)


# What is shown ----------------------------------------------------------------------------------


def _marked(request: suite.Y1564Request) -> list[str]:
    return [f"Not as Y.1564 asks: {'; '.join(request.shortfalls)}."] if request.shortfalls else []


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


def _screen(args: argparse.Namespace, look: suite.Y1564Look) -> rich.console.RenderableType:
    def head(page: str) -> rich.console.RenderableType:
        said = line(look, look)
        return rich.text.Text.assemble(("liteprobe y1564 ", "bold"), args.probe, f"\n{said}", f"   {page}" * bool(page))

    note = rich.text.Text("Ctrl-C stops; --resume goes on.")
    shown = table_of(look.steps)
    return tables.Paged(
        head, rich.console.Group(shown, note), note, [(None, [shown])], int(time.monotonic() / tables.TURN_S)
    )


def line(before: suite.Y1564Look, look: suite.Y1564Look) -> str:
    """Return how far the suite is, in a line."""
    del before
    return f"trial {look.done + 1} of up to {look.most}: {look.doing}, {columns.time_text(1e9 * look.elapsed_s)}"


def table_of(steps: Sequence[suite.StepFigures]) -> tables.FittingTable:
    """Return steps as a table."""
    keys = "service test verdict offered_bps rate settled burst sent lost mean most variation available_ratio"
    shown = [
        one
        for one in suite.STEPS_COLUMNS.of(keys)
        if one.key not in ("settled", "burst", "available_ratio") or any(one.value(row) is not None for row in steps)
    ]
    return tables.figures(shown, steps)


def final(found: suite.Y1564Result) -> rich.console.RenderableType:
    """Return what came of the suite."""
    why = [rich.text.Text(f"{one.name}: {one.reason}") for one in found.steps if one.reason]
    said = [rich.text.Text(f"{name}: {verdict}", "bold") for name, verdict in found.verdicts.items()]
    rates = "Mb/s are information rates: octets from the destination MAC to the FCS."
    return rich.console.Group(
        *(rich.text.Text(one, "bold yellow") for one in _marked(found.request)),
        table_of(found.steps),
        rich.text.Text(rates),
        *why,
        *map(rich.text.Text, found.notes),
        *said,
    )
