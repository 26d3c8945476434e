# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``port`` of the bench ``replay``: a compiled port from words of its ring to octets on the PHY, against a model."""

import random
from collections.abc import Callable, Iterator, Sequence

from replay_gaps import busiest

from liteprobe.sim.drivers.replay.port import Compared, Program, compared, run
from liteprobe.sim.drivers.replay.traces import DATAGRAM, FrameMaker, stalled, trace
from liteprobe.sim.drivers.tools.figures import Figure, row
from liteprobe.sim.drivers.traffic.port import SYS_PS
from liteprobe.sim.models.traffic.replay import TraceFrame

LENGTHS = (60, 64, 120, 128, 240, 256, 512, 1024, 1514, 9000)
FRAMES = 20_000  # Of a run.
LINE_TICKS = 200_000  # Of each length.
FAST = 66  # Cycles from burst to burst of a memory that is faster than the line.


def figures(name: str, found: Sequence[Compared]) -> Iterator[Figure]:
    """Return what was compared, and what must be 0."""

    def total(what: str) -> int:
        return sum(getattr(one, what) for one in found)

    yield Figure(f"port_{name}_frames", total("frames"), "frames", 1, is_least=True)
    yield Figure(f"port_{name}_frames_missing", total("missing"), "frames", 0)
    yield Figure(f"port_{name}_starts_off", total("starts_off"), "frames", 0)
    yield Figure(f"port_{name}_octets_off", total("octets_off") + total("fcs_off"), "frames", 0)
    yield Figure(f"port_{name}_counters_off", total("counters_off"), "counters", 0)


def replayed(frames: Sequence[TraceFrame], chance: random.Random, waits: float = 0, **options: int) -> Compared:
    """Replay frames, and compare."""
    words = [word for record in trace(frames, chance, waits) for word in record]
    one = Program(frames, words)
    sys_ps = SYS_PS + chance.randint(-2, 2)
    return compared(one, run([one], sys_ps, chance.randrange(1 << 20))[0])


def always(snap: int) -> Callable[[int], int]:
    """Return a function that says the same of any length."""
    return lambda _: snap


def exponential(is_full: bool) -> Iterator[Figure]:
    """Exponential gaps at 8/10 of the line, 60 to 1514 octets, stamps in half of the frames, WAITs."""
    runs = (1_000_000 if is_full else 40_000) // FRAMES
    found = []
    for seed in range(runs):
        chance = random.Random(seed)
        found.append(replayed(FrameMaker(chance, 0.5).exponential(FRAMES, 0.8), chance, 0.05))
    yield from figures("exponential", found)


def back_to_back(is_full: bool) -> Iterator[Figure]:
    """Every length back to back, with and without stamps; and 1514 octets, 64 of them in the record."""
    found = []
    for length, snap in [*((length, length) for length in LENGTHS), (1514, 64)]:
        for stamps in (0, 1):
            chance = random.Random(length + stamps)
            count = LINE_TICKS * (10 if is_full else 1) // (length + 24) + 2
            frames = FrameMaker(chance, stamps).back_to_back([length] * count, always(snap))
            found.append(replayed(frames, chance))
            name = f"port_utilisation_{length}" + ("_snap_64" if snap < length else "") + ("_stamped" if stamps else "")
            yield Figure(name, 100 * found[-1].utilisation, "%", 100, is_least=True)
    yield from figures("back_to_back", found)
    yield Figure("port_back_to_back_late", sum(one.late for one in found), "frames", 0)


def stalls(is_full: bool) -> Iterator[Figure]:
    """A host that stalls for up to 10 ms, with a ring of 32 KiB: late frames and underruns as they must be."""
    found = []
    for seed in range(200 if is_full else 12):
        chance = random.Random(seed)
        maker = FrameMaker(chance, 0.3)
        frames = maker.exponential(1500, chance.choice((0.6, 0.8, 0.95)))
        if seed % 3 == 0:
            frames = maker.back_to_back([chance.choice((60, 300, 1514))] * 1500)
        words = [word for record in trace(frames, chance, 0.1) for word in record]
        every = int(4 * DATAGRAM * chance.choice((0.4, 0.7, 1.3)))
        arrivals = stalled(len(words), chance, every, 4, longest=1_250_000)
        one = Program(frames, words, arrivals, prime=1000, turn=FAST)
        found.append(compared(one, run([one], seed=seed)[0]))
    yield from figures("stalls", found)
    yield Figure("port_stalls_underruns", sum(one.underruns for one in found), "frames", 1, is_least=True)
    # Frames whose words came when they were due, to some ticks: the truth doesn't say which of both was first.
    unsaid = sum(one.unsaid for one in found) / sum(one.frames for one in found)
    yield Figure("port_stalls_underruns_unsaid", 100 * unsaid, "% of frames", 2)


def loops(is_full: bool) -> Iterator[Figure]:
    """Traces of some KiB that loop, back to back and with exponential gaps."""
    found = []
    for seed in range(20 if is_full else 4):
        chance = random.Random(seed)
        maker = FrameMaker(chance, 0.5)
        frames = maker.exponential(20, 0.9, 60, 900)
        if seed % 2:
            first, *rest = maker.back_to_back([chance.choice((60, 300, 1514)) for _ in range(15)])
            frames = [TraceFrame(rest[-1].length + 24, first.length, first.octets, first.stamp), *rest]
        words = [word for record in trace(frames, chance) for word in record]
        one = Program(frames, words, loops=200, prime=len(words))
        found.append(compared(one, run([one], seed=seed)[0]))
    yield from figures("loops", found)


@row("replay")
def test_port(is_full: bool) -> Iterator[Figure]:
    """The port by itself."""
    for part in (exponential, busiest, back_to_back, stalls, loops):
        yield from part(is_full)
