# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``calibrate``."""

import argparse

from liteprobe.host.cli.arguments import add_json, add_ports, add_probe, number, time_ns, whole, wholes
from liteprobe.host.defaults import PAPER_LENGTHS

HELP = "measure the set-up's own delay through a loopback: a line over the frame length, against theory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_ports(parser)
    group = parser.add_argument_group("trains")
    group.add_argument(
        "--length", metavar="L,L[,L...]", type=wholes, default=list(PAPER_LENGTHS), help="octets without FCS"
    )
    group.add_argument("--count", metavar="N", type=whole, default=100, help="frames in a train (default: 100)")
    group.add_argument("--repeat", metavar="R", type=whole, default=10, help="trains of each length (default: 10)")
    theory = parser.add_argument_group("theory of the calibrated path")
    theory.add_argument(
        "--slope",
        metavar="NS/B",
        type=number,
        default=0.0,
        help="0 for a wire (default), 8 for each store-and-forward hop",
    )
    theory.add_argument(
        "--intercept",
        metavar="TIME",
        type=time_ns,
        default=0.0,
        help="delay of the wire itself, in ns or like 1.5us (default: 0)",
    )
    add_json(parser, "the calibration, for train --calibration")
