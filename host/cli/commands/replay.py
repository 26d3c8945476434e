# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays captures, shows how far they are, and what came of them."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from liteprobe.host.cli import replay_view, tables
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.output import named, write_text
from liteprobe.host.errors import UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run.replay import ReplayLook, ReplayOptions, Show
from liteprobe.host.run.replay_figures import ReplayResult
from liteprobe.host.traffic.intervals import exact
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace


def run(args: argparse.Namespace) -> None:
    """Replay, show, print and write."""
    traces = traces_of(args)
    if args.check:
        tables.console().print(replay_view.asked({port: trace.summary() for port, trace in traces.items()}))
        return
    with Probe(args.probe, args.map, args.steal) as probe:
        facts = probe.info()
        options = ReplayOptions(remark=lambda line: print(line, file=sys.stderr))
        try:
            with _shown(args) as show:
                result = probe.replay(traces, args.loop or None, args.capture, options, show)
        except Interrupted as end:
            for part in end.results:
                finish(args, part, facts)
                end.args = (f"{end}; what was sent until then is incomplete",)
            raise
        finish(args, result, facts)


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
    if args.capture and args.capture.resolve() in [path.resolve() for path in args.files]:
        raise UsageError(f"--capture would write over {args.capture}, which is replayed: name another file")
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


@contextmanager
def _shown(args: argparse.Namespace) -> Iterator[Show]:
    """Give what shows looks while a replay runs; it shows nothing where nobody looks."""
    with tables.progress_bars() as bars:
        tasks: dict[int, int] = {}

        def show(look: ReplayLook) -> None:
            for port, frames in look.frames.items():
                if port not in tasks:
                    tasks[port] = int(bars.add_task(f"port {port}", total=look.asked[port]))
                late = f", {look.underruns[port]} too late" if look.underruns[port] else ""
                bars.update(tasks[port], completed=frames, description=f"port {port}{late}")  # type: ignore[arg-type]

        yield show


def finish(args: argparse.Namespace, result: ReplayResult, facts: dict[str, int | float | str | bool]) -> None:
    """Print and write a result."""
    if args.json != STDOUT:
        tables.console().print(replay_view.final(result))
    content = files.replay_document(result, args.probe, facts, ["liteprobe", *sys.argv[1:]])
    if args.json:
        write_text(args.json, json.dumps(content, indent=2, allow_nan=False) + "\n")
    if args.report:
        from liteprobe.host.report.replay_page import write

        with named(args.report):
            write(args.report, result, content)
        print(f"report: {args.report}", file=sys.stderr)
