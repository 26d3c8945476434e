# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tests the frames of trains, when each is due and when the pacer is shown it: in 64 bits, against integers of Python."""

import random
from fractions import Fraction

import pytest
from migen import *

from liteprobe.cores.crossing import WordCrossing
from liteprobe.cores.formats import HORIZON, OVERDUE_MAX
from liteprobe.cores.transmit.announce import Announcer
from liteprobe.cores.transmit.due import LEAD_TICKS, Elapsed
from liteprobe.cores.transmit.frames import DUE_BITS
from liteprobe.cores.transmit.sources.train import TrainSchedule, TrainState
from liteprobe.sim.models.traffic.trains import starts
from liteprobe.sim.drivers.tools.steps import assign, pulse, wait_until
from liteprobe.sim.drivers.transmit.shown import StillNumbers

CLOCKS = {"sys": 20, "timebase": 8}
TURN   = 2**DUE_BITS
OLD    = 60 # Ticks that what sys knows may be old, with the way to the pacer.

# Train Schedule -----------------------------------------------------------------------------------

def dues_of(frames, count, repeats, interval, gap, turns=0):
    """Return the due ticks of the first ``frames``; all but the first come when so many times 2^32 ticks have passed, too."""
    dut, found = TrainSchedule(), []
    dut.submodules.numbers = numbers = StillNumbers(dut)
    def process():
        yield from assign(numbers, count=count, repeats=repeats, interval_ticks=int(interval), gap_ticks=gap,
            interval_fraction=int(interval % 1 * 2**32))
        yield from pulse(dut.check)
        yield from wait_until(dut.checked)
        yield from pulse(dut.start)
        yield dut.source.ready.eq(1)
        for number in range(frames):
            yield from wait_until(dut.source.valid)
            found.append((yield dut.source.due))
            if number == 0:
                yield dut.memory[TrainState.DUE_HIGH].eq(turns)
            yield
    run_simulation(dut, process())
    return found

def test_dues_of_a_train_cross_32_bits():
    interval = 2**31 - 1 + Fraction(0x5555_5555, 2**32)
    assert dues_of(20, 3, 10, interval, 2**32 - 1) == starts(3, 10, interval, 2**32 - 1)[:20]

def test_dues_of_a_train_cross_48_bits():
    assert_dues_across(2**48)

def test_dues_of_a_train_cross_64_bits():
    assert_dues_across(2**64)

def assert_dues_across(boundary):
    """Compare the dues of 200 trains of a frame, with the longest intervals and gaps, from a little before a boundary on."""
    interval = 2**32 - 1 + Fraction(2**32 - 1, 2**32)
    turns    = boundary//2**32 - 101
    expected = [tick + 2**32*turns for tick in starts(1, 200, interval, 2**32 - 1)][1:]
    assert expected[0] < boundary - 2**36 and expected[-1] > boundary + 2**36
    assert dues_of(200, 1, 200, interval, 2**32 - 1, turns) == [0, *(tick % 2**64 for tick in expected)]

# Announcer ----------------------------------------------------------------------------------------

class AnnouncedAt(Module):
    """An announcer that knows the time as TransmitPath lets it; the program has been running for ``begin`` ticks."""
    def __init__(self, begin):
        self.submodules.announce = Announcer()
        self.submodules.elapsed  = elapsed = Elapsed()
        self.submodules.crossing = crossing = WordCrossing(DUE_BITS, "timebase", "sys")
        elapsed.elapsed.reset = Constant(begin, (64, True))
        crossing.o.reset      = Constant(begin % TURN, DUE_BITS)
        crossing.i.reset      = Constant(begin % TURN, DUE_BITS)
        self.comb += [
            elapsed.ticks.eq(crossing.o),
            elapsed.is_running.eq(1),
            self.announce.elapsed.eq(elapsed.elapsed),
        ]

