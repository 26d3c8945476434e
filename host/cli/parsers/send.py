# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``send``."""

import argparse
import re
from pathlib import Path

from liteprobe.host.cli.arguments import (
    add_json,
    add_probe,
    duration_ns,
    number,
    output,
    rate_bps,
    time_ns,
    whole,
)
from liteprobe.host.cli.parsers.train import add_headers
from liteprobe.host.defaults import FILLS

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
