# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends packet trains and measures them."""

import argparse
import sys
from pathlib import Path
from typing import Any

from liteprobe.host import sweep
from liteprobe.host.analysis import calibration
from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import add_ports, add_probe, output, rate_bps, time_ns, whole, wholes
from liteprobe.host.headers import Headers
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.train import FILLS, TrainProgram

HELP = "send packet trains and measure throughput, delay, loss and order"

#: Options of the headers: name, field, type, help.
HEADER_OPTIONS: tuple[tuple[str, str, Any, str], ...] = (
    ("--src-mac", "source_mac", str, "MAC address"),
    ("--dst-mac", "destination_mac", str, "MAC address"),
    ("--src-ip", "source_ip", str, "IPv4 or IPv6 address"),
    ("--dst-ip", "destination_ip", str, "IPv4 or IPv6 address"),
    ("--src-port", "source_port", whole, "UDP port"),
    ("--dst-port", "destination_port", whole, "UDP port"),
    ("--ttl", "ttl", whole, "TTL or hop limit"),
    ("--tos", "traffic_class", whole, "TOS or traffic class"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_program(parser)
    add_ports(parser)
    add_headers(parser)
    add_outputs(parser)


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
        "--gap", metavar="TIME", type=time_ns, help="extra time between trains (default: what fetching takes)"
    )
    group.add_argument(
        "--stream-id", metavar="ID", type=whole, default=1, help="number that the frames carry (default: 1)"
    )
    group.add_argument("--fill", choices=list(FILLS), default="zero", help="rest of the payload (default: zero)")


def add_headers(parser: argparse.ArgumentParser) -> None:
    """Add what says how the frames are addressed."""
    default = Headers()
    group = parser.add_argument_group("headers")
    for option, field, kind, what in HEADER_OPTIONS:
        preset = getattr(default, field)
        group.add_argument(
            option, dest=field, type=kind, default=preset, metavar="X", help=f"{what} (default: {preset})"
        )
    group.add_argument(
        "--vlan", metavar="TCI", type=whole, action="append", default=[], help="VLAN tag, up to twice, outer first"
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add where results go."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--waiting-time",
        metavar="TIME",
        type=time_ns,
        help="T_max: a packet that takes longer is lost (default: 2ms simulated, 1s else)",
    )
    group.add_argument(
        "--calibration", metavar="FILE", type=Path, help="take this set-up's own delay out (see calibrate)"
    )
    group.add_argument("--json", metavar="FILE", type=output, help="write all figures as JSON; - is stdout")
    group.add_argument("--csv", metavar="FILE", type=output, help="write a line for each program")
    group.add_argument("--report", metavar="FILE.html", type=output, help="write a report with plots")


def request_of(args: argparse.Namespace) -> sweep.SweepRequest:
    """Return the sweep that was asked for, checked.

    Raises
    ------
    UsageError
        When no probe could do it.
    """
    fields = {field: getattr(args, field) for _, field, _, _ in HEADER_OPTIONS}
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
        transmit=args.transmit,
        receive=args.receive,
        waiting_time_ns=None if args.waiting_time is None else round(args.waiting_time),
    )


def measure(request: sweep.SweepRequest) -> sweep.Sweep:
    """Run a sweep with a progress bar."""
    with Probe(request.url, request.map) as probe, tables.progress_bars() as bars:
        task = bars.add_task(request.name, total=request.total)
        return sweep.run(request, lambda sent, total: bars.update(task, completed=sent), probe)


def run(args: argparse.Namespace) -> None:
    """Measure, print and write."""
    request = request_of(args)
    calibrated = calibration.load(args.calibration) if args.calibration else None
    measured = measure(request)
    if calibrated:
        measured.rows[:] = [calibrated.correct(row) for row in measured.rows]
    if str(args.json) != "-":
        tables.trains(measured.rows)
    write(args, [measured])


def write_tables(args: argparse.Namespace, sweeps: list[sweep.Sweep]) -> None:
    """Write JSON and CSV, where they were asked for."""
    if args.json:
        files.write_json(args.json, files.document(sweeps, ["liteprobe", *sys.argv[1:]]))
    if args.csv:
        with args.csv.open("w", newline="", encoding="utf-8") as stream:
            files.write_csv(stream, sweeps)


def write(args: argparse.Namespace, sweeps: list[sweep.Sweep]) -> None:
    """Write the files that were asked for."""
    write_tables(args, sweeps)
    if args.report:
        from liteprobe.host.report.page import write_report  # Plots take a second to load.

        write_report(args.report, sweeps, files.document(sweeps, ["liteprobe", *sys.argv[1:]]))
        print(f"report: {args.report}", file=sys.stderr)
