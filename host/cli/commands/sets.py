# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends frames that a probe makes of configuration sets, and shows what came of them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from liteprobe.host.base.defaults import FIGURES_OF_PORTS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import read_text
from liteprobe.host.cli.arguments import add, add_expect, add_pace, add_probe, add_results, of_options
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import output, pps, whole

with lazily():
    from liteprobe.host import probe as probes
    from liteprobe.host.cli import streamed, tables
    from liteprobe.host.report import files
    from liteprobe.host.run import sets as runs
    from liteprobe.host.run import streamed as shown
    from liteprobe.host.traffic import document, intervals
    from liteprobe.host.traffic import sets as traffic

HELP = "send frames that the probe makes of small configuration sets, streamed while it sends"
EXAMPLES = """
liteprobe sets sets.yaml --check
liteprobe sets sets.yaml --rate 20% --json sets.json
liteprobe sets sets.yaml --probe etherbone://192.168.1.50 --count 1k --interval 20us
"""
DEFAULT_PROBE = "sim://cable?preset=replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "sets FILE.yaml", Path, "a stream and its sets, as docs/sets.md shows", nargs="?")
    add_probe(parser, DEFAULT_PROBE)
    group = parser.add_argument_group("in the place of what the file says")
    pace = group.add_mutually_exclusive_group()
    add_pace(pace, "")
    add(pace, "--pps N", pps, "frames a second, like 20k")
    add(group, "--repeat N", whole, "when no set is there in time, repeat the last frame up to N times")
    add(group, "--transmit PORT", whole, "port that sends")
    run = parser.add_argument_group("run")
    add(run, "--count N", whole, "frames at most (default: until the sets end)")
    add(run, "--check", bool, "only check them, and show what their stream takes")
    add(run, "--schema", bool, "print the JSON schema of such a file, and end")
    add(run, "--capture FILE.pcapng", output, "write what all ports see meanwhile")
    add_results(parser, "write a report", has_records=True)
    add_expect(parser, FIGURES_OF_PORTS)


def run(args: argparse.Namespace) -> None:
    """Send, show, print and write."""
    if args.schema:
        print(json.dumps(document.sets_schema(), indent=2))
        return
    sets = sets_of(args)
    if args.check:
        tables.console().print(tables.fact_table(facts(sets).items()))
        return

    def send(probe: probes.Probe, show: shown.Show) -> runs.SetsResult:
        return probe.sets(sets, runs.SetsOptions(args.count, remark=streamed.remark), args.capture, show)

    streamed.run(args, send, files.SETS)


def sets_of(args: argparse.Namespace) -> traffic.Sets:
    """Return the sets of the file, checked; raises UsageError when no probe can send them."""
    if args.sets is None:
        raise UsageError("no file of sets is given: name one, as docs/sets.md shows")
    if args.count is not None and not 1 <= args.count < 1 << 32:
        raise UsageError(f"--count {args.count} is out of range: give 1 to {(1 << 32) - 1}")
    given = {"interval_ns": args.interval, "pps": args.pps} | (args.rate or {})
    pace = {name: value for name, value in given.items() if value is not None}
    with of_options():
        interval = intervals.Interval(**pace) if pace else None
    return document.read_sets(
        read_text(args.sets, "a file of sets"), str(args.sets), interval, args.repeat, args.transmit
    )


def facts(sets: traffic.Sets) -> dict[str, object]:
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
