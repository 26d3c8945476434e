# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Fits the clock of a line to the time of the probe, and takes its steps out of receive stamps.

A receive stamp is the beginning of the tick of 8 ns in which the SFD came, so it is up to a tick early. The octets of a
line come in its own clock: where that is known well enough, the stamp says which octet it was, and the line when.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.base.errors import DataError
from liteprobe.host.base.validate import validated

COUNT_WRAP = 1 << 32
UNIFORM = 12**0.5  # A tick over this is the standard deviation of a stamp that knows only its tick.
LARGEST_RATE_PPM = 1000.0  # IEEE 802.3 allows 100 for a line; a probe's oscillator is no worse.
SWEEP_TICKS = 1.0  # Ticks that the two clocks must slide past each other, so that every phase is seen.
SLACK = 1e-3  # Of the half tick that no residual of a sound line is above (ns): rounding.


@dataclass(frozen=True)
class LineClock:
    """Tells when each tick of a line began, as the probe's clock tells time."""

    #: ``origin_count``, ``origin_ns``: a tick of the line, and a time near it (ns): all else is relative to them, so
    #: that no digits are lost.
    origin_count: int
    origin_ns: int
    phase_ns: float  # Beginning of that tick less ``origin_ns`` (ns).
    ns_per_tick: float  # Of the probe's clock.
    error_ns: float  # Standard error of a time that this line gives within the span of its latches (ns).
    points: int  # Latches used.
    #: The clocks slid past each other by a tick or more; else the line may be up to half a tick off, as ``error_ns``
    #: says.
    is_resolved: bool
    span_ns: float = 0.0  # From the first latch to the last (ns).

    @property
    def rate_ppm(self) -> float:
        """Rate of the line over 125 MHz by the probe's clock (ppm)."""
        return (TICK_NS / self.ns_per_tick - 1) * 1e6

    @property
    def rate_error_ppm(self) -> float:
        """Bound of the error of ``rate_ppm`` (95 %): both ends of the span off by twice ``error_ns``, either way.

        Infinite where the clocks did not slide past each other: what was seen is a single tick.
        """
        return 1e6 * 4 * self.error_ns / self.span_ns if self.is_resolved and self.span_ns else float("inf")

    def at(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return when these ticks began, less ``origin_ns`` (ns), shape as ``counts`` (unwrapped)."""
        ticks = np.asarray(counts, np.int64) - self.origin_count
        return np.asarray(self.phase_ns + self.ns_per_tick * ticks, np.float64)

    def correction(self, stamps_ns: NDArray[np.integer]) -> NDArray[np.float64]:
        """Return what to add to receive stamps to have the moments of their SFDs (ns).

        Where two ticks of the line could have been meant, because both are close to a tick of the probe as far as the
        error of this line goes, the middle of the stamp's tick is the best that can be told.

        Parameters
        ----------
        stamps_ns : array, shape (packets,)
            Receive stamps within the span of the latches (ns).

        Returns
        -------
        array, shape (packets,)
            From 0 to a tick (ns).
        """
        relative = (np.asarray(stamps_ns).astype(np.int64) - self.origin_ns).astype(np.float64)
        past = np.mod(self.phase_ns - relative, self.ns_per_tick)  # From the stamp to the next tick of the line.
        margin = 2 * self.error_ns
        is_clear = (past > margin) & (past < self.ns_per_tick - margin)
        return np.asarray(np.where(is_clear & self.is_resolved, past, TICK_NS / 2), np.float64)


@validated
def unwrap(counts: NDArray[np.integer], now_ns: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return counts of 32 bits as whole numbers that don't wrap, by the time that passed; shape (latches,).

    Raises DataError if neighbours are a day or more apart: then the time can't tell how often the count wrapped.
    """
    counts, times = np.asarray(counts).astype(np.int64), np.asarray(now_ns).astype(np.int64)
    passed = np.diff(times)
    if len(passed) and (np.abs(passed) * LARGEST_RATE_PPM * 1e-6 / TICK_NS > COUNT_WRAP / 2).any():
        raise DataError("latches are too far apart to count the ticks between them: latch at least once an hour")
    steps = np.mod(np.diff(counts), COUNT_WRAP)
    steps += COUNT_WRAP * np.round((passed / TICK_NS - steps) / COUNT_WRAP).astype(np.int64)
    return np.concatenate([counts[:1], counts[:1] + np.cumsum(steps)])


@validated
def fit(counts: NDArray[np.integer], now_ns: NDArray[np.integer]) -> LineClock:
    """Fit the clock of a line to latches of its count.

    A latch knows only the tick of the probe, so its error is spread evenly over a tick: the line that leaves the least
    greatest residual is then closer than that of the least squares. Where residuals are larger than any tick leaves (a clock
    that was slewed meanwhile), least squares it is.

    Raises DataError if there are fewer than three latches, or two that are alike: the line's clock stood still.

    Parameters
    ----------
    counts : array, shape (latches,)
        ``line_count``, 32 bits, in the order of time.
    now_ns : array, shape (latches,)
        ``line_now`` (ns). Take the latches at random intervals, or the two clocks may beat with them.
    """
    times = np.asarray(now_ns).astype(np.int64)
    if len(times) < 3:
        raise DataError(f"a line clock needs three latches or more, not {len(times)}")
    ticks = unwrap(counts, times)
    if (np.diff(ticks) <= 0).any():
        raise DataError("the count of the line stands still: is its link up?")
    middle = len(ticks) // 2
    x = (ticks - ticks[middle]).astype(np.float64)
    y = (times - times[middle]).astype(np.float64) - TICK_NS * x + TICK_NS / 2  # Small: 8 ns a tick are taken out.
    scale = max(1.0, float(np.abs(x).max()))
    slope, phase, bound = _least_greatest(x / scale, y)
    sweep = abs(slope) * float(x[-1] - x[0]) / scale
    is_resolved = sweep >= SWEEP_TICKS * TICK_NS
    if bound <= TICK_NS / 2 + SLACK and is_resolved:
        # The end of the span of n even errors is a tick / n away in the mean; two parameters, two such ends.
        error = TICK_NS * 2 / len(x)
    else:
        slope, phase, error = _least_squares(x / scale, y)
    return LineClock(
        origin_count=int(ticks[middle]),
        origin_ns=int(times[middle]),
        phase_ns=phase,
        ns_per_tick=TICK_NS + slope / scale,
        error_ns=error if is_resolved else TICK_NS / UNIFORM,
        points=len(x),
        is_resolved=is_resolved,
        span_ns=float(times[-1] - times[0]),
    )


def _least_greatest(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return slope, intercept and greatest residual of the line whose greatest residual is least; ``x`` rises.

    The width of the strip that holds all points is convex in its slope, and bends where the slope is that of an edge of
    their convex hull: the least is at one of them.

    Source: A. M. Andrew, Information Processing Letters 9 (1979), 216: the hull.
    """
    edges = np.concatenate([_edges_below(x, y), -_edges_below(x, -y)])
    rests = y - np.multiply.outer(edges, x)
    highest, lowest = rests.max(axis=1), rests.min(axis=1)
    best = int(np.argmin(highest - lowest))
    return float(edges[best]), float(highest[best] + lowest[best]) / 2, float(highest[best] - lowest[best]) / 2


def _edges_below(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the slopes of the lower edges of the convex hull."""
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-1], point):
            hull.pop()
        hull.append(point)
    return np.array([_slope(*pair) for pair in pairwise(hull)])


def _slope(one: tuple[float, float], other: tuple[float, float]) -> float:
    return (other[1] - one[1]) / (other[0] - one[0])


def _least_squares(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return slope, intercept and the mean standard error of the line of least squares."""
    centre, mean = float(x.mean()), float(y.mean())
    slope = float(((x - centre) * (y - mean)).sum() / ((x - centre) ** 2).sum())
    residuals = y - mean - slope * (x - centre)
    error = float(np.sqrt((residuals**2).sum() / max(1, len(x) - 2) * 2 / len(x)))
    return slope, mean - slope * centre, error
