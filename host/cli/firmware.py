# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the firmware for a gateware, loads it into a probe, and talks to its shell."""

import argparse
import sys
import time
from pathlib import Path

from liteprobe.host.cli.arguments import add_probe, time_ns
from liteprobe.host.errors import UsageError
from liteprobe.host.firmware import Console, load, read_image
from liteprobe.host.firmware_build import IMAGE, ROOT, build, find_map, find_tools, ram_of
from liteprobe.host.probe import Probe

HELP = "build, load or talk to the firmware of the probe's processor"
PROMPT = b"~$ "


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("action", choices=["build", "load", "console"], help="what to do")
    parser.add_argument(
        "image", nargs="?", type=Path, help="image to load (default: the one that was built for this probe)"
    )
    parser.add_argument("--zephyr", metavar="FOLDER", type=Path, help="sources of Zephyr (default: ZEPHYR_BASE)")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="products of the build (default: build/firmware/HASH)"
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
        help="what to type into the shell, whose answer is printed",
    )
    parser.add_argument(
        "--follow", metavar="TIME", type=time_ns, default=0.0, help="then print the console for so long (probe time)"
    )
    add_probe(parser)


def run(args: argparse.Namespace) -> None:
    """Build, or load, or talk."""
    if args.action == "build":
        if args.image:
            raise UsageError("firmware build takes no image: it makes one (--out FOLDER)")
        _build(args)
        return
    if args.action == "console" and args.image:
        raise UsageError("firmware console takes no image: see 'liteprobe firmware load IMAGE'")
    with Probe(args.probe, args.map) as probe:
        if args.action == "load":
            _load(probe, args.image)
        _talk(probe, args.lines, args.follow / 1e9)


def _build(args: argparse.Namespace) -> None:
    tools = find_tools(args.zephyr)
    map_file = find_map(args.map)
    started = time.monotonic()
    image = build(map_file, tools, args.out, tuple(f"-D{_option(text)}" for text in args.define))
    ram = ram_of(map_file)
    print(f"{image.path}  for {map_file} (hash {image.map_hash:08x}), in {time.monotonic() - started:.0f} s")
    print(f"  image  {len(image.octets):>8} bytes")
    print(f"  RAM    {image.ram_bytes:>8} of {ram} bytes, {100 * image.ram_bytes / ram:.1f} %")


def _option(text: str) -> str:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise UsageError(f"'{text}' is no option: write it like LITEPROBE_TAI_UTC=37")
    return text if name.startswith("CONFIG_") else f"CONFIG_{text}"


def _load(probe: Probe, path: Path | None) -> None:
    image = read_image(path or ROOT / "build" / "firmware" / f"{probe.registers.map_hash:08x}" / IMAGE)
    load(probe.registers, image)
    print(f"loaded {image.path}: {len(image.octets)} bytes, version {image.version}; it runs")


def _talk(probe: Probe, commands: list[str], seconds: float) -> None:
    console = Console(probe.registers)
    for line in commands:
        console.follow(0.2, PROMPT)  # Of the boot, or of the last command.
        console.write(line.encode() + b"\n")
        _print(console.follow(1.0, PROMPT))
    left_s = seconds
    while left_s > 0:  # In steps, so that a person sees it come.
        _print(console.follow(min(left_s, 0.01)))
        left_s -= 0.01


def _print(octets: bytes) -> None:
    sys.stdout.write(octets.decode("ascii", "replace").replace("\r", ""))
    sys.stdout.flush()
