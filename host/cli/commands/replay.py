# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays captures, shows how far they are, and what came of them."""

from __future__ import annotations

import argparse
import re
import sys
from fractions import Fraction
from pathlib import Path

from liteprobe.host.base.defaults import FIGURES_OF_PORTS
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import STDOUT
from liteprobe.host.cli.arguments import add, add_expect, add_probe, add_results, open_probe, take_old, usual_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, number, output, rate_or_share, whole, wholes

with lazily():
    from liteprobe.host import probe as probes
    from liteprobe.host.base import line as lines
    from liteprobe.host.base import units
    from liteprobe.host.cli import streamed
    from liteprobe.host.report import files
    from liteprobe.host.run import replay
    from liteprobe.host.run import streamed as shown
    from liteprobe.host.traffic import stamps
    from liteprobe.host.traffic.trace import trace as traces

HELP = "replay captures of any length with exact gaps, streamed while they run"
EXAMPLES = """
liteprobe replay office.pcapng --check
liteprobe replay office.pcapng --speed 10 --capture seen.pcapng
liteprobe replay east.pcap west.pcap --transmit 0,1 --probe etherbone://192.168.1.50 --loop 10 --report replay.html
"""
DEFAULT_PROBE = "sim://cable?preset=replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    take_old(parser, {"--ports": "--transmit"})
    add(
        parser,
        "files FILE",
        Path,
        "pcap or pcapng, packed or not, - for standard input; two on two ports start in one tick",
        nargs="+",
    )
    add_probe(parser, DEFAULT_PROBE)
    _add_times(parser)
    _add_frames(parser)
    group = parser.add_argument_group("run")
    add(group, "--transmit PORT[,PORT...]", wholes, "ports that send, one a file, like 0,1 (default: 0, 1 and so on)")
    add(group, "--loop N", whole, "send all N times; 0: until Ctrl-C (default: 1)", 1)
    add(group, "--capture FILE.pcapng", output, "write what all ports see meanwhile")
    add(group, "--check", bool, "do all but send: say what the files come to, and what is wrong with them")
    add_results(parser, "write a report", has_records=True)
    add_expect(parser, FIGURES_OF_PORTS)


def _add_times(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("times (default: those of the file)")
    pace = group.add_mutually_exclusive_group()
    add(pace, "--speed X", number, "X times as fast as the file says")
    add(pace, "--rate BPS", rate_or_share, "at a constant rate on the wire, frame + 24 octets, like 500M or 50%%")
    add(pace, "--top", bool, "back to back")
    add(
        group,
        "--margin-ppm PPM",
        number,
        "slower by so much, for a device whose clock is slower; 200 is always enough",
        0.0,
    )
    add(group, "--sort", bool, "bring packets into order whose times go back")
    add(
        group,
        "--max-gap TIME",
        duration_ns,
        "shorten longer times between frames to this, like 1s (default: longer ones than an hour are refused)",
    )


def _add_frames(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("frames")
    add(group, "--snap N", whole, "stream N octets of each; the rest of it is zero")
    add(
        group,
        "--stamp PLACE",
        _stamp,
        "write the time of its start into each frame: octet:42, octet:42:32 (bits), ipv4.identification, ipv4.checksum or "
        "ipv6.flow_label",
    )
    add(group, "--stamp-tick N", whole, "a unit of the stamp is 16^N ns (default: 0)", 0)
    add(group, "--repair", bool, "replay a file that is cut or corrupt up to there")
    add(
        group,
        "--damaged",
        bool,
        "send frames that the file calls damaged, too, with a right FCS: a replay sends no wrong one",
    )


def _stamp(text: str) -> tuple[str, int | None, int | None]:
    """Return place, octet and bits of a stamp."""
    match = re.fullmatch(r"octet:(\d+)(?::(\d+))?", text, re.ASCII)
    if match:
        return "octet", int(match[1]), int(match[2]) if match[2] else None
    if ":" in text or text == "octet":
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a place of a stamp: write it like octet:42 or ipv4.identification"
        )
    return text, None, None


def run(args: argparse.Namespace) -> None:
    """Replay, show, print and write."""
    asked = traces_of(args)
    if args.check:
        _check(args, asked)
        return

    def send(probe: probes.Probe, show: shown.Show) -> replay.ReplayResult:
        options = replay.ReplayOptions(remark=streamed.remark)
        return probe.replay(asked, args.loop or None, args.capture, options, show)

    streamed.run(args, send, files.REPLAY)


def _check(args: argparse.Namespace, asked: dict[int, traces.Trace]) -> None:
    """Do all but send: on a probe where one is named, else without one."""
    options = replay.ReplayOptions(loops=args.loop or None)
    if args.probe == usual_probe(DEFAULT_PROBE):
        streamed.publish_check(args, replay.check(asked, options), files.REPLAY, {})
    else:
        with open_probe(args) as probe:
            streamed.publish_check(args, replay.check(asked, options, probe), files.REPLAY, probe.info())
    if args.capture:
        print(f"nothing is written to {args.capture}: --check sends nothing", file=sys.stderr)


def traces_of(args: argparse.Namespace) -> dict[int, traces.Trace]:
    """Return the traces that are asked for, by port; raises UsageError when they can't be."""
    ports = list(range(len(args.files))) if args.transmit is None else args.transmit
    if len(ports) != len(args.files) or len(set(ports)) != len(ports):
        raise UsageError(
            f"{len(args.files)} files can't be sent from ports {','.join(map(str, ports))}: give as many ports as files, each once"
        )
    if args.files.count(STDOUT) > 1:
        raise UsageError("standard input can be replayed once: give - for one file, and names for the others")
    if args.loop < 0:
        raise UsageError(f"--loop {args.loop} is out of range: give 1 or more, or 0 for until Ctrl-C")
    return {port: _trace(args, path) for port, path in zip(ports, args.files, strict=True)}


def _trace(args: argparse.Namespace, path: Path) -> traces.Trace:
    trace = traces.Trace.from_pcap(path, args.sort, args.repair, args.damaged)
    if args.speed is not None:
        if args.speed <= 0:
            raise UsageError(f"--speed {args.speed:g} is out of range: give more than 0, like 2 for twice as fast")
        trace = trace.stretched(1 / units.exact(args.speed))
    elif args.rate is not None:
        line = lines.line_of_url(args.probe) or lines.GIGABIT
        trace = trace.at_rate(args.rate * line.rate_bps if isinstance(args.rate, Fraction) else args.rate)
    elif args.top:
        trace = trace.at_top()
    if args.max_gap is not None:
        trace = trace.limited(units.exact(args.max_gap) / 10**9)
    if args.margin_ppm:
        trace = trace.with_margin(args.margin_ppm)
    if args.stamp_tick and not args.stamp:
        raise UsageError(f"--stamp-tick {args.stamp_tick} is of no stamp: give --stamp, too, or leave it out")
    if args.stamp:
        place, octet, width = args.stamp
        trace = trace.stamped(stamps.Stamp(place, octet, width, args.stamp_tick))
    return trace if args.snap is None else trace.snapped(args.snap)
