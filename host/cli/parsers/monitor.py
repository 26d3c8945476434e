# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``monitor``."""

import argparse
import re

from liteprobe.host.cli.arguments import add_json, add_probe, duration_ns, whole, wholes

HELP = "show live what a probe measures: rates, streams, histograms, drops"
LOCAL = "127.0.0.1"
KEEP = ("keep", 0, 0)
KINDS = ("length", "delay", "arrival")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("--ports", metavar="N[,N...]", type=wholes, help="which ports (default: all)")
    parser.add_argument(
        "--streams",
        metavar="ID",
        type=whole,
        help="measure the streams from ID on, 7, 15 or 31 by the build; clears what was measured",
    )
    parser.add_argument(
        "--bins", metavar="KIND=ORIGIN:WIDTH|keep", type=_bins, action="append", default=[],
        help="histogram bins, like delay=0:64 (width a power of two, in octets or ns), or 'keep': as they are (default: "
        "chosen from what comes; not with --once); each choice clears streams and histograms",
    )  # fmt: skip
    parser.add_argument("--interval", metavar="TIME", type=duration_ns, default=1e9, help="between looks (default: 1s)")
    parser.add_argument(
        "--rates", metavar="TIME", type=duration_ns, help="count rates over this time of the probe, from 1ms"
    )
    parser.add_argument("--once", action="store_true", help="look once, and end")
    add_json(parser, "each look, a line a look,")
    parser.add_argument(
        "--metrics",
        metavar="[ADDRESS:]PORT",
        type=_address,
        help="serve the same numbers to Prometheus (address: 127.0.0.1; 0.0.0.0: to everybody)",
    )
    add_probe(parser)


def _address(text: str) -> tuple[str, int]:
    """Return the address and the TCP port that metrics are served on."""
    address, _, port = text.rpartition(":")
    return address or LOCAL, whole(port)


def _bins(text: str) -> tuple[str, int, int]:
    """Return kind, origin and the logarithm of the width; KEEP where bins stay as they are."""
    if text == KEEP[0]:
        return KEEP
    match = re.fullmatch(r"(\w+)=(-?\d+):(\d+)", text, re.ASCII)
    if not match or match[1] not in KINDS or int(match[3]).bit_count() != 1:
        raise argparse.ArgumentTypeError(
            f"invalid histogram '{text}': give {', '.join(KINDS)} like delay=0:64 (origin:width), the width a power of two, "
            "or 'keep'"
        )
    return match[1], int(match[2]), int(match[3]).bit_length() - 1
