# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Lines, confidence intervals and the clock of a line, against exact lines, SciPy and coverage."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special, stats

from liteprobe.host.analysis.beta import incomplete_beta
from liteprobe.host.analysis.calibration import fit_line
from liteprobe.host.analysis.confidence import bounded_mean_interval, mean_interval, percentile_interval, student
from liteprobe.host.analysis.line_clock import COUNT_WRAP, TICK_NS, LineClock, _least_greatest, fit, unwrap
from liteprobe.host.base.errors import UsageError

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


@pytest.mark.parametrize("count", [2, 3, 10, 50])
def test_values_that_are_all_alike_leave_a_share_for_others(count: int) -> None:
    # A share of .05^(1/R) and fewer undisturbed trains would have shown one that was disturbed, in 95 % of all runs.
    low, high = bounded_mean_interval(np.full(count, 1e9), 0, 1e9)
    assert low == pytest.approx(1e9 * 0.05 ** (1 / count), rel=1e-9) and high == 1e9
    low, high = bounded_mean_interval(np.full(count, 1e8) * (1 + 1e-6 * (np.arange(count) % 2)), 0, 1e9, 2e-6)
    share = 1 - 0.05 ** (1 / count)
    assert (low, high) == pytest.approx((1e8 * (1 - share), 1e8 + 9e8 * share), rel=1e-5)


def test_one_value_among_others_that_are_alike_is_stringers_bound() -> None:
    low, high = bounded_mean_interval(np.array([1000.0] * 19 + [400.0]), 0, 1000)
    none, one = (stats.beta.ppf(0.95, found + 1, 20 - found) for found in (0, 1))
    assert low == pytest.approx(1000 - 1000 * none - 600 * (one - none), rel=1e-9) and high == 1000


@pytest.mark.parametrize("count", [3, 10, 30])
def test_the_interval_of_a_mean_of_rare_values_holds_it(count: int) -> None:
    # A pair with a frame between in one of twenty: a mean of 952.6, of which most samples show nothing, or little.
    random = np.random.default_rng(count)
    values = np.where(random.random((300, count)) < 0.05, 52.0, 1000.0)
    held = [low <= 952.6 <= high for low, high in (bounded_mean_interval(sample, 0, 1000) for sample in values)]
    assert sum(held) >= 0.93 * 300


def test_many_varied_values_have_an_interval_little_longer_than_students() -> None:
    random = np.random.default_rng(5)
    spans = [np.ptp(bounded_mean_interval(random.normal(700, 30, 50), 0, 1000)) for _ in range(100)]
    assert np.mean(spans) < 1.3 * 2 * student(0.975, 49) * 30 / 50**0.5


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
    with pytest.raises(UsageError, match=r"give (0\.5 to 1, and 1 or more|a whole number, 1 to 1000000000)"):
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


# The clock of a line ------------------------------------------------------------------------------


START_NS = 1_700_000_000_123_456_792
START_COUNT = COUNT_WRAP - 70_000  # Wraps on the way.


def ideal_ns(counts: NDArray[np.int64], ppm: float, phase_ns: float) -> NDArray[np.float64]:
    """Return when ticks of a line begin, less START_NS."""
    return phase_ns + (counts - START_COUNT) * TICK_NS / (1 + ppm * 1e-6)


