# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Delays of replayed frames, from their stamps, or from when the trace had them start, whatever the device under test does."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from liteprobe.host.capture import run as capture_run
from liteprobe.host.capture.decode import BlockDecoder, no_blocks
from liteprobe.host.capture.request import CaptureRequest, CaptureSettings
from liteprobe.host.capture.sources import Batches
from liteprobe.host.capture.write.pcapng import PortInterface
from liteprobe.host.probe import Probe
from liteprobe.host.run import replay
from liteprobe.host.run.replay import PortReplay, ReplayResult
from liteprobe.host.run.streamed import DelaySink
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.trace import Trace
from liteprobe.sim.drivers.capture.blocks import Captured, blocks_of
from liteprobe.sim.drivers.replay.capture_files import Packet, pcap
from liteprobe.sim.drivers.replay.fake_probe import FakeReceiver, ReplayLink, fake_probe
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

    def run(trace: Trace, device: Device, request: CaptureRequest | None = None) -> ReplayResult:
        class Source:
            """Hands over what the probe has sent when it is stopped."""

            is_stopped = False

            def batches(self) -> Batches:
                assert model.frames == []
                while not self.is_stopped:
                    model.advance(2000)
                    yield no_blocks(), None
                yield blocks_of(sorted(device(model.frames), key=lambda one: one.stamp)), None

            def stop(self) -> None:
                self.is_stopped = True

        def now_s() -> float:
            model.advance(1000)
            return model.tick / 125e6

        monkeypatch.setattr(capture_run, "CaptureRing", lambda registers: None)
        ports = [PortInterface("port0"), PortInterface("port1")]
        monkeypatch.setattr(capture_run, "_live", lambda *_: capture_run.Setup(Source(), ports=ports))
        monkeypatch.setattr(link, "now_s", now_s)
        with Probe(link) as probe:
            return probe.replay(trace, capture=request or tmp_path / "seen.pcapng")

    return run


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
    found = sink.delays(1)
    assert found and sink.delays(0) is None
    assert found.values.tolist() == wanted
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
    said = result.document()["ports"][0]
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
