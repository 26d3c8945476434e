# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes programs of configuration sets through their source, with a builder after it, and compares it with the model."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.formats import SetError
from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.cores.transmit.sources.sets import BlockTable, SdramTable, SetsSource
from liteprobe.cores.transmit.sources.train import TrainSchedule
from liteprobe.host.traffic.sets import SetSettings
from liteprobe.sim.drivers.replay.sets_maker import Made, SetsMaker
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.drivers.traffic.streams import EMPTY, FINAL, FRAME_DTYPE, DescriptorBench
from liteprobe.sim.drivers.transmit.shown import StillNumbers
from liteprobe.sim.models.traffic.sets import Repeats, Set, items
from liteprobe.sim.models.traffic.sets import LEAD, Frame, Outcome, outcome

TABLE_ADDRESS = 0x12000 # Words.

# Sets Bench ---------------------------------------------------------------------------------------

class SetsPins(PinnedBench):
    """A bench with pins of what is around a source of sets (sets.h)."""
    def add_sets(self, sets, port):
        """Bring to pins the words of the ring, ``template_<n>``, settings, and the port of the table's memory."""
        self.add_inputs(sets, ["written", "prime", "fields", "places", "first_repeats_allowed"])
        for n, word in enumerate(sets.template):
            self.add_input(f"template_{n}", word)
        self.add_sink("word", sets.words)
        self.add_outputs(port.request, ["valid", "address", "rest", "write"], "request_")
        self.add_input("request_ready", port.request.ready)
        self.add_inputs(port, ["gives", "read_data"])

class SetsBench(DescriptorBench, SetsPins):
    """A source with its schedule and its templates on pins.

    ``interval``, ``fraction``, ``count`` are those of the schedule; bit 16 of ``adr`` of the bus chooses a table in block RAM.
    """
    def __init__(self, with_sdram):
        DescriptorBench.__init__(self)
        self.port = port = BurstPort()
        self.core = core = SetsSource(SdramTable(port, TABLE_ADDRESS) if with_sdram else BlockTable(), with_templates=True)
        templates        = core.templates
        self.add_sets(core, port)
        self.add_inputs(core, ["elapsed", "stop", "template_length"])
        self.add_outputs(core, ["is_primed", "is_active", "is_starved", "sets", "repeats", "underruns", "first_underrun", "error",
            "shows", "is_repeat"])
        self.add_inputs(templates, ["builds", "build_stream", "build_word"])
        self.add_templates(templates.source, templates.header_read, templates.headers)
        self.add_bus([templates.bus] + ([] if with_sdram else [core.table.bus]))

        # A schedule says when frames are due, and checks its numbers before the source begins, as in `TransmitPath`.
        self.schedule = schedule = TrainSchedule()
        self.numbers  = numbers  = StillNumbers(schedule)
        self.comb += [
            numbers.count.eq(self.add_pin("count", 32)),
            numbers.repeats.eq(1),
            numbers.interval_ticks.eq(self.add_pin("interval", 32)),
            numbers.interval_fraction.eq(self.add_pin("fraction", 32)),
            schedule.length.eq(core.length),
            schedule.check.eq(self.add_pin("arm")),
            core.arm.eq(schedule.checked),
            schedule.start.eq(schedule.checked),
            schedule.stop.eq(core.stop | core.ends),
            schedule.source.connect(core.slots),
        ]

BENCH = CompiledBench(SetsBench, Path(__file__).with_name("sets.cpp"))

# Runs ---------------------------------------------------------------------------------------------

HEAD = struct.Struct("<QqQ4I20I")
LEAD_TICKS = 2070  # Of the start of a program before its tick 0.
TICKS_256 = 640  # Of a cycle at 50 MHz, in 2^-8 ticks.
ARRIVAL_DTYPE = np.dtype([("tick", "<i8"), ("word", "<u4"), ("unused", "<u4")])
DECISION_DTYPE = np.dtype([("cycle", "<u8"), ("elapsed", "<i8"), ("is_repeat", "<u8")])
RESULT_DTYPE = np.dtype(
    [(name, "<u8") for name in ("cycles", "frames", "decisions", "words", "starved")]
    + [(name, "<u4") for name in ("sets", "repeats", "underruns", "first_underrun", "error", "is_over")]
)


