# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The PPS output: each edge in the tick whose ``now`` reaches its time, against whole-number arithmetic."""

import random

import pytest
from migen import *

from liteprobe.cores.timebase.clock import INCREMENT, TimebaseClock
from liteprobe.cores.timebase.pps_out import PpsOutput

SET_AT = 5  # Tick in which the time is set.
ARM_AT = 20


class Bench(Module):
    def __init__(self):
        self.submodules.clock = self.clock = TimebaseClock()
        self.submodules.output = self.output = PpsOutput()
        self.comb += self.output.now.eq(self.clock.now)


def run_output(start, first, period, width, end, stimulus=None, increment=INCREMENT):
    """Return (now, pin) of each tick from the arming on, and the ticks of ``late``; ``stimulus`` maps ticks to signals."""
    bench = Bench()
    clock, output = bench.clock, bench.output
    trace, late = [], []

    def process():
        yield clock.increment.eq(increment)
        yield clock.set_time.eq(start)
        yield output.first.eq(first)
        yield output.period.eq(period)
        yield output.width.eq(width)
        for tick in range(end):
            yield clock.set.eq(tick == SET_AT)
            yield output.arm.eq(tick == ARM_AT)
            yield clock.adjust_apply.eq(0)
            for name, value in (stimulus or {}).get(tick, {}).items():
                yield getattr(output if hasattr(output, name) else clock, name).eq(value)
            if (yield output.late):
                late.append(tick)
            trace.append(((yield clock.now), (yield output.pin)))
            yield

    run_simulation(bench, {"timebase": process()}, clocks={"timebase": 8})
    return trace, late


def rises(trace):
    return [n for n in range(1, len(trace)) if trace[n][1] and not trace[n - 1][1]]


def widths(trace):
    falls = [n for n in range(1, len(trace)) if trace[n - 1][1] and not trace[n][1]]
    return [fall - rise for rise, fall in zip(rises(trace), falls)]


def first_tick_at(trace, time_ns):
    return next(n for n in range(SET_AT + 3, len(trace)) if trace[n][0] >= time_ns)


@pytest.mark.parametrize("increment", [INCREMENT, INCREMENT + INCREMENT // 5000, INCREMENT - INCREMENT // 5000])
@pytest.mark.parametrize("start", [0, 2**24 - 600, 1_700_000_000_123_456_789, 2**48 - 1500])
def test_the_pin_rises_in_the_first_tick_whose_now_is_the_time(start, increment):
    rng = random.Random(start)
    first = start + rng.randrange(500, 700)
    period = rng.choice([256, 333, 1000])
    trace, late = run_output(start, first, period, 5, 500, increment=increment)
    times = [first + n * period for n in range(len(rises(trace)))]
    assert len(times) >= 2 and late == []
    assert rises(trace) == [first_tick_at(trace, time) for time in times]


@pytest.mark.parametrize("width", [3, 4, 20, 31])
def test_the_pin_stays_high_for_its_width(width):
    trace, _ = run_output(0, 400, 256, width, 300)
    assert set(widths(trace)) == {width}


def test_with_period_0_there_are_no_more_edges():
    stop = {200: {"period": 0, "arm": 1}, 201: {"arm": 0}}
    trace, late = run_output(0, 400, 400, 4, 500, stop)
    assert rises(trace) == [first_tick_at(trace, 400 + 400 * n) for n in range(len(rises(trace)))]
    assert max(rises(trace)) <= 204 and late == []


def test_edges_whose_time_has_passed_are_counted_and_left_out():
    start, first, period = 1_000_000, 999_000, 400
    trace, late = run_output(start, first, period, 4, 300)
    armed = trace[ARM_AT][0]
    passed = [first + n * period for n in range(200) if first + n * period <= armed]
    counted = [first + n * period for n in range(len(late))]
    assert len(counted) in (len(passed), len(passed) + 1)  # The next one may be less than 16 ticks ahead.
    assert rises(trace) == [
        first_tick_at(trace, first + n * period) for n in range(len(late), len(late) + len(rises(trace)))
    ]


def test_an_edge_far_ahead_waits():
    trace, late = run_output(0, 39 * 3600 * 10**9, 1000, 4, 400)
    assert rises(trace) == [] and late == []


def test_a_step_forward_counts_what_was_passed_over():
    step = {100: {"adjust": 1000 << 32, "adjust_apply": 1}}
    trace, late = run_output(0, 400, 400, 4, 500, step)
    seen = rises(trace)
    passed = len(late)
    assert passed >= 1
    assert len(seen) + passed == sum(400 + 400 * n <= trace[-2][0] for n in range(20))
    assert seen[-1] == first_tick_at(trace, 400 * (len(seen) + passed))


def test_arming_anew_takes_the_new_time():
    again = {100: {"first": 1303, "arm": 1}, 101: {"arm": 0}}
    trace, late = run_output(0, 10**6, 500, 4, 300, again)
    assert rises(trace) == [first_tick_at(trace, time) for time in (1303, 1803, 2303)] and late == []
