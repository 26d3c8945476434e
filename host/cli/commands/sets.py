# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends frames that a probe makes of configuration sets, and shows what came of them."""

import argparse
import json
from dataclasses import asdict

from rich.console import Group, RenderableType

from liteprobe.cores.formats import DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS
from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.output import write_text
from liteprobe.host.errors import UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.run.sets import SetsOptions, SetsResult
from liteprobe.host.traffic.document.sets import read_sets, sets_schema
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.load import share_of
from liteprobe.host.traffic.sets import Sets

LINE_BPS, OVERHEAD = 10**9, 24
PAYLOAD, AROUND = 4 * DATAGRAM_WORDS, 20 + 8 + 4 * DATAGRAM_HEADER_WORDS  # Octets of a datagram, and around them in IP.
ENDS = {"sent": "all was sent", "stopped": "stopped", "interrupted": "interrupted", "": "not started"}


def run(args: argparse.Namespace) -> None:
    """Send, print and write."""
    if args.schema:
        print(json.dumps(sets_schema(), indent=2))
        return
    sets = sets_of(args)
    if args.check:
        tables.facts(facts(sets))
        return
    with Probe(args.probe, args.map, args.steal) as probe:
        try:
            result = probe.sets(sets, SetsOptions(args.count))
        except Interrupted as end:
            for part in end.results:
                finish(args, part)
                end.args = (f"{end}; what was sent until then is incomplete",)
            raise
        finish(args, result)


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
    try:
        text = args.sets.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read {args.sets} ({error}): name a file of sets") from None
    given = {"interval_ns": args.interval, "rate_bps": args.rate, "pps": args.pps}
    pace = {name: value for name, value in given.items() if value is not None}
    interval = Interval(**pace) if pace else None
    return read_sets(text, str(args.sets), interval, args.repeat, args.transmit)


def facts(sets: Sets) -> dict[str, object]:
    """Return what sets are, and what their stream takes where frames have the length of the headers."""
    stream = sets.stream
    frames_per_s = float(share_of(stream)) * LINE_BPS / (8 * (stream.length.least + OVERHEAD))
    octets = sum(len(chunk) for chunk in sets.octets())
    rate_bps = 8 * frames_per_s * (sets.set_octets - 1)
    return {
        "fields": ", ".join(sets.fields) or "none",
        "octets of a set": sets.set_octets,
        "octets of all": octets,
        "table": f"{len(sets.table)} entries",
        "frames a second": f"{frames_per_s:,.1f}",
        "stream in runs, IP": f"{rate_bps * (PAYLOAD + AROUND) / PAYLOAD / 1e6:,.3f} Mb/s",
        "repeats": sets.repeats,
    }


def finish(args: argparse.Namespace, result: SetsResult) -> None:
    """Print and write a result."""
    if args.json != STDOUT:
        tables.console().print(view(result))
    if args.json:
        content = asdict(result)
        for port in content["ports"]:
            port["counts"]["error"] = port["counts"]["error"].name.lower()
        write_text(args.json, json.dumps(content, indent=2, allow_nan=False) + "\n")


def view(result: SetsResult) -> RenderableType:
    """Return a table of what came of sets."""
    shown = tables.table("port", "frames", "of sets", "repeats", "late", "underruns", "first", "resent", text=1)
    for one in result.ports:
        first = "-" if one.counts.first_underrun is None else f"{one.counts.first_underrun:,}"
        numbers = (one.frames, one.counts.sets, one.counts.repeats, one.late, one.counts.underruns)
        shown.add_row(str(one.port), *(f"{number:,}" for number in numbers), first, f"{one.sent.resent:,}")
    whole = "" if result.is_complete else ", incomplete"
    return Group(shown, f"{result.duration_s:,.3f} s, {ENDS[result.end]}{whole}.", *result.notes)
