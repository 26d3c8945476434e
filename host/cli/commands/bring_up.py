# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tries each part of a board that is new, and writes a report."""

import argparse
import json
import sys

from liteprobe.host.cli.arguments import (
    STDOUT,
    add_json,
    add_probe,
    duration_ns,
    open_probe,
    output_or_stdout,
    whole,
)
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.output import write_text
from liteprobe.host.errors import ProbeError, UsageError

with lazily():
    from liteprobe.host.cli import tables
    from liteprobe.host.report import bring_up as report
    from liteprobe.host.suites import bring_up as suite

HELP = "try each part of a board that is new, and write a report that can be attached to an issue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    group = parser.add_argument_group("extent")
    group.add_argument(
        "--frames", metavar="N", type=whole, default=1_000_000, help="frames each way; 0: none (default: 1000000)"
    )
    group.add_argument("--ram", metavar="BYTES", type=whole, help="of the SDRAM; 0: none (default: all)")
    group.add_argument(
        "--duration",
        metavar="TIME",
        type=duration_ns,
        default=5e9,
        help="how long to look at the oscillator and at the PPS (default: 5s)",
    )
    group.add_argument("--eye", action="store_true", help="find the eye of received data, and keep its middle")
    group = parser.add_argument_group("results")
    group.add_argument(
        "--report", metavar="FILE", type=output_or_stdout, help="write the report as Markdown; -: to stdout"
    )
    add_json(parser, "what was found")


def run(args: argparse.Namespace) -> None:
    """Try everything; a check that fails ends the command with exit code 1, after the report is written."""
    if args.frames < 0 or (args.ram or 0) < 0:
        raise UsageError("frames and RAM are counted from 0 upwards")
    extent = suite.Extent(args.frames, args.ram, args.duration / 1e9, args.eye)
    with open_probe(args) as probe:
        facts = probe.info()
        checks = suite.BringUp(probe, extent, _progress).run()
    found = report.document(facts, checks)
    if args.report:
        write_text(args.report, report.as_markdown(found))
    if args.json:
        write_text(args.json, json.dumps(found, indent=2) + "\n")
    if STDOUT not in (args.report, args.json):
        shown = tables.table("check", "result", "what was seen", text=3)
        for check in checks:
            shown.add_row(check.name, check.verdict, check.seen)
        tables.console().print(shown, markup=False)
    failed = [check.name for check in checks if check.verdict == suite.Verdict.FAILED]
    if failed:
        raise ProbeError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        print(f"{name} ...", file=sys.stderr, flush=True)
