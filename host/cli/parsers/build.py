# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``build``."""

import argparse

from liteprobe.host.cli.arguments import add_flash_options

HELP = "build a board's bitstream, with its area and timing report; --load puts it on the board, --flash into its flash"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes; what stands behind the board is passed on."""
    parser.epilog = "options of the gateware come after BOARD: liteprobe build BOARD --help"
    parser.add_argument("--load", action="store_true", help="load the bitstream into the board (volatile)")
    parser.add_argument("--flash", action="store_true", help="write the bitstream into the board's flash (it stays)")
    add_flash_options(parser)
    parser.add_argument("--seed", metavar="N", help="seed of placement (default: the board's own)")
    parser.add_argument("--no-compile", action="store_true", help="write Verilog, map and driver; run no tool")
    parser.add_argument(
        "board", metavar="BOARD", help="such as colorlight_5a_75b, colorlight_i9, versa_ecp5; BOARD --help names all"
    )
    parser.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="...", help="more options: liteprobe build BOARD --help"
    )
