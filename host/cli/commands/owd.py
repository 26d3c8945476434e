# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the one-way delay from one probe to another."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from liteprobe.host.analysis import calibration
from liteprobe.host.cli import tables
from liteprobe.host.cli.commands import train
from liteprobe.host.cli.output import write_text
from liteprobe.host.cli.results import Results
from liteprobe.host.device.link.url import other_of_pair
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.run.trains import Route
from liteprobe.host.serve.discipline import Discipline, settle
from liteprobe.host.suites import owd, owd_figures
from liteprobe.host.suites.sweep import Sweep, SweepRequest


def run(args: argparse.Namespace) -> None:
    """Measure, print and write."""
    to = args.to or other_of_pair(args.probe)
    if to is None:
        raise UsageError("give the probe that receives: --to URL")
    if (args.save_calibration is None) != (args.known_delay is None):
        raise UsageError("--save-calibration and --known-delay go together")
    calibrated = calibration.load(args.calibration) if args.calibration else None
    args.map_to = args.map_to or args.map
    args.receive_of_train, args.receive = args.receive, None
    request = train.request_of(args)
    args.receive = args.receive_of_train
    found: list[list[owd.OneWayResult]] = [[] for _ in range(1 + args.both_ways)]

    def report(path: Path, sweeps: list[Sweep], content: dict[str, Any]) -> None:
        from liteprobe.host.report import owd_page  # Plots take a second to load.

        ways = zip(("There", "Back"), sweeps, found, strict=False)
        owd_page.write(path, [owd_page.Direction(name, sweep, results) for name, sweep, results in ways], content)

    results = Results(args, len(request.programs) * len(found), show, report)

    def take(sweeps: list[Sweep]) -> None:
        if calibrated:
            for sweep in sweeps:
                sweep.rows[-1] = calibrated.correct(sweep.rows[-1])
        results.take(sweeps)

    with results.kept(), ExitStack() as stack:
        sender = stack.enter_context(Probe(args.probe, args.map, args.steal))
        receiver = stack.enter_context(Probe(to, args.map_to, args.steal))
        tend = _disciplined(args, sender, receiver)
        sweeps = _measure(args, request, (sender, receiver, tend), found, take)
    if args.save_calibration:
        rows = [row for sweep in sweeps for row in sweep.rows]
        write_text(args.save_calibration, calibration.calibrate(rows, 0.0, args.known_delay).text())


def _disciplined(args: argparse.Namespace, *probes: Probe) -> Callable[[], None] | None:
    """Let the clocks settle, and return what goes on with them."""
    if args.discipline is None:
        return None
    period_ns = None if args.period is None else round(args.period)
    servos = [Discipline(probe, period_ns) for probe in probes]

    def tend() -> None:
        for servo in servos:
            servo.tend()

    settle(servos, args.discipline / 1e9)
    return tend


def _measure(
    args: argparse.Namespace,
    request: SweepRequest,
    ends: tuple[Probe, Probe, Callable[[], None] | None],
    found: list[list[owd.OneWayResult]],
    take: Callable[[list[Sweep]], None],
) -> list[Sweep]:
    """Run all programs, and return a sweep for each direction; ``take`` is given them after each program."""
    sender, receiver, tend = ends
    ways = [(sender, receiver, args.transmit, args.receive)]
    ways += [(receiver, sender, args.receive, args.transmit)] if args.both_ways else []
    sweeps = [Sweep(f"{a.url} to {b.url}", a.url, a.info(), [], []) for a, b, _, _ in ways]
    with _bar(len(request.programs)) as advance:
        for program in request.programs:
            routes = [Route(program, a, b, x, y) for a, b, x, y in ways]
            measured = owd.OneWay(routes, request.waiting_time_ns, tend, args.any_clock).measure()
            for sweep, of_way, result in zip(sweeps, found, measured, strict=True):
                of_way.append(result)
                sweep.results.append(result.train)
                sweep.rows.append(owd_figures.row(result, request.waiting_time_ns))
            take(sweeps)
            advance()
    return sweeps


@contextmanager
def _bar(total: int) -> Iterator[Callable[[], None]]:
    with tables.progress_bars() as bars:
        task = bars.add_task("programs", total=total)
        yield lambda: bars.advance(task)


def show(sweeps: list[Sweep]) -> None:
    """Print a row for each length of each direction."""
    out = tables.console()
    for sweep in sweeps:
        shown = tables.table("length", "count", "repeat", "owd ns", "std", "min", "p99", "p99.9", "lost", text=0)
        for row in sweep.rows:
            delay = row["owd_ns"]
            shown.add_row(
                *(str(row[name]) for name in ("length", "count", "repeat")),
                *(tables.ns(delay[name], 2) for name in ("mean", "std", "min", "p99", "p99_9")),
                tables.whole(row["lost"]),
            )
        out.print(f"[bold]{sweep.name}[/bold]", soft_wrap=True)
        out.print(shown)
        last = sweep.rows[-1]
        bound = last["uncertainty_ns"]
        trust = "within what nobody knows" if bound is None else f"within {bound:.1f} ns (95 %)"
        out.print(
            f"Clocks {last['sender']['clock_state']} and {last['receiver']['clock_state']}; a delay is {trust}, "
            "constant delays of the PHYs aside (--calibration)."
        )
        for row in sweep.rows:
            for note in filter(None, [tables.incomplete(row), *row["notes"]]):
                out.print(f"length {row['length']}, count {row['count']}: {note}", soft_wrap=True)
