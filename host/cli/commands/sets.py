# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends frames that a probe makes of configuration sets, and shows what came of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from liteprobe.host.base.errors import UsageError
from liteprobe.host.cli.arguments import (
    add_json,
    add_probe,
    number,
    of_options,
    output,
    rate_bps,
    read_text,
    time_ns,
    whole,
)
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host.cli import streamed, tables
    from liteprobe.host.report import files
    from liteprobe.host.run import sets as runs
    from liteprobe.host.traffic import document, intervals

if TYPE_CHECKING:
    from liteprobe.host.probe import Probe
    from liteprobe.host.run.sets import SetsResult
    from liteprobe.host.run.streamed import Show
    from liteprobe.host.traffic.sets import Sets

HELP = "send frames that the probe makes of small configuration sets, streamed while it sends"
DEFAULT_PROBE = "sim://cable?preset=replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument(
        "sets", metavar="FILE.yaml", nargs="?", type=Path, help="a stream and its sets, as docs/sets.md shows"
    )
    add_probe(parser, DEFAULT_PROBE)
    group = parser.add_argument_group("in the place of what the file says")
    pace = group.add_mutually_exclusive_group()
    pace.add_argument("--interval", metavar="TIME", type=time_ns, help="SFD to SFD, in ns or like 1.5us")
    pace.add_argument("--rate", metavar="BPS", type=rate_bps, help="rate on the wire, frame + 24 octets, like 500M")
    pace.add_argument("--pps", metavar="N", type=number, help="frames a second")
    group.add_argument(
        "--repeat", metavar="N", type=whole, help="when no set is there in time, repeat the last frame up to N times"
    )
    group.add_argument("--transmit", metavar="PORT", type=whole, help="port that sends")
    run = parser.add_argument_group("run")
    run.add_argument("--count", metavar="N", type=whole, help="frames at most (default: until the sets end)")
    run.add_argument("--check", action="store_true", help="only check them, and show what their stream takes")
    run.add_argument("--schema", action="store_true", help="print the JSON schema of such a file, and end")
    run.add_argument("--capture", metavar="FILE.pcapng", type=output, help="write what all ports see meanwhile")
    results = parser.add_argument_group("results")
    add_json(results, "all figures")
    results.add_argument("--report", metavar="FILE.html", type=output, help="write a report")


def run(args: argparse.Namespace) -> None:
    """Send, show, print and write."""
    if args.schema:
        print(json.dumps(document.sets_schema(), indent=2))
        return
    sets = sets_of(args)
    if args.check:
        tables.facts(facts(sets))
        return

    def send(probe: Probe, show: Show) -> SetsResult:
        return probe.sets(sets, runs.SetsOptions(args.count, remark=streamed.remark), args.capture, show)

    streamed.run(args, send, files.SETS)


def sets_of(args: argparse.Namespace) -> Sets:
    """Return the sets of the file, checked.

    Raises
    ------
    UsageError
        When no probe can send them.
    """
    if args.sets is None:
        raise UsageError("no file of sets is given: name one, as docs/sets.md shows")
    if args.count is not None and not 1 <= args.count < 1 << 32:
        raise UsageError(f"--count {args.count} is out of range: give 1 to {(1 << 32) - 1}")
    given = {"interval_ns": args.interval, "rate_bps": args.rate, "pps": args.pps}
    pace = {name: value for name, value in given.items() if value is not None}
    with of_options():
        interval = intervals.Interval(**pace) if pace else None
    return document.read_sets(
        read_text(args.sets, "a file of sets"), str(args.sets), interval, args.repeat, args.transmit
    )


def facts(sets: Sets) -> dict[str, object]:
    """Return what sets are, and what their stream takes where frames have the length of the headers."""
    summary = runs.SetsSummary.of(sets)
    return {
        "fields": ", ".join(summary.fields) or "none",
        "octets of a set": summary.set_octets,
        "octets of all": sum(len(chunk) for chunk in sets.octets()),
        "table": f"{summary.entries} entries",
        "frames a second": f"{summary.frames_per_s:,.1f}",
        "stream in runs, IP": f"{summary.stream_bps / 1e6:,.3f} Mb/s",
        "repeats": summary.repeats,
    }
