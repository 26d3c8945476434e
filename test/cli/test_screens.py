# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Screens of all commands, in terminals of all sizes and without one: nothing is dropped without a word."""

import fcntl
import io
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import people
import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from liteprobe.cores.formats import BinKind
from liteprobe.host.capture.ring import ChannelState
from liteprobe.host.cli import main as cli
from liteprobe.host.cli import tables
from liteprobe.host.cli.commands import emulate, monitor, send
from liteprobe.host.measure.monitor import BinSetting, Histogram, PortMeasurement, Rate
from liteprobe.host.measure.percentiles import Bounds, Cells
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.run.emulate import (
    ClassCounts,
    ClassDelays,
    ClassLook,
    ClassQueue,
    DirectionLook,
    EmulationLook,
    EmulationResult,
)
from liteprobe.host.run.figures import Latency, StreamFigures, TrafficLook, TrafficResult
from liteprobe.host.serve.poll import Look, Worst
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

SIZES = ((80, 24), (40, 20), (20, 5), (160, 50), (300, 60))


def shown(screen: RenderableType, width: int, height: int = 60) -> list[str]:
    """Return the lines of something on a terminal."""
    out = Console(width=width, height=height, force_terminal=True, color_system=None, file=io.StringIO())
    out.print(screen)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def squeezed(lines: list[str]) -> str:
    return re.sub(r"[\s│─]", "", "".join(lines))


def word(draw: Random, most: int) -> str:
    """Return a name, from one of a letter to one longer than a terminal."""
    return "".join(draw.choice("abcdef012:-") for _ in range(draw.choice((1, 8, 16, 39, most)))) + "x"


@pytest.mark.parametrize("width", [20, 80, *(pytest.param(width, marks=pytest.mark.full) for width in (40, 160, 300))])
def test_a_table_has_every_head_and_cell_at_every_width(width: int) -> None:
    for seed in range(12):
        draw = Random(seed)
        columns = [f"h{number}\ni{number}" for number in range(draw.randint(1, 20))]
        units = [draw.choice(("", "", "ns", "Mb/s")) for _ in columns]
        keys, text = draw.randint(1, 2), draw.randint(0, 1)
        made = tables.FittingTable(["k", "m"][:keys] + columns, text, keys, "the title", [""] * keys + units)
        rows = []
        for _ in range(draw.randint(1, 40)):
            row = [
                word(draw, 60),
                *(f"{draw.randrange(10 ** draw.randint(1, 20)):,}" for _ in range(len(columns) + keys - 1)),
            ]
            rows.append(row)
            made.add_row(*row)
        for most in (None, 5, 40):
            console = Console(width=width, file=io.StringIO())
            pages = [made] if most is None else made.pages(console, console.options, most)
            lines: list[str] = []
            for page in pages:
                if isinstance(page, list):
                    assert len(page) <= most  # type: ignore[operator]
                    lines += ["".join(one.text for one in line) for line in page]
                else:
                    lines += shown(page, width)
            said = f"seed {seed}, width {width}, pages of {most}\n" + "\n".join(lines)
            assert all(len(line.rstrip()) <= width for line in lines), said
            joined, plain = squeezed(lines), " ".join("".join(f"{line}\n" for line in lines).split())
            assert "…" not in joined and joined.count("thetitle") == 1, said
            for row in rows:
                for one in row:
                    assert one in joined, (one, said)
            for head, unit in zip(columns, units, strict=True):
                assert all(one in plain for one in head.split()) and unit in plain, (head, said)


# Results of random figures ------------------------------------------------------------------------


def number(draw: Random) -> int:
    return draw.randrange(10 ** draw.randint(0, 18))


def numbers(draw: Random, names: Iterable[str]) -> dict[str, Any]:
    return {name: number(draw) for name in names}


def real(draw: Random, most: float = 1e9) -> float:
    """Return a number, which may be none."""
    return draw.choice((0.0, math.nan, *(draw.uniform(0, most) for _ in range(6))))


def bounds(draw: Random) -> Bounds:
    least = draw.uniform(0, 10 ** draw.randint(0, 12))
    return Bounds(least, least + draw.choice((0, 1, 1000)))


