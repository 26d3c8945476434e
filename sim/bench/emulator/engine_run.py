# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes random networks and frames through the compiled emulation of a direction, and compares all of it with the reference."""

import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats.emulate import (
    BANK_WORDS,
    CLASSES,
    COUNTER_WORDS,
    DELAY_ENTRIES,
    ClassCounter,
    ClassGauge,
    Outcome,
)
from liteprobe.sim.bench.emulator.engine_module import ARRIVAL_TICKS, LEAD_TICKS, write_verilog
from liteprobe.sim.bench.emulator.engine_plans import Plan
from liteprobe.sim.bench.tools.compiled import compiled_program
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.draws import Frame

MAIN = Path(__file__).with_name("engine_run.cpp")
DRAW = MAIN.parent.parent / "traffic" / "draw.h"
ITEM = struct.Struct("<IIQ")
SET, WRITE, FRAME, OPPORTUNITY, SWITCH, END = range(6)
POSITIONS = 2**22
SHOWN = 3  # Findings of a kind.

VERDICT_DTYPE = np.dtype([("position", "<u4"), ("keep", "u1"), ("lane", "u1"), ("outcome", "u1"), ("number", "u1")])
DEPARTURE_DTYPE = np.dtype(
    [("now", "<u8"), ("due", "<u4"), ("position", "<u4"), ("bit", "<u4"), ("length", "<u2")]
    + [(name, "u1") for name in ("lane", "number", "twice", "corrupt", "mended", "padding")]
    + [("padding_end", "<u4")]
)
Records = NDArray[np.void]


@dataclass(frozen=True)
class EngineRun:
    """What the emulation did: a verdict of each frame, departures, words of the counters, cycles."""

    verdicts: Records
    departures: Records
    counts: NDArray[np.uint32]
    cycles: int


@dataclass(frozen=True)
class Compared:
    """How far a run is from the reference.

    Attributes
    ----------
    frames, sent, switches : int
        That came; that left; of the settings.
    outcomes : how many frames had each outcome.
    off : int
        Frames, departures and counters that are not as they should be.
    found : list of str
        The first of them.
    cycles : int
    """

    frames: int
    sent: int
    switches: int
    outcomes: dict[Outcome, int]
    off: int
    found: list[str]
    cycles: int


@cache
def build() -> Path:
    """Return the executable, compiled if need be."""
    return compiled_program("engine_bench", write_verilog, MAIN, [DRAW])


def script_of(plan: Plan) -> bytes:
    """Return what the bench is to do."""
    parameters = (plan.step_ticks, plan.lag_ticks, plan.stall_256, plan.rate_256, ARRIVAL_TICKS, LEAD_TICKS)
    items = [(SET, n, value) for n, value in enumerate(parameters)]
    memory = [*plan.settings.words, *[0] * BANK_WORDS, *plan.settings.delay_table(), *plan.settings.pattern_memory()]
    assert len(plan.settings.words) == BANK_WORDS and len(plan.settings.delay_table()) == DELAY_ENTRIES
    items += [(WRITE, place, word) for place, word in enumerate(memory)]
    items += [(OPPORTUNITY, ticks, octets) for ticks, octets in plan.settings.trace]
    bank = 0
    for tick, words in plan.switches:
        bank = 1 - bank
        items.append((SWITCH, 0, tick))
        items += [(WRITE, BANK_WORDS * bank + place, word) for place, word in enumerate(words[: CLASSES * 32 + 32])]
    items += [(FRAME, length | klass << 16, tick) for tick, length, klass in plan.arrivals]
    items.append((END, 0, plan.end))
    return b"".join(ITEM.pack(*item) for item in items)


