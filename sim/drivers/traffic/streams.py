# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes programs of streams through their source, with a builder after it, and compares frames with the interpreter's."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.formats import (
    HEADER_WORDS_OF_STREAM, LIST_ENTRIES_MAX, LIST_WORDS, MODIFIER_FIELDS, MODIFIER_WORDS, MODIFIERS, STREAM_FIELDS, STREAM_WORDS,
    STREAMS, LengthKind, ModifierOp, packed_words,
)
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.drivers.traffic.interpreter import SETTINGS, Contents, ExpectedFrame, Program

# Streams Bench ------------------------------------------------------------------------------------

INPUTS  = ["arm", "mask", "stop", "hold", "begin", "end", "elapsed", "builds", "build_stream", "build_word"]
OUTPUTS = ["is_primed", "is_active", "active"]

class DescriptorBench(PinnedBench):
    """A bench whose descriptors and headers a builder reads (builder.h)."""
    def add_templates(self, source, read, headers):
        """Bring descriptors, and the port that reads headers, to pins; ``collides``: a word is written as it is read."""
        self.add_source("source", source)
        self.add_input("header_adr", read.adr)
        self.add_input("header_re", read.re)
        self.add_output("header_dat", read.dat)
        self.comb += self.add_pin("collides").eq(read.re & headers.edit & Reduce("OR", [
            headers.writes[n] & (adr == read.adr) for n, adr in enumerate(headers.adrs)]))

class StreamsBench(DescriptorBench):
    """A source on pins: descriptor ``source_*``, builder, and one bus, whose bits 17..16 of ``adr`` choose the memory."""
    def __init__(self):
        DescriptorBench.__init__(self)
        self.core = core = StreamSource()
        self.add_inputs(core, INPUTS)
        self.add_outputs(core, OUTPUTS)
        self.add_templates(core.source, core.header_read, core.templates.headers)
        self.add_bus([core.streams_bus, core.modifiers_bus, core.lists_bus, core.headers_bus])

BENCH   = CompiledBench(StreamsBench, Path(__file__).with_name("streams.cpp"))
COMMAND = struct.Struct("<IIQ")

# Runs ---------------------------------------------------------------------------------------------

#: A descriptor, when it was there and taken (cycles), and the words of its header as they were read.
FRAME_DTYPE = np.dtype(
    [("shown", "<u8"), ("taken", "<u8"), ("elapsed", "<i8"), ("due", "<i8"), ("sequence", "<u4"), ("checksum_seed", "<u4"),
     ("length", "<u2")]
    + [(name, "u1") for name in (
        "stream", "flags", "header_words", "with_probe", "fill", "payload_offset", "checksum_enable", "stamp_enable",
        "stamp_offset", "stamp_octets", "stamp_shift", "stamp_nibble", "stamp_mend", "padding")]
    + [("header", "<u4", 32)],
    align=True,
)
FINAL, EMPTY = 1, 2  # Of ``flags``.
#: Kinds of commands; see streams.cpp.
Kind = IntEnum(
    "Kind", "WRITE READ ARM PRIMED CLOCK STOP HOLD BEGIN END CYCLES FRAMES BUILDER BACKGROUND FOREVER IDLE", start=0)
#: The memories on the bus of the bench.
Memory = IntEnum("Memory", "SCHEDULE MODIFIERS LISTS HEADERS", start=0)


def address(memory: Memory, word: int) -> int:
    """Return where a word is on the bus."""
    return memory << 16 | word


@dataclass
class Script:
    """Lists what happens, in this order."""

    octets: bytearray = field(default_factory=bytearray)

    def do(self, kind: Kind, a: int = 0, b: int = 0) -> None:
        """Add a command."""
        self.octets += COMMAND.pack(kind, a, b % (1 << 64))

    def write(self, memory: Memory, first: int, words: list[int]) -> None:
        """Write words to the bus."""
        for n, word in enumerate(words):
            self.do(Kind.WRITE, address(memory, first + n), word)

    def builder(self, stall_256: int = 0, rest: int = 0, wait: int = 0) -> None:
        """Let the builder stall so many of 256 words, rest after a frame and wait before one up to so many cycles."""
        self.do(Kind.BUILDER, stall_256 | rest << 8 | wait << 20)


@dataclass(frozen=True)
class StreamsRun:
    """Holds what came: frames of FRAME_DTYPE, and the words that READ read."""

    frames: NDArray[np.void]
    reads: NDArray[np.uint32]
    cycles: int


