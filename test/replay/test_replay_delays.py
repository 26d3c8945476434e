# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delays of replayed frames, from their stamps or the trace; and frames that are found again by their octets."""

import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from liteprobe.host.base import interrupt
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.capture import ring
from liteprobe.host.capture import run as capture_run
from liteprobe.host.capture.decode import BlockDecoder, no_blocks
from liteprobe.host.capture.request import CaptureRequest, CaptureSettings
from liteprobe.host.capture.sources import Batches
from liteprobe.host.capture.write.pcapng import PortInterface
from liteprobe.host.probe import Probe
from liteprobe.host.run import replay
from liteprobe.host.run.replay import (
    ArrivalSink,
    PortReplay,
    ReplayResult,
    ReplaySchedule,
    frame_keys,
    matched,
    sent_frames,
)
from liteprobe.host.run.streamed import DelaySink
from liteprobe.host.traffic.intervals import NOMINAL, Interval
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, ReplayLink, fake_probe
from liteprobe.sim.drivers.tools.wire import with_full
from liteprobe.sim.models.probe.replay import ReplayModel, SentFrame
from liteprobe.sim.models.traffic.replay import Record, decode

Fake = tuple[ReplayModel, ReplayLink, FakeReceiver]
Device = Callable[[list[SentFrame]], list[Captured]]
DELAY_NS = 5000


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    """A model, the link to it and the socket that takes words."""
    with fake_probe(tmp_path) as found:
        yield found


@pytest.fixture
def replayed(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ReplayResult]:
    """Replay a trace through a device, and capture what that passes on to port 1."""
    model, link, _ = fake

    def run(
        trace: Trace, device: Device, request: CaptureRequest | None = None, stop: tuple[int, int] = (0, 0)
    ) -> ReplayResult:
        class Source:
            """Hands over what the probe has sent when it is stopped; ``stop``: a signal, once so many frames were sent."""

            is_stopped = False

            def batches(self) -> Batches:
                assert model.frames == []
                number, after = stop
                while not self.is_stopped:
                    model.advance(2000)
                    if number and len(model.frames) >= after:
                        os.kill(os.getpid(), number)
                        number = (
                            0  # A second one after `PATIENCE_S`, on a machine that stands still, ends pytest itself.
                        )
                    yield no_blocks(), None
                yield blocks_of(sorted(device(model.frames), key=lambda one: one.stamp)), None

            def stop(self) -> None:
                self.is_stopped = True

        def now_s() -> float:
            model.advance(1000)
            return model.tick / 125e6

        monkeypatch.setattr(ring, "CaptureRing", lambda registers: None)
        ports = [PortInterface("port0"), PortInterface("port1")]
        monkeypatch.setattr(capture_run, "_live", lambda *_: capture_run.Setup(Source(), ports=ports))
        monkeypatch.setattr(link, "now_s", now_s)
        with Probe(link) as probe:
            return probe.replay(trace, capture=request or tmp_path / "seen.pcapng")

    return run


ALONE = "LITEPROBE_TEST_ALONE"
MOMENTS = with_full([0, 20], [1, 49])  # So many frames have been sent when a signal comes.


