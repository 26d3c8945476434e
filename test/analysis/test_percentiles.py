# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Percentiles of values that are known by bins hold the true ones, whatever the bins were."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import BINS, BinKind
from liteprobe.host.analysis.delay import percentile
from liteprobe.host.base.errors import UsageError
from liteprobe.host.measure.delay_bins import fitting, padded
from liteprobe.host.measure.monitor import BinSetting
from liteprobe.host.measure.percentiles import Bounds, Cells

PERCENTS = (0.1, 25, 50, 99, 99.9, 100)
REGULAR = BINS[BinKind.DELAY].regular


def sorted_into(values: NDArray[np.int64], setting: BinSetting) -> NDArray[np.int64]:
    """Return what the gateware counts: below, regular bins, above."""
    numbers = np.clip((values - setting.origin >> setting.shift) + 1, 0, REGULAR + 1)
    return np.bincount(numbers, minlength=REGULAR + 2).astype(np.int64)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_hold_the_true_percentile_of_values_in_several_histograms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [rng.integers(-5000, 90_000, rng.integers(1, 400)), rng.exponential(3000, 700).astype(np.int64) + 4000]
    settings = [BinSetting(int(rng.integers(-9000, 9000)), int(rng.integers(0, 13))) for _ in parts]
    binned = [Cells.of_bins(one, sorted_into(part, one)) for part, one in zip(parts, settings, strict=True)]
    unsorted = rng.integers(0, 50_000, 20)
    values = np.concatenate([*parts, unsorted])
    least, most = int(values.min()), int(values.max())
    cells = binned[0].and_those(binned[1], Cells.of([(least, most, 20)])).within(least, most)
    assert cells.total == len(values)
    for percent in PERCENTS:
        bounds = cells.percentile(percent)
        assert bounds and bounds.least <= percentile(values, percent) <= bounds.most
    at, low, high = cells.distribution()
    for value, below, above in zip(at, low, high, strict=True):
        assert below <= np.mean(values <= value) <= above


def test_bounds_are_as_near_as_a_bin_is_wide() -> None:
    values = np.arange(8000, 16_000, 8)
    setting = fitting(8000, 15_999)
    cells = Cells.of_bins(setting, sorted_into(values, setting)).within(8000, 15_992)
    assert setting == BinSetting(7936, 8)
    assert cells.percentile(50) == Bounds(11_776, 12_031)
    assert percentile(values, 50) == 11_992


def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed() -> None:
    cells = Cells.of([(value, value, 1) for value in (10, 20, 30)])
    found = [cells.percentile(percent) for percent in (33, 34, 50, 66, 67, 100)]
    assert found == [Bounds(value, value) for value in (10, 20, 20, 20, 30, 30)]
    thousand = Cells.of([(value, value, 1) for value in range(1, 1001)])
    assert [thousand.percentile(percent) for percent in (99, 99.9)] == [Bounds(990, 990), Bounds(999, 999)]


def test_a_constant_is_exact_and_nothing_has_no_percentile() -> None:
    setting = BinSetting(0, 9)
    cells = Cells.of_bins(setting, sorted_into(np.full(100, 296), setting)).within(296, 296)
    assert {cells.percentile(percent) for percent in PERCENTS} == {Bounds(296, 296)}
    assert Cells.of(()).percentile(50) is None


@pytest.mark.parametrize(
    ("least", "most"), [(0, 0), (296, 296), (-5, 7), (10**9, 10**9 + 1), (-(10**12), -(10**12) + 367), (5, 98 * 10**9)]
)
def test_bins_that_fit_hold_both_ends_and_are_the_narrowest(least: int, most: int) -> None:
    setting = fitting(least, most)
    assert setting.origin <= least and most < setting.origin + (REGULAR << setting.shift)
    assert setting.origin % 8 == 0 and setting.shift >= 3
    if setting.shift > 3:
        narrower = setting.shift - 1
        assert most >= (least >> narrower << narrower) + (REGULAR << narrower)


@pytest.mark.parametrize(("least", "most"), [(296, 296), (1000, 9000), (-100, 50), (0, 90 * 10**9)])
def test_roomy_bins_leave_some_for_what_comes_and_none_where_nothing_can(least: int, most: int) -> None:
    setting = padded(least, most)
    end = setting.origin + (REGULAR << setting.shift)
    assert setting.origin <= least and end > most
    assert end - most >= min(most - least, 100) and (setting.origin >= 0 or least < 0)


def test_no_bins_hold_what_is_too_far_apart() -> None:
    most = (REGULAR << 31) + 1
    with pytest.raises(UsageError, match=f"give a range of up to {REGULAR << 31} ns"):
        fitting(0, most)
    assert math.isclose((REGULAR << 31) / 1e9, 98.78, abs_tol=0.01)
