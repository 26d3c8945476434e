# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The reference of the emulator against the theory of queues, in short; `./run bench emulator theory` has the long runs."""

import numpy as np
import pytest

from liteprobe.sim.bench.emulator import theory

FRAMES = 20_000


@pytest.mark.parametrize("experiment", theory.EXPERIMENTS)
def test_the_reference_is_what_the_theory_says(experiment: theory.Experiment) -> None:
    far = [one for one in experiment(FRAMES) if not one.reach <= 1]
    assert far == []


def test_a_figure_that_is_off_is_seen() -> None:
    values = np.random.default_rng(1).normal(10, 1, 10_000)
    assert theory.claim("near", 10, values).reach < 1
    assert theory.claim("far", 10.1, values).reach > 1
    assert theory.exact("off", np.array([1, 2, 3]), np.array([1, 2, 4])).reach == 2
