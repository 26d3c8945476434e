# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Fits what the set-up itself adds to a delay, as a line over the frame length, and takes it out again."""

import copy
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.confidence import student
from liteprobe.host.analysis.rows import Row, shifted
from liteprobe.host.base.errors import DataError, UsageError
from liteprobe.host.base.text import json_of
from liteprobe.host.base.validate import validated


@dataclass(frozen=True)
class FittedLine:
    """Holds a least-squares line delay = intercept + slope x length."""

    slope: float  # Delay an octet (ns/B).
    intercept: float  # Delay of a frame of no length (ns).
    #: ``slope_error``, ``intercept_error``: standard errors (ns/B, ns); NaN with two points.
    slope_error: float
    intercept_error: float
    residual_std: float  # Standard deviation of the points about the line (ns); NaN with two points.
    points: int  # Points fitted.

    def at(self, lengths: NDArray[np.number] | float) -> NDArray[np.float64]:
        """Return the line's delay (ns) at these lengths."""
        return np.asarray(self.intercept + self.slope * np.asarray(lengths, dtype=np.float64))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return half the width of the confidence intervals of slope (ns/B) and intercept (ns)."""
        factor = student((1 + confidence) / 2, self.points - 2) if self.points > 2 else float("nan")
        return factor * self.slope_error, factor * self.intercept_error


@validated
def fit_line(lengths: NDArray[np.number], delays_ns: NDArray[np.number]) -> FittedLine:
    """Fit a line to delays (ns) against lengths (octets) by least squares.

    Source: packet-train paper, section 6.3; standard errors: Draper and Smith, Applied Regression Analysis, 1.4.

    Raises DataError if there are fewer than two different lengths: they give no line.
    """
    x = np.asarray(lengths, dtype=np.float64)
    y = np.asarray(delays_ns, dtype=np.float64)
    if len(np.unique(x)) < 2:
        raise DataError("a line needs two different lengths")
    x_mean, y_mean = x.mean(), y.mean()  # Centred: no digits are lost to a large offset.
    spread = float(((x - x_mean) ** 2).sum())
    slope = float(((x - x_mean) * (y - y_mean)).sum()) / spread
    residuals = (y - y_mean) - slope * (x - x_mean)
    freedom = len(x) - 2
    variance = float((residuals**2).sum()) / freedom if freedom else float("nan")
    return FittedLine(
        slope=slope,
        intercept=float(y_mean - slope * x_mean),
        slope_error=float(np.sqrt(variance / spread)),
        intercept_error=float(np.sqrt(variance * (1 / len(x) + x_mean**2 / spread))),
        residual_std=float(np.sqrt(variance)),
        points=len(x),
    )


@dataclass(frozen=True)
class Calibration:
    """Holds a measured line and the theory that it was compared with."""

    line: FittedLine  # Mean delay of each train against its frame length.
    #: ``slope``, ``intercept``: what theory says of the calibrated path (ns/B, ns): 0 and the cable's delay for a wire
    #: loop.
    slope: float = 0.0
    intercept: float = 0.0

    def correction_ns(self, length: int) -> float:
        """Return what the set-up adds to the delay of a frame of ``length`` octets (ns)."""
        return float(self.line.at(length)) - (self.intercept + self.slope * length)

    def correct(self, row: Row) -> Row:
        """Return a row of figures with the set-up's part taken out of its delays."""
        corrected = copy.deepcopy(row)
        part = self.correction_ns(row["length"])
        corrected["owd_ns"] = shifted(corrected["owd_ns"], -part)
        for train in corrected["trains"]:
            if train["owd_mean_ns"] is not None:
                train["owd_mean_ns"] -= part
        corrected["calibration_ns"] = part
        return corrected

    def text(self) -> str:
        """Return it as JSON, as `load` takes it from a file."""
        return json.dumps({"format": "liteprobe-calibration", **asdict(self)}, indent=2) + "\n"


@validated
def load(path: Path) -> Calibration:
    """Return a calibration from a file; raises UsageError when it can't be read, or is none."""
    try:
        loaded = json_of(path, "a calibration")
        return Calibration(FittedLine(**loaded["line"]), float(loaded["slope"]), float(loaded["intercept"]))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise UsageError(
            f"{path} is not a calibration ({error}): make one with 'liteprobe calibrate --json {path}'"
        ) from None


def calibrate(rows: list[Row], slope: float = 0.0, intercept: float = 0.0) -> Calibration:
    """Fit the line of calibration through the mean delays of all trains.

    Source: packet-train paper, section 6.3.

    Raises UsageError when there are fewer than two lengths with a delay.

    Parameters
    ----------
    rows : list of dict
        From ``summary.row``, of two lengths or more.
    slope, intercept : float
        What theory says (ns/B, ns).
    """
    points = [
        (row["length"], train["owd_mean_ns"])
        for row in rows
        for train in row["trains"]
        if train["owd_mean_ns"] is not None
    ]
    if len({length for length, _ in points}) < 2:
        missing = sum(row["records"]["counted"] - row["records"]["held"] for row in rows)
        if missing > 0:
            raise UsageError(
                f"a calibration needs whole trains of two lengths or more, and {missing} records are missing: "
                "give a smaller --count"
            )
        raise UsageError("a calibration needs trains of two lengths or more that arrived: give --length 60,1514")
    lengths, delays = np.array(points, dtype=np.float64).T
    return Calibration(fit_line(lengths, delays), slope, intercept)
