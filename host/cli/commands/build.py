# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds a board's bitstream; the gateware's own program does it, in a process of its own."""

import argparse
import difflib
import re
import sys

from liteprobe.host.base import extras, folders
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_flash_options, flash_options
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host.base import programs

HELP = "build a board's bitstream, with its area and timing report; --load puts it on the board, --flash into its flash"
EXAMPLES = """
liteprobe build colorlight_i5
liteprobe build --load 5a-75b --preset monitor
liteprobe build --flash --backup i9.bin i9 --preset tester
"""
#: Each board and revision by its name, as people say it; ``boards/`` has each.
BOARDS = {
    "colorlight_5a_75b": "Colorlight 5A-75B V8.0, LFE5U-25F: a receiver card with two sockets",
    "colorlight_5a_75b_v8_2": "Colorlight 5A-75B V8.2: the bitstream of V8.0",
    "colorlight_5a_75b_v7_0": "Colorlight 5A-75B V7.0, LFE5U-25F: other pins than V8.0",
    "colorlight_5a_75e": "Colorlight 5A-75E V7.1, LFE5U-25F: a receiver card with 16 LED connectors",
    "colorlight_5a_75e_v6_0": "Colorlight 5A-75E V6.0, LFE5U-25F: other pins than V7.1",
    "colorlight_5a_75e_v8_0": "Colorlight 5A-75E V8.0: the bitstream of V6.0",
    "colorlight_i5": "Colorlight i5 V7.0, LFE5U-25F: a module on its extension board, jacks to wire",
    "colorlight_i9": "Colorlight i9 V7.2, LFE5U-45F: a module on its extension board, jacks to wire",
    "versa_ecp5": "Lattice Versa ECP5-5G, LFE5UM5G-45F: two sockets, JTAG on board",
    "colorlight_i9plus": "Colorlight i9plus (i9+) V6.1, XC7A50T: Verilog, for openXC7 or Vivado",
    "sqrl_acorn": "SQRL Acorn CLE-215+ on a baseboard, XC7A200T: Verilog only, for Vivado",
}


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


PROGRAM = "liteprobe.soc.build.bitstream"


def board_of(text: str) -> str:
    """Return the board that is meant, by its name or a part of it, like ``5a-75b`` or ``i5``.

    Raises UsageError when there is none, or several have the part.
    """
    name = "_".join(re.split(r"[\W_]+", text.strip().lower()))
    having = [board for board in BOARDS if f"_{name}_" in f"_{board}_"]
    ending = [board for board in having if board.endswith(name)]
    found = [name] if name in BOARDS else having if len(having) == 1 else ending
    if len(found) == 1:
        return found[0]
    names = {part: board for board in BOARDS for part in (board, board.partition("_")[2])}
    near = having or [names[one] for one in difflib.get_close_matches(name, names, n=2)]
    said = f"did you mean {' or '.join(near)}?" if near else f"give one of {', '.join(BOARDS)}"
    raise UsageError(f"there is no board '{text}': {said}")


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