def streams(draw: Random) -> tuple[StreamFigures, ...]:
    rows = []
    for place in range(draw.randint(1, 40)):
        ends = sorted((number(draw), number(draw)))
        cells = Cells.of([(ends[0], ends[1], 5)])
        latency = Latency(
            ends[0], draw.uniform(*ends), real(draw), ends[1], *(bounds(draw) for _ in range(3)), cells, 0
        )
        stream = Stream(
            name=f"{place}-{word(draw, 60)}", stream_id=place + 1, length=Fixed(60), interval=Interval(pps=1000)
        )
        counts = numbers(draw, ("sent", "late", "received", "octets", "lost", "duplicated", "reordered", "bit_errors"))
        if draw.random() < 0.2:
            counts |= dict.fromkeys(counts, 0)
        counts |= {name: bounds(draw) for name in ("sent_fps", "received_fps", "received_bps")}
        is_measured = draw.random() < 0.9
        rows.append(StreamFigures(stream, 1, True, first_late=None, **counts, latency=latency if is_measured else None))
    return tuple(rows)


def address(draw: Random) -> str:
    return draw.choice(("sim://x1", "etherbone://[2001:db8:1234:5678:9abc:def0:1234:5678]:1234", "uart:///dev/ttyUSB0"))


def of_streams(draw: Random) -> RenderableType:
    return send.live(TrafficLook(streams(draw), 0, real(draw, 1e3) or 1.0, True, "locked", real(draw)), address(draw))


def of_traffic(draw: Random) -> RenderableType:
    notes = tuple(word(draw, 300) for _ in range(draw.randint(0, 3)))
    return send.final(TrafficResult(streams(draw), draw.uniform(0, 10), "sent", True, "locked", 8.0, notes))


def direction(draw: Random, way: str) -> DirectionLook:
    classes = []
    for place in range(draw.randint(1, 8)):
        counts = ClassCounts(**numbers(draw, ClassCounts.__dataclass_fields__))
        frames, most = sorted((number(draw), number(draw)))
        queue = ClassQueue(frames, number(draw), most)
        bins = (*(number(draw) * (draw.random() < 0.3) for _ in range(31)), 1)
        delays = ClassDelays(float(number(draw)), 1e9 + number(draw), 1.0, bounds(draw), 1.0, 0.0, bins, 8.0)
        rates = (real(draw) for _ in range(4))
        classes.append(ClassLook(place, f"{word(draw, 13)}{place}", None, counts, queue, delays, *rates))
    events = numbers(draw, ("damaged", "overflows", "management", "reserved"))
    is_up, seconds = draw.random() < 0.8, draw.uniform(0, 1e4)
    return DirectionLook(way, seconds, 0, True, is_up, **events, classes=tuple(classes))


def network(draw: Random) -> EmulationLook:
    return EmulationLook(direction(draw, "there"), draw.choice((None, direction(draw, "back"))), draw.randint(0, 9))


def of_network(draw: Random) -> RenderableType:
    return emulate.live(network(draw), address(draw))


def of_emulation(draw: Random) -> RenderableType:
    return emulate.final(EmulationResult(None, network(draw), (), "done", "locked", (word(draw, 200),)))


def of_monitor(draw: Random) -> RenderableType:
    ports, events = [], []
    for port in range(draw.randint(1, 4)):
        found = []
        for slot in range(draw.choice((1, 8, 31))):
            given = numbers(draw, list(ReceivedStream.__dataclass_fields__)[2:-1])
            given |= {"frames": 1 + number(draw), "delay_square_sum": 10**60}
            found.append(ReceivedStream(slot, slot or None, **given))
        counts = np.array([number(draw) % 2**32 for _ in range(32)], np.int64)
        bins = {kind: Histogram(kind, BinSetting(0, draw.randint(0, 20)), number(draw), 0, counts) for kind in BinKind}
        rate = draw.choice((None, Rate(1, 10**9, True, number(draw) % 10**9, number(draw) % 10**11)))
        counters = {
            "frames": number(draw),
            "octets": number(draw),
            "first_stamp": 0,
            "last_stamp": 0,
            "other_streams": 0,
        }
        ports.append(PortMeasurement(port, counters, rate, found, [bins], draw.random() < 0.2))
        events.append(numbers(draw, ("all_frames", "all_octets", "fcs_errors", "runts", "overflows")))
    ring = {channel: ChannelState(0, 0, draw.randrange(64), number(draw), 64) for channel in range(draw.randint(0, 8))}
    look = Look(address(draw), "locked", 8.0, 0, ports, events, ring)
    worst = Worst(since="14:00:00")
    worst.take(look)
    return monitor.fitting(look, {0: [1e9, 5e8]}, worst, 1.5)


