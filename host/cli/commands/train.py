# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends packet trains and measures them; ``owd`` has most of its arguments, too."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

from liteprobe.host.base import defaults
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_lengths,
    add_pace,
    add_ports,
    add_probe,
    add_results,
    add_waiting_time,
    every_s,
    is_plain,
)
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import frame_sizes, lengths, time_ns, vlan_tags, whole, wholes

with lazily():
    from liteprobe.host import probe as probes
    from liteprobe.host.analysis import calibration
    from liteprobe.host.base import line
    from liteprobe.host.cli import results as written
    from liteprobe.host.cli import tables
    from liteprobe.host.report import page
    from liteprobe.host.suites import sweep
    from liteprobe.host.traffic import headers, train

HELP = "send packet trains and measure throughput, delay, loss and order"
EXAMPLES = """
liteprobe train --probe sim://loopback --length 60,1514 --count 1000 --repeat 10
liteprobe train --probe 'sim://switch?latency=3us' --frame-size 64-1518:500 --rate 50% --csv train.csv
liteprobe train --probe etherbone://192.168.1.50 --rate 500Mbit/s --vlan 100:5 --report train.html
"""
#: Options of the headers: name, field, type, help, default.
HEADER_OPTIONS: tuple[tuple[str, str, Any, str, Any], ...] = (
    ("--src-mac", "source_mac", str, "MAC address", defaults.SOURCE_MAC),
    ("--dst-mac", "destination_mac", str, "MAC address", defaults.DESTINATION_MAC),
    ("--src-ip", "source_ip", str, "IPv4 or IPv6 address", defaults.SOURCE_IP),
    ("--dst-ip", "destination_ip", str, "IPv4 or IPv6 address", defaults.DESTINATION_IP),
    ("--src-port", "source_port", whole, "UDP port", defaults.SOURCE_PORT),
    ("--dst-port", "destination_port", whole, "UDP port", defaults.DESTINATION_PORT),
    ("--ttl", "ttl", whole, "TTL or hop limit", defaults.TTL),
    ("--tos", "traffic_class", whole, "TOS or traffic class", defaults.TRAFFIC_CLASS),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_program(parser)
    add_ports(parser)
    add_headers(parser)
    add_hosts(parser.add_argument_group("host on the port"))
    add_outputs(parser)
    add(parser, "--detach", bool, "start the train, let it go on without this host, and measure nothing")


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add what says what is sent."""
    group = parser.add_argument_group("trains")
    what = "octets without FCS, 60 to 9000, or ranges, in steps: 64-1514:50; a program for each (default: 1514)"
    add_lengths(group, "L[,L...]", (lengths, frame_sizes), what, [1514])
    add(group, "--count N[,N...]", wholes, "frames in a train, a program for each (default: 100)", [100])
    add(group, "--repeat R", whole, "trains of each kind (default: 1)", 1)
    pace = group.add_mutually_exclusive_group()
    add_pace(pace)
    add(group, "--gap TIME", time_ns, "extra time between trains, like 1.5us (default: what fetching takes)")
    add(group, "--stream-id ID", whole, "number that the frames carry (default: 1)", 1)
    add(group, "--fill", str, "rest of the payload (default: zero)", "zero", choices=list(defaults.FILLS))


def add_headers(parser: argparse.ArgumentParser, tags: str = "up to twice") -> None:
    """Add what says how the frames are addressed; ``tags``: how often a VLAN tag may be given."""
    group = parser.add_argument_group("headers")
    for option, field, kind, what, preset in HEADER_OPTIONS:
        add(group, f"{option} X", kind, f"{what} (default: {preset})", preset, dest=field)
    add(group, "--vlan ID[:PRIORITY]", vlan_tags, f"VLAN tag, id 0 to 4095, {tags}, outer first, like 7,100:5", [])


def add_hosts(group: argparse._ActionsContainer) -> None:
    """Add what has a probe find MAC addresses by itself."""
    add(group, "--from ADDRESS", str, "address that the port has; MAC addresses are then found before the run")
    what = "router on the way, with --from (default: the destination is a neighbour)"
    add(group, "--via --gateway ADDRESS", str, what)


def headers_of(args: argparse.Namespace) -> headers.Headers:
    """Return the headers that options say; they come from the address of the port, where it has one."""
    fields = {field: getattr(args, field) for _, field, *_ in HEADER_OPTIONS}
    source = getattr(args, "from", None)
    if source and fields["source_ip"] == defaults.SOURCE_IP:
        fields["source_ip"] = source if isinstance(source, str) else source[0]
    return headers.Headers(**fields, vlan_tags=tuple(args.vlan))


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add where results go."""
    group = add_results(parser, "write a report with plots", "program", has_records=True)
    add_waiting_time(group)
    add(group, "--calibration FILE", Path, "take this set-up's own delay out (see calibrate)")
    add_expect(parser, defaults.FIGURES_OF_TRAINS)


def request_of(args: argparse.Namespace, on: line.Line | None = None) -> sweep.SweepRequest:
    """Return the sweep that was asked for, checked; raises UsageError when no probe could do it.

    ``on``: line of the probe; None: that of its URL, or the fastest where that doesn't say it.
    """
    on = on or line.line_of_url(args.probe) or line.FASTEST
    pace = args.rate or {}
    if pace.get("pps") == 0:
        raise UsageError("--rate 0 frames a second is out of range: give more, or leave it out for back to back")
    rate_bps = float(pace["share"] * on.rate_bps) if "share" in pace else pace.get("rate_bps")
    template = train.TrainProgram(
        length=args.length[0],
        count=args.count[0],
        repeats=args.repeat,
        interval_ns=1e9 / pace["pps"] if "pps" in pace else args.interval,
        gap_ns=args.gap,
        stream_id=args.stream_id,
        fill=args.fill,
        headers=headers_of(args),
        source=getattr(args, "from", None),
        via=getattr(args, "via", None),
    )
    programs = sweep.programs_for(args.length, args.count, template, rate_bps, on)
    sweep.check_programs(programs, on)
    return sweep.SweepRequest(
        name=args.probe.partition("?")[0].removeprefix("sim://").removeprefix("sim10g://"),
        url=args.probe,
        programs=programs,
        map=args.map,
        steal=args.steal,
        transmit=args.transmit,
        receive=args.receive,
        waiting_time_ns=None if args.waiting_time is None else round(args.waiting_time),
    )


def measure(args: argparse.Namespace, request: sweep.SweepRequest, take: sweep.Take | None = None) -> sweep.Sweep:
    """Run a sweep, and show how far it is; ``take`` is given what was measured after each program."""
    looks = written.looks_of(args)
    with (
        probes.Probe(request.url, request.map, request.steal) as probe,
        tables.progress(not is_plain(args), every_s(args)) as show,
    ):
        request = on_line(args, request, probe)

        def progressed(sent: int, total: int) -> None:
            show([(request.name, sent, total)])
            looks.write_now_and_then({"name": request.name, "sent": sent, "asked": total})

        return sweep.run(request, progressed, probe, take)


def on_line(args: argparse.Namespace, request: sweep.SweepRequest, probe: probes.Probe) -> sweep.SweepRequest:
    """Return the request for the line of a probe, which its URL may not have said; raises UsageError for what that can't do."""
    return request if probe.line == line.line_of_url(args.probe) else request_of(args, probe.line)


def launch(args: argparse.Namespace, request: sweep.SweepRequest) -> None:
    """Start a train that goes on without this host, and say how to end it.

    Raises UsageError when it is more than one, or results are asked for, which nobody would be there to take.
    """
    asked = [
        name
        for name in ("json", "jsonl", "csv", "store", "report", "calibration", "receive")
        if getattr(args, name) is not None
    ]
    if len(request.programs) > 1 or asked:
        what = "several lengths or counts" if not asked else f"--{asked[0]}"
        raise UsageError(
            f"a detached train is not measured: {what} is not available with --detach: leave one of them out"
        )
    with probes.Probe(request.url, request.map, request.steal) as probe:
        request = on_line(args, request, probe)
        end_ns = probe.launch(request.programs[0], request.transmit)
        probe.link.expect_silence(0)  # It lets go at once.
        seconds = (end_ns - probe.timebase.now_ns) / 1e9
    say(
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
    shown = (lambda sweeps: tables.trains(sweeps[0].rows), lambda *given: page.write_report(*given))
    results = written.Results(args, len(request.programs), *shown)

    def take(measured: sweep.Sweep) -> None:
        if calibrated:
            measured.rows[-1] = calibrated.correct(measured.rows[-1])
        results.take([measured])

    with results.written():
        measure(args, request, take)
