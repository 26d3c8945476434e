# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One row of figures from a one-way delay: what tables, JSON and CSV show."""

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis import summary
from liteprobe.host.owd import OneWayResult


def row(result: OneWayResult, waiting_time_ns: int | None = None) -> summary.Row:
    """Return all figures of one direction, as ``summary.row`` has them; delays are resolved within the tick.

    ``uncertainty_ns`` is None where a clock's error is not known.
    """
    figures = summary.row(result.train, waiting_time_ns)
    owd = result.owd_ns
    order = np.argsort(result.arrived.sequence, kind="stable")
    numbers = result.arrived.sequence[order] + result.arrived.sequence[order] // result.train.program.count
    ipdv = np.diff(owd[order])[np.diff(numbers) == 1]
    figures["owd_ns"], figures["ipdv_ns"] = _sample(owd), _sample(ipdv)
    figures["pdv_ns"] = _sample(owd - owd.min() if len(owd) else owd)
    trains = summary.trains(result.train, result.arrived)
    for train, members in zip(figures["trains"], trains, strict=True):
        train["owd_mean_ns"] = float(owd[members].mean()) if len(members) else None
    line = result.line
    figures["start_time_ns"] = result.start_time_ns
    figures["line_clock"] = None if line is None else {
        "rate_ppm": line.rate_ppm, "error_ns": line.error_ns, "is_resolved": line.is_resolved, "latches": line.points,
    }  # fmt: skip
    for name, status in (("sender", result.sender), ("receiver", result.receiver)):
        figures[name] = {
            "clock_state": status.name,
            "uncertainty_ns": status.uncertainty_ns,
            "offset_ns": status.offset_ns,
            "rate_ppb": status.rate_ppb,
            "rejected": status.rejected,
        }
    if not np.isfinite(figures["uncertainty_ns"]):
        figures["uncertainty_ns"] = None
    return figures


def _sample(values: NDArray[np.float64]) -> summary.Row:
    """Return the figures of ``summary.sample``, of values that are no whole ns."""
    found = summary.sample(values)
    if len(values):
        found |= {"min": float(values.min()), "max": float(values.max())}
    return found
