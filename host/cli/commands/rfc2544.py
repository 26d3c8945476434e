# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Benchmarks a device between two ports as RFC 2544 asks: throughput, latency, loss, back-to-back frames, recovery, reset."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from liteprobe.host.base.defaults import FIGURES_OF_RFC2544
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import (
    add,
    add_expect,
    add_kept,
    add_ports,
    add_probe,
    add_results,
    add_waiting_time,
    of_options,
)
from liteprobe.host.cli.commands.train import add_headers, headers_of
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, pps, share, span_ns, whole, words

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host import probe as probes
    from liteprobe.host.cli import kept, tables
    from liteprobe.host.report import files, rfc2544_page
    from liteprobe.host.suites import rfc2544 as suite

HELP = "benchmark a device as RFC 2544 asks: throughput, latency, loss, back-to-back; and a switch, as RFC 2889"
EXAMPLES = """
liteprobe rfc2544 --probe 'sim://switch?rate=600M&preset=tester' --frame-size 64,1518 --tests throughput,latency
liteprobe rfc2544 --probe etherbone://192.168.1.50 --both-ways --report rfc2544.html --json rfc2544.json
liteprobe rfc2544 --probe etherbone://192.168.1.50 --frame-size 64 --tests broadcast,address-capacity,learning-rate
"""
DEFAULT_PROBE = "sim://switch?preset=tester"
GOALS, SEARCHES = ("rfc2544", "tst009", "ndr", "pdr"), ("mlrsearch", "bisection")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser, DEFAULT_PROBE)
    add_ports(parser)
    add(parser, "--both-ways", bool, "send both ways at once")
    group = parser.add_argument_group("tests")
    add(
        group,
        "--tests NAME[,NAME...]",
        words,
        "throughput, latency, loss, back-to-back, recovery, reset (default: the first four); of RFC 2889: broadcast, oversize, "
        "address-capacity, learning-rate",
        ["throughput", "latency", "loss", "back-to-back"],
    )
    what = "with FCS, 64 to 9004; imix; or letters of RFC 6985, like aaaadg (default: 64,128,256,512,1024,1280,1518)"
    add(group, "--frame-size N[,N...]", words, what, dest="sizes")
    add(group, "--addresses N", whole, "destination addresses, one after the other (default: 1)", 1)
    group = parser.add_argument_group("trials (defaults: those of the RFCs; short ones where the probe is simulated)")
    add(group, "--duration TIME", duration_ns, "of a trial (default: 60s, simulated 20ms)")
    add(group, "--pause TIME", span_ns, "after each trial (default: 7s, simulated 1ms)")
    add(group, "--latency-duration TIME", duration_ns, "of a trial of latency (default: 120s, simulated 20ms)")
    add(group, "--latency-repeats N", whole, "trials of latency (default: 20, simulated 2)")
    add(group, "--load PERCENT", share, "of the line, for latency and reset (default: the throughput)")
    add(group, "--loss-step PERCENT", share, "from load to load, 0.1%% to 10%% (default: 10%%)", 0.1)
    add(group, "--burst-duration TIME", duration_ns, "the longest burst (default: 2s, simulated 20ms)")
    add(group, "--burst-repeats N", whole, "how often it is searched (default: 50, simulated 2)")
    add(group, "--reset-command COMMAND", str, "resets the device, for the test of that name (default: by hand)")
    group = parser.add_argument_group("address table (RFC 2889)")
    add(
        group,
        "--ageing TIME",
        span_ns,
        "after which the device has forgotten an address (default: 5min, simulated 5ms)",
    )
    add(group, "--addresses-most N", whole, "addresses that are tried at most (default: 16384, simulated 256)")
    add(group, "--teach-rate N", pps, "frames a second that teach and ask for them (default: 1k, simulated 200k)")
    add(group, "--learned N", whole, "addresses that the learning rate is measured with (default: 64)", 64)
    group = parser.add_argument_group("search")
    add(group, "--search NAME", str, "mlrsearch or bisection (default: mlrsearch)", "mlrsearch", choices=list(SEARCHES))
    add(group, "--goal NAME", str, "rfc2544, tst009, ndr or pdr (default: rfc2544)", "rfc2544", choices=list(GOALS))
    add(group, "--precision PERCENT", share, "of the load (default: 0.5%%)")
    add(group, "--loss-ratio PERCENT", share, "that passes (default: the goal's)")
    add_headers(parser)
    group = parser.add_argument_group("hosts on the ports: their MAC addresses are then found, and kept, by ARP or ND")
    what = "address of the port that sends, and of the one that measures (default: that of --dst-ip)"
    add(group, "--from ADDRESS[,ADDRESS]", words, what)
    what = "router that each of them goes by (default: the other end is a neighbour)"
    add(group, "--via --gateway ADDRESS[,ADDRESS]", words, what)
    group = parser.add_argument_group("run")
    add_kept(group)
    add_waiting_time(group, "frame")
    add_results(parser, "write a report with tables and graphs, as section 26 asks", "frame size")
    add_expect(parser, FIGURES_OF_RFC2544)


