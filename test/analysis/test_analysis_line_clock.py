# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The clock of a line: against lines of known rate and phase, by arithmetic."""

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.host.analysis.line_clock import COUNT_WRAP, TICK_NS, LineClock, fit, unwrap

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
