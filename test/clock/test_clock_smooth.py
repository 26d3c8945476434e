# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Smoothing and Allan deviation, against the model's own time and against arithmetic."""

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.host.analysis import clock_smooth, clock_stability
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import TIMING, TIMING_QERR, ReceiverSpec, pulses

COUNT = 1800
Floats = NDArray[np.float64]


def logged(receiver: ReceiverSpec, seed: int) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Time of each pulse, oscillator less PPS as captured, the truth of it, and whether there is a qErr."""
    print("seed", seed)
    oscillator = Oscillator(OscillatorSpec(offset_ppm=20.0137), COUNT + 2, seed)
    came = pulses(receiver, COUNT, seed)
    at_s = came.time_s + 1e-9 * came.late_ns
    ahead = oscillator.ahead_ns(at_s)
    # Ticks of 8 ns of the oscillator; whole seconds are whole ticks, so the rest alone is cut to them.
    captured = np.floor((came.late_ns + ahead) / 8) * 8 + 4
    return (
        came.time_s,
        captured - np.nan_to_num(came.qerr_ns),
        oscillator.ahead_ns(came.time_s),
        ~np.isnan(came.qerr_ns),
    )


def rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize(("receiver", "most_ns", "share"), [(TIMING_QERR, 2.0, 0.66), (TIMING, 3.3, 0.42)])
def test_smoothing_takes_out_the_noise_of_the_pulses(receiver: ReceiverSpec, most_ns: float, share: float) -> None:
    time_s, phase, truth, has_qerr = logged(receiver, 3)
    found = clock_smooth.smooth(time_s, phase, has_qerr)
    assert rms(found.phase_ns - truth) < min(most_ns, share * rms(phase - truth))
    assert found.is_used.all()
    rate = np.diff(truth)
    assert np.abs(found.rate_ppb[:-1] - rate)[50:-50].max() < 3


def test_outliers_and_gaps_cost_little() -> None:
    receiver = ReceiverSpec(white_ns=1.6, outliers=0.05, outages=((600, 640),), missing=0.02)
    time_s, phase, truth, has_qerr = logged(receiver, 4)
    found = clock_smooth.smooth(time_s, phase, ~has_qerr)
    came = pulses(receiver, COUNT, 4)
    assert (found.is_used[20:] == ~came.is_outlier[20:]).mean() > 0.995
    assert rms(found.phase_ns - truth) < 2.0


def known_noise(seed: int) -> tuple[Floats, Floats, clock_smooth.Smoothed]:
    """Return rate and phase in truth, and what was made of pulses with nothing in them that the model doesn't know."""
    print("seed", seed)
    generator = np.random.default_rng(seed)
    model = clock_smooth.NoiseModel(white_ns=2.0, phase_walk_ns=1.0, rate_walk_ppb=0.1, drift_walk_ppb_s=0.0)
    rate = 0.1 * np.cumsum(generator.standard_normal(COUNT))
    truth = np.cumsum(rate + generator.standard_normal(COUNT))
    phase = truth + np.hypot(2.0, 8 / 12**0.5) * generator.standard_normal(COUNT)
    return rate, truth, clock_smooth.smooth(np.arange(COUNT, dtype=float), phase, np.ones(COUNT, bool), model)


def test_the_stated_sigma_is_that_of_the_errors() -> None:
    """White noise, a tick, an oscillator of its own kind."""
    _, truth, found = known_noise(8)
    assert rms((found.phase_ns - truth) / found.sigma_ns) == pytest.approx(1.0, abs=0.1)


def test_the_correction_takes_the_error_of_the_clock_out_of_stamps() -> None:
    """A clock that runs off by a sinus: stamps between its edges become true again."""
    time_s, phase, truth, has_qerr = logged(TIMING_QERR, 5)
    error = 40 * np.sin(time_s / 60)
    start = 1_700_000_000 * 10**9
    noise = phase - truth  # Of receiver and capture: the clock was read in the same tick.
    now = start + (time_s * 1e9).astype(np.int64)
    found = clock_smooth.correction(
        now + np.floor(error).astype(np.int64), error % 1, error + noise, phase,
        clock_smooth.smooth(time_s, phase, has_qerr),
    )  # fmt: skip
    true_s = np.arange(100.25, 1700.0, 7.0)
    stamps = start + (true_s * 1e9).astype(np.int64) + np.rint(40 * np.sin(true_s / 60)).astype(np.int64)
    rest = stamps - found.error_at(stamps) - (start + true_s * 1e9)
    # 2^-8 ns steps of a double at this time aside.
    assert rms(40 * np.sin(true_s / 60)) > 25
    assert rms(np.asarray(found.error_at(stamps) - 40 * np.sin(true_s / 60))) < 2.2
    assert len(rest) == len(stamps)
    with pytest.raises(ValueError, match="outside the log"):
        found.error_at(np.array([start]))


