# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tries each part of a board that is new, and writes a report."""

import argparse
import json
import sys

from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.output import write_text
from liteprobe.host.cli.tables import console, table
from liteprobe.host.errors import ProbeError, UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.report.bring_up import as_markdown, document
from liteprobe.host.suites.bring_up import BringUp, Extent, Verdict


def run(args: argparse.Namespace) -> None:
    """Try everything; a check that fails ends the command with exit code 1, after the report is written."""
    if args.frames < 0 or (args.ram or 0) < 0:
        raise UsageError("frames and RAM are counted from 0 upwards")
    extent = Extent(args.frames, args.ram, args.duration / 1e9, args.eye)
    with Probe(args.probe, args.map, args.steal) as probe:
        facts = probe.info()
        checks = BringUp(probe, extent, _progress).run()
    found = document(facts, checks)
    if args.report:
        write_text(args.report, as_markdown(found))
    if args.json:
        write_text(args.json, json.dumps(found, indent=2) + "\n")
    if STDOUT not in (args.report, args.json):
        shown = table("check", "result", "what was seen", text=3)
        for check in checks:
            shown.add_row(check.name, check.verdict, check.seen)
        console().print(shown, markup=False)
    failed = [check.name for check in checks if check.verdict == Verdict.FAILED]
    if failed:
        raise ProbeError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        print(f"{name} ...", file=sys.stderr, flush=True)
