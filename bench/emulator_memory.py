# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows ``memory`` and ``delay`` of the bench ``emulator``: what the memory of a whole simulated probe lets through, and how long.

``sys`` has 50 MHz and the SDRAM its own clock, by the line's clock: as on the boards. Frames of one length come at even distances.
"""

import random
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from liteprobe.cores.formats import OVERHEAD, TICK_NS
from liteprobe.cores.formats.emulate import ENTRY_SPACE, LANES, UNMATCHED_CLASS, ClassCounter
from liteprobe.host.traffic.network.store import RING_BITS_MIN
from liteprobe.sim.drivers.system import emulator
from liteprobe.sim.drivers.system.emulator import bank, emulating
from liteprobe.sim.drivers.system.senders import Packet
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.system.build import build_probe

LENGTHS = (60, 128, 256, 512, 1024, 1514)
BOARD_MHZ, OTHER_MHZ = 80, (50, 100)
SDRAM_WORDS, ENTRIES = 1 << 19, 1024
RATE_TICKS, RATE_DELAY = 500_000, 30_000  # 4 ms of frames, each delayed by 0.24 ms.
STEP = 2  # Per cent of the line.
#: Per cent of the line at 80 MHz: 64 words take 70 cycles, and each frame is written and read: 2.33 of 3.94 Gb/s both ways.
EXPECTED = {1: 100, 2: 58}
START_NS = 1_700_000_000 * 10**9
ETHERTYPE = b"\x88\xb5"  # For experiments: one of so many random ones is that of PAUSE, which is eaten as it has to be.
#: The store has space for the delayed frames and for three more: those that come in or go out just then.
SPARE_FRAMES = 3
ARRIVAL_TICKS = 1536 + 4 + 512  # As long as an arrival may wait for its turn (soc/probe.py).
#: With a read phase that is found at start. Octets of frames that follow each other, without FCS; IMIX is 7 : 4 : 1.
EYE_MHZ = 125
BOTH_WAYS: dict[str, tuple[int, ...]] = {str(length): (length,) for length in (60, 64, 128, 512)}
BOTH_WAYS |= {"imix": (60, 60, 590, 60, 60, 590, 60, 590, 60, 60, 590, 1514), "1514": (1514,)}
#: Per cent: 1516 of each 1538 cycles are words, some 50 are refreshes, rows and pauses.
LONG_SHARE = 97
#: A background frame every 3 us in the class in use, one for four of the shortest frames; its link has no rate, so none waits.
BACKGROUND = {UNMATCHED_CLASS: {"background": 1, "background_ticks": 375, "background_length": 60}}
WAYS = {1: "one_way", 2: "both_ways"}
#: The kind of a store and its words, all of which the one class in use has.
STORES = {
    "block_8k": ("block", 1 << 13),
    "block_16k": ("block", 1 << 14),
    "sdram_256k": ("sdram", 1 << 18),
    "sdram_512k": ("sdram", 1 << 19),
}
GOAL_NS, GOAL_LENGTH, GOAL_STORE = 12.5e6, 1514, "sdram_512k"  # One way at 1 Gb/s.


@cache
def probe(store: str, words: int, mhz: int = BOARD_MHZ) -> Path:
    """Return the simulated probe with such a store."""
    options: dict[str, Any] = {"store": store, "store_words": words, "entries": ENTRIES}
    return build_probe("own", with_cpu=False, preset="emulator", memory_mhz=mhz, at_pace=True, **options)


def line(lengths: tuple[int, ...], share: int, ticks: int, seed: int) -> list[Packet]:
    """Return frames of some lengths in turn, which take ``share`` per cent of a line for so many ticks."""
    chance, made, now, number = random.Random(seed), [], 0.0, 0
    while now < ticks * TICK_NS or number < 3:
        length = lengths[number % len(lengths)]
        made.append(
            Packet(START_NS + round(now), b"\x02" + chance.randbytes(11) + ETHERTYPE + chance.randbytes(length - 14))
        )
        now += 100 * TICK_NS * (length + OVERHEAD) / share
        number += 1
    return made


def lanes(words: int) -> list[dict[str, int]]:
    """Return the rings, as a host has them: the class in use has the whole store, and no frame comes to the others."""
    bits = words.bit_length() - 1
    return [
        {"store_start": 0, "store_bits": bits if lane == UNMATCHED_CLASS else RING_BITS_MIN} for lane in range(LANES)
    ]


def wrong(
    folder: Path,
    ring: list[dict[str, int]],
    traffic: Mapping[int, list[Packet]],
    delay: int,
    classes: Mapping[int, Mapping[str, int]] | None = None,
) -> int:
    """Send frames through the probe; return how many were lost or late, or had another delay than was asked for."""
    settings = Settings(bank(classes or {}, {}, ring, delay))
    with tempfile.TemporaryDirectory() as files, emulating(folder, Path(files)) as emulated:
        emulated.start(dict.fromkeys(range(2), settings))
        emulated.play(traffic, delay * TICK_NS * 1e-9 + 20e-6)
        count = 0
        for number, made in traffic.items():
            right = int((emulator.delays(emulated, number) == delay).sum())
            count += len(made) - right + emulated.total(number, ClassCounter.LATE)
        return count


# Rates --------------------------------------------------------------------------------------------


@row("emulator")
def test_memory(is_full: bool) -> Iterator[Figure]:
    """The greatest share of a line at which no frame is wrong, by length and ways; ``--full``: at other memory clocks, too."""
    for mhz in (BOARD_MHZ, *(OTHER_MHZ if is_full else ())):
        for ways in (1, 2):
            for length in LENGTHS:
                expected = EXPECTED[ways] if mhz == BOARD_MHZ else 0
                share = most(probe("sdram", SDRAM_WORDS, mhz), length, ways)
                yield Figure(f"memory_{mhz}_{WAYS[ways]}_{length}", share, "%", expected, is_least=True)


def most(folder: Path, length: int, ways: int) -> int:
    """Return the greatest share of the line at which every frame leaves at its tick."""
    least, greatest = 0, 100 // STEP
    tried = greatest
    while least < greatest:
        traffic = {port: line((length,), tried * STEP, RATE_TICKS, port) for port in range(ways)}
        if wrong(folder, lanes(SDRAM_WORDS), traffic, RATE_DELAY):
            greatest = tried - 1
        else:
            least = tried
        tried = (least + greatest + 1) // 2
    return least * STEP


# Both ways ----------------------------------------------------------------------------------------


@row("emulator")
def test_both_ways(is_full: bool) -> Iterator[Figure]:
    """Two full lines back to back through the SDRAM, background on: the share at which each frame leaves at its tick, none late."""
    ticks = RATE_TICKS * (10 if is_full else 1)
    folder = probe("sdram", SDRAM_WORDS, EYE_MHZ)
    for name, lengths in BOTH_WAYS.items():
        expected = LONG_SHARE if lengths == (1514,) else 100
        for share in range(100, expected - 1, -1):
            traffic = {port: line(lengths, share, ticks, port) for port in range(2)}
            off = wrong(folder, lanes(SDRAM_WORDS), traffic, RATE_DELAY, BACKGROUND)
            if not off:
                break
        yield Figure(f"both_ways_{name}", 0 if off else share, "%", expected, is_least=True)
        yield Figure(f"both_ways_{name}_off", off, "frames", 0)
        yield Figure(f"both_ways_{name}_frames", sum(map(len, traffic.values())), "frames", 0, is_least=True)


# Delays -------------------------------------------------------------------------------------------


@row("emulator")
def test_delay(is_full: bool) -> Iterator[Figure]:
    """The longest delay that each store holds of a full line, by length; and how many frames are wrong at it and at the least.

    Of an SDRAM the shortest and the longest frames; ``--full``: all lengths.
    """
    for name, (store, words) in STORES.items():
        folder = probe(store, words)
        for length in LENGTHS if is_full or store == "block" else (LENGTHS[0], LENGTHS[-1]):
            longest = most_delay(length, words, store)
            least = least_delay(folder)
            traffic = {0: line((length,), 100, longest + 20 * (length + OVERHEAD), length)}
            off = sum(wrong(folder, lanes(words), traffic, ticks) for ticks in (least, longest))
            is_goal = name == GOAL_STORE and length == GOAL_LENGTH
            goal = GOAL_NS / 1000 if is_goal else least * TICK_NS / 1000
            yield Figure(f"delay_{name}_{length}_most", longest * TICK_NS / 1000, "us", goal, is_least=True)
            yield Figure(f"delay_{name}_{length}_off", off, "frames", 0)


def most_delay(length: int, ring: int, store: str) -> int:
    """Return the ticks for which a ring of so many words holds a full line of such frames, by hand."""
    words = -(-length // 4)
    frames = ring // max(words, ENTRY_SPACE) if store == "sdram" else min(ring // words, ENTRIES)
    return (frames - SPARE_FRAMES) * (length + OVERHEAD) - ARRIVAL_TICKS


@cache
def least_delay(folder: Path) -> int:
    """Return the least delay of a probe."""
    with tempfile.TemporaryDirectory() as files, emulating(folder, Path(files)) as emulated:
        return emulated.read(0, "least_delay")
