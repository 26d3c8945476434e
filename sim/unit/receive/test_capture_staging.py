# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The staging memory: whose words stay, and when there is room again."""

import pytest
from migen import passive, run_simulation

from liteprobe.cores.capture.staging import Staging
from liteprobe.sim.drivers.tools.steps import assign, pulse, wait_cycles

OCTETS = 64  # Of the memory.


class Bench:
    """Drives a small staging memory: frames in, decisions, descriptors and words out."""

    def __init__(self):
        self.dut = Staging(OCTETS)
        self.words, self.reads = [], False

    def pass_frame(self, count, classifies=1):
        """Send a frame of ``count`` words; return whether it was lost."""
        dut = self.dut
        for number in range(count):
            yield from assign(dut.sink, valid=1, data=number, last=number == count - 1,
                last_be=8 if number == count - 1 else 0)
            yield dut.classifies.eq(classifies and number == count - 1)
            yield
        yield dut.sink.valid.eq(0)
        yield dut.classifies.eq(0)
        yield from wait_cycles(3)
        return (yield dut.is_lost)

    def decide(self, octets, keep=1, lost=0):
        dut = self.dut
        yield dut.given_octets.eq(octets)
        yield dut.given.lost.eq(lost)
        yield dut.keep.eq(keep)
        yield from pulse(dut.decide)
        yield from wait_cycles(10)

    def accept(self, skip=0):
        """Accept a descriptor and return its words."""
        dut = self.dut
        for _ in range(20):
            if (yield dut.descriptor.valid):
                break
            yield
        else:
            raise AssertionError("no descriptor")
        words = yield dut.descriptor.words
        yield dut.skip.eq(skip)
        yield from pulse(dut.descriptor.ready)
        yield dut.skip.eq(0)
        return words

    @passive
    def read(self):
        while True:
            yield self.dut.data.ready.eq(self.reads)
            yield
            if (yield self.dut.data.valid) and (yield self.dut.data.ready):
                self.words.append((yield self.dut.data.data))

    def run(self, story):
        run_simulation(self.dut, [story, self.read()])


@pytest.mark.parametrize(("skip", "is_lost"), [(1, 0), (0, 1)])
def test_words_that_are_skipped_make_room_at_once(skip, is_lost):
    bench, lost = Bench(), []

    def story():
        for count in (8, 7):
            lost.append((yield from bench.pass_frame(count)))
            yield from bench.decide(4 * count)
        yield from bench.accept(skip)  # Nobody reads the words.
        yield
        lost.append((yield from bench.pass_frame(8)))

    bench.run(story())
    assert lost == [0, 0, is_lost]


def test_frames_that_are_not_kept_make_room_once_nothing_is_before_them():
    bench, lost = Bench(), []

    def story():
        for _ in range(5):
            lost.append((yield from bench.pass_frame(12)))
            yield from bench.decide(48, keep=0)

    bench.run(story())
    assert lost == [0] * 5


def test_frames_that_are_not_classified_leave_nothing():
    bench, lost = Bench(), []

    def story():
        for _ in range(5):
            yield from bench.pass_frame(12, classifies=0)
        lost.append((yield from bench.pass_frame(16)))
        yield from bench.decide(64)
        bench.reads = True
        assert (yield from bench.accept()) == 16
        yield from wait_cycles(30)

    bench.run(story())
    assert (lost, bench.words) == ([0], list(range(16)))


def test_a_frame_that_finds_too_little_room_is_taken_back():
    bench, lost = Bench(), []

    def story():
        for count in (10, 7, 6):
            lost.append((yield from bench.pass_frame(count)))
            yield from bench.decide(0 if lost[-1] else 4 * count, lost=lost[-1])
        bench.reads = True
        for words in (10, 0, 6):
            assert (yield from bench.accept()) == words
            yield from wait_cycles(20)

    bench.run(story())
    assert (lost, bench.words) == ([0, 1, 0], [*range(10), *range(6)])
