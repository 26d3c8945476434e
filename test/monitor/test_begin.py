# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A monitor that begins in mid-stream: what was sent before is not lost, and what is lost afterwards is counted exactly."""

import random
from pathlib import Path

import pytest

from liteprobe.cores.formats import BinKind
from liteprobe.host.measure.monitor import BinSetting
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.probe import Probe
from liteprobe.host.serve.poll import Look, Poller, SpanBetweenLooks
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.meters import MonitorProbe
from liteprobe.sim.models.receive.meters import MeasuredFrame

MODULUS = 1 << 32
STREAM = 0
SLOT = 1


class Sender:
    """Sends a stream that is numbered from ``first`` on; each call knows which of its frames came, and how often."""

    def __init__(self, folder: Path, first: int) -> None:
        self.model = MonitorProbe()
        self.probe = Probe(FakeLink(self.model, folder))
        self.next, self.now_ns = first, 1_800_000_000_000_000_000

    def send(self, count: int, lost: int = 0, doubled: int = 0, seed: int = 0) -> None:
        """Send frames, of which so many don't come (never the first or the last), and others come twice."""
        draw = random.Random(seed)
        numbers = range(self.next, self.next + count)
        chosen = draw.sample(numbers[1:-1], lost + doubled)
        gone, twice = set(chosen[:lost]), set(chosen[lost:])
        self.arrive([one for one in numbers if one not in gone for _ in range(1 + (one in twice))])
        self.next += count

    def arrive(self, numbers: list[int]) -> None:
        """Bring frames of these numbers in this order."""
        for number in numbers:
            self.now_ns += 1000
            frame = MeasuredFrame(self.now_ns, 100, 0, True, STREAM, number % MODULUS, self.now_ns - 500)
            self.model.arrive(0, frame)


def stream_of(look: Look) -> ReceivedStream:
    return look.ports[0].streams[SLOT]


def order(stream: ReceivedStream) -> tuple[int | None, ...]:
    return stream.lost, stream.duplicated, stream.reordered, stream.beyond_window, stream.missing_before


@pytest.mark.parametrize("first", [0, 1, 1000, 123_456_789, (1 << 31) - 400])
def test_loss_counts_from_the_first_look_on(first: int, tmp_path: Path) -> None:
    sender = Sender(tmp_path, first)
    poller = Poller(sender.probe)
    poller.set(STREAM, {})
    assert order(stream_of(poller.look())) == (0, 0, 0, 0, 0)  # Nothing has come.
    sender.send(200, lost=3, doubled=2, seed=first)
    before = poller.look()
    seen = stream_of(before)
    # Whether these three were sent before the meters were cleared, nobody knows.
    assert order(seen) == (None, 2, 0, 0, first + 3) and seen.loss_ratio != seen.loss_ratio
    sender.send(500, lost=40, doubled=5, seed=first + 1)
    look = poller.look()
    seen = stream_of(look)
    assert order(seen) == (40, 7, 0, 0, first + 3) and seen.loss_ratio == 40 / 500
    assert [SpanBetweenLooks(before, look).value(key, "port 0") for key in ("received", "lost")] == [465, 40]
    sender.send(300, lost=10, seed=first + 2)
    assert stream_of(poller.look()).loss_ratio == 50 / 800


def test_a_stream_that_began_after_the_clear_counts_from_number_0(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 0)
    poller = Poller(sender.probe, from_start=True)
    poller.set(STREAM, {})
    sender.send(200, lost=7, doubled=2, seed=5)
    seen = stream_of(poller.look())
    assert order(seen) == (7, 2, 0, 0, 0) and seen.loss_ratio == 7 / 200


def test_nothing_missing_at_the_first_look_is_no_loss(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 0)
    poller = Poller(sender.probe)
    sender.send(100)
    assert order(stream_of(poller.look())) == (0, 0, 0, 0, 0)


def test_frames_of_before_that_come_late_are_not_taken_from_later_losses(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 5000)
    poller = Poller(sender.probe)
    sender.arrive([5003, 5004])
    assert order(stream_of(poller.look())) == (None, 0, 0, 0, 5003)
    sender.arrive([5001, 5002, 5005])
    assert order(stream_of(poller.look())) == (0, 0, 2, 0, 5003)
    sender.arrive([5008, 5009])
    assert order(stream_of(poller.look())) == (2, 0, 2, 0, 5003)
    sender.arrive([5007])
    assert order(stream_of(poller.look())) == (1, 0, 3, 0, 5003)


@pytest.mark.parametrize("count", [1, 50, 5000])
def test_bins_that_are_chosen_begin_anew_whatever_has_come_since(count: int, tmp_path: Path) -> None:
    """More frames than before may have come since a clear: it isn't seen by their count alone."""
    sender = Sender(tmp_path, 10_000)
    poller = Poller(sender.probe)
    sender.send(60, lost=4, seed=1)
    poller.look()
    sender.send(60, lost=4, seed=2)
    assert stream_of(poller.look()).lost == 4
    poller.set(None, {BinKind.DELAY: BinSetting(0, 3)})
    sender.send(count)
    assert order(stream_of(poller.look())) == (None, 0, 0, 0, 10_120)
    sender.send(30, lost=2, seed=3)
    assert order(stream_of(poller.look())) == (2, 0, 0, 0, 10_120)


def test_a_monitor_that_chooses_its_bins_never_counts_what_was_before(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 1_000_000)
    poller = Poller(sender.probe)
    poller.follow()
    found, looks = [], 0
    while True:
        sender.send(400)
        look = poller.look()
        found.append(stream_of(look).lost)
        looks += 1
        if not look.is_choosing:
            break
        assert looks < 40
    assert looks > 3 and set(found) <= {None, 0}
    sender.send(100, lost=9, seed=7)
    assert stream_of(poller.look()).lost == 9


def test_numbers_behind_zero_say_nothing_until_they_wrap(tmp_path: Path) -> None:
    """The meter takes 0 as the next number: one of 2^31 or more is behind it, and so are all until 2^32."""
    sender = Sender(tmp_path, MODULUS - 400)
    poller = Poller(sender.probe)
    sender.send(100, lost=5, seed=1)
    unknown = None, None, None, None, None
    assert order(stream_of(poller.look())) == unknown
    sender.send(290)
    seen = stream_of(poller.look())
    assert order(seen) == unknown and seen.frames == 385 and seen.loss_ratio != seen.loss_ratio
    sender.send(110)
    assert order(stream_of(poller.look())) == (None, 0, 0, 0, None)  # They have wrapped.
    sender.send(200, lost=30, doubled=4, seed=2)
    seen = stream_of(poller.look())
    assert order(seen) == (30, 4, 0, 0, None) and seen.loss_ratio == 30 / 200


def test_counts_go_on_over_2_to_the_32(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 1000)
    poller = Poller(sender.probe)
    sender.arrive([1000])
    poller.look()
    lost = 0
    number = 1000
    for _ in range(6):  # Each passes over nearly 2^30 numbers.
        number += 1 << 30
        lost += (1 << 30) - 1
        sender.arrive([number])
        assert stream_of(poller.look()).lost == lost


def test_another_host_that_clears_is_seen(tmp_path: Path) -> None:
    sender = Sender(tmp_path, 777)
    poller = Poller(sender.probe)
    sender.send(100)
    poller.look()
    sender.probe.registers.write("port0_measure_clear", 1)
    sender.send(50)
    assert order(stream_of(poller.look())) == (None, 0, 0, 0, 877)