def run(plan: Plan) -> EngineRun:
    """Run a plan; RuntimeError where the emulation breaks a rule."""
    executable = build()
    with TemporaryDirectory(dir=executable.parent) as folder:
        script, verdicts, departures, counts = (
            Path(folder) / name for name in ("script", "verdicts", "departures", "counts")
        )
        script.write_bytes(script_of(plan))
        command = [str(executable), *map(str, (script, verdicts, departures, counts))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the bench ended with {done.returncode}: {done.stderr}")
        return EngineRun(
            np.fromfile(verdicts, VERDICT_DTYPE),
            np.fromfile(departures, DEPARTURE_DTYPE),
            np.fromfile(counts, np.uint32),
            int(done.stdout),
        )


def reference(plan: Plan) -> tuple[Direction, list[int]]:
    """Return what should become of all frames, and which of them have been handed on at the end, in their order."""
    one = Direction(plan.settings)
    for tick, words in plan.switches:
        one.switch(tick, words)
    for arrival in plan.arrivals:
        one.arrive(*arrival)
    left = one.advance(plan.end - ARRIVAL_TICKS, ARRIVAL_TICKS + LEAD_TICKS + 1)
    return one, [number for place, (_, number) in enumerate(left) if place == 0 or left[place - 1][1] != number]


# Comparison -------------------------------------------------------------------------------------------


def compare(plan: Plan) -> Compared:
    """Run a plan both ways."""
    done = run(plan)
    one, left = reference(plan)
    off, found = 0, []
    for kind in (verdicts_off(done, one), departures_off(done, one, left), counts_off(done, one)):
        texts = list(kind)
        off += len(texts)
        found += texts[:SHOWN]
    outcomes = {outcome: sum(frame.outcome is outcome for frame in one.frames) for outcome in Outcome}
    return Compared(len(one.frames), len(left), len(plan.switches), outcomes, off, found, done.cycles)


def words_of(frame: Frame) -> int:
    """Return how many words of the store a frame takes."""
    return (frame.length + 3) // 4


def verdicts_off(done: EngineRun, one: Direction) -> Iterator[str]:
    """Give in what the verdict of each frame is off."""
    if len(done.verdicts) != len(one.frames):
        yield f"{len(done.verdicts)} verdicts on {len(one.frames)} frames"
    position = [0] * 9
    for frame, verdict in zip(one.frames, done.verdicts.tolist(), strict=False):
        waits = frame.is_kept or frame.outcome is None or (frame.outcome is Outcome.LOST and frame.is_late)
        outcome = Outcome.SENT if waits else frame.outcome
        expected = [int(frame.is_kept), outcome, frame.klass]
        came = [verdict[1], verdict[3], verdict[4]]
        if frame.is_kept:
            expected += [frame.lane, position[frame.lane] % POSITIONS]
            came += [verdict[2], verdict[0]]
            position[frame.lane] += words_of(frame)
        if came != expected:
            yield f"frame {frame.number} at tick {frame.time} (keep, outcome, class, lane, position): {came}, not {expected}"


def departures_off(done: EngineRun, one: Direction, left: list[int]) -> Iterator[str]:
    """Give in what each departure is off."""
    if len(done.departures) != len(left):
        yield f"{len(done.departures)} departures, not {len(left)}"
    position = [0] * 9
    place = {}
    for frame in one.frames:  # The octets lie as they came.
        if frame.is_kept:
            place[frame.number] = position[frame.lane] % POSITIONS
            position[frame.lane] += words_of(frame)
    names = ("due", "lane", "number", "length", "position", "twice", "corrupt")
    for number, departure in zip(left, done.departures, strict=False):
        frame = one.frames[number]
        assert frame.due is not None  # It was left.
        expected = [
            frame.due % 2**32,
            frame.lane,
            frame.klass,
            frame.length,
            place[number],
            int(frame.is_twice),
            int(frame.is_corrupt),
        ]
        came = [int(departure[name]) for name in names]
        if frame.is_corrupt:
            expected += [int(frame.is_mended), frame.bit]
            came += [int(departure["mended"]), int(departure["bit"])]
        if came != expected:
            yield f"frame {number} of tick {frame.time} ({', '.join(names)}, ...): {came}, not {expected}"


def counts_off(done: EngineRun, one: Direction) -> Iterator[str]:
    """Give which counters are off."""
    for klass in range(CLASSES):
        expected = one.counts.words(klass)
        came = done.counts[COUNTER_WORDS * klass : COUNTER_WORDS * (klass + 1)].tolist()
        for word, (got, wanted) in enumerate(zip(came, expected, strict=True)):
            if got != wanted:
                name = next((kind(word).name for kind in (ClassCounter, ClassGauge) if word in list(kind)), str(word))
                yield f"class {klass}: {name} is {got}, not {wanted}"
