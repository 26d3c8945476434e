# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The calibration line and confidence intervals, against exact lines, scipy and coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from liteprobe.host.analysis.calibration import fit_line
from liteprobe.host.analysis.confidence import mean_interval, percentile_interval

LENGTHS = np.array([60, 64, 128, 256, 512, 1024, 1514])


def test_store_and_forward_hop_has_a_slope_of_eight_ns_an_octet():
    line = fit_line(LENGTHS, 8 * LENGTHS + 3192)
    assert (line.slope, line.intercept) == pytest.approx((8.0, 3192.0), rel=1e-14)
    assert line.residual_std < 1e-11


def test_wire_loop_has_no_slope():
    line = fit_line(np.repeat(LENGTHS, 10), np.full(70, 24))
    assert (line.slope, line.intercept, line.slope_error, line.intercept_error) == (0.0, 24.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_line_and_errors_agree_with_scipy(seed):
    delays = 8 * LENGTHS + np.random.default_rng(seed).normal(1e6, 5, 7)
    line, other = fit_line(LENGTHS, delays), stats.linregress(LENGTHS, delays)
    ours = [line.slope, line.intercept, line.slope_error, line.intercept_error]
    theirs = [other.slope, other.intercept, other.stderr, other.intercept_stderr]
    assert ours == pytest.approx(theirs, rel=1e-6), f"seed {seed}"
    assert line.interval()[0] == pytest.approx(stats.t.ppf(0.975, 5) * other.stderr, rel=1e-6)


def test_two_points_have_a_line_but_no_error():
    line = fit_line(np.array([60, 1514]), np.array([480, 12112]))
    assert (line.slope, line.intercept) == (8.0, 0.0)
    assert math.isnan(line.slope_error)
    assert line.at(100).tolist() == 800.0


def test_one_length_gives_no_line():
    with pytest.raises(ValueError, match="two different lengths"):
        fit_line(np.array([60, 60]), np.array([1, 2]))


def test_interval_of_a_mean_is_students():
    low, high = mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))
    reach = 3.182446305284263 * math.sqrt(5 / 3) / 2  # t(0.975, 3), s / sqrt(n)
    assert (low, high) == pytest.approx((2.5 - reach, 2.5 + reach), rel=1e-12)


def test_interval_of_a_skewed_mean_is_moved_towards_its_tail():
    # Johnson 1978: mu3 / (6 s^2 n), with mu3 = n / ((n - 1)(n - 2)) sum of cubes = 4/6 (81 - 9) / ... of 0, 0, 0, 4.
    low, high = mean_interval(np.array([0.0, 0.0, 0.0, 4.0]))
    third, variance = 4 / 6 * (27 - 3), 12 / 3
    assert (low + high) / 2 == pytest.approx(1 + third / (6 * variance * 4), rel=1e-12)


def test_one_value_has_no_interval():
    assert all(math.isnan(end) for end in mean_interval(np.array([1.0])))


def test_interval_of_a_median_is_two_order_statistics():
    # Ranks 40 and 61 of 100: tables of the sign test, 95 %.
    assert percentile_interval(np.arange(1, 101), 50) == (40, 61)


def test_small_sample_bounds_no_far_percentile():
    low, high = percentile_interval(np.arange(1, 101), 99.9)
    assert low == 99 and math.isnan(high)


@pytest.mark.parametrize("percent", [10, 50, 90])
def test_percentile_interval_covers_the_truth(percent):
    seed, covered = 7, 0
    random = np.random.default_rng(seed)
    for _ in range(400):
        low, high = percentile_interval(random.uniform(0, 100, 200), percent)
        covered += low <= percent <= high
    assert covered >= 0.95 * 400 - 3 * math.sqrt(400 * 0.95 * 0.05), f"seed {seed}"
