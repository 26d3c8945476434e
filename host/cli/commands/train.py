# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends packet trains and measures them."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from liteprobe.host.analysis import calibration
from liteprobe.host.cli import tables
from liteprobe.host.cli.parsers.train import HEADER_OPTIONS
from liteprobe.host.cli.results import Results
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.suites import sweep
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.train import TrainProgram


def request_of(args: argparse.Namespace) -> sweep.SweepRequest:
    """Return the sweep that was asked for, checked.

    Raises
    ------
    UsageError
        When no probe could do it.
    """
    fields = {field: getattr(args, field) for _, field, *_ in HEADER_OPTIONS}
    template = TrainProgram(
        length=args.length[0],
        count=args.count[0],
        repeats=args.repeat,
        interval_ns=args.interval,
        gap_ns=args.gap,
        stream_id=args.stream_id,
        fill=args.fill,
        headers=Headers(**fields, vlan_tags=tuple(args.vlan)),
    )
    programs = sweep.programs_for(args.length, args.count, template, args.rate)
    sweep.check_programs(programs)
    return sweep.SweepRequest(
        name=args.probe.partition("?")[0].removeprefix("sim://"),
        url=args.probe,
        programs=programs,
        map=args.map,
        steal=args.steal,
        transmit=args.transmit,
        receive=args.receive,
        waiting_time_ns=None if args.waiting_time is None else round(args.waiting_time),
    )


def measure(request: sweep.SweepRequest, take: sweep.Take | None = None) -> sweep.Sweep:
    """Run a sweep with a progress bar; ``take`` is given what was measured after each program."""
    with Probe(request.url, request.map, request.steal) as probe, tables.progress_bars() as bars:
        task = bars.add_task(request.name, total=request.total)
        return sweep.run(request, lambda sent, total: bars.update(task, completed=sent), probe, take)


def launch(args: argparse.Namespace, request: sweep.SweepRequest) -> None:
    """Start a train that goes on without this host, and say how to end it.

    Raises
    ------
    UsageError
        When it is more than one, or results are asked for, which nobody would be there to take.
    """
    asked = [name for name in ("json", "csv", "report", "calibration", "receive") if getattr(args, name) is not None]
    if len(request.programs) > 1 or asked:
        what = "several lengths or counts" if not asked else f"--{asked[0]}"
        raise UsageError(
            f"a detached train is not measured, so {what} can't be had: leave it out, or leave --detach out"
        )
    with Probe(request.url, request.map, request.steal) as probe:
        end_ns = probe.launch(request.programs[0], request.transmit)
        probe.link.expect_silence(0)  # It lets go at once.
        seconds = (end_ns - probe.timebase.now_ns) / 1e9
    print(
        f"port {request.transmit} sends {request.total} frames for {max(seconds, 0):.3g} s; "
        f"liteprobe stop --probe {shlex.quote(request.url)} --port {request.transmit} ends it sooner"
    )


def run(args: argparse.Namespace) -> None:
    """Measure, print and write."""
    request = request_of(args)
    if args.detach:
        launch(args, request)
        return
    calibrated = calibration.load(args.calibration) if args.calibration else None
    results = Results(args, len(request.programs), lambda sweeps: tables.trains(sweeps[0].rows), _write_report)

    def take(measured: sweep.Sweep) -> None:
        if calibrated:
            measured.rows[-1] = calibrated.correct(measured.rows[-1])
        results.take([measured])

    with results.kept():
        measure(request, take)


def _write_report(path: Path, sweeps: list[sweep.Sweep], content: dict[str, Any]) -> None:
    from liteprobe.host.report.page import write_report  # Plots take a second to load.

    write_report(path, sweeps, content)
