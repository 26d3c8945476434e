# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays captures, shows how far they are, and what came of them."""

import argparse
from pathlib import Path

from liteprobe.host.cli import streamed, streamed_view, tables
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run.replay import ReplayOptions
from liteprobe.host.run.replay_figures import ReplayResult
from liteprobe.host.run.streamed import Show
from liteprobe.host.traffic.intervals import exact
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace


def run(args: argparse.Namespace) -> None:
    """Replay, show, print and write."""
    traces = traces_of(args)
    if args.check:
        tables.console().print(streamed_view.asked({port: trace.summary() for port, trace in traces.items()}))
        return

    def send(probe: Probe, show: Show) -> ReplayResult:
        options = ReplayOptions(remark=streamed.remark)
        return probe.replay(traces, args.loop or None, args.capture, options, show)

    streamed.run(args, send, files.REPLAY)


def traces_of(args: argparse.Namespace) -> dict[int, Trace]:
    """Return the traces that are asked for, by port.

    Raises
    ------
    UsageError
        When they can't be.
    """
    ports = list(range(len(args.files))) if args.ports is None else args.ports
    if len(ports) != len(args.files) or len(set(ports)) != len(ports):
        raise UsageError(
            f"{len(args.files)} files can't be sent from ports {','.join(map(str, ports))}: give as many ports as files, each once"
        )
    if args.loop < 0:
        raise UsageError(f"--loop {args.loop} is out of range: give 1 or more, or 0 for until Ctrl-C")
    return {port: _trace(args, path) for port, path in zip(ports, args.files, strict=True)}


def _trace(args: argparse.Namespace, path: Path) -> Trace:
    trace = Trace.from_pcap(path, args.sort, args.repair)
    if args.speed is not None:
        if args.speed <= 0:
            raise UsageError(f"--speed {args.speed:g} is out of range: give more than 0, like 2 for twice as fast")
        trace = trace.stretched(1 / exact(args.speed))
    elif args.rate is not None:
        trace = trace.at_rate(args.rate)
    elif args.top:
        trace = trace.at_top()
    if args.margin_ppm:
        trace = trace.with_margin(args.margin_ppm)
    if args.stamp:
        place, octet, width = args.stamp
        trace = trace.stamped(Stamp(place, octet, width, args.stamp_tick))
    return trace if args.snap is None else trace.snapped(args.snap)
