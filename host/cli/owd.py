# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the one-way delay from one probe to another."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from liteprobe.host import owd, owd_figures
from liteprobe.host.analysis import calibration
from liteprobe.host.cli import tables, train
from liteprobe.host.cli.arguments import output, time_ns, whole
from liteprobe.host.discipline import Discipline, settle
from liteprobe.host.errors import UsageError
from liteprobe.host.link.url import other_of_pair
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.sweep import Sweep, SweepRequest

HELP = "measure the one-way delay from one probe to another, on a PPS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    group = parser.add_argument_group("probes")
    group.add_argument(
        "--from", dest="probe", metavar="URL", required=True, help="probe that sends, as --probe of train"
    )
    group.add_argument("--to", metavar="URL", help="probe that receives (default: the other one of a sim://pair)")
    group.add_argument("--map", metavar="FILE", type=Path, help="register map of the build that runs in --from")
    group.add_argument("--map-to", metavar="FILE", type=Path, help="of the build in --to (default: the same)")
    group.add_argument("--transmit", metavar="PORT", type=whole, default=0, help="port that sends (default: 0)")
    group.add_argument("--receive", metavar="PORT", type=whole, default=0, help="port that receives (default: 0)")
    group.add_argument("--both-ways", action="store_true", help="send back at the same time, too")
    clocks = parser.add_argument_group("clocks")
    clocks.add_argument(
        "--discipline", metavar="TIME", type=time_ns,
        help="discipline both clocks from here, where no firmware does; begin after so long (probe time)",
    )  # fmt: skip
    clocks.add_argument("--period", metavar="TIME", type=time_ns, help="of the PPS, for --discipline")
    clocks.add_argument("--any-clock", action="store_true", help="measure with clocks that nobody disciplines, too")
    train.add_program(parser)
    train.add_headers(parser)
    train.add_outputs(parser)
    parser.add_argument("--save-calibration", metavar="FILE", type=output, help="write it, of a way of --known-delay")
    parser.add_argument("--known-delay", metavar="TIME", type=time_ns, help="delay of the way, for --save-calibration")


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
    with ExitStack() as stack:
        sender = stack.enter_context(Probe(args.probe, args.map))
        receiver = stack.enter_context(Probe(to, args.map_to))
        tend = _disciplined(args, sender, receiver)
        sweeps, results = _measure(args, request, sender, receiver, tend)
    if calibrated:
        for sweep in sweeps:
            sweep.rows[:] = [calibrated.correct(row) for row in sweep.rows]
    if str(args.json) != "-":
        _show(sweeps)
    if args.save_calibration:
        rows = [row for sweep in sweeps for row in sweep.rows]
        calibration.calibrate(rows, 0.0, args.known_delay).save(args.save_calibration)
    train.write_tables(args, sweeps)
    if args.report:
        from liteprobe.host.report import owd_page  # Plots take a second to load.

        named = zip(("There", "Back"), sweeps, results, strict=False)
        ways = [owd_page.Way(name, sweep, found) for name, sweep, found in named]
        owd_page.write(args.report, ways, files.document(sweeps, ["liteprobe", *sys.argv[1:]]))
        print(f"report: {args.report}", file=sys.stderr)


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
    args: argparse.Namespace, request: SweepRequest, sender: Probe, receiver: Probe, tend: Callable[[], None] | None
) -> tuple[list[Sweep], list[list[owd.OneWayResult]]]:
    """Run all programs, and return a sweep for each direction, and the results of each."""
    ways = [(sender, receiver, args.transmit, args.receive)]
    ways += [(receiver, sender, args.receive, args.transmit)] if args.both_ways else []
    results: list[list[owd.OneWayResult]] = [[] for _ in ways]
    sweeps = [Sweep(f"{a.url} to {b.url}", a.url, a.info(), [], []) for a, b, _, _ in ways]
    with _bar(len(request.programs)) as advance:
        for program in request.programs:
            directions = [owd.Direction(program, a, b, x, y) for a, b, x, y in ways]
            found = owd.OneWay(directions, request.waiting_time_ns, tend, args.any_clock).run()
            for sweep, of_way, result in zip(sweeps, results, found, strict=True):
                of_way.append(result)
                sweep.results.append(result.train)
                sweep.rows.append(owd_figures.row(result, request.waiting_time_ns))
            advance()
    return sweeps, results


@contextmanager
def _bar(total: int) -> Iterator[Callable[[], None]]:
    with tables.progress_bars() as bars:
        task = bars.add_task("programs", total=total)
        yield lambda: bars.advance(task)


def _show(sweeps: list[Sweep]) -> None:
    out = tables.console()
    for sweep in sweeps:
        shown = tables.table("length", "count", "repeat", "owd ns", "std", "min", "p99", "p99.9", "lost", text=0)
        for row in sweep.rows:
            delay = row["owd_ns"]
            shown.add_row(
                *(str(row[name]) for name in ("length", "count", "repeat")),
                *(tables.ns(delay[name], 2) for name in ("mean", "std", "min", "p99", "p99_9")),
                str(row["lost"]),
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
            for note in row["notes"]:
                out.print(f"length {row['length']}, count {row['count']}: {note}", soft_wrap=True)
