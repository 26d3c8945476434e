# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``owd``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import add_steal, duration_ns, output, time_ns, whole
from liteprobe.host.cli.parsers import train

HELP = "measure the one-way delay from one probe to another, on a PPS"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    group = parser.add_argument_group("probes")
    group.add_argument(
        "--from", dest="probe", metavar="URL", required=True, help="probe that sends, as --probe of train"
    )
    group.add_argument("--to", metavar="URL", help="probe that receives (default: the other one of a sim://pair)")
    group.add_argument("--map", metavar="FILE", type=Path, help="register map of the build that runs in --from")
    group.add_argument("--map-to", metavar="FILE", type=Path, help="of the build in --to (default: the same)")
    add_steal(group)
    group.add_argument("--transmit", metavar="PORT", type=whole, default=0, help="port that sends (default: 0)")
    group.add_argument("--receive", metavar="PORT", type=whole, default=0, help="port that receives (default: 0)")
    group.add_argument("--both-ways", action="store_true", help="send back at the same time, too")
    clocks = parser.add_argument_group("clocks")
    clocks.add_argument(
        "--discipline", metavar="TIME", type=duration_ns,
        help="discipline both clocks from here, where no firmware does; begin after so long (probe time)",
    )  # fmt: skip
    clocks.add_argument("--period", metavar="TIME", type=duration_ns, help="of the PPS, for --discipline")
    clocks.add_argument("--any-clock", action="store_true", help="measure with clocks that nobody disciplines, too")
    train.add_program(parser)
    train.add_headers(parser)
    train.add_outputs(parser)
    parser.add_argument("--save-calibration", metavar="FILE", type=output, help="write it, of a way of --known-delay")
    parser.add_argument(
        "--known-delay",
        metavar="TIME",
        type=time_ns,
        help="delay of the way, in ns or like 1.5us, for --save-calibration",
    )
