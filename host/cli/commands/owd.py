# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the one-way delay from one probe to another."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import write_text
from liteprobe.host.base.probe_url import full_url
from liteprobe.host.cli.arguments import add, add_steal, every_s, is_plain
from liteprobe.host.cli.commands import train
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output, time_ns, whole

with lazily():
    from liteprobe.host import probe as probes
    from liteprobe.host.analysis import calibration, rows
    from liteprobe.host.cli import results as written
    from liteprobe.host.cli import tables
    from liteprobe.host.device.link import url
    from liteprobe.host.report import owd_page
    from liteprobe.host.run import trains
    from liteprobe.host.serve import discipline
    from liteprobe.host.suites import owd, sweep

HELP = "measure the one-way delay from one probe to another, on a PPS"
EXAMPLES = """
liteprobe owd --from 'sim://pair?pps=1ms&cpu=0' --discipline 20ms --period 1ms --length 60,1514 --count 20
liteprobe owd --from 192.168.1.50 --to 192.168.1.51 --both-ways --rate 100M --report owd.html
liteprobe owd --from 192.168.1.50 --to 192.168.1.51 --known-delay 5ns --save-calibration path.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    group = parser.add_argument_group("probes")
    add(group, "--from URL", full_url, "probe that sends, as --probe of train", dest="probe", required=True)
    add(group, "--to URL", full_url, "probe that receives (default: the other one of a sim://pair)")
    add(group, "--map FILE", Path, "register map of the build that runs in --from")
    add(group, "--map-to FILE", Path, "of the build in --to (default: the same)")
    add_steal(group)
    add(group, "--transmit PORT", whole, "port that sends (default: 0)", 0)
    add(group, "--receive PORT", whole, "port that receives (default: 0)", 0)
    add(group, "--both-ways", bool, "send back at the same time, too")
    clocks = parser.add_argument_group("clocks")
    add_discipline(clocks)
    add(clocks, "--any-clock", bool, "also measure with clocks that are not disciplined")
    train.add_program(parser)
    train.add_headers(parser)
    train.add_outputs(parser)
    add(parser, "--save-calibration FILE", output, "write it, of a way of --known-delay")
    add(parser, "--known-delay TIME", time_ns, "delay of the way, like 5ns, for --save-calibration")


def add_discipline(group: argparse._ActionsContainer) -> None:
    """Add what disciplines clocks that no firmware does."""
    what = "discipline the clocks from here, where no firmware does; begin after so long (probe time)"
    add(group, "--discipline TIME", duration_ns, what)
    add(group, "--period TIME", duration_ns, "of the PPS, for --discipline")


def run(args: argparse.Namespace) -> None:
    """Measure, print and write."""
    to = args.to or url.other_of_pair(args.probe)
    if to is None:
        raise UsageError("give the probe that receives: --to URL")
    if (args.save_calibration is None) != (args.known_delay is None):
        raise UsageError("--save-calibration and --known-delay go together")
    calibrated = calibration.load(args.calibration) if args.calibration else None
    request = train.request_of(argparse.Namespace(**{**vars(args), "receive": None}))  # No port of the sender receives.
    found: list[list[owd.OneWayResult]] = [[] for _ in range(1 + args.both_ways)]

    def report(path: Path, sweeps: list[sweep.Sweep], content: dict[str, Any]) -> None:
        named = zip(("There", "Back"), sweeps, found, strict=False)
        owd_page.write(path, [owd_page.OneWayReport(*one) for one in named], content)

    results = written.Results(args, len(request.programs) * len(found), show, report)

    def take(sweeps: list[sweep.Sweep]) -> None:
        if calibrated:
            for one in sweeps:
                one.rows[-1] = calibrated.correct(one.rows[-1])
        results.take(sweeps)

    with results.written(), ExitStack() as stack:
        sender = stack.enter_context(probes.Probe(args.probe, args.map, args.steal))
        receiver = stack.enter_context(probes.Probe(to, args.map_to or args.map, args.steal))
        tend = disciplined(args, sender, receiver)
        sweeps = _measure(args, request, (sender, receiver, tend), found, take)
    if args.save_calibration:
        measured = [row for one in sweeps for row in one.rows]
        write_text(args.save_calibration, calibration.calibrate(measured, 0.0, args.known_delay).text())


def disciplined(args: argparse.Namespace, *probes: probes.Probe) -> Callable[[], None] | None:
    """Let the clocks settle, and return what goes on with them."""
    if args.discipline is None:
        return None
    period_ns = None if args.period is None else round(args.period)
    servos = [discipline.Discipline(probe, period_ns) for probe in probes]

    def tend() -> None:
        for servo in servos:
            servo.tend()

    discipline.settle(servos, args.discipline / 1e9)
    return tend


def _measure(
    args: argparse.Namespace,
    request: sweep.SweepRequest,
    ends: tuple[probes.Probe, probes.Probe, Callable[[], None] | None],
    found: list[list[owd.OneWayResult]],
    take: Callable[[list[sweep.Sweep]], None],
) -> list[sweep.Sweep]:
    """Run all programs, and return a sweep for each direction; ``take`` is given them after each program."""
    sender, receiver, tend = ends
    ways = [(sender, receiver, args.transmit, args.receive)]
    ways += [(receiver, sender, args.receive, args.transmit)] if args.both_ways else []
    sweeps = [sweep.Sweep(f"{a.url} to {b.url}", a.url, a.info(), [], []) for a, b, _, _ in ways]
    with tables.progress(not is_plain(args), every_s(args), "programs") as show_done:
        for number, program in enumerate(request.programs, 1):
            routes = [trains.Route(program, a, b, x, y) for a, b, x, y in ways]
            measured = owd.OneWay(routes, request.waiting_time_ns, tend, args.any_clock).measure()
            for one, of_way, result in zip(sweeps, found, measured, strict=True):
                of_way.append(result)
                one.results.append(result.train)
                one.rows.append(owd.row(result, request.waiting_time_ns))
            take(sweeps)
            show_done([("one way", number, len(request.programs))])
    return sweeps


def show(sweeps: list[sweep.Sweep]) -> None:
    """Print a row for each length of each direction."""
    out = tables.console()
    for one in sweeps:
        out.print(f"[bold]{one.name}[/bold]", soft_wrap=True)
        out.print(tables.one_way(one.rows))
        out.print(tables.OF_LENGTHS)
        last = one.rows[-1]
        bound = last["uncertainty_ns"]
        trust = "with an unknown error" if bound is None else f"within {bound:.1f} ns (95 %)"
        out.print(
            f"Clocks {last['sender']['clock_state']} and {last['receiver']['clock_state']}; a delay is {trust}, "
            "constant delays of the PHYs aside (--calibration)."
        )
        for row in one.rows:
            for note in rows.remarks(row):
                out.print(f"length {row['length']}, count {row['count']}: {note}", soft_wrap=True)
