# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds a board's bitstream; the gateware's own program does it, in a process of its own."""

import argparse
import sys

from liteprobe.host.base import extras, folders
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_flash_options, flash_options
from liteprobe.host.cli.boards import BOARDS, board_of
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host.base import programs

HELP = "build a board's bitstream, with its area and timing report; --load puts it on the board, --flash into its flash"
EXAMPLES = """
liteprobe build colorlight_i5
liteprobe build --load 5a-75b --preset monitor
liteprobe build --flash --backup i9.bin i9 --preset tester
"""
PROGRAM = "liteprobe.soc.build.bitstream"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes; what stands after the board is passed on."""
    boards = "\n".join(f"  {name:<24}{line}" for name, line in BOARDS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = f"""Build a board's bitstream, with its area and timing report; --load puts it on the board,
--flash into its flash. --backup FILE without --flash builds nothing: it keeps the board's flash in FILE.

boards:
{boards}"""
    parser.epilog = "options of the gateware come after BOARD: liteprobe build BOARD --help"
    add(parser, "--load", bool, "load the bitstream into the board (volatile)")
    add(parser, "--flash", bool, "write the bitstream into the board's flash (it stays)")
    add_flash_options(parser)
    add(parser, "--seed N", str, "seed of placement (default: the board's own)")
    add(parser, "--no-compile", bool, "write Verilog, map and driver; run no tool")
    add(parser, "board BOARD", str, "one of those above")
    add(parser, "rest ...", str, "more options: liteprobe build BOARD --help", nargs=argparse.REMAINDER)


def run(args: argparse.Namespace) -> None:
    """Build, and pass on how it ended."""
    board = board_of(args.board)
    if board != args.board:
        say(f"board: {board}", stream=sys.stderr)
    folders.check_here()
    extras.require("build")
    switches = ("load", "flash", "no_compile")
    options = [f"--{name.replace('_', '-')}" for name in switches if getattr(args, name)]
    options += ["--seed", args.seed] if args.seed else []
    options += flash_options(args)
    ended = programs.run(programs.module(PROGRAM, board, *options, *args.rest))
    if ended.code:
        sys.exit(ended.code if ended.code > 0 else 1)  # It has said why.