@dataclass(frozen=True)
class SetsProgram:
    """A program, and what is around the source while it runs.

    Attributes
    ----------
    words : array of uint32, shape (words,)
    arrivals : array of int64, shape (words,)
        Tick at which each is in the ring; before tick 0 all that are to come before the start.
    table : array of uint32
    rate_256, stall_256 : ticks a cycle, 2^-8; cycles of 256 in which there is no word.
    builder : (int, int, int); of 256 words so many wait; cycles after a frame, and before one, at most.
    table_latency : (int, int, int); cycles at most; of 256 answers so many are slow; cycles of these at most.
    limit : cycles; then it is stopped.
    """

    settings: SetSettings
    words: NDArray[np.uint32]
    arrivals: NDArray[np.int64]
    table: Sequence[int] = ()
    prime: int = 0
    count: int = 0xFFFFFFFF
    stop_tick: int | None = None
    rate_256: int = TICKS_256
    stall_256: int = 0
    builder: tuple[int, int, int] = (0, 0, 0)
    table_latency: tuple[int, int, int] = (4, 0, 4)
    limit: int = 10_000_000


@dataclass(frozen=True)
class SetsRun:
    """Holds the result of a program: frames of FRAME_DTYPE, decisions, cycles in which words were taken, and the counters.

    ``is_over``: it ended, by itself or by ``stop_tick``; else it was stopped at its limit.
    """

    frames: NDArray[np.void]
    decisions: NDArray[np.void]
    words: NDArray[np.uint64]
    counters: dict[str, int] = field(default_factory=dict)


def packed(program: SetsProgram, with_sdram: bool = True) -> bytes:
    """Return a program as the benches read it."""
    settings = program.settings
    stop = -LEAD_TICKS - 1 if program.stop_tick is None else program.stop_tick
    numbers = [settings.length, int(settings.fields), settings.repeats, program.prime, settings.interval]
    numbers += [settings.fraction, program.count, program.rate_256, program.stall_256, *program.builder]
    numbers += [*program.table_latency, len(settings.header), len(program.table), len(program.words)]
    numbers += [not with_sdram, TABLE_ADDRESS]
    arrivals = np.zeros(len(program.words), ARRIVAL_DTYPE)
    arrivals["tick"], arrivals["word"] = program.arrivals, program.words
    head = HEAD.pack(settings.places, stop, program.limit, *settings.template, *numbers)
    memories = np.array([*settings.header, *program.table], np.uint32)
    return head + memories.tobytes() + arrivals.tobytes()


def run(programs: Sequence[SetsProgram], with_sdram: bool = True) -> list[SetsRun]:
    """Run programs one after the other; RuntimeError where the source breaks a rule."""
    done = BENCH.run({"programs": b"".join(packed(program, with_sdram) for program in programs)}, with_sdram=with_sdram)
    return _unpacked(done.array("frames", FRAME_DTYPE), done.files["results"])


def _unpacked(frames: NDArray[np.void], results: bytes) -> list[SetsRun]:
    runs = []
    at = first = 0
    while at < len(results):
        result = np.frombuffer(results, RESULT_DTYPE, 1, at)[0]
        at += RESULT_DTYPE.itemsize
        decisions = np.frombuffer(results, DECISION_DTYPE, int(result["decisions"]), at)
        at += decisions.nbytes
        words = np.frombuffer(results, "<u8", int(result["words"]), at)
        at += words.nbytes
        own = frames[first : first + int(result["frames"])]
        first += len(own)
        runs.append(SetsRun(own, decisions, words, {name: int(result[name]) for name in RESULT_DTYPE.names or ()}))
    return runs


# Comparison ---------------------------------------------------------------------------------------

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
    """Return repeats that came too early, or though a set was there, and counters of underruns that are impossible."""
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
