# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures one-way delay and loss between many probes, and runs suites there, as a plan says."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from liteprobe.host.base.defaults import FIGURES_OF_EXPERIMENTS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import outputs
from liteprobe.host.base.text import read_text, say
from liteprobe.host.cli.arguments import add, add_expect, add_results, add_steal, every_s, is_plain
from liteprobe.host.cli.commands import owd
from liteprobe.host.cli.lazy import lazily

with lazily():
    import rich.console
    import rich.text

    from liteprobe.cores import formats
    from liteprobe.host.agent import keys
    from liteprobe.host.analysis import columns
    from liteprobe.host.cli import results, tables
    from liteprobe.host.fleet import collect, suite_runs
    from liteprobe.host.fleet import experiment as experiments
    from liteprobe.host.fleet import plan as plans
    from liteprobe.host.report import files
    from liteprobe.host.traffic import load

HELP = "measure one-way delay and loss between many probes, all started at one instant"
EXAMPLES = """
liteprobe experiment plan.yaml --check
liteprobe experiment plan.yaml --json experiment.json --csv experiment.csv --report experiment.html
liteprobe experiment --schema
"""
MATRIX_MOST = 8  # Probes: more of them don't fit beside each other.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(
        parser,
        "plan FILE.yaml",
        Path,
        "probes, pairs, trains, streams or suites, and start, as docs/experiment.md shows",
        nargs="?",
    )
    group = parser.add_argument_group("run")
    add_steal(group)
    owd.add_discipline(group)
    add(group, "--check", bool, "only check the plan, and show who sends to whom in which start")
    stations = parser.add_argument_group("stations")
    add(stations, "--by-stations", bool, "hand the plan out to the stations of its probes, which run it alone, and end")
    add(
        stations,
        "--collect",
        bool,
        "gather what stations have measured of the plan; they keep it until nobody is missing",
    )
    add(stations, "--keys FILE", Path, "this host's own keys (NAME.key_secret), where stations are not on this machine")
    add(group, "--schema", bool, "print the JSON schema of such a file, and end")
    add_results(parser, "write one HTML page with the delays of all pairs, the clocks and who was left out", "pair")
    add_expect(parser, FIGURES_OF_EXPERIMENTS)


def run(args: argparse.Namespace) -> None:
    """Check the plan, run it, print and write."""
    if args.schema:
        print(json.dumps(plans.plan_schema(), indent=2))
        return
    if args.plan is None:
        raise UsageError("give a plan: liteprobe experiment plan.yaml (docs/experiment.md shows one)")
    plan = plans.read_plan(read_text(args.plan, "a plan"), str(args.plan))
    if keeper := getattr(args, "keeper", None):
        keeper.url = f"experiment://{args.plan.stem}"
    if args.check:
        tables.console().print(planned(plan))
        return
    if args.by_stations or args.collect:
        _by_stations(args, plan)
        return
    if of_station := next((one for one in plan.probes if one.url.startswith(collect.SCHEME)), None):
        raise UsageError(f"'{of_station.name}' has a station: give --by-stations, and --collect when it is over")
    with experiments.Experiment(plan, steal=args.steal) as experiment:
        experiment.tend = owd.disciplined(args, *experiment.probes.values())
        said: set[str] = set()
        said_of_captures: set[str] = set()

        def name_faults() -> None:
            for name in experiment.faults.keys() - said:
                say(f"{name} is left out: {experiment.faults[name]}", stream=sys.stderr)
            said.update(experiment.faults)
            for capture in experiment.refused_captures.keys() - said_of_captures:
                say(f"no capture at {capture}: {experiment.refused_captures[capture]}", stream=sys.stderr)
            said_of_captures.update(experiment.refused_captures)

        with tables.progress(not is_plain(args), every_s(args), "starts") as show_done:

            def show(look: experiments.ExperimentLook) -> None:
                name_faults()
                show_done([("experiment", look.rounds, look.of_rounds)])
                looks = results.looks_of(args)
                (looks.write_now_and_then if look.doing else looks.write)(look.to_dict())

            try:
                found = experiment.run(show)
            except KeyboardInterrupt as end:
                name_faults()
                _publish(args, experiment.result(), end)
                raise
        name_faults()
    _publish(args, found)


def _by_stations(args: argparse.Namespace, plan: plans.ExperimentPlan) -> None:
    """Hand a plan out, or collect what came of it; stations let go of that when it is written, and nobody is missing."""
    if args.by_stations and args.collect:
        raise UsageError("--by-stations begins and --collect ends: give one of them")
    text = read_text(args.plan, "a plan")
    connect = collect.connector(None if args.keys is None else keys.Keys.read(args.keys))
    if args.by_stations:
        faults = collect.hand_out(plan, text, connect)
        for name, why in faults.items():
            say(f"{name} is left out: {why}", stream=sys.stderr)
        first, (last, all_of_last) = plan.starts()[0][0], plan.starts()[-1]
        last += plan.span_ns(all_of_last)
        say(
            f"{len(plan.probes) - len(faults)} of {len(plan.probes)} stations have the plan: first start TAI {first // 10**9}, "
            f"over at {last // 10**9}; then give --collect in the place of --by-stations"
        )
        return
    found = collect.collect(plan, text, connect)
    for name, why in found.faults.items():
        say(f"{name} is missing: {why}" if name in found.missing else f"{name}: {why}", stream=sys.stderr)
    _publish(args, found)
    if not found.missing:
        for name, why in collect.forget(plan, text, connect).items():
            say(f"{name} keeps its result: {why}", stream=sys.stderr)


