# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Loads a released bitstream into a board, or its flash; the gateware's own program drives the cable, in a process of its own."""

import argparse
import sys
from pathlib import Path

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.probe_url import full_url
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_flash_options, flash_options
from liteprobe.host.cli.boards import board_of
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host import probe as probes
    from liteprobe.host.base import doctor, folders, programs
    from liteprobe.host.cli import tables
    from liteprobe.host.device import bitstreams, flash, registers

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
    add(parser, "--probe URL", full_url, "by the network, through the probe that runs there (with --flash; minutes)")
    add_flash_options(parser)


def run(args: argparse.Namespace) -> None:
    """Check what was released, and load it; or list what there is."""
    found = bitstreams.needed()
    if args.board is None:
        if given := [*(["--flash"] if args.flash else []), *flash_options(args)]:
            raise UsageError(f"{given[0]} is for loading: name a board, liteprobe load BOARD PRESET")
        return show(found)
    check_together(args)
    folders.check_here()
    board = board_of(args.board)
    one = found.find(board, args.preset or next((one.preset for one in found.of_board(board)), ""))
    one.check()
    if args.probe:
        return by_probe(args, found, one)
    check_cables(args.cable or one.cable, args.usb)
    say(f"{board}: {one.preset}, {one.what}", stream=sys.stderr)
    way = "--flash" if args.flash else "--load"
    ended = programs.run(programs.module(PROGRAM, board, str(one.bit), way, *flash_options(args)))
    if ended.code:
        sys.exit(ended.code if ended.code > 0 else 1)  # It has said why.


def check_together(args: argparse.Namespace) -> None:
    """Raise UsageError where options don't go together, before anything is done."""
    options = flash_options(args)
    if args.probe:
        if not args.flash:
            raise UsageError("by the network a bitstream can only be written into the flash: give --flash, too")
        if of_cable := [option for option in options if option in ("--cable", "--usb", "--unprotect")]:
            raise UsageError(f"{of_cable[0]} is for a JTAG cable: leave it or --probe out")
        if bool(args.backup) == bool(args.no_backup):
            raise UsageError("reading the whole flash by the network takes long: give --backup FILE, or --no-backup")
    given = [option for option in options if option in ("--unprotect", "--no-backup", "--backup")]
    if given and not args.flash:
        raise UsageError(f"{given[0]} is for what writes the flash: give --flash, too")


def by_probe(args: argparse.Namespace, found: "bitstreams.Release", one: "bitstreams.Bitstream") -> None:
    """Write a bitstream through the probe that runs on the board, and ask for its power to be switched."""
    backup = Path(args.backup) if args.backup else None
    last = -1

    def show(what: str, done: int, octets: int) -> None:
        nonlocal last
        if (percent := 10 * (10 * done // octets)) != last:
            say(f"{what}: {percent} % of {octets} bytes", stream=sys.stderr, flush=True)
            last = percent

    with probes.Probe(args.probe) as probe:
        was_there = flash.load_by_probe(probe.registers, found, one, backup, show)
    if flash.PORT not in registers.load_map(one.map_file)["csr_registers"]:
        say(f"{one.preset} has no processor here, so the next bitstream takes a JTAG cable again", stream=sys.stderr)
    kept = "the golden bitstream was kept" if was_there else "what runs now is the golden bitstream from now on"
    say(f"{one.board} {one.preset} is in the flash of {args.probe}, verified; {kept}: switch the board off and on")


def check_cables(cable: str, usb: str | None) -> None:
    """Raise ProbeError where several cables of a kind are plugged in, and none was chosen: a board would be taken by chance."""
    plugged = doctor.plugged(cable)
    if usb is None and len(plugged) > 1:
        there = ", ".join(f"--usb {where} ({said})" for where, said in plugged)
        raise ProbeError(
            f"{len(plugged)} JTAG cables {cable} are plugged in: unplug all but one, or give one of {there}"
        )


# # #


def show(found: "bitstreams.Release") -> None:
    """Print what there is to load."""
    shown = tables.table("board", "preset", "what", text=3)
    for one in found.bitstreams:
        shown.add_row(" ".join((one.board, *one.also)), one.preset, one.what)
    tables.console().print(shown)
