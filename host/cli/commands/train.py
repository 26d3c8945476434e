# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends packet trains and measures them; ``owd`` has most of its arguments, too."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from liteprobe.host.base.defaults import (
    DESTINATION_IP,
    DESTINATION_MAC,
    DESTINATION_PORT,
    FILLS,
    SOURCE_IP,
    SOURCE_MAC,
    SOURCE_PORT,
    TRAFFIC_CLASS,
    TTL,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.cli.arguments import (
    add_json,
    add_ports,
    add_probe,
    duration_ns,
    output,
    rate_bps,
    time_ns,
    whole,
    wholes,
)
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host import probe as probes
    from liteprobe.host.analysis import calibration
    from liteprobe.host.cli import results as written
    from liteprobe.host.cli import tables
    from liteprobe.host.report import page
    from liteprobe.host.suites import sweep
    from liteprobe.host.traffic import headers, train

if TYPE_CHECKING:
    from liteprobe.host.suites.sweep import Sweep, SweepRequest, Take

HELP = "send packet trains and measure throughput, delay, loss and order"
#: Options of the headers: name, field, type, help, default.
HEADER_OPTIONS: tuple[tuple[str, str, Any, str, Any], ...] = (
    ("--src-mac", "source_mac", str, "MAC address", SOURCE_MAC),
    ("--dst-mac", "destination_mac", str, "MAC address", DESTINATION_MAC),
    ("--src-ip", "source_ip", str, "IPv4 or IPv6 address", SOURCE_IP),
    ("--dst-ip", "destination_ip", str, "IPv4 or IPv6 address", DESTINATION_IP),
    ("--src-port", "source_port", whole, "UDP port", SOURCE_PORT),
    ("--dst-port", "destination_port", whole, "UDP port", DESTINATION_PORT),
    ("--ttl", "ttl", whole, "TTL or hop limit", TTL),
    ("--tos", "traffic_class", whole, "TOS or traffic class", TRAFFIC_CLASS),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_program(parser)
    add_ports(parser)
    add_headers(parser)
    add_outputs(parser)
    parser.add_argument(
        "--detach", action="store_true", help="start the train, let it go on without this host, and measure nothing"
    )


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add what says what is sent."""
    group = parser.add_argument_group("trains")
    group.add_argument(
        "--length", metavar="L[,L...]", type=wholes, default=[1514], help="octets without FCS, 60 to 9000"
    )
    group.add_argument(
        "--count", metavar="N[,N...]", type=wholes, default=[100], help="frames in a train (default: 100)"
    )
    group.add_argument("--repeat", metavar="R", type=whole, default=1, help="trains of each kind (default: 1)")
    pace = group.add_mutually_exclusive_group()
    pace.add_argument(
        "--interval", metavar="TIME", type=time_ns, help="SFD to SFD, in ns or like 1.5us (default: back to back)"
    )
    pace.add_argument("--rate", metavar="BPS", type=rate_bps, help="rate on the wire, frame + 24 octets, like 500M")
    group.add_argument(
        "--gap",
        metavar="TIME",
        type=time_ns,
        help="extra time between trains, in ns or like 1.5us (default: what fetching takes)",
    )
    group.add_argument(
        "--stream-id", metavar="ID", type=whole, default=1, help="number that the frames carry (default: 1)"
    )
    group.add_argument("--fill", choices=list(FILLS), default="zero", help="rest of the payload (default: zero)")


def add_headers(parser: argparse.ArgumentParser, tags: str = "up to twice") -> None:
    """Add what says how the frames are addressed; ``tags``: how often a VLAN tag may be given."""
    group = parser.add_argument_group("headers")
    for option, field, kind, what, preset in HEADER_OPTIONS:
        group.add_argument(
            option, dest=field, type=kind, default=preset, metavar="X", help=f"{what} (default: {preset})"
        )
    group.add_argument(
        "--vlan", metavar="TCI", type=whole, action="append", default=[], help=f"VLAN tag, {tags}, outer first"
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add where results go."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--waiting-time",
        metavar="TIME",
        type=duration_ns,
        help="T_max: a packet that takes longer is lost (default: 2ms simulated, 1s else)",
    )
    group.add_argument(
        "--calibration", metavar="FILE", type=Path, help="take this set-up's own delay out (see calibrate)"
    )
    add_json(group, "all figures")
    group.add_argument("--csv", metavar="FILE", type=output, help="write a line for each program")
    group.add_argument("--report", metavar="FILE.html", type=output, help="write a report with plots")


def request_of(args: argparse.Namespace) -> SweepRequest:
    """Return the sweep that was asked for, checked.

    Raises
    ------
    UsageError
        When no probe could do it.
    """
    fields = {field: getattr(args, field) for _, field, *_ in HEADER_OPTIONS}
    template = train.TrainProgram(
        length=args.length[0],
        count=args.count[0],
        repeats=args.repeat,
        interval_ns=args.interval,
        gap_ns=args.gap,
        stream_id=args.stream_id,
        fill=args.fill,
        headers=headers.Headers(**fields, vlan_tags=tuple(args.vlan)),
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


def measure(request: SweepRequest, take: Take | None = None) -> Sweep:
    """Run a sweep with a progress bar; ``take`` is given what was measured after each program."""
    with probes.Probe(request.url, request.map, request.steal) as probe, tables.progress_bars() as bars:
        task = bars.add_task(request.name, total=request.total)
        return sweep.run(request, lambda sent, total: bars.update(task, completed=sent), probe, take)


def launch(args: argparse.Namespace, request: SweepRequest) -> None:
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
    with probes.Probe(request.url, request.map, request.steal) as probe:
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
    results = written.Results(args, len(request.programs), lambda sweeps: tables.trains(sweeps[0].rows), _write_report)

    def take(measured: Sweep) -> None:
        if calibrated:
            measured.rows[-1] = calibrated.correct(measured.rows[-1])
        results.take([measured])

    with results.written():
        measure(request, take)


def _write_report(path: Path, sweeps: list[Sweep], content: dict[str, Any]) -> None:
    page.write_report(path, sweeps, content)
