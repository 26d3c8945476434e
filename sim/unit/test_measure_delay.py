# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The delay of a frame, and what a tally makes of it, against exact arithmetic."""

import random

import pytest
from migen import run_simulation

from liteprobe.cores.measure.delay import DelayMeter
from liteprobe.sim.models.delay import DelayModel, signed

NAMES = ("least", "most", "total", "squares")
FAR = 2**32 - 1


def accumulate(stamps, spacing=8, clear_before=None):
    """Run the meter over pairs of RX and TX stamp, and add up as a tally does; return least, most, total, squares."""
    dut = DelayMeter()
    sums = [0, 0, 0, 0]

    def generator():
        for place, (rx_stamp, tx_stamp) in enumerate(stamps):
            if place == clear_before:
                yield dut.clear.eq(1)
                yield
                yield dut.clear.eq(0)
                sums[:] = [0, 0, 0, 0]
            yield dut.rx_stamp.eq(rx_stamp)
            yield dut.tx_stamp.eq(tx_stamp)
            yield dut.check.eq(1)
            yield
            yield dut.check.eq(0)
            for _ in range(2):
                yield
            verdict = (yield dut.is_least), (yield dut.is_most)
            for _ in range(spacing - 3):
                yield
            yield dut.commit.eq(1)
            yield
            yield dut.commit.eq(0)
            delay = yield dut.delay
            # They stand from two cycles after the check to the one after the commit.
            assert ((yield dut.is_least), (yield dut.is_most)) == verdict
            yield
            if verdict[0]:
                sums[0] = delay
            if verdict[1]:
                sums[1] = delay
            sums[2] = signed(sums[2] + delay)
            sums[3] = (sums[3] + (yield dut.square)) % 2**96

    run_simulation(dut, generator())
    return tuple(sums)


def modelled(stamps):
    model = DelayModel()
    for rx_stamp, tx_stamp in stamps:
        model.arrive(rx_stamp, tx_stamp)
    return tuple(getattr(model, name) for name in NAMES)


@pytest.mark.parametrize("spacing", [8, 9, 20])
def test_squares_are_right_eight_cycles_after_check(spacing):
    delays = [0, 1, 0xFFFF, 0x10000, 0x12345678, FAR]
    stamps = [(1000 + delay, 1000) for delay in delays]
    assert accumulate(stamps, spacing) == (0, FAR, sum(delays), sum(delay**2 for delay in delays))


def test_negative_delays_are_least_and_their_squares_positive():
    assert accumulate([(10, 15), (10, 7), (10, 110)]) == (-100, 3, -102, 25 + 9 + 10_000)


@pytest.mark.parametrize("delay", [FAR + 1, 2**40, 2**63 - 1, -FAR, -FAR - 1, -FAR - 2, -(2**63)])
def test_squares_of_far_delays_are_clamped(delay):
    assert accumulate([(delay % 2**64, 0)]) == (delay, delay, delay, FAR**2)


def test_first_delay_is_least_and_most_whatever_it_is():
    assert accumulate([(5, 0)])[:2] == (5, 5)
    assert accumulate([(0, 5)])[:2] == (-5, -5)


def test_clear_forgets_all_frames():
    assert accumulate([(50, 0), (1, 0), (7, 0)], clear_before=2) == (7, 7, 7, 49)


@pytest.mark.parametrize("seed", range(3))
def test_random_stamps_agree_with_the_model(seed):
    rng = random.Random(seed)
    stamps = [(rng.getrandbits(64), rng.getrandbits(64)) for _ in range(10)]
    stamps += [(base := rng.getrandbits(63), base - rng.randrange(-FAR, FAR)) for _ in range(30)]
    stamps = [(rx_stamp, tx_stamp % 2**64) for rx_stamp, tx_stamp in stamps]
    assert accumulate(stamps) == modelled(stamps), f"seed {seed}"
