# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``doctor``."""

import argparse

from liteprobe.host.cli.arguments import add_json

HELP = "look at this machine: Python, packages, compilers, tools, cables, serial ports, probes; what to do about what is missing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("--no-network", action="store_true", help="look for no probes on the network")
    add_json(parser, "them")
