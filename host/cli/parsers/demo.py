# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``demo``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import whole
from liteprobe.host.defaults import DEMO_REPEATS

HELP = "measure a loopback and a switch in simulation, as the packet-train paper did; table and HTML report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("build/demo"), help="folder (default: build/demo)"
    )
    parser.add_argument(
        "--repeat", metavar="R", type=whole, default=DEMO_REPEATS, help=f"trains of each kind (default: {DEMO_REPEATS})"
    )
    parser.add_argument("--sim", metavar="DIR", type=Path, help="a simulated probe that is built already")
