# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of a trace that are found again in a capture by their octets, and when they started by the probe's clock."""

import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from liteprobe.host.capture.decode import BlockDecoder
from liteprobe.host.run.replay import ArrivalSink, ReplaySchedule, frame_keys, matched, sent_frames
from liteprobe.host.traffic.intervals import NOMINAL
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap


class Arrival(NamedTuple):
    """A captured frame: its time (ns), its octets, and the number of the frame that it was sent as; None: of none."""

    time_ns: int
    octets: bytes
    source: int | None


def packets(seed: int, count: int, equal: float) -> list[Packet]:
    """Return random packets of whole microseconds, of which some are equal to others."""
    chance = random.Random(seed)
    time_us, made, some = 10**6, [], [chance.randbytes(chance.choice((60, 61, 300))) for _ in range(5)]
    for _ in range(count):
        time_us += chance.randint(0, 20)
        octets = chance.choice(some) if chance.random() < equal else chance.randbytes(chance.randint(60, 400))
        made.append(Packet(Fraction(time_us, 10**6), octets, len(octets)))
    return made


def through_device(
    made: list[Packet], starts_ns: list[int], chance: random.Random, bad: dict[str, float]
) -> list[Arrival]:
    """Return what comes through a device that loses, doubles, reorders, changes and makes frames."""
    found, free = [], 0

    def happens(what: str) -> bool:
        return chance.random() < bad.get(what, 0)

    for number, (one, start) in enumerate(zip(made, starts_ns, strict=True)):
        time = free = max(free + 1, start + chance.randint(1000, 1500))
        time += chance.randint(20_000, 90_000) * happens("reordering")
        if happens("changes"):
            found.append(Arrival(time, bytes([one.octets[0] ^ 1]) + one.octets[1:], None))
        elif not happens("loss"):
            found.append(Arrival(time, one.octets, number))
            if happens("doubling"):
                found.append(Arrival(time + chance.randint(1, 5000), one.octets, number))
        if happens("making"):
            found.append(Arrival(time + 3, chance.randbytes(60), None))
    return sorted(found)


class Right(NamedTuple):
    """Holds what must come of arrivals."""

    values: list[int]
    missing: int
    repeated: int
    strange: int
    ambiguous: int


def right(made: list[Packet], starts_ns: list[int], came: list[Arrival], snap: int) -> Right:
    """Return delays and counts by the rule, packet by packet; a delay that isn't that of the very frame fails."""
    sent: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for number, one in enumerate(made):
        sent[one.length, one.octets[:snap]].append(number)
    arrived: dict[tuple[int, bytes], int] = defaultdict(int)
    numbers: list[tuple[Arrival, int, int]] = []
    repeated = strange = 0
    for arrival in came:
        kind = (len(arrival.octets), arrival.octets[:snap])
        which = arrived[kind]
        arrived[kind] += 1
        if kind not in sent:
            strange += 1
        elif which >= len(sent[kind]):
            repeated += 1
        else:
            numbers.append((arrival, sent[kind][which], len(sent[kind])))
    order = [number for _, number, _ in numbers]
    is_whole = order == sorted(order) and all(arrived[kind] == len(numbers) for kind, numbers in sent.items())
    values = []
    for arrival, number, copies in numbers:
        if copies == 1 or is_whole:
            assert arrival.source == number
            values.append(arrival.time_ns - starts_ns[number])
    missing = sum(max(len(numbers) - arrived[kind], 0) for kind, numbers in sent.items())
    return Right(values, missing, repeated, strange, len(numbers) - len(values))


WAYS: dict[str, dict[str, float]] = {
    "nothing": {},
    "loss": {"loss": 0.02},
    "doubling": {"doubling": 0.02},
    "reordering": {"reordering": 0.05},
    "changes": {"changes": 0.02},
    "all": {"loss": 0.05, "doubling": 0.05, "reordering": 0.05, "changes": 0.05, "making": 0.05},
}


