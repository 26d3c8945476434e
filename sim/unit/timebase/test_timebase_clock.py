# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clock against whole-number arithmetic."""

import random
from dataclasses import dataclass

import pytest

from migen import *

from liteprobe.cores.timebase.clock import TimebaseClock

FRACTION = 1 << 40
WRAP = 1 << 104


@dataclass
class ClockModel:
    """Adds up the increment; a set loads, an adjustment (32.32 ns) adds once."""

    increment: int = 8 * FRACTION
    total: int = 0

    def tick(self, ticks: int = 1) -> None:
        """Let ``ticks`` pass."""
        self.total = (self.total + ticks * self.increment) % WRAP

    def set(self, time_ns: int) -> None:
        """Load a time."""
        self.total = time_ns * FRACTION

    def adjust(self, fixed_32_32: int) -> None:
        """Add a signed number of 2^-32 ns."""
        self.total = (self.total + (fixed_32_32 << 8)) % WRAP

    @property
    def now_ns(self) -> int:
        """Whole nanoseconds."""
        return self.total // FRACTION

    @property
    def fraction(self) -> int:
        """Rest, in 2^-40 ns."""
        return self.total % FRACTION


# Tests ---------------------------------------------------------------------------------------------

SET_TICKS = 2  # From the set strobe to the time set.
ADJUST_TICKS = 5  # From the apply strobe to the whole adjustment.


def run_clock(stimulus, samples, increment=8 * FRACTION):
    """Return (now, fraction, ticks) of each tick; ``stimulus`` maps a tick to {signal name: value}."""
    dut = TimebaseClock()
    seen = []

    def process():
        yield dut.increment.eq(increment)
        strobes = ["set", "adjust_apply"]
        for tick in range(samples):
            for name in strobes:
                yield getattr(dut, name).eq(0)
            for name, value in stimulus.get(tick, {}).items():
                yield getattr(dut, name).eq(value)
            yield
            seen.append(((yield dut.now), (yield dut.fraction), (yield dut.ticks)))

    run_simulation(dut, {"timebase": process()}, clocks={"timebase": 8})
    return seen


def total(sample):
    return sample[0] * FRACTION + sample[1]


@pytest.mark.parametrize(
    "increment", [8 * FRACTION, 8 * FRACTION + 12345678901, 7 * FRACTION + 987654321987, 200 * FRACTION - 1]
)
def test_each_tick_adds_the_increment_and_one_tick(increment):
    seen = run_clock({}, 400, increment)[4:]
    steps = [(total(b) - total(a), b[2] - a[2]) for a, b in zip(seen, seen[1:])]
    assert steps == [(increment, 1)] * (len(seen) - 1)


@pytest.mark.parametrize("time_ns", [0, 255, 256, 0x0123456789ABCDEF, 2**64 - 9, 1_700_000_000_123_456_789])
def test_set_loads_the_time_and_goes_on_from_there(time_ns):
    increment = 8 * FRACTION + 4242424242
    seen = run_clock({20: {"set": 1, "set_time": time_ns}}, 90, increment)
    model = ClockModel(increment)
    model.set(time_ns)
    for sample in seen[20 + SET_TICKS :]:
        assert sample[:2] == (model.now_ns, model.fraction)
        model.tick()


@pytest.mark.parametrize("seed", range(3))
def test_adjust_adds_once_whatever_its_sign(seed):
    print("seed", seed)
    rng = random.Random(seed)
    for adjust in [1, -1, rng.randrange(2**40), -rng.randrange(2**40), 2**62, -(2**62) + rng.randrange(2**32)]:
        start = 1_000_000_000_000 + rng.randrange(2**20)
        seen = run_clock({5: {"set": 1, "set_time": start}, 30: {"adjust": adjust % 2**64, "adjust_apply": 1}}, 60)
        model = ClockModel()
        model.set(start)
        for tick in range(5 + SET_TICKS, 60):
            if tick == 30 + ADJUST_TICKS - 1:
                model.adjust(adjust)
            if not 30 <= tick < 30 + ADJUST_TICKS:
                assert seen[tick][:2] == (model.now_ns, model.fraction), (adjust, tick)
            model.tick()


def test_now_is_monotonic_while_an_adjustment_passes():
    seen = run_clock({30: {"adjust": 3 << 32, "adjust_apply": 1}}, 60)
    steps = sorted(total(b) - total(a) for a, b in zip(seen[4:], seen[5:]))
    assert steps == [8 * FRACTION] * (len(steps) - 1) + [11 * FRACTION]
