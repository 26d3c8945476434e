# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Calibration: what the set-up itself adds to a delay, as a line over the frame length, and taking it out again."""

import copy
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from liteprobe.host.analysis.regression import Line, fit_line
from liteprobe.host.analysis.rows import Row, shifted
from liteprobe.host.errors import UsageError


@dataclass(frozen=True)
class Calibration:
    """A measured line and the theory that it was held against.

    Attributes
    ----------
    line : Line
        Mean delay of each train against its frame length.
    slope, intercept : float
        What theory says of the calibrated path (ns/B, ns): 0 and the cable's delay for a wire loop.
    """

    line: Line
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


def load(path: Path) -> Calibration:
    """Return a calibration from a file.

    Raises
    ------
    UsageError
        When it can't be read, or is none.
    """
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
        return Calibration(Line(**loaded["line"]), float(loaded["slope"]), float(loaded["intercept"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{path} is not a calibration ({error}): make one with 'liteprobe calibrate --json {path}'"
        ) from None


def calibrate(rows: list[Row], slope: float = 0.0, intercept: float = 0.0) -> Calibration:
    """Fit the line of calibration through the mean delays of all trains.

    Source: packet-train paper, section 6.3.

    Parameters
    ----------
    rows : list of dict
        From ``summary.row``, of two lengths or more.
    slope, intercept : float
        What theory says (ns/B, ns).

    Raises
    ------
    UsageError
        When there are fewer than two lengths with a delay.
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
