# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``bring-up``."""

import argparse

from liteprobe.host.cli.arguments import add_json, add_probe, duration_ns, output_or_stdout, whole

HELP = "try each part of a board that is new, and write a report that can be attached to an issue"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    group = parser.add_argument_group("extent")
    group.add_argument(
        "--frames", metavar="N", type=whole, default=1_000_000, help="frames each way; 0: none (default: 1000000)"
    )
    group.add_argument("--ram", metavar="BYTES", type=whole, help="of the SDRAM; 0: none (default: all)")
    group.add_argument(
        "--duration",
        metavar="TIME",
        type=duration_ns,
        default=5e9,
        help="how long to look at the oscillator and at the PPS (default: 5s)",
    )
    group.add_argument("--eye", action="store_true", help="find the eye of received data, and keep its middle")
    group = parser.add_argument_group("results")
    group.add_argument(
        "--report", metavar="FILE", type=output_or_stdout, help="write the report as Markdown; -: to stdout"
    )
    add_json(parser, "what was found")
