# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs what is streamed to ports for a command: shown while it runs, and its result printed and written, whatever ends it."""

import argparse
import sys
from collections.abc import Callable

from liteprobe.host.cli import streamed_view, tables
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.output import named, write_json
from liteprobe.host.machine.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run.streamed import Show
from liteprobe.host.run.streamed_figures import FiguresT, StreamedResult


def run(
    args: argparse.Namespace, send: Callable[[Probe, Show], StreamedResult[FiguresT]], form: files.Streamed
) -> None:
    """Open the probe, send, show, print and write.

    Parameters
    ----------
    args : argparse.Namespace
        With what ``add_probe``, ``add_json`` and ``--report`` give.
    send : callable
        Sends with a probe, and returns what came of it.
    form : Streamed
        What it is called in files.
    """
    with Probe(args.probe, args.map, args.steal) as probe:
        facts = probe.info()
        try:
            with streamed_view.progress() as show:
                result = send(probe, show)
        except Interrupted as end:
            for part in end.results:
                _finish(args, part, facts, form)
                end.args = (f"{end}; what was sent until then is incomplete",)
            raise
        _finish(args, result, facts, form)


def remark(line: str) -> None:
    """Print what a person should see meanwhile."""
    print(line, file=sys.stderr)


# # #


def _finish(
    args: argparse.Namespace,
    result: StreamedResult[FiguresT],
    facts: dict[str, int | float | str | bool],
    form: files.Streamed,
) -> None:
    """Print and write a result."""
    if args.json != STDOUT:
        tables.console().print(streamed_view.final(result))
    content = files.streamed_document(result, form, args.probe, facts, ["liteprobe", *sys.argv[1:]])
    if args.json:
        write_json(args.json, content)
    if args.report:
        from liteprobe.host.report.streamed_page import write

        with named(args.report):
            write(args.report, result, form, content)
        print(f"report: {args.report}", file=sys.stderr)
