# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``stop``."""

import argparse

from liteprobe.host.cli.arguments import add_probe, whole

HELP = "stop what a probe sends"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    parser.add_argument("--port", metavar="PORT", type=whole, help="the port to stop (default: all)")
