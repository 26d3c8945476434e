# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``emulate``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import add_json, add_probe, duration_ns, output, rate_bps

HELP = "join two ports by a degraded network: queues, rate, delay, loss, background traffic"
DEFAULT_PROBE = "sim://emulator"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    what = parser.add_argument_group("network (one of these)")
    what.add_argument("network", metavar="FILE.yaml", nargs="?", type=Path, help="a network, as docs/emulator.md shows")
    what.add_argument(
        "--preset", metavar="NAME", help="one that is ready: datacentre-incast, dsl, lte, satellite, wifi-bursty"
    )
    what.add_argument(
        "--from-netem", metavar="WORDS", help='what tc would be told, from port 0 to port 1, like "delay 20ms loss 1%%"'
    )
    what.add_argument("--netem-back", metavar="WORDS", help="with --from-netem: of the way back (default: nothing)")
    what.add_argument(
        "--expected", metavar="BPS", type=rate_bps, help="with --from-netem: what comes each way at most, for the store"
    )
    what.add_argument("--attach", action="store_true", help="the one that runs: look at it, and leave it running")
    add_probe(parser, DEFAULT_PROBE)
    run = parser.add_argument_group("run")
    run.add_argument(
        "--duration",
        metavar="TIME",
        type=duration_ns,
        help="stop after it, like 10s (default: Ctrl-C; of sim://emulator its stations)",
    )
    run.add_argument(
        "--interval", metavar="TIME", type=duration_ns, help="between looks (default: 1s; of sim://emulator 10ms)"
    )
    run.add_argument("--detach", action="store_true", help="start it, and leave it running; liteprobe stop ends it")
    run.add_argument("--check", action="store_true", help="only check it, and show what it does")
    run.add_argument("--yaml", action="store_true", help="print it as a document, and end")
    run.add_argument("--schema", action="store_true", help="print the JSON schema of such a file, and end")
    results = parser.add_argument_group("results")
    add_json(results, "all figures")
    results.add_argument("--report", metavar="FILE.html", type=output, help="write a report")
