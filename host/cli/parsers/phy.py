# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``phy``."""

import argparse

from liteprobe.host.cli.arguments import add_json, add_probe, whole

HELP = "show the PHYs and their links, or find the middle of the eye of received data (sweep)"
ACTIONS = ("show", "sweep")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="show", help="what to do (default: show)")
    add_probe(parser)
    group = parser.add_argument_group("sweep")
    group.add_argument("--port", metavar="N", type=int, default=1, help="whose receive delay is changed (default: 1)")
    group.add_argument("--transmit", metavar="N", type=int, default=0, help="port that sends to it (default: 0)")
    group.add_argument("--count", metavar="N", type=whole, default=20, help="frames at each delay (default: 20)")
    group.add_argument("--step", metavar="TAPS", type=whole, default=1, help="from one delay to the next (default: 1)")
    add_json(parser, "what was found")
