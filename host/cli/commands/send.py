# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends streams of traffic, shows them while they run, and what came of each."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from liteprobe.host.cli.arguments import (
    STDOUT,
    add_json,
    add_probe,
    duration_ns,
    number,
    open_probe,
    output,
    rate_bps,
    read_text,
    time_ns,
    whole,
)
from liteprobe.host.cli.commands.train import HEADER_OPTIONS, add_headers
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.output import named, write_json
from liteprobe.host.defaults import FILLS
from liteprobe.host.errors import LeaseLostError, ProbeError, UsageError
from liteprobe.host.machine.interrupt import Interrupted

with lazily():
    from liteprobe.host.cli import tables, traffic_view
    from liteprobe.host.report import files, traffic_page
    from liteprobe.host.traffic import document, headers, intervals, lengths, load, stream

if TYPE_CHECKING:
    from liteprobe.host.run.figures import TrafficLook, TrafficResult
    from liteprobe.host.run.streams import Show, Traffic
    from liteprobe.host.traffic.lengths import Length
    from liteprobe.host.traffic.stream import Stream

HELP = "send streams of traffic, many at once, and measure each"
DEFAULT_PROBE = "sim://loopback?preset=tester"  # The usual one sends trains alone.
#: Options that describe one stream, in the place of a file.
OF_ONE = (
    "length",
    "interval",
    "rate",
    "pps",
    "share",
    "count",
    "exponential",
    "burst",
    "fill",
    "stream_id",
    "seed",
    "transmit",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument(
        "streams",
        metavar="FILE.yaml",
        nargs="?",
        type=Path,
        help="streams, as docs/traffic.md shows; or one by options",
    )
    add_probe(parser, DEFAULT_PROBE)
    add_stream(parser)
    add_headers(parser, "up to four times")
    group = parser.add_argument_group("run")
    group.add_argument(
        "--receive", metavar="PORT", type=whole, help="port that measures (default: where the wire leads)"
    )
    group.add_argument(
        "--duration",
        metavar="TIME",
        type=duration_ns,
        help="stop after this time, like 10s (default: when all is sent)",
    )
    group.add_argument(
        "--latency-range",
        metavar="LEAST,MOST",
        type=_range,
        help="of histograms, in ns or like 0,100us (default: what comes)",
    )
    group.add_argument(
        "--waiting-time", metavar="TIME", type=duration_ns,
        help="T_max: a frame that takes longer is lost (default: 2ms simulated, 1s else)",
    )  # fmt: skip
    group.add_argument(
        "--detach", action="store_true", help="let them go on without this host (liteprobe stop ends them)"
    )
    group.add_argument("--check", action="store_true", help="only check them, and show the share of the line of each")
    group.add_argument("--schema", action="store_true", help="print the JSON schema of such a file, and end")
    results = parser.add_argument_group("results")
    add_json(results, "all figures")
    results.add_argument("--report", metavar="FILE.html", type=output, help="write a report with plots")


def add_stream(parser: argparse.ArgumentParser) -> None:
    """Add what describes one stream."""
    group = parser.add_argument_group("one stream, without a file")
    group.add_argument(
        "--length", metavar="L", type=_length, help="octets without FCS; 64-1514: at random; imix (default: 1514)"
    )
    pace = group.add_mutually_exclusive_group()
    pace.add_argument(
        "--interval", metavar="TIME", type=time_ns, help="SFD to SFD, in ns or like 1.5us (default: back to back)"
    )
    pace.add_argument("--rate", metavar="BPS", type=rate_bps, help="rate on the wire, frame + 24 octets, like 500M")
    pace.add_argument("--pps", metavar="N", type=number, help="frames a second")
    pace.add_argument("--share", metavar="PERCENT", type=number, help="of the line, up to 100")
    group.add_argument("--exponential", action="store_true", help="intervals of a Poisson process, of that mean")
    group.add_argument("--burst", metavar="N", type=whole, help="frames come in bursts of N, at that mean rate")
    group.add_argument("--count", metavar="N", type=whole, help="frames (default: without an end)")
    group.add_argument("--fill", choices=list(FILLS), help="rest of the payload (default: zero)")
    group.add_argument("--stream-id", metavar="ID", type=whole, help="number that the frames carry (default: 1)")
    group.add_argument("--seed", metavar="N", type=whole, help="of what is random (default: 1)")
    group.add_argument("--transmit", metavar="PORT", type=whole, help="port that sends (default: 0)")


def _length(text: str) -> tuple[int, int] | str:
    """Return the least and the greatest length, or a word."""
    if text == "imix":
        return text
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is not a length: write it like 512, 64-1514 (at random) or imix")
    return int(match[1]), int(match[2] or match[1])


def _range(text: str) -> tuple[int, int]:
    """Return the least and the greatest delay (ns)."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"'{text}' is not a range: write it like 0,100us")
    least, most = (round(time_ns(part)) for part in parts)
    if least >= most:
        raise argparse.ArgumentTypeError(f"'{text}' holds nothing: give the least delay first")
    return least, most


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
    with open_probe(args) as probe:
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
        made = _stream(args)
        load.check_port([made])
        return [made]
    if given:
        raise UsageError(f"{args.streams} says what is sent, so {given[0]} can't: leave one of them out")
    return document.read_document(read_text(args.streams, "a file of streams"), str(args.streams))


def _stream(args: argparse.Namespace) -> Stream:
    fields = {field: getattr(args, field) for _, field, *_ in HEADER_OPTIONS}
    return stream.Stream(
        name="stream",
        stream_id=1 if args.stream_id is None else args.stream_id,
        length=_length_of(args.length),
        interval=intervals.Interval(
            interval_ns=args.interval,
            rate_bps=args.rate,
            pps=args.pps,
            share=None if args.share is None else args.share / 100,
            exponential=args.exponential,
            burst=None if args.burst is None else intervals.Burst(args.burst),
        ),
        count=args.count,
        port=args.transmit or 0,
        headers=headers.Headers(**fields, vlan_tags=tuple(args.vlan)),
        fill=args.fill or "zero",
        seed=1 if args.seed is None else args.seed,
    )


def _length_of(given: tuple[int, int] | str | None) -> Length:
    if given is None:
        return lengths.Fixed(1514)
    if isinstance(given, str):
        return lengths.IMIX
    least, greatest = given
    return lengths.Fixed(least) if least == greatest else lengths.RandomLength(least, greatest)


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
        live = stack.enter_context(tables.live(transient=True))
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
    with named(path):
        traffic_page.write(path, result, content)
    print(f"report: {path}", file=sys.stderr)
