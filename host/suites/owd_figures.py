# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""One row of figures from a one-way delay: what tables, JSON and CSV show."""

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.analysis import arrivals, summary
from liteprobe.host.analysis.line_clock import LineClock
from liteprobe.host.analysis.rows import ClockFigures, Row, Sample, finite, shifted
from liteprobe.host.analysis.summary import sample
from liteprobe.host.clock.clock import ClockReport
from liteprobe.host.suites.owd import OneWayResult


def row(result: OneWayResult, waiting_time_ns: int | None = None) -> Row:
    """Return all figures of one direction, as ``summary.row`` has them; delays are resolved within the tick.

    ``uncertainty_ns`` is None where a clock's error is not known. Where records are missing, delays are those of the
    probe's accumulators: in the middle of the tick, with half a tick more of uncertainty.
    """
    figures = summary.row(result.train, waiting_time_ns)
    if arrivals.has_all_records(result.train):
        _resolve(figures, result)
    else:
        _move(figures, result.line)
    line = result.line
    figures["start_time_ns"] = result.start_time_ns
    figures["line_clock"] = None if line is None else {
        "rate_ppm": line.rate_ppm, "rate_error_ppm": finite(line.rate_error_ppm), "error_ns": line.error_ns,
        "is_resolved": line.is_resolved, "latches": line.points,
    }  # fmt: skip
    figures["sender"], figures["receiver"] = _clock(result.sender), _clock(result.receiver)
    bound_ns = figures["uncertainty_ns"]
    figures["uncertainty_ns"] = None if bound_ns is None else finite(bound_ns)
    return figures


def _clock(status: ClockReport) -> ClockFigures:
    return {
        "clock_state": status.name,
        "uncertainty_ns": status.uncertainty_ns,
        "offset_ns": status.offset_ns,
        "rate_ppb": status.rate_ppb,
        "rejected": status.rejected,
    }


def _resolve(figures: Row, result: OneWayResult) -> None:
    """Put the delays of each packet, resolved within the tick, in the place of those of raw stamps."""
    owd = result.owd_ns
    order = np.argsort(result.arrived.sequence, kind="stable")
    numbers = result.arrived.sequence[order] + result.arrived.sequence[order] // result.train.program.count
    ipdv = np.diff(owd[order])[np.diff(numbers) == 1]
    figures["owd_ns"], figures["ipdv_ns"] = _sample(owd), _sample(ipdv)
    figures["pdv_ns"] = _sample(owd - owd.min() if len(owd) else owd)
    trains = arrivals.trains(result.train, result.arrived)
    for train, members in zip(figures["trains"], trains, strict=True):
        train["owd_mean_ns"] = float(owd[members].mean()) if len(members) else None


def _move(figures: Row, line: LineClock | None) -> None:
    """Move the delays of raw stamps into the middle of the tick."""
    figures["owd_ns"] = shifted(figures["owd_ns"], TICK_NS / 2)
    for train in figures["trains"]:
        mean_ns = train["owd_mean_ns"]
        train["owd_mean_ns"] = None if mean_ns is None else mean_ns + TICK_NS / 2
    bound_ns = figures["uncertainty_ns"]
    if line is not None and line.is_resolved and bound_ns is not None:
        figures["uncertainty_ns"] = bound_ns + TICK_NS / 2 - 2 * line.error_ns


def _sample(values: NDArray[np.float64]) -> Sample:
    """Return the figures of ``samples.sample``, of values that are not whole ns."""
    found = sample(values)
    if len(values):
        found |= {"min": float(values.min()), "max": float(values.max())}
    return found