def _publish(args: argparse.Namespace, found: experiments.ExperimentResult, cause: BaseException | None = None) -> None:
    content = files.head(files.EXPERIMENT_FORMAT, results.typed()) | found.to_dict()

    def write_page(path: Path, plain: dict[str, Any]) -> None:
        from liteprobe.host.report.experiment_page import write  # Templates take long to load.

        write(path, found, plain)

    try:
        results.publish(args, shown(found), content, write_page, cause, found)
    finally:
        _keep_suites(args, found, cause)


def _keep_suites(
    args: argparse.Namespace, found: experiments.ExperimentResult, cause: BaseException | None = None
) -> None:
    """Keep what came of each suite in the store as a run of its own."""
    if (keeper := getattr(args, "keeper", None)) is None:
        return
    with outputs(cause) as out:
        for one in found.suites:
            if one.is_measured:
                url = f"{keeper.url}/{one.name}"
                keeper.keep(out, one, one.document, cause, command=f"experiment {one.kind}", url=url)


def planned(plan: plans.ExperimentPlan) -> rich.console.RenderableType:
    """Return a plan as a table: who sends what to whom, in which start."""
    has_streams = any(one.streams for one in plan.pairs)
    rounds = plan.all_rounds()
    table = tables.table(
        "start", "from", "to", *["stream"] * has_streams, "length", "count", "interval", text=3 + has_streams, keys=3
    )
    suites = tables.table("start", "suite", "at", "to", "takes, at the most", text=4, keys=3)
    for number, all_of_one in enumerate(rounds, 1):
        for one in all_of_one:
            if isinstance(one, plans.PlannedPair):
                for name, *cells in _flows(one, plan.duration_ns):
                    table.add_row(str(number), one.sender, one.receiver, *[rich.text.Text(name)] * has_streams, *cells)
            else:
                to = one.receiver if one.is_between else ""
                suites.add_row(str(number), rich.text.Text(one.name), one.sender, to, one.words)
    captured = [f"capture at {one.probe}: {', '.join(one.files)}" for one in plan.captures]
    shown = [*[table] * bool(plan.pairs), *[suites] * bool(plan.suites)]
    return rich.console.Group(*shown, *map(rich.text.Text, captured))


def _flows(pair: plans.PlannedPair, duration_ns: Fraction | None) -> Iterator[tuple[str, str, str, str]]:
    """Give what a pair sends: of each stream, or of its train, the name, lengths, frames, and the interval."""
    if pair.program is not None:
        interval_ns = pair.program.interval_ns
        paced = "back to back" if interval_ns is None else columns.time_text(interval_ns)
        yield "", str(pair.program.length), str(pair.program.count), paced
    for one in pair.streams:
        ends = sorted({one.length.least, one.length.greatest})
        until = "" if duration_ns is None else f"for {columns.time_text(float(duration_ns))}"
        share = load.share_of(one)
        mean_ns = float(one.line.octet_ns * (one.length.mean + formats.OVERHEAD) / share)
        yield (
            one.name,
            " to ".join(map(str, ends)),
            until if one.count is None else f"{one.count:,}",
            columns.time_text(mean_ns),
        )


def shown(found: experiments.ExperimentResult) -> rich.console.RenderableType:
    """Return a result as tables: the mean delays of few probes as a matrix, and a row for each pair."""
    unit, scale, digits = experiments.unit_of(found)
    names = list(dict.fromkeys(name for one in found.pairs for name in (one.sender, one.receiver)))
    parts: list[Any] = []
    if 2 < len(names) <= MATRIX_MOST:
        parts.append(_matrix(found, names, unit, scale, digits))
    counted = [name for name in ("duplicated", "reordered") if found.count(name)]
    keys = found.COLUMNS.of(" ".join(["name sent received lost", *counted]))
    delays = columns.in_unit(found.COLUMNS.of("least mean p99 most bound"), unit, scale, digits)
    why = found.COLUMNS.of("why") if any(one.why or one.note for one in found.pairs) else []
    if found.pairs:
        parts.append(tables.figures([*keys, *delays, *why], found.pairs))
    for suite in found.suites:
        parts += _suite(suite)
    parts += [rich.text.Text(f"{name} was left out: {why}") for name, why in found.faults.items()]
    parts += [rich.text.Text(one.said) for one in found.captures]
    said = f"{len(found.measured)} of {len(found.pairs)} {found.of_what} have delays; bounds 95 %, of both clocks then."
    parts += [rich.text.Text(said)] * bool(found.pairs)
    return rich.console.Group(*parts)


def _suite(suite: suite_runs.SuiteFigures) -> Iterator[rich.console.RenderableType]:
    """Give what came of a suite: what must stand above it, its figures, and its verdict."""
    yield from (rich.text.Text(one, "bold yellow") for one in suite.marks)
    if suite.shown:
        yield tables.figures(suite.shown, [*suite.rows.items()])
    yield rich.text.Text(suite.words, "bold")


def _matrix(
    found: experiments.ExperimentResult, names: list[str], unit: str, scale: float, digits: int
) -> rich.console.RenderableType:
    table = tables.table(f"mean {unit}, from", *(f"to {name}" for name in names))
    matrix = found.matrix()
    for sender in names:
        row = [matrix.get(sender, {}).get(receiver) for receiver in names]
        table.add_row(sender, *(columns.shown(one, digits, scale) for one in row))
    return table
