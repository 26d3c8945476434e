# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Loads a released bitstream into a board, or its flash; the gateware's own program drives the cable, in a process of its own."""

import argparse
import sys

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_flash_options, flash_options
from liteprobe.host.cli.boards import board_of
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host.base import doctor, folders, programs
    from liteprobe.host.cli import tables
    from liteprobe.host.device import bitstreams

HELP = (
    "load a released bitstream into a board in seconds, without a tool chain; --flash writes it into the board's flash"
)
EXAMPLES = """
liteprobe load
liteprobe load colorlight_5a_75b train
liteprobe load i9 emulator --flash --backup i9.bin
"""
PROGRAM = "liteprobe.soc.build.load"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "board BOARD", str, "what is on the JTAG cable, as of 'build' (default: list what there is)", nargs="?")
    add(parser, "preset PRESET", str, "what to load (default: the first that there is for the board)", nargs="?")
    add(parser, "--flash", bool, "write it into the board's flash (it stays)")
    add_flash_options(parser)


def run(args: argparse.Namespace) -> None:
    """Check what was released, and load it; or list what there is."""
    found = bitstreams.needed()
    if args.board is None:
        if given := [*(["--flash"] if args.flash else []), *flash_options(args)]:
            raise UsageError(f"{given[0]} is for loading: name a board, liteprobe load BOARD PRESET")
        return show(found)
    given = [option for option in flash_options(args) if option in ("--unprotect", "--no-backup", "--backup")]
    if given and not args.flash:
        raise UsageError(f"{given[0]} is for what writes the flash: give --flash, too")
    folders.check_here()
    board = board_of(args.board)
    one = found.find(board, args.preset or next((one.preset for one in found.of_board(board)), ""))
    one.check()
    check_cables(args.cable or one.cable, args.usb)
    say(f"{board}: {one.preset}, {one.what}", stream=sys.stderr)
    way = "--flash" if args.flash else "--load"
    ended = programs.run(programs.module(PROGRAM, board, str(one.bit), way, *flash_options(args)))
    if ended.code:
        sys.exit(ended.code if ended.code > 0 else 1)  # It has said why.


def check_cables(cable: str, usb: str | None) -> None:
    """Raise ProbeError where several cables of a kind are plugged in, and none was chosen: a board would be taken by chance."""
    plugged = doctor.plugged(cable)
    if usb is None and len(plugged) > 1:
        there = ", ".join(f"--usb {where} ({said})" for where, said in plugged)
        raise ProbeError(
            f"{len(plugged)} JTAG cables {cable} are plugged in: unplug all but one, or give one of {there}"
        )


# # #


def show(found: bitstreams.Release) -> None:
    """Print what there is to load."""
    shown = tables.table("board", "preset", "what", text=3)
    for one in found.bitstreams:
        shown.add_row(" ".join((one.board, *one.also)), one.preset, one.what)
    tables.console().print(shown)