def run(script: Script) -> StreamsRun:
    """Run a script; RuntimeError where the source breaks a rule."""
    done = BENCH.run({"script": bytes(script.octets)})
    return StreamsRun(done.array("frames", FRAME_DTYPE), done.array("reads", np.uint32), done.numbers[0])


# Comparison ---------------------------------------------------------------------------------------

COMPARED = ("stream", "sequence", "length", "due", "checksum_seed", *SETTINGS, "stamp_octets", "header")


def memories(contents: Contents) -> dict[Memory, list[int]]:
    """Return the words of each memory."""
    return dict(zip(Memory, (contents.schedule, contents.modifiers, contents.lists, contents.headers), strict=True))


def write_contents(script: Script, contents: Contents) -> None:
    """Write all memories."""
    for memory, words in memories(contents).items():
        script.write(memory, 0, words)


def read_contents(script: Script, contents: Contents) -> None:
    """Read as many words back."""
    for memory, words in memories(contents).items():
        for n in range(len(words)):
            script.do(Kind.READ, address(memory, n))


def words_of(contents: Contents) -> list[int]:
    """Return the words in the order in which they are read back."""
    return [word for words in memories(contents).values() for word in words]


def as_frames(expected: Sequence[ExpectedFrame]) -> NDArray[np.void]:
    """Return frames that are expected, like those that come."""
    frames = np.zeros(len(expected), FRAME_DTYPE)
    for name in ("stream", "sequence", "length", "due", "checksum_seed"):
        frames[name] = [getattr(frame, name) for frame in expected]
    for n, name in enumerate((*SETTINGS, "stamp_octets")):
        frames[name] = [frame.settings[n] for frame in expected]
    for n, frame in enumerate(expected):
        frames["header"][n, : len(frame.header)] = frame.header
    return frames


def differences(got: NDArray[np.void], expected: Iterable[ExpectedFrame]) -> list[str]:
    """Return in what the first frame that differs does; none where all are as expected."""
    wanted = as_frames(list(expected))
    if len(got) != len(wanted):
        return [f"{len(got)} frames, not {len(wanted)}"]
    unlike = np.zeros(len(got), bool)
    for name in COMPARED:
        different = got[name] != wanted[name]
        unlike |= different.any(axis=1) if name == "header" else different
    if not unlike.any():
        return []
    first = int(np.argmax(unlike))
    return [
        f"frame {first}: {name} is {got[name][first]}, not {wanted[name][first]}"
        for name in COMPARED
        if np.any(got[name][first] != wanted[name][first])
    ]


# Random programs ----------------------------------------------------------------------------------

WORD = 1 << 32


@dataclass(frozen=True)
class Taste:
    """Describes what the programs are made of.

    Attributes
    ----------
    endless : streams have no end; else each second one has.
    least_interval, most_interval : ticks.
    is_full : all streams, four modifiers each, random lengths at random intervals, frames of 60 octets.
    """

    endless: bool = False
    least_interval: int = 1
    most_interval: int = 5000
    is_full: bool = False


def random_contents(random: Random, taste: Taste | None = None) -> Contents:
    """Return the words of all 16 streams; each has a good description."""
    taste = taste or Taste()
    # Each entry of a list may be a length: none is below that of the shortest frame.
    contents = Contents([], [], [random.randrange(WORD) | 64 for _ in range(LIST_WORDS)], [])
    grid = random.choice([1, 50, 400])  # Ticks: coarse ones are often due together.
    for _ in range(STREAMS):
        header_words = 12 if taste.is_full else random.randint(4, HEADER_WORDS_OF_STREAM)
        contents.headers += [random.randrange(WORD) for _ in range(HEADER_WORDS_OF_STREAM)]
        free = set(range(2 * header_words))
        modifiers = random_modifiers(random, header_words, free, taste.is_full)
        contents.modifiers += [word for words in modifiers for word in words]
        values = {**random_header(random, header_words, free), **random_length(random, taste.is_full)}
        values |= random_interval(random, taste, grid)
        contents.schedule += packed_words(STREAM_FIELDS, STREAM_WORDS, values)
    return contents


