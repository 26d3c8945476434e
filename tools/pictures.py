# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the pictures of the pages anew, each from a run: ``./run python tools/pictures.py [NAME...]``; needs Chromium."""

import fcntl
import io
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import numpy as np
from browser import Browser
from PIL import Image
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from liteprobe.sim.drivers.system.senders import Packet, write

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PLAYED = {"office.pcap": (0.6, 1), "uplink.pcap": (0.3, 2)}  # Captures that are made for a picture: load, seed.
#: Screens, by the name of the picture: columns, lines, the command.
SCREENS = {
    "monitor": (100, 32, "monitor --probe 'sim://loopback?preset=monitor&play=office.pcap,uplink.pcap' --refresh 3ms --rates 1ms"),
    "send": (120, 40, "send docs/examples/imix.yaml --probe 'sim://switch?latency=3us&preset=tester' --duration 10ms"),
    "emulate": (120, 40, "emulate --preset wifi-bursty --duration 30ms --probe "
                         "'sim://emulator?play=office.pcap,uplink.pcap&repeats=0'"),
}  # fmt: skip
#: Reports, by the name of the picture: its height in pixels, the command that writes it.
REPORTS = {
    "report": (900, "demo --out ."),
    "report-send": (900, "send docs/examples/imix.yaml --probe 'sim://switch?latency=3us&preset=tester' --duration 10ms "
                         "--report imix.html"),
}  # fmt: skip
HOME = re.compile(r"(?:\x1b\[\d*A|\x1b\[H|\x1b\[2J|\x1b\[1;1H)+")  # A live view is drawn again from here.
WIDTH = 1240  # Pixels of a screen's picture.
END = "\x1b[?25h"  # The cursor is shown again.
VIEWS = 24
OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Zac-ln-z]|\r")  # Not the colours.
FORMAT = (  # Of Rich's SVG: without the font that it would fetch from the web.
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="WIDTH"><style>{styles}\n'
    ".{unique_id}-matrix {{font-family: monospace; font-size: {char_height}px; line-height: {line_height}px}}\n"
    ".{unique_id}-title {{font: bold 18px sans-serif}}</style>{chrome}<defs>{lines}</defs>"
    '<g transform="translate({terminal_x}, {terminal_y})">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>'
).replace("WIDTH", str(WIDTH))


def write_captures(folder: Path) -> None:
    """Write frames of three lengths at random times, 12 ms of them, as pcap with nanoseconds."""
    for name, (load, seed) in PLAYED.items():
        random = np.random.default_rng(seed)
        lengths = random.choice([60, 590, 1514], 3000, p=[0.5, 0.2, 0.3])
        times = np.cumsum(
            np.maximum(8 * (lengths + 24), random.exponential(8 * (lengths.mean() + 24) / load, 3000))
        ).astype(int)
        made = [
            Packet(at, bytes(range(12)) + b"\x88\xb5" + bytes(length - 14))
            for at, length in zip(times.tolist(), lengths.tolist(), strict=True)
            if at < 12_000_000
        ]
        write(folder / name, made)


def shown(columns: int, lines: int, command: list[str], folder: Path) -> str:
    """Return what a command last shows in a terminal of this size, with its colours, as it was before it ended."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=folder)
    os.close(slave)
    seen = b""
    while True:
        if command[3] == "monitor" and len(HOME.findall(seen.decode(errors="replace"))) > VIEWS:  # It has no end.
            os.write(master, b"q")
        try:
            more = os.read(master, 1 << 16)
        except OSError:  # It has ended.
            break
        if not more:
            break
        seen += more
    os.close(master)
    if process.wait():
        raise RuntimeError(f"{shlex.join(command)} ended with {process.returncode}:\n{seen.decode()[-2000:]}")
    live = seen.decode().split(END)[0]
    views = [OTHER.sub("", one).strip("\n") for one in HOME.split(live)]
    return re.sub(r"(?:\s|\x1b\[[\d;]*m)*\Z", "", max(views[-3:], key=len))


def screen(name: str, folder: Path, browser: Browser) -> None:
    """Write the picture of a screen."""
    columns, lines, words = SCREENS[name]
    text = shown(columns, lines, [sys.executable, "-m", "liteprobe.host.cli", *shlex.split(words)], folder)
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text))
    page = folder / f"{name}.svg"
    svg = console.export_svg(title=f"liteprobe {words.split()[0]}", theme=MONOKAI, code_format=FORMAT)
    page.write_text(svg)
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    browser.open(page.as_uri(), WIDTH, round(WIDTH * height / width))
    browser.picture(IMAGES / f"{name}.png")


def report(name: str, folder: Path, browser: Browser) -> None:
    """Write the picture of a report's beginning."""
    height, words = REPORTS[name]
    command = [sys.executable, "-m", "liteprobe.host.cli", *shlex.split(words)]
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    file = max(folder.glob("*.html"), key=lambda one: one.stat().st_mtime)
    browser.open(file.as_uri(), 1100, height)
    browser.picture(IMAGES / f"{name}.png")


def made_small(file: Path) -> None:
    """Keep 64 colours of a picture: a third of its octets."""
    Image.open(file).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(file, optimize=True)


def main(names: list[str]) -> None:
    """Make these pictures, or all."""
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        write_captures(Path(folder))
        shutil.copytree(ROOT / "docs/examples", Path(folder) / "docs/examples")
        for name in names or [*SCREENS, *REPORTS]:
            (screen if name in SCREENS else report)(name, Path(folder), browser)
            made_small(IMAGES / f"{name}.png")
            print(IMAGES / f"{name}.png", (IMAGES / f"{name}.png").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
