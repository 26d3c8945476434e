# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command at all points of a grid, on the processors of this machine or on many machines."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from liteprobe.host.base.errors import ProbeError, UsageError, nearest
from liteprobe.host.base.output import STDOUT, outputs, write_json, write_text
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import INPUTS, OUTPUTS, add, add_json, every_s, is_plain
from liteprobe.host.cli.boards import board_of
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import output_or_stdout, whole, wholes

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host.cli import main as program
    from liteprobe.host.cli import results, tables
    from liteprobe.host.fleet import grid as grids
    from liteprobe.host.fleet import tasks
    from liteprobe.host.report import files

HELP = "run a command at all points of a grid, like lengths x loads x seeds, on many processors or machines"
EXAMPLES = """
liteprobe sweep --over length=60,512,1514 --over rate=100M,900M train --length {length} --rate {rate} --count 100
liteprobe sweep --over seed=1-5 --csv seeds.csv build colorlight_i5 --preset train --seed {seed}
liteprobe sweep --cluster tcp://10.0.0.1:8786 --over length=60,1514 --over seed=1-50 train --length {length} ...
"""
#: Columns that are shown where nobody says which, of those that are there.
SHOWN = (
    *("name", "sent", "received", "lost", "loss_ratio", "p50", "p99", "owd_ns.mean", "owd_ns.p99"),
    *("dispersion_rate_bps.mean", "verdict", "met"),
)
COLUMNS_MOST = 8
FAILED_MOST = 10  # Points that failed, each with its reason below the table; all are in --csv and --json.
WORKERS_MOST = 1024
RANGE = re.compile(r"\d+-\d+(:\d+)?")
WRITES = (*OUTPUTS, "store", "resume", "detach")  # What a command of a sweep may not be asked for.
FILE_MOST = 16_000_000  # Octets that are sent along with each task.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes; what stands after the command is passed on."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = """Run a command at all points of a grid, on the processors of this machine or on many machines.

{NAME} in the words of the command stands for each of the values of --over NAME. The command is one that measures on a
simulated probe and has --csv, or build, which places and routes with a seed. What is done is kept: a sweep that was cut
off, or has more points now, goes on with those that are missing."""
    parser.epilog = "options of the command come after it: liteprobe COMMAND --help"
    add(
        parser, "--over NAME=VALUES", values, "values of {NAME}: a list and ranges, like 60,512 or 1-5", action="append"
    )
    group = parser.add_argument_group("run")
    add(group, "--workers N", whole, "processes of this machine (default: one a processor)")
    add(group, "--cluster URL", str, "workers of a scheduler of Dask, like tcp://10.0.0.1:8786, in their place")
    add(group, "--kept FOLDER", Path, "where results are kept (default: tasks, where LiteProbe keeps what it builds)")
    add(group, "--check", bool, "only check all points, and show the commands and which of them are done")
    group = parser.add_argument_group("results")
    add(group, "--show NAMES", str, "columns of the table, like lost,p99 (default: the usual ones)")
    add_json(group, "all rows")
    add(group, "--csv FILE", output_or_stdout, "write all rows; no FILE, or -: to stdout", nargs="?", const=STDOUT)
    add(parser, "command_swept COMMAND", str, "one that measures, or build")
    add(parser, "rest ...", str, "more words of the command", nargs=argparse.REMAINDER)


def values(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the name and the values of a text like ``seed=1-5`` or ``rate=100M,1G``."""
    name, _, listed = text.partition("=")
    items = listed.split(",")
    if not re.fullmatch(r"\w{1,32}", name) or not all(items):
        raise argparse.ArgumentTypeError(f"'{text}' has no name or no values: write it like length=60,512 or seed=1-5")
    found = [str(one) for item in items for one in (wholes(item) if RANGE.fullmatch(item) else [item])]
    if len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"'{text}' has a value twice: leave out one")
    return name, tuple(found)