def random_header(random: Random, header_words: int, free: set[int]) -> dict[str, int]:
    """Return what a stream says of its header and its frames; takes halfwords that are free."""
    values = {
        name: random.getrandbits(STREAM_FIELDS[name].bits)
        for name in (
            "fill", "with_probe", "checksum_enable", "stamp_enable", "stamp_nibble", "stamp_mend", "stamp_octets_less_1",
            "stamp_shift", "payload_offset", "stamp_offset", "checksum_seed", "ipv4_sum",
        )
    }  # fmt: skip
    values |= {
        "header_words": header_words,
        "seed_lengths": random.randrange(3),
        "network_base": random.randrange(60),
        "transport_offset": random.randrange(60),
        "sequence": random.choice([0, random.randrange(WORD), WORD - 3]),
    }
    for name in ("network", "udp", "ipv4"):
        if free and random.random() < 0.7:
            halfword = random.choice(sorted(free))
            free.discard(halfword)
            values |= {f"{name}_write": 1, f"{name}_halfword": halfword}
    return values


def random_length(random: Random, is_full: bool) -> dict[str, int]:
    """Return what a stream says of its lengths."""
    kind = LengthKind.RANDOM if is_full else random.choice(list(LengthKind))
    least = 60 if is_full else random.randint(60, 300)
    values = {"length_kind": int(kind), "list_drawn": random.getrandbits(1), "length_random": random.randrange(1, WORD)}
    if kind == LengthKind.LIST:
        entries = random.choice([1, 2, 7, LIST_ENTRIES_MAX])
        base = random.randint(0, LIST_WORDS - entries)
        return values | {"list_base": base, "list_entries": entries, "list_index": random.randrange(entries)}
    if kind == LengthKind.RANDOM:
        return values | {"length_least": least, "length_range": 1 if is_full else random.choice([1, 2, 1000, 9000])}
    greatest = least + random.choice([0, 10, 1000])
    values |= {"length_least": least, "length_greatest": greatest}
    if kind == LengthKind.STEPPED:
        values |= {"length_next": random.randint(least, greatest), "length_step": random.choice([0, 1, 7, 600])}
    return values


