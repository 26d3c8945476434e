# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``sets``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import add_json, add_probe, number, output, rate_bps, time_ns, whole

HELP = "send frames that the probe makes of small configuration sets, streamed while it sends"
DEFAULT_PROBE = "sim://cable?preset=replay"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument(
        "sets", metavar="FILE.yaml", nargs="?", type=Path, help="a stream and its sets, as docs/sets.md shows"
    )
    add_probe(parser, DEFAULT_PROBE)
    group = parser.add_argument_group("in the place of what the file says")
    pace = group.add_mutually_exclusive_group()
    pace.add_argument("--interval", metavar="TIME", type=time_ns, help="SFD to SFD, in ns or like 1.5us")
    pace.add_argument("--rate", metavar="BPS", type=rate_bps, help="rate on the wire, frame + 24 octets, like 500M")
    pace.add_argument("--pps", metavar="N", type=number, help="frames a second")
    group.add_argument(
        "--repeat", metavar="N", type=whole, help="when no set is there in time, repeat the last frame up to N times"
    )
    group.add_argument("--transmit", metavar="PORT", type=whole, help="port that sends")
    run = parser.add_argument_group("run")
    run.add_argument("--count", metavar="N", type=whole, help="frames at most (default: until the sets end)")
    run.add_argument("--check", action="store_true", help="only check them, and show what their stream takes")
    run.add_argument("--schema", action="store_true", help="print the JSON schema of such a file, and end")
    run.add_argument("--capture", metavar="FILE.pcapng", type=output, help="write what all ports see meanwhile")
    results = parser.add_argument_group("results")
    add_json(results, "all figures")
    results.add_argument("--report", metavar="FILE.html", type=output, help="write a report")
