# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The host's own functions, against SciPy."""

import numpy as np
import pytest
from scipy import optimize, special

from liteprobe.host.analysis.beta import incomplete_beta
from liteprobe.host.analysis.confidence import percentile_interval, student
from liteprobe.host.analysis.line_clock import _least_greatest

RANDOM_SEED = 11


def test_incomplete_beta_is_scipys() -> None:
    random = np.random.default_rng(RANDOM_SEED)
    cases = [(float(x), *10 ** random.uniform(-1, 6, 2)) for x in random.uniform(0, 1, 300)]
    # Where it is neither 0 nor 1.
    cases += [(a / (a + b) * (1 + offset / a**0.5), a, b) for _, a, b in cases[:100] for offset in (-1, 0, 1) if a > 9]
    cases += [(0.0, 2.0, 3.0), (1.0, 2.0, 3.0)]
    inside = [(x, a, b) for x, a, b in cases if 0 <= x <= 1]
    assert len(inside) > 400
    for x, a, b in inside:
        assert incomplete_beta(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-14), (x, a, b)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 99, 1000, 10**6])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.95, 0.975, 0.995, 0.99995])
def test_student_is_scipys(probability: float, freedom: int) -> None:
    assert student(probability, freedom) == pytest.approx(special.stdtrit(freedom, probability), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("probability", "freedom"), [(0.4, 3), (1.0, 3), (0.9, 0)])
def test_a_quantile_that_is_not_there_is_refused(probability: float, freedom: int) -> None:
    with pytest.raises(ValueError, match=r"give 0\.5 to 1, and 1 or more"):
        student(probability, freedom)


@pytest.mark.parametrize("count", [2, 10, 99, 5000])
def test_ranks_of_a_percentile_are_the_binomials(count: int) -> None:
    for percent in (0.0, 0.1, 1.0, 50.0, 90.0, 99.0, 99.9, 100.0):
        below = special.bdtr(np.arange(count, dtype=float), count, percent / 100)
        low = np.searchsorted(below, 0.025, side="right") - 1
        high = np.searchsorted(below, 0.975, side="left")
        expected = (low if low >= 0 else np.nan, high if high < count else np.nan)
        np.testing.assert_equal(percentile_interval(np.arange(count), percent), expected)


def test_the_line_of_the_least_greatest_residual_is_that_of_linear_programming() -> None:
    random = np.random.default_rng(RANDOM_SEED)
    for count in (3, 4, 10, 128):
        for _ in range(10):
            x = np.sort(random.uniform(-1, 1, count))
            y = np.floor(random.normal(0, 30) * x * 8) / 8 + random.uniform(0, 8, count)
            ones = np.ones_like(x)
            above, below = np.column_stack([-x, -ones, -ones]), np.column_stack([x, ones, -ones])
            found = optimize.linprog(
                [0, 0, 1], np.vstack([above, below]), np.concatenate([-y, y]), bounds=[(None, None)] * 2 + [(0, None)]
            )
            slope, phase, bound = _least_greatest(x, y)
            assert bound == pytest.approx(found.x[2], rel=1e-6)
            assert np.abs(y - phase - slope * x).max() == pytest.approx(bound, rel=1e-9)