@pytest.mark.parametrize("snap", [65535, 64, 61])
@pytest.mark.parametrize("equal", [0.0, 0.3])
@pytest.mark.parametrize("way", WAYS)
def test_a_delay_is_that_of_the_very_frame_or_none_is_said(tmp_path: Path, way: str, equal: float, snap: int) -> None:
    for seed in range(4):
        made, chance = packets(seed, 400, equal), random.Random(seed)
        (tmp_path / "frames.pcap").write_bytes(pcap(made))
        sent = sent_frames(Trace.from_pcap(tmp_path / "frames.pcap"), NOMINAL, snap, len(made))
        starts_ns = [10**9 + 8 * tick for tick in sent.ticks.tolist()]
        came = through_device(made, starts_ns, chance, WAYS[way])
        sink, decoder = ArrivalSink({1: None}, snap), BlockDecoder()
        for blocks in np.array_split(blocks_of([Captured(one.time_ns, one.octets, 1, snap=snap) for one in came]), 7):
            sink.write(decoder.decode(blocks))
        arrivals = sink.arrivals(1)
        assert arrivals is not None and not arrivals[2]
        found = matched(sent.keys, np.array(starts_ns), *arrivals)
        wanted = right(made, starts_ns, came, snap)
        assert found.delays.values.tolist() == wanted.values
        counts = (found.missing, found.repeated, found.strange, found.ambiguous)
        assert counts == wanted[1:]
        assert found.delays.without == len(came) - len(wanted.values)
        if way == "nothing":
            assert len(wanted.values) == len(made)
        elif equal:
            assert wanted.ambiguous > 50


def test_equal_frames_have_no_delay_where_the_capture_has_lost_a_frame() -> None:
    """Of the others each is known by its octets."""
    keys, starts_ns = np.array([1, 2, 2, 3], np.uint64), np.array([100, 200, 300, 400])
    came_ns = starts_ns + 50
    assert matched(keys, starts_ns, keys, came_ns, False).delays.values.tolist() == [50] * 4
    found = matched(keys, starts_ns, keys, came_ns, True)
    assert (found.delays.values.tolist(), found.ambiguous) == ([50, 50], 2)


def test_what_came_before_it_was_sent_is_another_frame() -> None:
    keys, starts_ns = np.array([1, 2], np.uint64), np.array([100, 200])
    found = matched(keys, starts_ns, np.array([2, 1, 2], np.uint64), np.array([150, 160, 250]), False)
    assert (found.delays.values.tolist(), found.repeated, found.ambiguous) == ([60], 1, 1)


def test_keys_differ_wherever_frames_differ() -> None:
    chance = np.random.default_rng(1)
    for size in (60, 61, 62, 63, 1514):
        octets = chance.integers(0, 256, size + 8, np.uint8)
        at, length = np.zeros(1, np.int64), np.array([size])
        keys = {int(frame_keys(octets, at, length, length)[0])}
        for place in range(size):
            for bit in range(8):
                octets[place] ^= 1 << bit
                keys.add(int(frame_keys(octets, at, length, length)[0]))
                octets[place] ^= 1 << bit
        octets[size:] ^= 0xFF  # What lies behind it is no matter.
        keys.add(int(frame_keys(octets, at, length, length)[0]))
        keys.add(int(frame_keys(octets, at, length, length + 1)[0]))
        assert len(keys) == 2 + 8 * size


def test_frames_that_are_padded_or_filled_with_zeros_are_known(tmp_path: Path) -> None:
    made = [Packet(Fraction(number, 1000), bytes([number]) * kept, 200) for number, kept in ((1, 200), (2, 20), (3, 0))]
    made.append(Packet(Fraction(4, 1000), b"\x04" * 30, 30))
    (tmp_path / "frames.pcap").write_bytes(pcap(made))
    sent = sent_frames(Trace.from_pcap(tmp_path / "frames.pcap"), NOMINAL, 100, 4)
    whole = [one.octets + bytes(max(one.length, 60) - len(one.octets)) for one in made]
    sink = ArrivalSink({0: None}, 100)
    sink.write(BlockDecoder().decode(blocks_of([Captured(n, one, snap=100) for n, one in enumerate(whole)])))
    arrivals = sink.arrivals(0)
    assert arrivals and arrivals[0].tolist() == sent.keys.tolist()


