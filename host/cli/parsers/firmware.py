# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``firmware``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import add_flash_options, add_probe, span_ns

HELP = "build, load, flash or talk to the firmware of the probe's processor"
ACTIONS = ("build", "load", "pack", "flash", "state", "console")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument(
        "image", nargs="?", type=Path, help="image to load or pack (default: the one that was built for this map)"
    )
    parser.add_argument("--board", metavar="BOARD", help="board on the JTAG cable whose flash is written (flash)")
    add_flash_options(parser)
    parser.add_argument("--zephyr", metavar="FOLDER", type=Path, help="sources of Zephyr (default: ZEPHYR_BASE)")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="products of build and pack (default: build/firmware/HASH)"
    )
    parser.add_argument(
        "--define", metavar="NAME=VALUE", action="append", default=[], help="an option of Kconfig, for the build"
    )
    parser.add_argument(
        "--type",
        dest="lines",
        metavar="LINE",
        action="append",
        default=[],
        help="what to type into the shell, whose answer is printed; -: the lines of stdin, as they come",
    )
    parser.add_argument(
        "--follow", metavar="TIME", type=span_ns, default=0.0, help="then print the console for so long (probe time)"
    )
    add_probe(parser)
