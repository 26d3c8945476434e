# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Smooths a clock afterwards, from the log of its PPS: what came later tells of what was before, too."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import validated

Floats = NDArray[np.float64]

GATE = 5.0  # An edge further off than so many sigma is an outlier.
REJECTS_MOST = 8  # In a row; then it was the oscillator that jumped.
WIDE_RATE_PPB = 1e6
START_EDGES = 16
START_PPB = 5.0  # That the rate may change by meanwhile.
WIDE_DRIFT_PPB_S = 100.0


@dataclass(frozen=True)
class NoiseModel:
    """States what is known of receiver and oscillator, one sigma; the defaults are those of the firmware's servo."""

    white_ns: float = 2.0  # White noise of a pulse, once qErr is applied.
    sawtooth_ns: float = 25.0  # Peak to peak, counts where there is no qErr.
    #: ``phase_walk_ns``, ``rate_walk_ppb``, ``drift_walk_ppb_s``: of the oscillator, after a second of random walk.
    phase_walk_ns: float = 0.3
    rate_walk_ppb: float = 0.06
    drift_walk_ppb_s: float = 0.014
    quantum_ns: float = 8.0  # What the capture is rounded to.


@dataclass(frozen=True)
class Smoothed:
    """Holds the estimate at each edge; each array has shape (edges,)."""

    #: ``phase_ns``, ``rate_ppb``, ``drift_ppb_s``: of the oscillator against the PPS, its noise taken out.
    phase_ns: Floats
    rate_ppb: Floats
    drift_ppb_s: Floats
    #: ``sigma_ns``, ``rate_sigma_ppb``: standard deviations of phase and rate.
    sigma_ns: Floats
    rate_sigma_ppb: Floats
    is_used: NDArray[np.bool_]  # Edges that agreed with the rest.


@validated
def smooth(time_s: Floats, phase_ns: Floats, has_qerr: NDArray[np.bool_], model: NoiseModel | None = None) -> Smoothed:
    """Return what all edges together say of the oscillator at each of them.

    Source: H. E. Rauch, F. Tung, C. T. Striebel, "Maximum likelihood estimates of linear dynamic systems",
    AIAA Journal 3 (1965), equations 3.28 to 3.32, for phase, rate and drift.

    Raises DataError if there are fewer than three edges, or they are not in the order of time.

    Parameters
    ----------
    time_s : array, shape (edges,)
        Of the edges, rising.
    phase_ns : array, shape (edges,)
        Oscillator less PPS, its qErr taken off.
    has_qerr : array, shape (edges,)
        Whether the receiver reported the error of this edge.
    model : NoiseModel or None
        None: a timing receiver and a plain crystal.
    """
    model = model or NoiseModel()
    count = len(time_s)
    if count < 3:
        raise DataError(f"smoothing needs three edges or more, not {count}")
    if (np.diff(time_s) <= 0).any():
        raise DataError("the edges are not in the order of time")
    variance = model.white_ns**2 + model.quantum_ns**2 / 12 + np.where(has_qerr, 0.0, model.sawtooth_ns**2 / 12)
    forward = _Forward(model, count)
    forward.run(np.asarray(time_s, np.float64), np.asarray(phase_ns, np.float64), np.asarray(variance, np.float64))
    return _backward(forward)


class _Forward:
    """The Kalman filter, keeping what the way back needs."""

    def __init__(self, model: NoiseModel, count: int) -> None:
        self._model = model
        self.state = np.zeros((count, 3))
        self.covariance = np.zeros((count, 3, 3))
        self.predicted = np.zeros((count, 3))
        self.predicted_covariance = np.zeros((count, 3, 3))
        self.step = np.zeros((count, 3, 3))
        self.is_used = np.zeros(count, bool)

    def run(self, time_s: Floats, phase_ns: Floats, variance: Floats) -> None:
        start_ns, start_ppb = _first(time_s, phase_ns)
        state = np.array([start_ns, start_ppb, 0.0])
        wide = np.diag([4 * variance[0], WIDE_RATE_PPB**2, WIDE_DRIFT_PPB_S**2])
        # Of a median over so many edges; a rate that is far better known than the bound of a crystal.
        spread = 4 * float(variance[0])
        passed_s = float(time_s[min(len(time_s), START_EDGES) - 1] - time_s[0])
        covariance, rejects = np.diag([spread, spread / passed_s**2 + START_PPB**2, WIDE_DRIFT_PPB_S**2]), 0
        for number, (now, seen, noise) in enumerate(zip(time_s, phase_ns, variance, strict=True)):
            if number:
                step, walk = self._advance(now - time_s[number - 1])
                state, covariance = step @ state, step @ covariance @ step.T + walk
                self.step[number] = step
            self.predicted[number], self.predicted_covariance[number] = state, covariance
            if rejects >= REJECTS_MOST:
                covariance = covariance + wide
            residual, spread = seen - state[0], covariance[0, 0] + noise
            is_used = residual**2 <= GATE**2 * spread
            rejects = 0 if is_used else rejects + 1
            if is_used:
                gain = covariance[:, 0] / spread
                state = state + gain * residual
                covariance = covariance - np.outer(gain, covariance[0])
                covariance = (covariance + covariance.T) / 2
            self.state[number], self.covariance[number], self.is_used[number] = state, covariance, is_used

    def _advance(self, passed_s: float) -> tuple[Floats, Floats]:
        """Return the transition over a time, and the covariance of what the oscillator does by itself meanwhile."""
        t, model = passed_s, self._model
        step = np.array([[1, t, t**2 / 2], [0, 1, t], [0, 0, 1]])
        walk = model.phase_walk_ns**2 * np.diag([t, 0.0, 0.0])
        walk += model.rate_walk_ppb**2 * np.array([[t**3 / 3, t**2 / 2, 0], [t**2 / 2, t, 0], [0, 0, 0]])
        walk += model.drift_walk_ppb_s**2 * np.array(
            [[t**5 / 20, t**4 / 8, t**3 / 6], [t**4 / 8, t**3 / 3, t**2 / 2], [t**3 / 6, t**2 / 2, t]]
        )
        return step, walk


