# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Draws what a store of results has: percentiles over time, days against conditions, two runs."""

from __future__ import annotations

import argparse
import sys

from liteprobe.host.base.output import outputs
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add
from liteprobe.host.cli.commands.query import add_runs, percents
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import output

with lazily():
    from liteprobe.host.cli import results
    from liteprobe.host.report import files, store_page
    from liteprobe.host.store import query, store

HELP = "draw a store of results: percentiles over months, days, two runs"
EXAMPLES = """
liteprobe report --from results --since 2026-10-01 --sla 'p99 < 10ms' --output october.html
liteprobe report --from s3://lab/results --percentiles 50,99,99.99 --output tails.html
liteprobe report --from results --compare 18ec27e012bc 18ec28aba03a --output both.html
"""
FORMAT = "liteprobe-store"
PERCENTS = [50.0, 99.0, 99.9]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "--from DIR|URL", str, "the store: what --store was given", dest="place", required=True)
    add(parser, "--output FILE.html", output, "where the page goes", required=True)
    text = "percentiles that are drawn (default: 50,99,99.9)"
    add(parser, "--percentiles P[,P...]", percents, text, PERCENTS)
    add(parser, "--sla CONDITION", str, "held against each day: 'p99 < 10ms' or 'loss < 0.1%%'", action="append")
    add(parser, "--compare RUN", str, "two runs side by side, by their names or how they begin", nargs=2)
    add_runs(parser.add_argument_group("of which runs"))


def run(args: argparse.Namespace) -> None:
    """Ask, draw and write."""
    asked = query.StoreQuery(store.ResultStore(args.place), args.since, args.until, args.of, args.part)
    content = files.head(FORMAT, results.typed())
    left_out: list[str] = []

    def write() -> None:
        left_out.extend(
            store_page.write(args.output, asked, content, args.percentiles, args.sla or (), args.compare or ())
        )

    with outputs() as out:
        is_written = out.write(args.output, write)
    for path in left_out:
        say(f"left out, because it is damaged: {path}", stream=sys.stderr)
    if is_written:
        say(f"report: {args.output}", stream=sys.stderr)
