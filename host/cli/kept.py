# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a suite for a command: its plan first, each trial kept as it ends, shown meanwhile, and written whatever ends it."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from liteprobe.host.base import folders
from liteprobe.host.base.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli import results, tables
from liteprobe.host.cli.arguments import every_s, is_plain, open_probe
from liteprobe.host.probe import Probe
from liteprobe.host.suites.suite import Suite, SuiteLook, SuiteRequest, SuiteResult
from liteprobe.host.suites.trials import Journal

REFRESH_S = 0.25


@dataclass(frozen=True)
class KeptSuite:
    """Says what is a command's own of its suite."""

    name: str  # Of the command.
    form: str  # Of its JSON.
    make: Callable[..., Suite]  # Of the probe, the request, the journal and what shows a look.
    table: Callable[[Sequence[Any]], tables.FittingTable]  # Of figures so far.
    final: Callable[[Any], RenderableType]  # Of the result: what is printed.
    write_page: Callable[[Path, Any, Mapping[str, Any]], None]
    asked: Callable[[], RenderableType] | None = None  # What ``--check`` shows beside the plan.
    has_segments: bool = False  # Each trial is a while of the same: a store keeps it with its time and its histograms.


def run(
    args: argparse.Namespace,
    suite: KeptSuite,
    request: Any,
    ready: Callable[[Probe, Any], Any] = lambda probe, request: request,
) -> None:
    """Say the plan, run, show, print and write.

    ``ready``: returns the request for a probe that is open: which port measures is known then.
    """
    if args.trials and args.resume:
        raise UsageError("--resume goes on with its own file: leave out --trials")
    plan = request.plan()
    shorter = [f"Shorter: {one}." for one in plan.shorter]
    for line in (f"{plan.words(args.probe.startswith('sim://'))}.", *shorter, *request.marks):
        say(line, stream=sys.stderr if is_plain(args) else sys.stdout)
    if not args.check:
        with open_probe(args) as probe:
            _run(args, suite, probe, ready(probe, request))
    elif suite.asked:
        tables.console().print(suite.asked())


def usual_file(name: str) -> Path:
    """Return where the trials of a suite are kept that nobody gave a file for."""
    folder = folders.build_folder() / "trials"
    folder.mkdir(parents=True, exist_ok=True)
    began = time.strftime(f"{name}-%Y%m%d-%H%M%S")
    found, number = folder / f"{began}.jsonl", 1
    while True:  # Two may begin in one second.
        try:
            found.touch(exist_ok=False)
            return found
        except FileExistsError:
            number += 1
            found = folder / f"{began}-{number}.jsonl"


# # #


def _run(args: argparse.Namespace, suite: KeptSuite, probe: Probe, request: SuiteRequest) -> None:
    what = request.plan().what
    path = args.resume or args.trials or usual_file(suite.name)
    head = {"suite": suite.name, "url": args.probe, "request": request.to_dict()}
    finish = partial(results.publish_run, args, suite.form, probe.info(), suite.final, suite.write_page)
    screen = partial(_screen, suite, args.probe)
    with (
        Journal(path, head, resume=args.resume is not None) as journal,
        tables.watched(not is_plain(args), screen, REFRESH_S, line_of=(_line, every_s(args))) as show,
    ):
        say(f"{what}: {path}" + f", {journal.kept} of them are there" * bool(journal.kept), stream=sys.stderr)
        if suite.has_segments and (keeper := getattr(args, "keeper", None)):
            journal.take = keeper.keep_segment
        one = suite.make(probe, request, journal, results.looks_of(args).beside(show, lambda look: look.to_dict()))
        try:
            found: SuiteResult = one.run()
        except (LeaseLostError, UsageError):  # Another host's figures, perhaps; kept trials that are of another suite.
            raise
        except (ProbeError, KeyboardInterrupt) as end:
            if journal.trials:
                kept = f"{len(journal.trials)} {what} are kept: go on with --resume {shlex.quote(str(path))}"
                end.args = (f"{end}; {kept}",)
                with suppress(ProbeError):
                    finish(one.result(), end)
            raise
    finish(found)


def _line(before: SuiteLook, look: SuiteLook) -> str:
    del before
    return look.words


def _screen(suite: KeptSuite, url: str, look: SuiteLook) -> RenderableType:
    def head(page: str) -> RenderableType:
        return Text.assemble((f"liteprobe {suite.name} ", "bold"), url, f"\n{look.words}", f"   {page}" * bool(page))

    note = Text("Ctrl-C stops; --resume goes on.")
    shown = suite.table(look.rows)
    return tables.Paged(head, Group(shown, note), note, [(None, [shown])], int(time.monotonic() / tables.TURN_S))
