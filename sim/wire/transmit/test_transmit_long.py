# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Long programs on both ports at once, by the tick, with ``sys`` asynchronous to the line."""

from fractions import Fraction

import numpy as np
import pytest

from liteprobe.cores.formats import slot_octets
from liteprobe.sim.drivers.transmit.driver import LongProgram, run
from liteprobe.sim.models.traffic.trains import starts

SIZES = [60, 64, 128, 256, 512, 1024, 1514, pytest.param(9000, marks=pytest.mark.full)]
SYS_SLOW = 10_668  # ps of half a period: 46.875 MHz, slower than any board, less 100 ppm.


def check(program, interval):
    ports = run(program)
    expected = np.array(starts(program.count, program.repeats, interval, program.gap))
    for port in ports:
        assert np.array_equal(port.starts - port.starts[0], expected)
        assert set(port.ends - port.starts) == {program.length + 12}
        assert (port.sent, port.late, port.underruns) == (program.count * program.repeats, 0, 0)
    assert ports[0].starts[0] == ports[1].starts[0]


@pytest.mark.parametrize("length", SIZES)
def test_trains_of_1000_start_every_slot_exactly(length):
    check(LongProgram(length, count=1000, sys_half_ps=SYS_SLOW), Fraction(slot_octets(length)))


@pytest.mark.parametrize(
    "ticks, fraction, repeats",
    [(84, 0x55555555, 10), (84, 1, 10), (97, 0xFFFFFFFF, 12), pytest.param(84, 0x55555555, 100, marks=pytest.mark.full)],
)
def test_frames_by_the_10000_stay_on_the_absolute_schedule(ticks, fraction, repeats):
    program = LongProgram(60, count=1000, repeats=repeats, ticks=ticks, fraction=fraction)
    check(program, ticks + Fraction(fraction, 2**32))


def test_trains_with_a_gap_stay_on_the_absolute_schedule():
    program = LongProgram(61, count=10, repeats=1000, gap=1234)
    check(program, Fraction(slot_octets(61)))
