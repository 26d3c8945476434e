# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Bandwidth traces: frames leave when mm-link would let them; `./run bench emulator mahimahi` tries twenty traces."""

from collections import deque
from collections.abc import Iterator
from random import Random

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.network import BandwidthTrace, Direction, Network, Queue, TrafficClass
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import words_of
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row
from liteprobe.sim.models.emulator.direction import Direction as Reference
from liteprobe.sim.models.emulator.settings import Settings

MS = 125_000  # Ticks.
LIMITS = Limits(store_words=1 << 21, entries=1 << 16, longest=1536, least_delay=6404, trace_words=1 << 22)


def mm_link(stamps_ms: list[int], frames: list[tuple[int, int]], packets: int) -> list[int | None]:
    """Return when mm-link lets frames go (ms), None for one that it drops; ``frames``: when each comes (ticks), its octets.

    Its clock counts whole milliseconds. An opportunity is of 1504 octets; a packet has those of IP and four of the TUN device.
    Source: Mahimahi, src/frontend/link_queue.cc and src/packet/drop_tail_packet_queue.hh, read and written anew.
    """
    left: list[int | None] = [None] * len(frames)
    queue: deque[tuple[int, int]] = deque()
    place, base = 0, 0
    transit, lacks = -1, 0

    def until(now_ms: int) -> None:
        nonlocal place, base, transit, lacks
        while stamps_ms[place] + base <= now_ms:
            time_ms, octets = stamps_ms[place] + base, 1504
            place += 1
            if place == len(stamps_ms):
                place, base = 0, base + stamps_ms[-1]
            while octets:
                if not lacks:
                    if not queue:
                        break
                    transit, lacks = queue.popleft()
                used = min(octets, lacks)
                octets, lacks = octets - used, lacks - used
                if not lacks:
                    left[transit] = time_ms

    for number, (tick, length) in enumerate(frames):
        until(tick // MS)
        if len(queue) < packets:
            queue.append((number, length - 14 + 4))
    until(frames[-1][0] // MS + 1000 * stamps_ms[-1])
    return left


def ours(trace: BandwidthTrace, frames: list[tuple[int, int]], packets: int) -> list[int | None]:
    """Return the same of the reference of the emulator, the least delay taken off, in ticks."""
    line = Direction(trace=trace, classes=[TrafficClass(queue=Queue(packets))])
    words = words_of(Network(line), [LIMITS])[0]
    settings = Settings(words.banks[0], words.delays, words.patterns, list(zip(words.trace[::2], words.trace[1::2], strict=True)))
    one = Reference(settings)
    one.finish([(tick, length, 7) for tick, length in frames], frames[-1][0] + 1000 * trace.stamps_ms[-1] * MS)
    return [None if frame.due is None else frame.due - LIMITS.least_delay for frame in one.frames]


def random_trace(draw: Random) -> list[int]:
    """Return stamps (ms) of one of several kinds: gaps, bursts of one stamp, gigabit, a first stamp of 0."""
    many, gap = draw.choice([(1, 1), (3, 2), (80, 1), (2, 40)])
    stamps: list[int] = []
    now = draw.choice([0, 0, 1, 7])
    for _ in range(draw.randint(2, 60)):
        stamps += [now] * draw.randint(1, many)
        now += draw.randint(1, gap)
    return stamps if stamps[-1] else [*stamps, now]


def random_frames(draw: Random, stamps: list[int], count: int) -> list[tuple[int, int]]:
    """Return frames that come at 40 to 150 % of the rate of a trace, in bursts, none in the tick of an opportunity."""
    lengths = [draw.choice([60, 61, 590, 1514, draw.randint(60, 1514)]) for _ in range(count)]
    mean = sum(lengths) / count / 1504 * stamps[-1] * MS / len(stamps) / draw.uniform(0.4, 1.5)
    tick, frames = draw.randint(1, 10**6), []
    for length in lengths:
        tick += length + 24 if draw.random() < 0.3 else length + 24 + int(draw.expovariate(1 / mean))
        tick += tick % MS == 0
        frames.append((tick, length))
    return frames


@row("emulator", "mahimahi", is_test=True)
def test_frames_leave_when_mm_link_lets_them(size: Size) -> Iterator[Figure]:
    """Yield the frames that leave at another time than mm-link's, or are dropped by one alone."""
    off = count = dropped = 0
    for seed in range(size.of(4, 20, 100)):
        draw = Random(seed)
        stamps = random_trace(draw)
        frames = random_frames(draw, stamps, size.of(500, 10_000))
        packets = draw.choice([5, 50, 2000])
        text = draw.choice(["\n", "\r\n", "\n\n"]).join(map(str, stamps))
        found = ours(BandwidthTrace.from_lines(text.splitlines()), frames, packets)
        expected = [None if one is None else one * MS for one in mm_link(stamps, frames, packets)]
        off += sum(one != other for one, other in zip(found, expected, strict=True))
        count += len(frames)
        dropped += expected.count(None)
    note(f"{count} frames, {dropped} dropped by the queue; none came in the tick of an opportunity, which mm-link can't tell")
    yield Figure("mahimahi_off", off, "frames", 0)


def test_a_full_frame_takes_one_opportunity_and_waits_for_no_other() -> None:
    """One each 10 ms, a frame 1 ms after it: 9 ms each, as with mm-link; with 1538 octets it was 19 and more."""
    frames = [(10 * n * MS + MS, 1514) for n in range(1, 9)]
    left = ours(BandwidthTrace.from_lines(["10"]), frames, 100)
    assert [time - tick for time, (tick, _) in zip(left, frames, strict=True) if time is not None] == [9 * MS] * 8


@pytest.mark.parametrize(
    ("text", "stamps", "octets"),
    [
        ("1\n\n2\n\n", (1, 2), (1504, 1504)),
        ("1\r\n1\r\n5\r\n", (1, 5), (3008, 1504)),
        ("\n0\n0\n3", (0, 3), (3008, 1504)),
        (" 7 \n", (7,), (1504,)),
    ],
)
def test_lines_are_taken_as_people_write_them(text: str, stamps: tuple[int, ...], octets: tuple[int, ...]) -> None:
    found = BandwidthTrace.from_lines(text.split("\n"), "a")
    assert (found.stamps_ms, found.octets) == (stamps, octets)


@pytest.mark.parametrize("line", ["# of a cell", "1 # a comment", "1,5", "0x10", "-1", "1.5"])
def test_a_line_that_mm_link_refuses_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(UsageError, match=r"a:3: '.*' is not a stamp: give whole milliseconds"):
        BandwidthTrace.from_lines(["1", "", line], "a")
