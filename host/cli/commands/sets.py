# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends frames that a probe makes of configuration sets, and shows what came of them."""

import argparse
import json

from liteprobe.host.cli import streamed, tables
from liteprobe.host.cli.arguments import read_text
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run.sets import SetsOptions
from liteprobe.host.run.sets_figures import SetsResult, SetsSummary
from liteprobe.host.run.streamed import Show
from liteprobe.host.traffic.document.sets import read_sets, sets_schema
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.sets import Sets


def run(args: argparse.Namespace) -> None:
    """Send, show, print and write."""
    if args.schema:
        print(json.dumps(sets_schema(), indent=2))
        return
    sets = sets_of(args)
    if args.check:
        tables.facts(facts(sets))
        return

    def send(probe: Probe, show: Show) -> SetsResult:
        return probe.sets(sets, SetsOptions(args.count, remark=streamed.remark), args.capture, show)

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
    interval = Interval(**pace) if pace else None
    return read_sets(read_text(args.sets, "a file of sets"), str(args.sets), interval, args.repeat, args.transmit)


def facts(sets: Sets) -> dict[str, object]:
    """Return what sets are, and what their stream takes where frames have the length of the headers."""
    summary = SetsSummary.of(sets)
    return {
        "fields": ", ".join(summary.fields) or "none",
        "octets of a set": summary.set_octets,
        "octets of all": sum(len(chunk) for chunk in sets.octets()),
        "table": f"{summary.entries} entries",
        "frames a second": f"{summary.frames_per_s:,.1f}",
        "stream in runs, IP": f"{summary.stream_bps / 1e6:,.3f} Mb/s",
        "repeats": summary.repeats,
    }