def tell(begin, dues, stop_at=None):
    """Return [(tick at which the pacer is told of a frame, due tick that it is told)]."""
    dut  = AnnouncedAt(begin)
    sink = dut.announce.sink
    told = []
    @passive
    def frames():
        yield dut.announce.build.ready.eq(1)
        yield sink.length.eq(60)
        for due in dues:
            yield sink.valid.eq(1)
            yield sink.due.eq(due % 2**64)
            yield
            yield from wait_until(sink.ready)
            yield sink.valid.eq(0)
    def pacer():
        tick, waited, rested = begin, 0, 0
        while len(told) < len(dues):
            yield dut.crossing.i.eq(tick % TURN)
            yield dut.announce.source.ready.eq(waited == 20)
            yield
            waited = waited + 1 if (yield dut.announce.source.valid) else 0
            if waited == 1:
                told.append((tick, (yield dut.announce.source.due)))
            tick, rested = tick + 1, rested + 1
            if stop_at is not None and tick >= stop_at:
                yield dut.announce.stop.eq(1)
            left = dues[min(len(told), len(dues) - 1)] - tick
            if left > HORIZON + 1000 and rested > OLD and stop_at is None: # Nothing happens: a leap.
                tick, rested = tick + min(left - HORIZON - 500, 2**19), 0
    run_simulation(dut, {"sys": frames(), "timebase": pacer()}, clocks=CLOCKS)
    return told

@pytest.mark.parametrize("boundary", [0, TURN, 2**32, 2**48, 2**62])
def test_each_frame_is_told_when_it_is_due_soon_across(boundary):
    rng   = random.Random(boundary)
    begin = boundary - 20_000
    dues  = [boundary - 20_000 + HORIZON + 300, boundary - 1, boundary, boundary + 1, boundary + 12_000]
    dues += [dues[-1] + 2*TURN*k + rng.randrange(TURN) for k in (1, 2, 3)]
    for before, due, (tick, seen) in zip([begin, *dues], dues, tell(begin, dues)):
        assert seen == due % TURN
        assert due - tick <= HORIZON
        assert due - tick > HORIZON - OLD or due - before < HORIZON

@pytest.mark.parametrize("boundary", [0, 2**32, 2**48])
@pytest.mark.parametrize("by", [1, OVERDUE_MAX - 100, OVERDUE_MAX + 100, TURN, 2**33, 2**61])
def test_an_overdue_frame_is_told_at_once_as_overdue_by_no_more_than_can_be_told(boundary, by):
    begin = boundary + 1000
    dues  = [begin - by]*3 + [begin + 5000]
    found = tell(begin, dues)
    for tick, seen in found[:3]:
        assert tick - begin < 500
        if by <= OVERDUE_MAX - 100 and tick - begin < 50:
            assert seen == dues[0] % TURN
        elif by > OVERDUE_MAX:
            assert 0 <= (tick - OVERDUE_MAX - seen) % TURN < OLD
    assert found[3][1] == dues[3] % TURN

def test_a_stop_lets_a_frame_pass_that_is_due_much_later():
    ((tick, _),) = tell(0, [2**40], stop_at=300)
    assert 300 <= tick < 300 + OLD

def test_a_program_that_has_not_started_lets_frames_pass_that_are_due_soon_after():
    dut, seen = Elapsed(), []
    def process():
        running = [-LEAD_TICKS % TURN, TURN - 37, 3, TURN - 1, 5]
        for is_running, ticks in [(0, 5), (0, 77), *((1, one) for one in running), (0, 9), (0, 9)]:
            yield dut.is_running.eq(is_running)
            yield dut.ticks.eq(ticks)
            yield
            seen.append((yield dut.elapsed))
        yield
    run_simulation(dut, process())
    assert seen[1:] == [-LEAD_TICKS, -LEAD_TICKS, -LEAD_TICKS, -37, 3, TURN - 1, TURN + 5, -LEAD_TICKS]