@pytest.mark.parametrize(("times", "said"), [([0.0, 1.0], "three edges"), ([0.0, 2.0, 1.0, 3.0], "order of time")])
def test_too_little_is_said(times: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        clock_smooth.smooth(np.array(times), np.zeros(len(times)), np.zeros(len(times), bool))


# Allan deviation ----------------------------------------------------------------------------------


def test_allan_deviation_of_white_phase_noise_falls_by_the_averaging_time() -> None:
    """sqrt(3) sigma / tau, by the definition of the Allan variance from phases."""
    seed, sigma_ns, count = 6, 2.0, 20_000
    print("seed", seed)
    phase = sigma_ns * np.random.default_rng(seed).standard_normal(count)
    found = clock_stability.allan_deviation(phase, 1e6)
    first = found.tau_s < 0.5
    expected = 3**0.5 * sigma_ns * 1e-9 / found.tau_s
    assert found.tau_s[:3] == pytest.approx([1e-3, 2e-3, 4e-3])
    assert found.deviation[first] == pytest.approx(expected[first], rel=0.1)
    assert found.edges == count


def test_allan_deviation_of_a_drift_grows_by_the_averaging_time() -> None:
    """A steady rate has none; D tau / sqrt(2) for a drift of D a second."""
    time_s = np.arange(1000.0)
    found = clock_stability.allan_deviation(2e4 * time_s + 0.5 * 3.0 * time_s**2, 1e9)
    assert found.deviation == pytest.approx(3e-9 * found.tau_s / 2**0.5, rel=1e-6)


def test_the_longest_run_has_no_gap() -> None:
    assert clock_stability.longest_run(np.array([0, 1, 5, 6, 7, 9])) == slice(2, 5)
    assert clock_stability.longest_run(np.array([4])) == slice(0, 1)
    with pytest.raises(ValueError, match="4 edges"):
        clock_stability.allan_deviation(np.zeros(3), 1e9)


def test_the_longest_run_is_of_a_locked_clock() -> None:
    states = ["acquiring"] * 5 + ["locked"] * 3 + ["holdover"] + ["locked"] * 4 + ["acquiring"] * 9
    assert clock_stability.longest_run(np.arange(22), states) == slice(9, 13)
    assert clock_stability.longest_run(np.arange(5), ["acquiring"] * 5) == slice(0, 5)


# Time deviation and MTIE --------------------------------------------------------------------------


def test_time_deviation_of_white_phase_noise_falls_by_the_root_of_the_averaging_time() -> None:
    """sigma / sqrt(n): by the definition, the second difference of means over n edges, over sqrt(6)."""
    seed, sigma_ns = 11, 3.0
    print("seed", seed)
    found = clock_stability.wander(sigma_ns * np.random.default_rng(seed).standard_normal(20_000), 1e9)
    short = found.tau_s <= 64
    assert found.tdev_ns[short] == pytest.approx(sigma_ns / np.sqrt(found.tau_s[short]), rel=0.08)


def test_mtie_is_the_greatest_peak_to_peak_in_a_window() -> None:
    """A rate of 2 ns a second, and a step of 100 ns in the middle: each window sees the step."""
    time_s = np.arange(1000.0)
    found = clock_stability.wander(2 * time_s + 100 * (time_s >= 500), 1e9)
    assert found.mtie_ns == pytest.approx(2 * found.window_s + 100)
    with pytest.raises(ValueError, match="4 edges"):
        clock_stability.wander(np.zeros(3), 1e9)


def test_the_band_of_the_rate_is_that_of_its_errors() -> None:
    rate, _, found = known_noise(12)
    assert rms((found.rate_ppb - rate)[50:-50] / found.rate_sigma_ppb[50:-50]) == pytest.approx(1.0, abs=0.15)