def test_signals_stop_a_replay_in_a_process_of_its_own() -> None:
    """Signals belong to a process: with those of other tests, twice one came where pytest itself took it for its end."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "a_signal_stops",
    ]
    around = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, env=around | {ALONE: "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"{2 * len(MOMENTS)} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(ALONE not in os.environ, reason="it runs in a process of its own")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", MOMENTS)
def test_a_signal_stops_the_ports_first_and_the_capture_ends_behind_their_last_frame(
    fake: Fake,
    tmp_path: Path,
    replayed: Callable[..., ReplayResult],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    after: int,
) -> None:
    monkeypatch.setattr(interrupt._State, "number", 0)  # Else it is a second one of the test before.

    def device(frames: list[SentFrame]) -> list[Captured]:
        return [Captured(8 * one.tick + DELAY_NS, one.octets, 1) for one in frames]

    trace = Trace.cbr(Interval(pps=10_000), 100, 50)
    with pytest.raises(Interrupted) as raised:
        replayed(trace, device, stop=(number, after))
    (result,) = raised.value.results
    sent = len(fake[0].frames)
    assert (raised.value.exit_code, result.end, result.is_complete) == (128 + number, "interrupted", False)
    assert after <= sent < 50 and (result[0].frames, result.capture.frames) == (sent, sent)
    assert (len(decode_file(tmp_path / "seen.pcapng")) if sent else 0) == sent
    scheduled = result[0].scheduled
    assert (scheduled is None) == (sent == 0)
    assert not scheduled or (scheduled.delays.frames, scheduled.missing) == (sent, 0)


def decode_file(path: Path) -> list[Record]:
    """Return the frames of a capture, as they would be replayed."""
    return decode([int(word) for words in Trace.from_pcap(path).records() for word in words])


def test_the_ports_start_when_the_capture_has_and_it_ends_behind_the_last_frame(
    fake: Fake, tmp_path: Path, replayed: Callable[..., ReplayResult]
) -> None:
    """Frames that come back have their delays in the result."""

    def with_stamp(one: SentFrame) -> bytes:
        return one.octets[:20] + (8 * one.tick).to_bytes(8) + one.octets[28:]

    trace = Trace.cbr(Interval(pps=10_000), 100, 50).stamped(Stamp("octet", octet=20))
    result = replayed(trace, lambda frames: [Captured(8 * one.tick + DELAY_NS, with_stamp(one), 1) for one in frames])
    assert result.capture and result.capture.frames == 50
    delays = result[0].delays
    assert delays and delays.values.tolist() == [DELAY_NS] * 50
    assert result[0].scheduled is None
    assert (result.end, result.is_complete, result[0].receive) == ("sent", True, 1)
    frames = [one.octets[:100] for one in decode_file(tmp_path / "seen.pcapng")]
    assert frames == [with_stamp(one) for one in fake[0].frames]


# Delays -------------------------------------------------------------------------------------------


def stamped(stamp: Stamp, seed: int) -> tuple[list[Captured], list[int], int]:
    """Return captured frames of both ports, the delays of those of port 1 that have a stamp, and how many have none."""
    chance = random.Random(seed)
    now, frames, delays, without = 1_700_000_000 * 10**9, [], [], 0
    at = stamp.octet if stamp.octet is not None else 14 + 4
    for _ in range(600):
        now += chance.randint(100, 10**5)
        port, snap = chance.randrange(2), chance.choice((65535, 65535, 20, 64))
        delay = chance.randrange(1 << stamp.bits + 4 * stamp.tick) if stamp.bits < 64 else chance.randrange(10**9)
        sent = now - delay >> 4 * stamp.tick & (1 << stamp.bits) - 1
        one = bytearray(chance.randbytes(chance.choice((60, 200))))
        is_ip = chance.random() < 0.8
        one[12:14] = b"\x08\x00" if is_ip else b"\x08\x06"
        one[at : at + stamp.octets] = sent.to_bytes(stamp.octets)
        missing = 5 if chance.random() < 0.05 else 0
        frames.append(
            Captured(
                now, b"" if missing else bytes(one), port, snap=snap, with_header=chance.random() < 0.3, missing=missing
            )
        )
        if port != 1 or missing:
            continue
        if at + stamp.octets <= min(snap, len(one)) and (is_ip or stamp.place == "octet"):
            delays.append(((now >> 4 * stamp.tick) - sent) % (1 << stamp.bits) << 4 * stamp.tick)
        else:
            without += 1
    return frames, delays, without


@pytest.mark.parametrize(
    "stamp",
    [Stamp("octet", octet=42), Stamp("octet", octet=20, width=24, tick=2), Stamp("ipv4.identification", tick=1)],
)
def test_delays_are_those_of_the_stamps_in_captured_frames(stamp: Stamp) -> None:
    frames, wanted, without = stamped(stamp, seed=1)
    sink, decoder = DelaySink({1: stamp}), BlockDecoder()
    for blocks in np.array_split(blocks_of(frames), 7):
        sink.write(decoder.decode(blocks))
    found = sink.delays(1, 0)
    assert found and sink.delays(0, 0) is None
    assert found.values.tolist() == wanted and found.modulo_ns is None
    for age_ns, modulo_ns in [((stamp.range_ns or 0) - 1, None), (1 << 63, stamp.range_ns)]:
        older = sink.delays(1, age_ns)
        assert older and older.modulo_ns == older.document()["modulo"] == modulo_ns
    assert (found.frames, found.without) == (len(wanted), without)
    assert (found.least_ns, found.most_ns) == (min(wanted), max(wanted))
    assert found.percentiles()[0] == sorted(wanted)[(len(wanted) + 1) // 2 - 1]
    assert np.isclose(found.mean_ns or 0, sum(wanted) / len(wanted))


# Delays of frames without a stamp -----------------------------------------------------------------


def equal_frames(tmp_path: Path) -> Trace:
    """Return 40 frames of which each third one is the same."""
    made = [Packet(Fraction(number, 10**5), bytes([0 if number % 3 == 0 else number]) * 60, 60) for number in range(40)]
    (tmp_path / "frames.pcap").write_bytes(pcap(made))
    return Trace.from_pcap(tmp_path / "frames.pcap")


def passed(frames: list[SentFrame]) -> list[Captured]:
    return [Captured(8 * one.tick + DELAY_NS, one.octets, 1) for one in frames]


def counts(one: PortReplay) -> tuple[int, ...]:
    found = one.scheduled
    assert found is not None
    return len(found.delays.values), found.missing, found.repeated, found.strange, found.ambiguous


def test_a_replay_beside_a_capture_has_the_delay_of_each_frame(
    tmp_path: Path, replayed: Callable[..., ReplayResult]
) -> None:
    result = replayed(equal_frames(tmp_path), passed)
    found = result[0].scheduled
    assert found is not None and found.delays.values.tolist() == [DELAY_NS] * 40
    assert counts(result[0]) == (40, 0, 0, 0, 0)
    said = result.to_dict()["ports"][0]
    assert said["latency_ns"] is None
    assert (said["latency_by_schedule_ns"]["most"], said["latency_by_schedule_ns"]["missing"]) == (DELAY_NS, 0)


def test_a_device_that_loses_a_frame_leaves_those_that_the_trace_has_once(
    tmp_path: Path, replayed: Callable[..., ReplayResult]
) -> None:
    result = replayed(equal_frames(tmp_path), lambda frames: [one for n, one in enumerate(passed(frames)) if n != 7])
    assert counts(result[0]) == (25, 1, 0, 0, 14)
    assert (
        "port 0: 14 captured frames without a stamp have no delay: 0 are not in the trace, 0 are copies, of 14 it isn't known "
        "which they are; 1 did not come" in result.notes
    )
    assert result[0].scheduled and set(result[0].scheduled.delays.values.tolist()) == {DELAY_NS}


def test_from_an_underrun_on_no_delay_is_said(
    fake: Fake, tmp_path: Path, replayed: Callable[..., ReplayResult]
) -> None:
    fake[0].underrun_at[0] = 17
    assert counts(replayed(equal_frames(tmp_path), passed)[0]) == (17, 0, 0, 0, 23)


def test_where_frames_were_late_without_a_cause_no_delay_is_said(
    fake: Fake, tmp_path: Path, replayed: Callable[..., ReplayResult]
) -> None:
    fake[0].late_at[0] = 3
    result = replayed(equal_frames(tmp_path), passed)
    assert result[0].scheduled is None
    assert "port 0: no delays of frames without a stamp: frames started later than they should have" in result.notes


def test_where_the_start_came_too_late_no_delay_is_said(
    tmp_path: Path, replayed: Callable[..., ReplayResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MARGIN_NS", 0)
    result = replayed(equal_frames(tmp_path), passed)
    assert result[0].scheduled is None
    assert any("the start reached the probe too late for its time" in note for note in result.notes)


def test_what_the_capture_keeps_is_enough(tmp_path: Path, replayed: Callable[..., ReplayResult]) -> None:
    settings = CaptureSettings(snap_length=20)
    request = CaptureRequest(str(tmp_path / "seen.pcapng"), settings=settings)

    def device(frames: list[SentFrame]) -> list[Captured]:
        return [replace(one, snap=20) for one in passed(frames)]

    assert counts(replayed(equal_frames(tmp_path), device, request)[0]) == (40, 0, 0, 0, 0)


# Frames that are found again ----------------------------------------------------------------------


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


@pytest.mark.sample(5)
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
        octets[size:] ^= 0xFF  # What follows is not read.
        keys.add(int(frame_keys(octets, at, length, length)[0]))
        keys.add(int(frame_keys(octets, at, length, length + 1)[0]))
        assert len(keys) == 2 + 8 * size


def test_frames_that_are_padded_or_filled_with_zeros_are_known(tmp_path: Path) -> None:
    made = [Packet(Fraction(number, 1000), bytes([number]) * kept, 200) for number, kept in ((1, 200), (2, 20), (3, 1))]
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
