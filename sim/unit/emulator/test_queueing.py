# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The formulas of the theory of queues, against values that are published or worked out otherwise."""

import math

import pytest

from liteprobe.sim.models.emulator import queueing


@pytest.mark.parametrize(("load", "wait"), [(0.3, 0.2143), (0.5, 0.5), (0.8, 2), (0.9, 4.5), (0.95, 9.5)])
def test_mean_wait(load: float, wait: float) -> None:
    assert queueing.md1_wait(load) == pytest.approx(wait, abs=1e-4)


def test_the_distribution_of_waits_has_the_mean_and_variance() -> None:
    load, step = 0.5, 1e-3
    beyond = [1 - queueing.md1_at_most(load, step * n) for n in range(20_000)]
    assert sum(beyond) * step == pytest.approx(queueing.md1_wait(load), abs=2e-3)
    second = 2 * sum(value * n * step for n, value in enumerate(beyond)) * step
    assert second == pytest.approx(queueing.md1_variance(load) + queueing.md1_wait(load) ** 2, abs=2e-3)
    assert queueing.md1_at_most(load, 0) == 0.5
    assert queueing.md1_wait_beyond(load, 2) == pytest.approx(sum(beyond[2000:]) * step, abs=1e-4)


@pytest.mark.parametrize(
    ("load", "places", "loss"),
    [(0.8, 5, 0.035290), (0.9, 10, 0.016632), (0.95, 20, 0.0080687), (1, 10, 0.050848), (1.2, 10, 0.170911)],
)
def test_loss_of_a_full_queue(load: float, places: int, loss: float) -> None:
    assert queueing.md1k_loss(load, places) == pytest.approx(loss, rel=3e-5)


def test_one_place_loses_as_erlang_says() -> None:
    assert queueing.md1k_loss(0.7, 1) == pytest.approx(0.7 / 1.7)


def test_work_of_periodic_sources() -> None:
    assert queueing.ndd1_beyond(1, 10, 0.25) == pytest.approx(0.75 / 10)  # One source: it works a tenth of the time.
    # Two sources: more than one service of work is left only where they come within one service of each other.
    assert queueing.ndd1_beyond(2, 10, 1) == pytest.approx(2 * (1 / 10) * (1 / 10) / 2)
    # Any work at all: the load.
    assert queueing.ndd1_beyond(20, 25, 0) == pytest.approx(20 / 25)
    # Many sources of one load are a Poisson process.
    assert queueing.ndd1_beyond(500, 1000, 1.5) == pytest.approx(1 - queueing.md1_at_most(0.5, 1.5), rel=0.01)


def test_priority() -> None:
    first, second = queueing.priority_waits((0.2, 0.1), (1, 4))
    assert math.isclose(first, 0.9 / 0.8) and math.isclose(second, 0.9 / (0.8 * 0.4))