def request_of(args: argparse.Namespace, ways: Sequence[tuple[int, int]]) -> suite.Rfc2544Request:
    """Return what was asked for, checked; raises UsageError where it can't be."""
    with of_options():
        return suite.request_of(
            suite.usual(args.probe),
            vars(args),
            ways=tuple(ways),
            headers=headers_of(args),
            hosts=tuple(getattr(args, "from") or ()),
            routers=tuple(args.via or ()),
        )


def run(args: argparse.Namespace) -> None:
    """Say the plan, run, show, print and write."""
    request = request_of(args, [(args.transmit, -1)])  # What can't be is refused before a probe is opened.
    for size in request.sizes:
        request.counted(size, 1.0, 1)
    make = partial(suite.Rfc2544, reset=reset_by(args.reset_command))
    of_suite = kept.KeptSuite("rfc2544", files.RFC2544_FORMAT, make, table_of, final, rfc2544_page.write)
    kept.run(args, of_suite, request, partial(_ready, args))


def _ready(args: argparse.Namespace, probe: probes.Probe, request: suite.Rfc2544Request) -> suite.Rfc2544Request:
    """Return the request with the ports that measure."""
    receive = args.receive
    if receive is None:
        receive = probe.link.receive_port(args.transmit, probe.port_count)
    if args.both_ways and receive == args.transmit:
        raise UsageError(f"port {receive} measures what it sends: there is no other way for --both-ways")
    ways = [(args.transmit, receive), *([(receive, args.transmit)] if args.both_ways else [])]
    return replace(request, ways=tuple(ways))


def reset_by(command: str | None) -> Callable[[], None]:
    """Return what resets the device by a command, or asks for it."""

    def by_hand() -> None:
        say("reset the device now", stream=sys.stderr, flush=True)

    def by_command() -> None:
        import subprocess  # Takes long to load.

        done = subprocess.run(["sh", "-c", command or ""], check=False, capture_output=True, text=True)
        if done.returncode:
            raise ProbeError(
                f"--reset-command ended with {done.returncode}: {done.stderr.strip() or 'it said nothing'}"
            )

    return by_command if command else by_hand


def table_of(sizes: Sequence[suite.SizeFigures]) -> tables.FittingTable:
    """Return frame sizes as a table: the columns of what was measured."""
    shown = [
        column
        for key, column in suite.COLUMNS.items()
        if key == "size"
        or any(column.value(one) is not None or (key in ("share", "fps") and one.throughput) for one in sizes)
    ]
    return tables.figures(shown, sizes)


def final(found: suite.Rfc2544Result) -> rich.console.RenderableType:
    """Return what came of the suite."""
    marked = [rich.text.Text(one, "bold yellow") for one in found.request.marks]
    lost: list[rich.console.RenderableType] = []
    if columns := suite.loss_columns(found.sizes):
        lost = [rich.text.Text("Loss, % of what was sent, by load", "bold"), tables.figures(columns, found.sizes)]
    ways = "both ways at once, each" if len(found.request.ways) > 1 else "one way"
    said = f"{len(found.trials)} trials, {found.lied} of which lied. Size with FCS"
    if any(one.throughput or one.broadcast for one in found.sizes):
        said += f"; throughput {ways}: {found.request.goal.words}, by {found.request.search}"
    if any(one.forwarding for one in found.sizes):
        lost.append(
            rich.text.Text("FRMOL: frames/s that were forwarded at full load; MFR: the most, of all loads (RFC 2889).")
        )
    doubt = [rich.text.Text("? the trial lies: it would lose more, or lose at all, if it were longer.")] * any(
        not step.is_shown for one in found.sizes for step in one.loss
    )
    why = [
        rich.text.Text(f"{one.size}: {one.throughput.why}")
        for one in found.sizes
        if one.throughput and one.throughput.upper is not None
    ]
    why += [
        rich.text.Text(f"{one.size}: {one.broadcast.why} (broadcast)")
        for one in found.sizes
        if one.broadcast and one.broadcast.upper is not None
    ]
    for name, is_forwarded in (("forwarded", True), ("filtered", False)):
        sizes = [f"{step.size}" for one in found.sizes for step in one.oversize if bool(step.received) is is_forwarded]
        why += [rich.text.Text(f"frames of {', '.join(sizes)} octets are {name}")] * bool(sizes)
    notes = [rich.text.Text(f"{one.size}: {note}") for one in found.sizes for note in one.notes]
    return rich.console.Group(
        *marked, table_of(found.sizes), *lost, *doubt, rich.text.Text(f"{said}."), *why, *notes,
        *map(rich.text.Text, found.notes),
    )  # fmt: skip