def run(args: argparse.Namespace) -> None:
    """Check all points, run what isn't done, print and write."""
    given = args.over or []
    if len(dict(given)) < len(given):
        raise UsageError("--over is given twice for a name: give all its values in one")
    if args.workers is not None and not 1 <= args.workers <= WORKERS_MOST:
        raise UsageError(f"--workers {args.workers}: give 1 to {WORKERS_MOST}")
    if args.workers and args.cluster:
        raise UsageError("--workers is of this machine, --cluster of others: leave one of them out")
    grid = grids.Grid((args.command_swept, *args.rest), dict(given))
    points = grid.points
    asked = _asked(grid)
    store = tasks.TaskStore(args.kept)
    if args.check:
        tables.console().print(_planned(grid, points, [store.read(one)[0] for one in asked]))
        return
    found = tasks.TasksOutcome()

    def pool() -> tasks.Pool:
        return tasks.ClusterPool(args.cluster) if args.cluster else tasks.LocalPool(args.workers or os.cpu_count() or 1)

    try:
        with tables.progress(not is_plain(args), every_s(args), "tasks") as show:

            def progress(outcome: tasks.TasksOutcome) -> None:
                nonlocal found
                for name in outcome.refused.keys() - said:
                    say(f"worker {name} is refused: {outcome.refused[name]}", stream=sys.stderr)
                said.update(outcome.refused)
                found = outcome
                show([("sweep", len(outcome.results) + len(outcome.errors), len(asked))])

            said: set[str] = set()
            tasks.run(asked, store, pool, progress)
    except (ProbeError, KeyboardInterrupt) as end:
        if found.results:
            end.args = (f"{end}; {len(found.results)} of {len(asked)} results are kept: the same command goes on",)
        raise
    _publish(args, grid, points, asked, found)


# # #


def _asked(grid: grids.Grid) -> list[tasks.Task]:
    """Return the tasks of a grid; raise UsageError for words that its command doesn't take, or that a sweep can't have."""
    found = []
    parser = program.make_parser(grid.command[0])
    read = _reader()
    tools: Mapping[str, str] | None = None
    for point in grid.points:
        words = grid.words(point)
        args = parser.parse_args(words, argparse.Namespace(parser=parser))
        if args.command == "build":
            if args.load or args.flash or args.no_compile:
                raise UsageError(
                    "a sweep places and routes, and loads nothing: leave out --load, --flash and --no-compile"
                )
            words = [board_of(args.board), *args.rest, *(["--seed", args.seed] if args.seed else [])]
            tools = tools or grids.tools_of(words)
            found.append(grids.routed(words, tools))
            continue
        if not hasattr(args, "csv") or not hasattr(args, "probe"):
            raise UsageError(
                f"'{args.command}' has no --csv of a simulated probe: sweep train, send, rfc2544, ... or build"
            )
        if not args.probe.startswith("sim:"):
            raise UsageError(
                f"{args.probe} is a device, which isn't the same twice, so no result of it can be taken again: sweep over "
                "sim://, or give the command itself the lengths and loads"
            )
        if taken := next((name for name in WRITES if getattr(args, name, None)), ""):
            raise UsageError(
                f"--{taken.replace('_', '-')} is of one run: leave it out of the command, the sweep has --csv and --json"
            )
        found.append(grids.measured(*read(args, words)))
    return found


def _reader() -> Callable[[argparse.Namespace, list[str]], tuple[list[str], dict[str, bytes]]]:
    """Return what returns a command's words with the plain names of the files that it reads, and these files."""
    known: dict[Path, bytes] = {}

    def read(args: argparse.Namespace, words: list[str]) -> tuple[list[str], dict[str, bytes]]:
        taken: dict[str, Path] = {}
        given = [getattr(args, name, None) for name in INPUTS]
        for path in [one for more in given for one in (more if isinstance(more, list) else [more])]:
            if not isinstance(path, Path):
                continue
            if taken.setdefault(path.name, path) != path:
                raise UsageError(f"{taken[path.name]} and {path} have one name: give one of them another")
            if path not in known:
                known[path] = path.read_bytes()
            if len(known[path]) > FILE_MOST:
                raise UsageError(f"{path} has more than {FILE_MOST:,} octets, too many to send along with each task")
            words = [path.name if word == str(path) else word.replace(f"={path}", f"={path.name}") for word in words]
        usual = [] if any(word.partition("=")[0] == "--probe" for word in words) else ["--probe", args.probe]
        return [*words, *usual], {name: known[path] for name, path in taken.items()}

    return read


