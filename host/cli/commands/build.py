# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds a board's bitstream; the gateware's own program does it, in a process of its own."""

import argparse
import sys

from liteprobe.host import extras, folders, programs
from liteprobe.host.cli.arguments import flash_options

PROGRAM = "liteprobe.soc.build.bitstream"


def run(args: argparse.Namespace) -> None:
    """Build, and pass on how it ended."""
    folders.check_here()
    extras.require("build")
    switches = ("load", "flash", "no_compile")
    options = [f"--{name.replace('_', '-')}" for name in switches if getattr(args, name)]
    options += ["--seed", args.seed] if args.seed else []
    options += flash_options(args)
    ended = programs.run(programs.module(PROGRAM, args.board, *options, *args.rest))
    if ended.code:
        sys.exit(ended.code if ended.code > 0 else 1)  # It has said why.