SCREENS = (of_streams, of_traffic, of_network, of_emulation, of_monitor)


def pages(screen: RenderableType, width: int, height: int) -> list[list[str]]:
    """Return what a terminal shows in turn."""
    if not isinstance(screen, tables.Paged):
        return [shown(screen, width, height)]
    console = Console(width=width, height=height, color_system=None, file=io.StringIO())
    found = screen.pages(console, console.options)
    return [["".join(one.text for one in line).rstrip() for line in page] for page in found]


@row("people", "screens", is_test=True)
def test_screens_of_random_results_lose_no_figure_in_any_terminal(size: Size) -> Iterator[Figure]:
    """All that a terminal without an end shows is on the pages of each other; none is wider, or higher, than the terminal."""
    lost = wide = high = screens = long = 0
    for seed in range(size.of(2, 10, 100)):
        for make in SCREENS:
            draw = Random(seed)
            screen = make(draw)
            whole = shown(screen, 1000, 100_000)
            figures = {one.strip(",.;:()") for one in re.split(r"[\s│]+", " ".join(whole)) if re.search(r"\d", one)}
            sizes = [*SIZES, *((draw.randint(20, 300), draw.randint(5, 60)) for _ in range(size.of(0, 2, 4)))]
            for width, height in sizes if size else draw.sample(sizes, 3):
                found = pages(screen, width, height)
                joined = squeezed(
                    [line for lines in found for line in lines if not re.fullmatch(r"page \d+/\d+", line)]
                )
                # One that is longer than a line can have the end of a page, and the head of the next one, within it.
                fits = {one for one in figures if len(one) <= width or one in joined}
                long += len(figures - fits)
                missing = [one for one in fits if one not in joined or "…" in joined]
                too_wide = sum(cell_len(line) > width for lines in found for line in lines)
                too_high = sum(len(lines) > height for lines in found) * (len(found) > 1)
                if missing or too_wide or too_high:
                    note(
                        f"{make.__name__}, seed {seed}, {width}x{height}: {missing[:5]}, {too_wide} wide, {too_high} high"
                    )
                lost, wide, high, screens = lost + len(missing), wide + too_wide, high + too_high, screens + len(found)
    yield Figure("screens_seen", screens, "screens", 30, is_least=True)
    yield Figure("figures_lost", lost, "figures", 0)
    yield Figure("figures_longer_than_a_line_left_out", long / screens, "a screen", 1)
    yield Figure("lines_too_wide", wide, "lines", 0)
    yield Figure("pages_too_high", high, "pages", 0)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --count 50 --repeat 20 --length 60,1514", "loopback: "),
        ("calibrate --count 20 --repeat 3", "calibration: "),
        ("send --pps 10k --count 500 --length 64", "1 stream: "),
    ],
)
def test_without_a_screen_lines_say_how_far_a_run_is_and_never_more_received_than_sent(
    run: Callable[..., tuple[int, str, str]], models: None, line: str, said: str
) -> None:
    """They go before the result on stdout, and nowhere where that is data."""
    pattern = rf"[\d.,]+ (s|ms|µs)   {said}([\d,]+) (?:of [\d,]+ frames, [\d,]+/s|sent(?:, ([\d,]+) received)?.*)"
    code, out, _ = run(*line.split(), "--every", "1ns")
    found = [one for one in map(re.compile(pattern).fullmatch, out.splitlines()) if one]
    counts = [int(one[2].replace(",", "")) for one in found]
    assert code == 0 and len(found) > 1 and counts == sorted(counts), out
    assert all(int((one[3] or "0").replace(",", "")) <= count for one, count in zip(found, counts, strict=True))
    assert not re.match(r"[\d.,]+ (s|ms|µs)   ", run(*line.split(), "--every", "1ns", "--json")[1])


