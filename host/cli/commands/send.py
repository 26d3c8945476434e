# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams of traffic, shows them while they run, and what came of each."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from rich.live import Live

from liteprobe.host.cli import tables, traffic_view
from liteprobe.host.cli.arguments import STDOUT, read_text
from liteprobe.host.cli.output import named, write_json
from liteprobe.host.cli.parsers.send import OF_ONE
from liteprobe.host.cli.parsers.train import HEADER_OPTIONS
from liteprobe.host.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.report import files
from liteprobe.host.run.figures import TrafficLook, TrafficResult
from liteprobe.host.run.streams import Show, Traffic
from liteprobe.host.traffic import document
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, RandomLength
from liteprobe.host.traffic.load import check_port
from liteprobe.host.traffic.stream import Stream

REFRESH_S = 0.25
TURN_S = 3.0  # Of each table, where a terminal is too low for both.


def run(args: argparse.Namespace) -> None:
    """Send, show, print and write."""
    if args.schema:
        print(json.dumps(document.schema(), indent=2))
        return
    streams = streams_of(args)
    if args.check:
        tables.console().print(traffic_view.asked(streams))
        return
    _check(args)
    with Probe(args.probe, args.map, args.steal) as probe:
        if args.waiting_time is not None:
            probe.link.arrival_timeout_s = args.waiting_time / 1e9
        seconds = None if args.duration is None else args.duration / 1e9
        traffic = probe.send(streams, args.receive, seconds, args.detach, args.latency_range)
        if args.detach:
            _say_detached(streams)
            return
        facts = probe.info()
        with _kept(args, traffic, facts):
            with _shown(args) as show:
                traffic.follow(show)
            finish(args, traffic.result(), facts)


# What is sent -------------------------------------------------------------------------------------


def streams_of(args: argparse.Namespace) -> list[Stream]:
    """Return the streams of the file, or the one that options describe, checked.

    Raises
    ------
    UsageError
        When no probe can send them.
    """
    given = [f"--{name.replace('_', '-')}" for name in OF_ONE if getattr(args, name) not in (None, False)]
    given += [option for option, field, *_, preset in HEADER_OPTIONS if getattr(args, field) != preset]
    given += ["--vlan"] * bool(args.vlan)
    if args.streams is None:
        stream = _stream(args)
        check_port([stream])
        return [stream]
    if given:
        raise UsageError(f"{args.streams} says what is sent, so {given[0]} can't: leave one of them out")
    return document.read_document(read_text(args.streams, "a file of streams"), str(args.streams))


def _stream(args: argparse.Namespace) -> Stream:
    headers = {field: getattr(args, field) for _, field, *_ in HEADER_OPTIONS}
    return Stream(
        name="stream",
        stream_id=1 if args.stream_id is None else args.stream_id,
        length=_length(args.length),
        interval=Interval(
            interval_ns=args.interval,
            rate_bps=args.rate,
            pps=args.pps,
            share=None if args.share is None else args.share / 100,
            exponential=args.exponential,
            burst=None if args.burst is None else Burst(args.burst),
        ),
        count=args.count,
        port=args.transmit or 0,
        headers=Headers(**headers, vlan_tags=tuple(args.vlan)),
        fill=args.fill or "zero",
        seed=1 if args.seed is None else args.seed,
    )


def _length(given: tuple[int, int] | str | None) -> Length:
    if given is None:
        return Fixed(1514)
    if isinstance(given, str):
        return IMIX
    least, greatest = given
    return Fixed(least) if least == greatest else RandomLength(least, greatest)


def _check(args: argparse.Namespace) -> None:
    asked = [name for name in ("json", "report", "receive", "latency_range") if getattr(args, name) is not None]
    if args.detach and asked:
        raise UsageError(
            f"detached streams have no result, so --{asked[0].replace('_', '-')} can't be had: leave it out, or --detach"
        )


def _say_detached(streams: list[Stream]) -> None:
    for port in sorted({stream.port for stream in streams}):
        own = [stream for stream in streams if stream.port == port]
        endless = sum(stream.count is None for stream in own)
        what, them = ("1 stream", "it") if len(own) == 1 else (f"{len(own)} streams", "them")
        end = (
            "until all frames are sent"
            if not endless
            else "without an end"
            if len(own) == endless
            else f"{endless} of them without an end"
        )
        print(f"port {port} sends {what}, {end}; liteprobe stop --port {port} shows and ends {them}")


# What is shown ------------------------------------------------------------------------------------


@contextmanager
def _shown(args: argparse.Namespace) -> Iterator[Show | None]:
    """Give what shows looks while streams run, where somebody looks."""
    console = tables.console()
    if not console.is_terminal or args.json == STDOUT:
        yield None
        return
    with ExitStack() as stack:
        live = stack.enter_context(Live(console=console, auto_refresh=False, transient=True))
        due_s = 0.0

        def show(look: TrafficLook) -> None:
            nonlocal due_s
            if time.monotonic() >= due_s:
                live.update(traffic_view.live(look, args.probe, int(time.monotonic() / TURN_S)), refresh=True)
                due_s = time.monotonic() + REFRESH_S

        yield show


@contextmanager
def _kept(args: argparse.Namespace, traffic: Traffic, facts: dict[str, int | float | str | bool]) -> Iterator[None]:
    """Show and write what was measured when the body fails after streams were sent."""
    try:
        yield
    except Interrupted as end:
        for result in end.results:
            finish(args, result, facts)
            end.args = (f"{end}; what was measured until then is incomplete",)
        raise
    except LeaseLostError:
        raise  # Another host's figures, perhaps.
    except ProbeError:
        with suppress(ProbeError):
            traffic.stop()
            finish(args, traffic.result(), facts)
        raise


def finish(args: argparse.Namespace, result: TrafficResult, facts: dict[str, int | float | str | bool]) -> None:
    """Print and write a result."""
    if args.json != STDOUT:
        tables.console().print(traffic_view.final(result))
    content = files.traffic_document(result, args.probe, facts, ["liteprobe", *sys.argv[1:]])
    if args.json:
        write_json(args.json, content)
    if args.report:
        _write_report(args.report, result, content)


def _write_report(path: Path, result: TrafficResult, content: dict[str, object]) -> None:
    from liteprobe.host.report.traffic_page import write  # Plots take a second to load.

    with named(path):
        write(path, result, content)
    print(f"report: {path}", file=sys.stderr)