def _planned(
    grid: grids.Grid, points: Sequence[Mapping[str, str]], done: Sequence[bool]
) -> rich.console.RenderableType:
    table = tables.table("done", "command", text=2, keys=2)
    for point, is_done in zip(points, done, strict=True):
        table.add_row("yes" if is_done else "no", " ".join(grid.words(point)))
    return rich.console.Group(table, rich.text.Text(f"{len(points):,} tasks, {sum(done):,} of them done"))


def _publish(
    args: argparse.Namespace,
    grid: grids.Grid,
    points: Sequence[Mapping[str, str]],
    asked: Sequence[tasks.Task],
    outcome: tasks.TasksOutcome,
) -> None:
    rows = grids.rows_of(points, outcome)
    content = files.head(files.SWEEP_FORMAT, results.typed()) | {
        "over": {name: list(values) for name, values in grid.over.items()},
        "tasks": [
            {"point": dict(point), "key": task.key, "rows": outcome.results.get(number, [])}
            | ({"error": outcome.errors[number]} if number in outcome.errors else {})
            for number, (point, task) in enumerate(zip(points, asked, strict=True))
        ],
    }
    counted = [f"{len(asked):,} task{'s' * (len(asked) != 1)}", f"{outcome.kept:,} done before" * bool(outcome.kept)]
    counted += [f"{outcome.damaged:,} damaged and done again" * bool(outcome.damaged)]
    counted += [f"{outcome.again:,} given again, as a worker died" * bool(outcome.again)]
    counted += [f"{len(outcome.errors):,} failed" * bool(outcome.errors)]
    with outputs() as out:
        if not is_plain(args):
            out.write(STDOUT, lambda: tables.console().print(_shown(args, grid, rows)))
        out.write(STDOUT, lambda: say(", ".join(filter(None, counted)), stream=sys.stderr))
        out.write(args.json, lambda: write_json(args.json, content))
        out.write(args.csv, lambda: write_text(args.csv, files.csv_of(rows)))
    if outcome.errors:
        number = min(outcome.errors)
        point = ", ".join(f"{name} {value}" for name, value in points[number].items())
        raise ProbeError(
            f"{len(outcome.errors):,} of {len(asked):,} tasks failed, the first at {point}: {outcome.errors[number]}"
        )


def _shown(
    args: argparse.Namespace, grid: grids.Grid, rows: Sequence[Mapping[str, Any]]
) -> rich.console.RenderableType:
    there = list(dict.fromkeys(name for row in rows for name in row))
    names = args.show.split(",") if args.show else [name for name in SHOWN if name in there and name not in grid.over]
    for name in names:
        if name not in there:
            raise UsageError(f"no row has '{name}': {nearest(name, there)}")
    if not args.show:
        varying = [
            one
            for one in there
            if one not in (*grid.over, *names, "error") and len({str(row.get(one)) for row in rows}) > 1
        ]
        if len(names) < COLUMNS_MOST // 2:
            names += varying[: COLUMNS_MOST - len(names)]
    table = tables.table(*grid.over, *names, text=len(grid.over), keys=len(grid.over))
    failed = []
    for row in rows:
        if "error" in row:
            failed.append(f"{', '.join(f'{name} {row[name]}' for name in grid.over)}: {row['error']}")
        else:
            table.add_row(*(_cell(row.get(name)) for name in (*grid.over, *names)))
    return rich.console.Group(table, *map(rich.text.Text, failed[:FAILED_MOST]))


def _cell(value: Any) -> str:
    if value in (None, ""):
        return "-"
    try:
        return f"{float(value):.6g}" if "." in str(value) else str(value)
    except ValueError:
        return str(value)