def _first(time_s: Floats, phase_ns: Floats) -> tuple[float, float]:
    """Return a phase (ns) and a rate (ppb) at the first edge, which single outliers among the first ones don't spoil.

    Source: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 63 (1968).
    """
    time, phase = time_s[:START_EDGES] - time_s[0], phase_ns[:START_EDGES]
    early, late = np.triu_indices(len(time), 1)
    rate = float(np.median((phase[late] - phase[early]) / (time[late] - time[early])))
    return float(np.median(phase - rate * time)), rate


def _backward(forward: _Forward) -> Smoothed:
    state, covariance = forward.state.copy(), forward.covariance.copy()
    for number in range(len(state) - 2, -1, -1):
        later = number + 1
        # By least squares: the covariance of a state that is known very well is all but singular.
        reach = np.linalg.lstsq(
            forward.predicted_covariance[later], forward.step[later] @ forward.covariance[number], rcond=None
        )[0].T
        state[number] += reach @ (state[later] - forward.predicted[later])
        covariance[number] += reach @ (covariance[later] - forward.predicted_covariance[later]) @ reach.T
    return Smoothed(
        phase_ns=state[:, 0],
        rate_ppb=state[:, 1],
        drift_ppb_s=state[:, 2],
        sigma_ns=np.sqrt(np.maximum(covariance[:, 0, 0], 0.0)),
        rate_sigma_ppb=np.sqrt(np.maximum(covariance[:, 1, 1], 0.0)),
        is_used=forward.is_used,
    )


@dataclass(frozen=True)
class Correction:
    """Takes the error of a clock out of stamps that were made between two edges of its log."""

    origin_ns: int  # Time of the first edge by the clock; all else is relative to it, so that no digits are lost.
    #: ``at_ns``, ``error_ns``, ``sigma_ns``: shape (edges,): time of each edge less ``origin_ns``; clock less true time
    #: then, and its standard deviation.
    at_ns: Floats
    error_ns: Floats
    sigma_ns: Floats

    def error_at(self, stamps_ns: NDArray[np.integer]) -> Floats:
        """Return clock less true time (ns) at stamps: what to subtract from them, shape as ``stamps_ns``.

        Between edges the error is a straight line: the servo changes its rate a few milliseconds after an edge, by
        parts of a ppb when it is locked.
        Raises DataError if a stamp lies outside the log.
        """
        relative = (np.asarray(stamps_ns).astype(np.int64) - self.origin_ns).astype(np.float64)
        if len(relative) and (relative.min() < self.at_ns[0] or relative.max() > self.at_ns[-1]):
            raise DataError("a stamp lies outside the log of the PPS: log from before the first to after the last one")
        return np.asarray(np.interp(relative, self.at_ns, self.error_ns), np.float64)


def correction(
    now_ns: NDArray[np.int64], fraction_ns: Floats, offset_ns: Floats, phase_ns: Floats, smoothed: Smoothed
) -> Correction:
    """Return the correction of a clock from its log and its smoothed oscillator.

    Clock and oscillator were read in one tick, so what is wrong with an edge (receiver, capture) is wrong with both.

    Parameters
    ----------
    now_ns, fraction_ns : arrays, shape (edges,)
        Time of each edge by the clock.
    offset_ns, phase_ns : arrays, shape (edges,)
        Clock less PPS, oscillator less PPS.
    smoothed : Smoothed
        Of ``phase_ns``.
    """
    return Correction(
        origin_ns=int(now_ns[0]),
        at_ns=np.asarray((now_ns - now_ns[0]) + fraction_ns, np.float64),
        error_ns=np.asarray(offset_ns - (phase_ns - smoothed.phase_ns), np.float64),
        sigma_ns=smoothed.sigma_ns,
    )