# Programs in terminals ----------------------------------------------------------------------------

#: Width, height and environment of terminals; without a width, it is a pipe.
CONDITIONS: dict[str, tuple[int, int, dict[str, str]]] = {
    "80x24": (80, 24, {"TERM": "xterm-256color"}),
    "40x20": (40, 20, {"TERM": "xterm-256color"}),
    "dumb": (40, 20, {"TERM": "dumb"}),
    "ascii": (80, 24, {"TERM": "xterm", "LC_ALL": "C"}),
    "pipe": (0, 0, {"TERM": "xterm-256color"}),
}
COMMANDS = (
    "replay office.pcapng --check",
    "emulate --preset dsl --check",
    "send streams.yaml --check",
    "capture --read office.blocks -w c.pcapng",
    "send streams.yaml --check --pps 5",
    "build 5a-75b-9",
    *(f"{name} --help" for name in cli.COMMANDS),
)


def typed(command: str, folder: Path, width: int, height: int, environment: dict[str, str]) -> bytes:
    """Return what a command prints on a terminal, or into a pipe."""
    words = [sys.executable, "-m", "liteprobe.host.cli", *command.split()]
    names = (
        "LC_ALL",
        "LC_CTYPE",
        "LANG",
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "PYTHONIOENCODING",
        "PYTHONUTF8",
    )
    given = (
        {name: value for name, value in os.environ.items() if name not in names} | {"LC_ALL": "C.UTF-8"} | environment
    )
    if not width:
        return subprocess.run(words, cwd=folder, env=given, capture_output=True, check=False).stdout
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    with subprocess.Popen(words, cwd=folder, env=given, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        found = bytearray()
        with suppress(OSError):  # Its end.
            while part := os.read(ours, 1 << 16):
                found += part
        process.wait()
    os.close(ours)
    return bytes(found)


@row("people", "terminals", is_test=True)
def test_programs_break_no_line_within_words_and_know_what_their_terminal_can(
    size: Size, tmp_path: Path
) -> Iterator[Figure]:
    """A word is torn where it has space on a line of its own; escapes are for terminals that know them, UTF-8 for its locales."""
    people.write_files(tmp_path)
    torn = escapes = invalid = lost = programs = 0
    for command in COMMANDS if size else ("emulate --preset dsl --check", "train --help"):
        plain = typed(command, tmp_path, *CONDITIONS["pipe"]).decode()
        wanted = {one for one in plain.split() if re.search(r"\d", one)}
        for name, (width, height, environment) in CONDITIONS.items():
            if not size and (name, command[:5]) in {("80x24", "emula"), ("dumb", "train"), ("pipe", "train")}:
                continue
            found = typed(command, tmp_path, width, height, environment)
            programs += 1
            escapes += b"\x1b" in found and name in ("dumb", "pipe")
            invalid += name == "ascii" and any(octet > 127 for octet in found)
            text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", found.decode())
            wide = [line for line in text.splitlines() if cell_len(line.rstrip()) > (width or 10_000)]
            wide = [line for line in wide if max(map(cell_len, line.split())) <= width - 8]
            joined = re.sub(r"[\s│─]", "", text.replace(" \\\r\n", ""))
            missing = [one for one in wanted if one not in joined] if name not in ("ascii", "pipe") else []
            if wide or missing:
                note(f"{command}, {name}: {wide[:2]}, {missing[:5]}")
            torn, lost = torn + len(wide), lost + len(missing)
    yield Figure("programs_run", programs, "programs", 5, is_least=True)
    yield Figure("lines_torn", torn, "lines", 0)
    yield Figure("words_lost", lost, "words", 0)
    yield Figure("programs_with_escapes", escapes, "programs", 0)
    yield Figure("programs_with_other_octets", invalid, "programs", 0)
