# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the firmware for a gateware, loads it into a probe or its flash, and talks to its shell."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from liteprobe.host.base import extras
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_flash_options, add_probe, flash_options, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import span_ns

with lazily():
    import queue
    import threading

    from liteprobe.host import probe as probes
    from liteprobe.host.base import programs
    from liteprobe.host.device import firmware, firmware_build

HELP = "build, load, flash or talk to the firmware of the probe's processor"
EXAMPLES = """
liteprobe firmware build --probe 192.168.1.50
liteprobe firmware load --probe 192.168.1.50 --follow 2s
liteprobe firmware console --probe 192.168.1.50 --type 'kernel uptime'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "action", str, "what to do", choices=tuple(ACTIONS))
    add(parser, "image", Path, "image to load or pack (default: the one that was built for this map)", nargs="?")
    add(parser, "--board BOARD", str, "board on the JTAG cable whose flash is written (flash)")
    add_flash_options(parser)
    add(parser, "--zephyr FOLDER", Path, "sources of Zephyr (default: ZEPHYR_BASE)")
    add(parser, "--out FOLDER", Path, "products of build and pack (default: build/firmware/HASH)")
    add(parser, "--define NAME=VALUE", str, "an option of Kconfig, for the build", [], action="append")
    add(
        parser,
        "--type LINE",
        str,
        "what to type into the shell, whose answer is printed; -: the lines of stdin, as they come",
        [],
        dest="lines",
        action="append",
    )
    add(parser, "--follow TIME", span_ns, "then print the console for so long (probe time)", 0.0)
    add_probe(parser)


STDIN = "-"
LOOK_S = 0.02
FLASH_FILE = "liteprobe.flash"
FLASH_PROGRAM = "liteprobe.soc.build.load"
STATES = {
    "NOTHING": "nothing was started: the probe has no flash to look into, or is still reading it",
    "STARTED": "firmware was started by a host",
    "STARTED_FROM_FLASH": "firmware was started from flash",
    "NO_IMAGE": "the flash holds no firmware: liteprobe firmware flash --board BOARD, or firmware load",
    "OTHER_GATEWARE": "the flash holds firmware for another gateware: build it for this one's map, and flash it",
    "DAMAGED": "the firmware in the flash is damaged, or the RAM doesn't keep it: flash it again",
}


def run(args: argparse.Namespace) -> None:
    """Do what is asked for."""
    if args.image and args.action == "build":
        raise UsageError("firmware build takes no image: it makes one (--out FOLDER)")
    if args.image and args.action in ("console", "state"):
        raise UsageError(f"firmware {args.action} takes no image: see 'liteprobe firmware load IMAGE'")
    for_flash = (["--board"] if args.board else []) + flash_options(args)
    if for_flash and args.action != "flash":
        raise UsageError(f"firmware {args.action} takes no {for_flash[0]}: that is for 'liteprobe firmware flash'")
    ACTIONS[args.action](args)


def _state(args: argparse.Namespace) -> None:
    with open_probe(args) as probe:
        say(STATES[firmware.boot_state(probe.registers).name])


def _load(args: argparse.Namespace) -> None:
    with open_probe(args) as probe:
        _load_image(probe, args.image)
        talk(firmware.Console(probe.registers), args.lines, args.follow / 1e9)


def _console(args: argparse.Namespace) -> None:
    with open_probe(args) as probe:
        talk(firmware.Console(probe.registers), args.lines, args.follow / 1e9, runs_already=True)


def _image_for_map(args: argparse.Namespace) -> firmware.Image:
    """Return the image that is given, or the one that was built for the map."""
    return firmware.read_image(
        args.image or firmware_build.folder_of(firmware_build.find_map(args.map)) / firmware_build.IMAGE
    )


def _pack(args: argparse.Namespace) -> Path:
    image = _image_for_map(args)
    file = Path(args.out or image.path.parent) / FLASH_FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    octets = firmware.pack(image)
    file.write_bytes(octets)
    say(f"{file}  {len(octets)} bytes for the flash, version {image.version}, gateware {image.map_hash:08x}")
    return file


def _flash(args: argparse.Namespace) -> None:
    if not args.board:
        raise UsageError("which board is it? liteprobe firmware flash --board colorlight_5a_75b")
    extras.require("build")
    file = _pack(args)
    ended = programs.run(programs.module(FLASH_PROGRAM, args.board, str(file), *flash_options(args)))
    if ended.code:
        sys.exit(ended.code if ended.code > 0 else 1)  # It has said why.


def _build(args: argparse.Namespace) -> None:
    tools = firmware_build.find_tools(args.zephyr)
    map_file = firmware_build.find_map(args.map)
    started = time.monotonic()
    options = tuple(f"-D{_option(text)}" for text in args.define)
    image = firmware_build.build(
        map_file, tools, args.out, options, lambda line: say(line, stream=sys.stderr, flush=True)
    )
    ram = firmware_build.ram_of(map_file)
    say(f"{image.path}  for {map_file} (hash {image.map_hash:08x}), in {time.monotonic() - started:.0f} s")
    say(f"  image  {len(image.octets):>8} bytes")
    say(f"  RAM    {image.ram_bytes:>8} of {ram} bytes, {100 * image.ram_bytes / ram:.1f} %")


def _option(text: str) -> str:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"'{text}' is not an option: write it like LITEPROBE_TAI_UTC=37")
    return text if name.startswith("CONFIG_") else f"CONFIG_{text}"


def _load_image(probe: probes.Probe, path: Path | None) -> None:
    image = firmware.read_image(path or firmware_build.folder_of_hash(probe.registers.map_hash) / firmware_build.IMAGE)
    firmware.load(probe.registers, image)
    say(f"loaded {image.path}: {len(image.octets)} bytes, version {image.version}; it runs")


def talk(console: firmware.Console, lines: list[str], seconds: float, runs_already: bool = False) -> None:
    """Type lines, then print the console for ``seconds`` of the probe's time; ``runs_already``: for longer than a boot takes."""
    shell = firmware.Shell(console, _print)
    if lines and runs_already:
        shell.ask()
    for line in lines:
        if line == STDIN:
            type_stdin(shell)
        else:
            shell.type(line)
    left_s = seconds
    while left_s > 0:  # In steps, so that a person sees it come.
        _print(console.follow(min(left_s, 0.01)))
        left_s -= 0.01


def type_stdin(shell: firmware.Shell) -> None:
    """Type what comes on stdin, line by line, and print what the firmware prints meanwhile; until stdin ends.

    A line waits for the prompt after the one before, so that a file of commands can be given, too.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            line = lines.get_nowait()
        except queue.Empty:
            shell.look(LOOK_S)
            continue
        if line is None:
            return
        shell.type(line)


def _print(octets: bytes) -> None:
    sys.stdout.write(octets.decode("ascii", "replace").replace("\r", ""))
    sys.stdout.flush()


ACTIONS = {"build": _build, "load": _load, "pack": _pack, "flash": _flash, "state": _state, "console": _console}
