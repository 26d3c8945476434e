# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a store of results, and compacts it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from liteprobe.host.base.errors import ExpectationError, UndecidedError, UsageError
from liteprobe.host.base.output import STDOUT, outputs, write_json, write_text
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_json, is_plain
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import output_or_stdout

with lazily():
    from liteprobe.host.analysis import columns
    from liteprobe.host.cli import tables
    from liteprobe.host.measure import percentiles
    from liteprobe.host.report import files
    from liteprobe.host.store import query, store

HELP = "ask a store of results: percentiles over months, two runs, days"
EXAMPLES = """
liteprobe query results --percentiles 50,99,99.9 --since 2026-10-01 --until 2026-11-01
liteprobe query results --days --sla 'loss < 0.1%' --sla 'p99 < 10ms' --csv days.csv
liteprobe query results --sql 'SELECT probe, count(*) FROM runs GROUP BY probe'
"""
QUESTIONS = ("sql", "percentiles", "compare", "days", "compact")
DIGITS = 3  # After the point, of what is not whole.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "place DIR|URL", str, "the store: what --store was given; without a question its runs are listed")
    group = parser.add_argument_group("question (one of these)")
    add(group, "--percentiles P[,P...]", percents, "of the delays of all runs together, like 50,99,99.9")
    add(group, "--compare RUN", str, "the figures of two runs, by their names or how they begin", nargs=2)
    add(group, "--days", bool, "counts and delays of each day")
    add(group, "--sql SQL", str, "a question of your own, about runs, figures, histograms, delays and records")
    add(group, "--compact", bool, "make few large files of many small ones; runs may be kept meanwhile")
    group = parser.add_argument_group("of which runs")
    add_runs(group)
    add(group, "--by-date", bool, "with --percentiles: a row for each day")
    add(group, "--sla CONDITION", str, "with --days: whether 'p99 < 10ms' or 'loss < 0.1%%' held", action="append")
    group = parser.add_argument_group("results")
    add_json(group, "the answer")
    text = "write the answer as CSV; no FILE, or -: to stdout, in the place of the table"
    add(group, "--csv FILE", output_or_stdout, text, nargs="?", const=STDOUT)


def add_runs(group: argparse._ActionsContainer) -> None:
    """Add which runs of a store are meant."""
    add(group, "--since TIME", _time, "that ended then or later, like 2026-11-01 or 2026-11-01T12:00 (UTC)")
    add(group, "--until TIME", _time, "that ended before")
    add(group, "--of NAME", str, "of this probe alone (default: of all)")
    add(group, "--part NAME", str, "of this stream, port, class or program alone (default: of all)")


def percents(text: str) -> list[float]:
    """Return percentiles, in the order in which they were given."""
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of percentiles: write it like 50,99,99.9") from None


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time: write it like 2026-11-01 or 2026-11-01T12:00 (UTC)"
        ) from None


def run(args: argparse.Namespace) -> None:
    """Ask, print and write."""
    asked = [name for name in QUESTIONS if getattr(args, name)]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} are two questions: ask one after the other")
    for name, of in (("by_date", "percentiles"), ("sla", "days")):
        if getattr(args, name) and asked != [of]:
            raise UsageError(f"--{name.replace('_', '-')} is of --{of}: give that, too, or leave it out")
    kept = store.ResultStore(args.place)
    if args.compact:
        _compact(kept)
        return
    of_store = query.StoreQuery(kept, args.since, args.until, args.of, args.part)
    answers: dict[str, Callable[[], query.Answer]] = {
        "sql": lambda: of_store.sql(args.sql),
        "percentiles": lambda: of_store.percentiles(args.percentiles, args.by_date),
        "compare": lambda: of_store.compare(*args.compare),
        "days": lambda: of_store.days(args.sla or ()),
    }
    found = answers[asked[0]]() if asked else of_store.runs()
    for path in found.left_out:
        say(f"left out, because it is damaged: {path}", stream=sys.stderr)
    with outputs() as out:
        if not is_plain(args):
            out.write(STDOUT, lambda: tables.console().print(table_of(found)))
        content = {"rows": found.plain(), "left_out": list(found.left_out)}
        out.write(args.json, lambda: write_json(args.json, content))
        out.write(args.csv, lambda: write_text(args.csv, files.csv_of(found.plain(), _names(found))))
    _judge(found, args.sla or ())


def table_of(found: query.Answer) -> tables.FittingTable:
    """Return an answer as a table; a number that has bounds has its error."""
    words = [name for name in found.columns if not all(isinstance(row[name], int | float | None) for row in found.rows)]
    shown = tables.table(*found.columns, text=len(words) or 1)
    for row in found.rows:
        shown.add_row(*(_shown(row[name]) for name in found.columns))
    return shown


# # #


def _compact(kept: store.ResultStore) -> None:
    done = kept.compact()
    for one in done.damaged:
        say(f"left as it is, because it is damaged: {one}", stream=sys.stderr)
    say(f"{done.merged:,} parts are {done.made:,} now; {done.removed:,} files that no longer count were removed")


def _judge(found: query.Answer, conditions: Sequence[str]) -> None:
    """Raise ExpectationError where a condition did not hold in a row, UndecidedError where it isn't known."""
    for said, kind in ((query.HELD[False], ExpectationError), (query.HELD[None], UndecidedError)):
        for text in conditions:
            if count := sum(row[text] == said for row in found.rows):
                raise kind(f"{text}: {said.lower()} in {count:,} of {len(found.rows):,} rows")


def _shown(value: Any) -> str:
    if isinstance(value, percentiles.Measured):
        if value.bounds.least == value.bounds.most:
            return _shown(float(value))
        return columns.shown(value.bounds, DIGITS * (value.bounds.error < 1))
    if isinstance(value, float):
        return columns.shown(value, 0 if value == int(value) else DIGITS) if abs(value) < 1e300 else columns.NONE
    return columns.shown(value) if value is None or type(value) is int else str(value)


def _names(found: query.Answer) -> list[str]:
    return list(dict.fromkeys(name for row in found.plain() for name in row)) or list(found.columns)
