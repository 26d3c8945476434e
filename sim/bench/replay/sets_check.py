# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Compares what the gateware makes of configuration sets with the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import SetError
from liteprobe.sim.bench.replay.sets_maker import Made, SetsMaker
from liteprobe.sim.bench.replay.sets_run import TICKS_256, SetsProgram, SetsRun
from liteprobe.sim.bench.traffic.streams_run import EMPTY, FINAL
from liteprobe.sim.models.set_items import Repeats, Set, items
from liteprobe.sim.models.sets import LEAD, Frame, Outcome, outcome

NEVER = 0xFFFFFFFF
BEFORE = -100_000  # Ticks: long before the start.
CHOICE_CYCLES = 19  # From the choice of a frame until it is passed on.
PARSE_CYCLES = 12  # From the last word of a set until it can be chosen, where nothing is looked up.


@dataclass(frozen=True)
class Trial:
    """A program that ran: its request, what came, and what is wrong with it."""

    made: Made
    program: SetsProgram
    done: SetsRun
    found: list[str]


def frame_differences(frames: NDArray[np.void], expected: Sequence[Frame]) -> list[str]:
    """Return what is wrong with the first frame that is wrong."""
    if len(frames) != len(expected):
        return [f"{len(frames)} frames, not {len(expected)}"]
    for got, frame in zip(frames, expected, strict=True):
        octets = got["header"].tobytes()[: len(frame.header)]
        pairs = {
            "sequence": (int(got["sequence"]), frame.sequence),
            "due": (int(got["due"]), frame.due),
            "length": (int(got["length"]), frame.length),
            "seed": (int(got["checksum_seed"]) % 0xFFFF if got["checksum_enable"] else 0, frame.seed),
            "header": (octets.hex(), frame.header.hex()),
            "stream": (int(got["stream"]), 0),
        }
        wrong = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if wrong:
            return [f"frame {frame.sequence}: {name} {pair[0]}, not {pair[1]}" for name, pair in wrong.items()]
    return []


def differences(done: SetsRun, expected: Outcome, is_whole: bool = True) -> list[str]:
    """Return what is wrong with a run; not ``is_whole``: it was stopped, so that it has no error to report."""
    frames, counters = done.frames, done.counters
    last = frames[-1] if len(frames) else None
    if last is None or last["flags"] != FINAL | EMPTY:
        return ["the last frame is not the end"]
    if np.any(frames["flags"][:-1]):
        return ["a frame that is not the last one is the end"]
    found = frame_differences(frames[:-1], expected.frames)
    wanted = {"sets": expected.sets, "repeats": expected.repeats}
    if is_whole:
        wanted["error"] = int(SetError[expected.error.upper()]) if expected.error else 0
    found += [f"{name} {counters[name]}, not {value}" for name, value in wanted.items() if counters[name] != value]
    return found


def broken_rules(made: Made, program: SetsProgram, done: SetsRun, frames: Sequence[Frame]) -> list[str]:
    """Return repeats that came too early, or though a set was there, and counters of underruns that can't be."""
    found = []
    ends = [item.end for item in items(made.octets, made.template) if isinstance(item, Set | Repeats)]
    is_set = [isinstance(item, Set) for item in items(made.octets, made.template) if isinstance(item, Set | Repeats)]
    ends_of_sets = [end for end, is_one in zip(ends, is_set, strict=True) if is_one]
    has_table = "index" in made.sets.fields
    sets = 0
    for decision, frame in zip(done.decisions, frames, strict=False):
        if not frame.is_repeat:
            sets += 1
            continue
        elapsed = int(decision["elapsed"]) - (CHOICE_CYCLES - 2) * program.rate_256 // 256
        if frame.due - elapsed > LEAD + 3 * program.rate_256 // 256:
            found.append(f"frame {frame.sequence} is repeated {frame.due - elapsed} ticks before it is due")
        if sets < len(ends_of_sets) and not has_table:
            word = (ends_of_sets[sets] - 1) // 4
            if word < len(done.words) and int(done.words[word]) + PARSE_CYCLES < int(decision["cycle"]) - CHOICE_CYCLES:
                found.append(f"frame {frame.sequence} is repeated though the set of it is there")
    counters = done.counters
    if (counters["underruns"] == 0) != (counters["first_underrun"] == NEVER):
        found.append(f"{counters['underruns']} underruns, the first one {counters['first_underrun']}")
    if counters["underruns"] and not counters["starved"]:
        found.append("underruns, and the source was never starved")
    return found


def checked(made: Made, program: SetsProgram, done: SetsRun, is_whole: bool = True) -> Trial:
    """Return a run with what is wrong with it, where the gateware says which frames are repeated."""
    decisions = [bool(one) for one in done.decisions["is_repeat"]]
    try:
        expected = outcome(
            made.octets, made.template, made.table.tolist(), made.interval, program.settings.repeats, decisions
        )
    except ValueError as error:
        return Trial(made, program, done, [str(error)])
    found = differences(done, expected, is_whole) + broken_rules(made, program, done, expected.frames)
    if is_whole and expected.error == "more sets":
        found.append("the program ended before its sets did")
    return Trial(made, program, done, found)


# Random programs ---------------------------------------------------------------------------------------


def random_program(seed: int, count: int, entries: int = 1 << 16, pace: str = "any") -> tuple[Made, SetsProgram]:
    """Return a random program of ``count`` sets; ``pace``: "full": all words are there early; "any": some are late."""
    random = Random(seed)
    made = SetsMaker(seed, entries).made(count)
    words = made.words
    arrivals = np.full(len(words), BEFORE, np.int64)
    interval = float(made.interval or 100)
    if pace == "any":
        # Words come in groups, each about when it is needed, but for some time.
        rng = np.random.default_rng(seed)
        per_word = interval * count / len(words) * random.choice([0.5, 0.9, 1, 1.1])
        groups = np.cumsum(rng.random(len(words)) < 1 / random.choice([1, 4, 40]))
        late = rng.exponential(interval * random.choice([0.1, 2, 10]), groups[-1] + 1)[groups]
        arrivals = np.maximum.accumulate((np.arange(len(words)) * per_word + late).astype(np.int64))
        ahead = random.choice([0, 4000])
        arrivals = arrivals - ahead
        # Time stands still until the first frame is on its way.
        first = next(item.end for item in items(made.octets, made.template) if isinstance(item, Set))
        arrivals[: (first + 3) // 4] = BEFORE
    return made, SetsProgram(
        made.sets.settings(),
        words,
        arrivals,
        tuple(made.table.tolist()),
        prime=random.choice([0, 1, len(words) // 3, len(words)]) if pace == "full" else 0,
        rate_256=random.choice([TICKS_256, TICKS_256, 4 * TICKS_256]),
        stall_256=random.choice([0, 0, 100, 240]),
        builder=(random.choice([0, 60, 200]), random.choice([0, 20, 200]), random.choice([0, 0, 50])),
        table_latency=(random.choice([1, 8, 30]), random.choice([0, 4, 60]), 300),
    )
