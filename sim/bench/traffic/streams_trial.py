# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random programs through the source of streams, beside the interpreter."""

from dataclasses import dataclass
from random import Random

from liteprobe.cores.formats import STREAMS
from liteprobe.sim.bench.traffic.interpreter import Contents, ExpectedFrame, Program
from liteprobe.sim.bench.traffic.programs import Taste, random_contents
from liteprobe.sim.bench.traffic.streams_check import differences, write_contents
from liteprobe.sim.bench.traffic.streams_run import FINAL, Kind, Memory, Script, StreamsRun, address, run

LEAD_TICKS = 2070  # About; a program is armed so long before its tick 0.
PRIMED_CYCLES = 180
TICKS_256 = 640  # Of a cycle at 50 MHz, in 2^-8 ticks.
LIMIT_CYCLES = 10_000_000


@dataclass(frozen=True)
class Trial:
    """What a trial found: frames, what was wrong with the first bad one, and cycles."""

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