def test_a_record_that_has_fewer_octets_than_the_others_is_of_no_frame(tmp_path: Path) -> None:
    """Else it would be taken for one with zeros there."""
    made = [Packet(Fraction(number, 1000), b"a" * 20 + bytes([number]) * 180, 200) for number in range(2)]
    (tmp_path / "frames.pcap").write_bytes(pcap(made))
    sent = sent_frames(Trace.from_pcap(tmp_path / "frames.pcap"), NOMINAL, 100, 2)
    sink = ArrivalSink({0: None}, 100)
    frames = [Captured(10**6, made[1].octets, snap=20), Captured(2 * 10**6, made[1].octets, snap=100)]
    sink.write(BlockDecoder().decode(blocks_of(frames)))
    arrivals = sink.arrivals(0)
    assert arrivals is not None
    found = matched(sent.keys, np.array([0, 10**6]), *arrivals)
    assert (found.delays.values.tolist(), found.delays.without, found.missing) == ([10**6], 0, 1)


def test_of_a_trace_with_stamps_the_frames_without_one_are_matched(tmp_path: Path) -> None:
    made = packets(1, 100, 0.0)
    short = [replace_octets(one, one.octets[:60]) if number % 3 else one for number, one in enumerate(made)]
    (tmp_path / "frames.pcap").write_bytes(pcap(short))
    stamp = Stamp("octet", octet=70)
    sent = sent_frames(Trace.from_pcap(tmp_path / "frames.pcap").stamped(stamp), NOMINAL, 9000, 100)
    wanted = [number for number, one in enumerate(short) if one.length < 78]
    assert sent.numbers.tolist() == wanted
    sink = ArrivalSink({0: stamp}, 9000)
    sink.write(BlockDecoder().decode(blocks_of([Captured(n, one.octets) for n, one in enumerate(short)])))
    arrivals = sink.arrivals(0)
    assert arrivals and arrivals[1].tolist() == wanted


def replace_octets(one: Packet, octets: bytes) -> Packet:
    return replace(one, octets=octets, length=len(octets))


class ServedClock:
    """A clock that a servo changes, or that is set."""

    def __init__(self, rate: float, step_ns: int = 0) -> None:
        self.rate, self.step_ns, self.tick = rate, step_ns, 0

    def now(self, tick: int) -> float:
        return 10**9 + 8 * self.rate * tick + (self.step_ns if tick >= 2_000_000 else 0)

    def moment(self) -> tuple[int, int, int]:
        now = self.now(self.tick)
        return int(now), int(now % 1 * 2**32), self.tick


def schedule(clock: ServedClock) -> ReplaySchedule:
    made = ReplaySchedule(clock, NOMINAL)  # type: ignore[arg-type]
    for tick in (1000, *range(500_000, 4_000_001, 500_000)):
        clock.tick = tick
        made.begin() if tick == 1000 else made.look()
    return made


def test_starts_follow_a_clock_whose_rate_is_another_than_when_it_began() -> None:
    clock = ServedClock(1 + 2e-7)
    made = schedule(clock)
    assert made.trouble == ""
    ticks = np.array([0, 1, 1000, 3_000_000])
    first = int(np.ceil((made.start_ns - 10**9) / 8 / clock.rate))
    wanted = [clock.now(first + tick) for tick in ticks.tolist()]
    assert np.abs(made.starts_ns(ticks) - np.array(wanted)).max() <= 1


def test_a_clock_that_is_set_meanwhile_is_said() -> None:
    assert schedule(ServedClock(1, 5000)).trouble == "the probe's clock was set while it replayed"
    assert schedule(ServedClock(1, -5000)).trouble
