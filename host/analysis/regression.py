# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Calibration: a line through delays against frame lengths, with its errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.confidence import student


@dataclass(frozen=True)
class Line:
    """A least-squares line delay = intercept + slope x length.

    Attributes
    ----------
    slope : float
        Delay an octet (ns/B).
    intercept : float
        Delay of a frame of no length (ns).
    slope_error, intercept_error : float
        Standard errors (ns/B, ns); NaN with two points.
    residual_std : float
        Standard deviation of the points about the line (ns); NaN with two points.
    points : int
        Points fitted.
    """

    slope: float
    intercept: float
    slope_error: float
    intercept_error: float
    residual_std: float
    points: int

    def at(self, lengths: NDArray[np.number] | float) -> NDArray[np.float64]:
        """Return the line's delay (ns) at these lengths."""
        return np.asarray(self.intercept + self.slope * np.asarray(lengths, dtype=np.float64))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return half the width of the confidence intervals of slope (ns/B) and intercept (ns)."""
        factor = student((1 + confidence) / 2, self.points - 2) if self.points > 2 else float("nan")
        return factor * self.slope_error, factor * self.intercept_error


def fit_line(lengths: NDArray[np.number], delays_ns: NDArray[np.number]) -> Line:
    """Fit a line to delays (ns) against lengths (octets) by least squares.

    Source: packet-train paper, section 6.3; standard errors: Draper and Smith, Applied Regression Analysis, 1.4.

    Raises
    ------
    ValueError
        If there are fewer than two different lengths: they give no line.
    """
    x = np.asarray(lengths, dtype=np.float64)
    y = np.asarray(delays_ns, dtype=np.float64)
    if len(np.unique(x)) < 2:
        raise ValueError("a line needs two different lengths")
    x_mean, y_mean = x.mean(), y.mean()  # Centred: no digits are lost to a large offset.
    spread = float(((x - x_mean) ** 2).sum())
    slope = float(((x - x_mean) * (y - y_mean)).sum()) / spread
    residuals = (y - y_mean) - slope * (x - x_mean)
    freedom = len(x) - 2
    variance = float((residuals**2).sum()) / freedom if freedom else float("nan")
    return Line(
        slope=slope,
        intercept=float(y_mean - slope * x_mean),
        slope_error=float(np.sqrt(variance / spread)),
        intercept_error=float(np.sqrt(variance * (1 / len(x) + x_mean**2 / spread))),
        residual_std=float(np.sqrt(variance)),
        points=len(x),
    )
