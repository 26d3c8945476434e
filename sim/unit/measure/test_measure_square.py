# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The square in one multiplier is arithmetic's, at the edges of its range and anywhere between."""

import random

from migen import run_simulation

from liteprobe.cores.measure.square import DelaySquare

LIMIT = 2**32 - 1
EDGES = [0, 1, -1, 2**16, -(2**16), 2**16 - 1, LIMIT, -LIMIT, LIMIT - 1, 2**31, -(2**31), -(2**16) - 1]
FAR = [2**32, -(2**32), 2**63 - 1, -(2**63), 2**32 + 5, -(2**32) - 5, -(2**48)]


def squares(delays):
    """Return the square of each delay, as the core has it five cycles after the start."""
    dut, found = DelaySquare(), []

    def drive():
        for delay in delays:
            yield dut.delay.eq(delay)
            for start in (0, 0, 0, 1, 2, 4, 0, 0):
                yield dut.start.eq(start)
                yield
            yield
            found.append((yield dut.square))

    run_simulation(dut, drive())
    return found


def test_squares_are_those_of_arithmetic_and_far_delays_are_clamped():
    rng = random.Random(5)
    near = [rng.choice([1, -1]) * rng.getrandbits(rng.randrange(1, 33)) for _ in range(300)]
    delays = [*EDGES, *FAR, *near]
    assert squares(delays) == [min(abs(delay), LIMIT) ** 2 for delay in delays]
