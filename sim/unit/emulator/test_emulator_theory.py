# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The reference of the emulator against the theory of queues, of loss models and of shapers."""

from collections.abc import Iterator

import numpy as np
import pytest

from liteprobe.sim.drivers.emulator.theory import EXPERIMENTS, Experiment, claim, exact
from liteprobe.sim.drivers.tools.figures import Figure, Size, row


@row("emulator", "theory", is_test=True)
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=[one.__name__ for one in EXPERIMENTS])
def test_the_reference_is_what_the_theory_says(experiment: Experiment, size: Size) -> Iterator[Figure]:
    """Yield how far each mean is from theory, in halves of the interval of 99.9 % that the means of batches give.

    What must be exact counts 2 for each frame that is off.
    """
    for one in experiment(size.of(20_000, 1_000_000, 4_000_000)):
        yield Figure(f"theory_{one.name}", one.reach, "of 99.9 %", 1)


def test_a_figure_that_is_off_is_seen() -> None:
    values = np.random.default_rng(1).normal(10, 1, 10_000)
    assert claim("near", 10, values).reach < 1
    assert claim("far", 10.1, values).reach > 1
    assert exact("off", np.array([1, 2, 3]), np.array([1, 2, 4])).reach == 2