def random_interval(random: Random, taste: Taste, grid: int) -> dict[str, int]:
    """Return what a stream says of its due ticks and its end."""
    exponential = taste.is_full or random.random() < 0.4
    interval = random.randint(taste.least_interval, taste.most_interval)
    if exponential:
        values = {"exponential": 1, "interval": 32 * interval + random.randrange(32), "interval_random": random.randrange(1, WORD)}
    else:
        whole = max(interval // grid, 1) * grid
        values = {"interval": whole, "interval_fraction": random.choice([0, random.randrange(WORD)])}
    burst = 1 if taste.is_full else random.choice([0, 1, 1, 2, 3, 9])
    values |= {
        "burst_frames": burst,
        "burst_left": max(burst, 1),
        "burst_interval": random.choice([0, 84, grid * random.randint(1, 20)]),
        "phase": random.choice([0, grid * random.randrange(40), random.randrange(5000)]),
        "due_fraction": random.choice([0, random.randrange(WORD)]),
    }
    if taste.endless or random.random() < 0.5:
        return values | {"endless": 1, "frames_left": random.randrange(WORD)}
    return values | {"frames_left": random.choice([0, 1, 2, random.randint(1, 300)])}


def random_modifiers(random: Random, header_words: int, free: set[int], is_full: bool) -> list[list[int]]:
    """Return the words of four modifiers; takes the halfwords that they change."""
    count = MODIFIERS if is_full else random.randint(0, MODIFIERS)
    made = []
    for number in range(MODIFIERS):
        values = random_modifier(random)
        if number >= count:
            values["op"] = int(ModifierOp.NONE) if number == count else values["op"]  # What comes after it is not looked at.
        halfword = random.randrange(2 * header_words - 1)
        for name, place in (("high", halfword), ("low", halfword + 1)):
            taken = place in free and (is_full or random.random() < 0.8)
            free -= {place} if taken and number < count else set()
            mask = random.choice([0xFFFF, random.randrange(1, 1 << 16)]) if taken else 0
            values["mask"] |= mask << (16 if name == "high" else 0)
            values |= {f"{name}_in_{what}": random.getrandbits(1) if taken else 0 for what in ("ipv4", "seed")}
        made.append(packed_words(MODIFIER_FIELDS, MODIFIER_WORDS, values | {"halfword": halfword}))
    return made


def random_modifier(random: Random) -> dict[str, int]:
    """Return what a modifier does, without its place."""
    op = random.choice([one for one in ModifierOp if one])
    values = {"op": int(op), "mask": 0}
    if op in (ModifierOp.LIST, ModifierOp.DRAWN):
        entries = random.choice([1, 2, 7, LIST_ENTRIES_MAX])
        values |= {"list_base": random.randint(0, LIST_WORDS - entries), "number": entries}
    if op == ModifierOp.LIST:
        values |= {"value": random.randrange(entries)}
    elif op == ModifierOp.STEP:
        number = random.choice([0, 1, 2, 5, WORD - 1])
        left = random.randint(1, number) if number else random.choice([0, 1, 2, random.randrange(WORD)])
        values |= {"number": number, "left": left}
        values |= {name: random.randrange(WORD) for name in ("step", "first", "value")}
    else:
        values |= {"random": random.randrange(1, WORD)}
    return values


# Trials -------------------------------------------------------------------------------------------

LEAD_TICKS = 2070  # About; a program is armed so long before its tick 0.
PRIMED_CYCLES = 180
TICKS_256 = 640  # Of a cycle at 50 MHz, in 2^-8 ticks.
LIMIT_CYCLES = 10_000_000


@dataclass(frozen=True)
class Trial:
    """Holds what a trial found: frames, what was wrong with the first bad one, and cycles."""

    frames: int
    found: list[str]
    cycles: int


def armed(contents: Contents, mask: int, rate_256: int = TICKS_256) -> Script:
    """Return a script that writes the memories and starts a program."""
    script = Script()
    write_contents(script, contents)
    script.do(Kind.CLOCK, 0, -LEAD_TICKS)
    script.do(Kind.ARM, mask)
    script.do(Kind.PRIMED, PRIMED_CYCLES)
    script.do(Kind.CLOCK, rate_256, -LEAD_TICKS)
    return script


def expected_frames(program: Program, most: int) -> list[ExpectedFrame]:
    """Return the next frames of a program, at most so many."""
    frames: list[ExpectedFrame] = []
    while len(frames) < most and (frame := program.next_frame()):
        frames.append(frame)
    return frames


def compare(done: StreamsRun, program: Program) -> list[str]:
    """Return what is wrong with the first bad frame of a run from the start of a program."""
    frames = done.frames
    is_over = bool(len(frames) and frames["flags"][-1] & FINAL)
    frames = frames[: len(frames) - is_over]
    found = differences(frames, expected_frames(program, len(frames)))
    if is_over and program.active:
        found.append("the program ends before its streams do")
    return found


def allow_writes(script: Script, contents: Contents, mask: int) -> None:
    """Let the bus use words that are not state, in the background: those of other streams as it likes."""
    constants = {
        Memory.SCHEDULE: (contents.schedule, 16, (0, 1, 2, 3, 4, 7, 8, 10)),
        Memory.MODIFIERS: (contents.modifiers, 8, (0, 1, 2, 3, 4)),
        Memory.HEADERS: (contents.headers, 1, ()),
    }
    for memory, (words, period, places) in constants.items():
        for n, word in enumerate(words):
            if not mask >> n * STREAMS // len(words) & 1:
                script.do(Kind.FOREVER, address(memory, n), 1 << 32 | word)
            elif n % period in places:
                script.do(Kind.FOREVER, address(memory, n), word)
    for n, word in enumerate(contents.lists):
        script.do(Kind.FOREVER, address(Memory.LISTS, n), word)


def random_trial(seed: int, count: int, taste: Taste | None = None) -> Trial:
    """Run ``count`` frames of a random program, with a random builder, a random pace of time and a random load of the bus."""
    random = Random(seed)
    contents = random_contents(random, taste)
    mask = random.choice([random.randrange(1, 1 << STREAMS), 1 << random.randrange(STREAMS), (1 << STREAMS) - 1])
    script = armed(contents, mask, random.choice([TICKS_256 // 4, TICKS_256, 40 * TICKS_256, 1 << 20]))
    script.builder(random.choice([0, 60, 200]), random.choice([0, 20, 200]), random.choice([0, 0, 50]))
    allow_writes(script, contents, mask)
    script.do(Kind.BACKGROUND, random.choice([0, 50, 255]))
    script.do(Kind.FRAMES, count, LIMIT_CYCLES)
    done = run(script)
    return Trial(len(done.frames), compare(done, Program(contents, mask)), done.cycles)