def latches(ppm: float, phase_ns: float, points: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Latch ``points`` ticks at random intervals, 0.1 ms on average, as the gateware does; counts are not wrapped."""
    rng = np.random.default_rng(seed)
    counts = START_COUNT + np.cumsum(rng.integers(2_000, 23_000, points))
    ticks = np.floor(ideal_ns(counts, ppm, phase_ns) / TICK_NS).astype(np.int64)
    return counts, START_NS + 8 * ticks


def errors_ns(line: LineClock, counts: NDArray[np.int64], ppm: float, phase_ns: float) -> NDArray[np.float64]:
    """Error of the line at every latch."""
    # The line's counts begin with the first latch as it was read.
    shift = counts[0] - counts[0] % COUNT_WRAP
    return line.at(counts - shift) + (line.origin_ns - START_NS) - ideal_ns(counts, ppm, phase_ns)


@pytest.mark.parametrize("ppm", [20.0, -3.0])
def test_the_rate_of_the_line_is_within_its_bound(ppm: float) -> None:
    """A bound that is not ten times too wide, either."""
    inside, ratios = 0, []
    for seed in range(40):
        counts, now = latches(ppm, float(np.random.default_rng(2000 + seed).uniform(0, 8)), 100, seed)
        line = fit(counts % COUNT_WRAP, now)
        off = abs(line.rate_ppm - ppm)
        inside += off <= line.rate_error_ppm
        ratios.append(off / line.rate_error_ppm)
    print("seeds 0..39, inside", inside, "mean share of the bound", np.mean(ratios))
    assert inside >= 38 and np.mean(ratios) > 0.05


@pytest.mark.parametrize("ppm", [20.0, -20.0])
def test_the_line_is_known_to_half_a_nanosecond_rms_from_100_latches(ppm: float) -> None:
    squares = []
    for seed in range(60):
        phase = float(np.random.default_rng(1000 + seed).uniform(0, 8))
        counts, now = latches(ppm, phase, 100, seed)
        line = fit(counts % COUNT_WRAP, now)
        assert line.is_resolved
        assert abs(line.rate_ppm - ppm) < 0.2
        squares.append(errors_ns(line, counts, ppm, phase) ** 2)
    rms = float(np.sqrt(np.mean(squares)))
    print("seeds 0..59, rms", rms)
    assert rms < 0.5
    # What it says of its error is not less than the truth, nor far more.
    assert 1 < line.error_ns / rms < 4


@pytest.mark.parametrize("ppm", [20.0, -20.0, 100.0])
def test_corrected_stamps_are_closer_to_the_sfd(ppm: float) -> None:
    seed, phase = 5, 3.3
    counts, now = latches(ppm, phase, 200, seed)
    line = fit(counts % COUNT_WRAP, now)
    frames = np.random.default_rng(seed).integers(counts[0], counts[-1], 20_000)
    true = ideal_ns(frames, ppm, phase)
    stamps = START_NS + 8 * np.floor(true / TICK_NS).astype(np.int64)
    before = (stamps - START_NS) + TICK_NS / 2 - true
    after = (stamps - START_NS) + line.correction(stamps) - true
    rms = [float(np.sqrt(np.mean(error**2))) for error in (before, after)]
    print("seed", seed, "rms", rms)
    assert 2.2 < rms[0] < 2.4  # A tick over the root of 12.
    # Ambiguous ones: 4 of 8 ns times the error of the line, each up to 4 ns off.
    assert rms[1] < 0.9
    # No stamp is taken for another tick of the line.
    assert np.abs(after).max() < TICK_NS / 2 + 1


def test_clocks_that_do_not_slide_are_told_and_correct_nothing() -> None:
    counts, now = latches(0.0, 3.0, 100, 1)
    line = fit(counts % COUNT_WRAP, now)
    assert not line.is_resolved
    assert line.error_ns == TICK_NS / 12**0.5
    assert (line.correction(now) == 4.0).all()


def test_a_clock_that_was_slewed_meanwhile_is_fitted_by_least_squares() -> None:
    counts, now = latches(20.0, 1.0, 200, 3)
    slewed = now + np.where(np.arange(200) < 100, 0, 40)
    line = fit(counts % COUNT_WRAP, slewed)
    x = (counts - counts[100]).astype(float)
    slope = np.polyfit(x, (slewed - slewed[100]).astype(float), 1)[0]
    assert line.ns_per_tick == pytest.approx(slope, abs=1e-9)
    assert line.error_ns > 1


def test_counts_are_unwrapped_by_the_time_that_passed() -> None:
    counts = np.array([COUNT_WRAP - 5, 3 * COUNT_WRAP + 7, 3 * COUNT_WRAP + 8, 10 * COUNT_WRAP], np.int64)
    now = START_NS + np.round(counts * 8 * (1 + 90e-6)).astype(np.int64)
    assert list(unwrap(counts % COUNT_WRAP, now)) == list(counts)


@pytest.mark.parametrize(
    ("counts", "now", "message"),
    [
        ([1, 2], [0, 8], "three latches or more, not 2"),
        ([5, 5, 5], [0, 0, 0], "stands still"),
        ([0, 1, 2], [0, 10**14, 2 * 10**14], "too far apart"),
    ],
)
def test_latches_that_make_no_line_are_refused(counts: list[int], now: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(np.array(counts), np.array(now))
