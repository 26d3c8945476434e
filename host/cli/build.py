# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds a board's bitstream; the gateware's own program does it, in a process of its own."""

import argparse
import importlib.util
import subprocess
import sys

from liteprobe.host.errors import ProbeError

HELP = "build a board's bitstream, with its area and timing report; --load puts it on the board, --flash into its flash"
PROGRAM = "liteprobe.soc.build"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes; what stands behind the board is passed on."""
    parser.add_argument("--load", action="store_true", help="load the bitstream into the board (volatile)")
    parser.add_argument("--flash", action="store_true", help="write the bitstream into the board's flash (it stays)")
    parser.add_argument("--seed", metavar="N", help="seed of placement (default: the board's own)")
    parser.add_argument("--no-compile", action="store_true", help="write Verilog, map and driver; run no tool")
    parser.add_argument("board", metavar="BOARD", help="colorlight_5a_75b, colorlight_i5, versa_ecp5 or sqrl_acorn")
    parser.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="...", help="more options: liteprobe build BOARD --help"
    )


def run(args: argparse.Namespace) -> None:
    """Build, and pass on how it ended."""
    if importlib.util.find_spec("migen") is None:
        raise ProbeError("the gateware's packages are not installed: use './run build BOARD', which installs them")
    switches = ("load", "flash", "no_compile")
    options = [f"--{name.replace('_', '-')}" for name in switches if getattr(args, name)]
    options += ["--seed", args.seed] if args.seed else []
    done = subprocess.run([sys.executable, "-m", PROGRAM, args.board, *options, *args.rest], check=False)
    if done.returncode:
        sys.exit(done.returncode)  # It has said why.
