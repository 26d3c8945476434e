# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tests bit errors: PRBS payloads for a time, and with what confidence the bit error ratio is below which figure."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from liteprobe.host.base.errors import UsageError
from liteprobe.host.cli.arguments import add, add_probe, of_options
from liteprobe.host.cli.commands.send import add_stream, streams_of
from liteprobe.host.cli.commands.soak import add_run, run_segments, times_of
from liteprobe.host.cli.commands.train import add_headers
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import number, share

with lazily():
    from liteprobe.host.suites import soak as suite

HELP = "test bit errors by PRBS payloads, with a confidence"
EXAMPLES = """
liteprobe bert --probe 'sim://cable?preset=tester' --duration 5ms
liteprobe bert --probe etherbone://192.168.1.50 --ber 1e-12
liteprobe bert --probe etherbone://192.168.1.50 --length 64-1514 --rate 900M --duration 8h --expect 'bit_errors == 0'
"""
DEFAULT_PROBE = "sim://cable?preset=tester"
CONFIDENCE = 0.95


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(
        parser,
        "streams FILE.yaml",
        Path,
        "streams with fill prbs, as docs/traffic.md shows; or one by options",
        nargs="?",
    )
    add_probe(parser, DEFAULT_PROBE)
    add_stream(parser, "prbs")
    add_headers(parser, "up to four times")
    group = parser.add_argument_group("bit errors")
    add(group, "--ber RATIO", number, "ratio that isn't to be exceeded, like 1e-12 (default: no bit may be wrong)")
    add(group, "--confidence PERCENT", share, "of that verdict, and of the ratio (default: 95%%)")
    add_run(parser, "in all (default: what --ber needs; else 1h, simulated 20ms)")


def run(args: argparse.Namespace) -> None:
    """Say the plan, run, show, print and write."""
    if args.fill not in (None, "prbs"):
        raise UsageError(f"--fill {args.fill} can't be checked for bit errors: leave it out, the fill is PRBS")
    streams = [replace(one, fill="prbs") if args.streams is None else one for one in streams_of(args)]
    seconds, segment_s = times_of(args)
    confidence = CONFIDENCE if args.confidence is None else float(args.confidence)
    with of_options():
        request = suite.SoakRequest(tuple(streams), suite.usual_s(args.probe)[0], segment_s, True, args.ber, confidence)
        if seconds is None and args.ber is not None:
            seconds = 1.01 * suite.seconds_needed(streams, args.ber, confidence)
        request = replace(request, seconds=seconds or request.seconds)
    run_segments(args, request, "bert")
