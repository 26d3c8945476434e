# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plots of a clock from the log of its PPS: offset, rate of the oscillator, Allan deviation."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from liteprobe.host.analysis.clock_smooth import Smoothed
from liteprobe.host.analysis.clock_stability import LEAST, allan_deviation, longest_run
from liteprobe.host.clock.log import ClockLog
from liteprobe.host.errors import UsageError

CLOCK, OSCILLATOR, EDGES = "#1f5fa8", "#c2560a", "#6a7583"
SIZE_IN = (7.5, 8.6)
FORMATS = (".svg", ".png", ".pdf")
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#d9dee4",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.facecolor": "white",  # Over the curves.
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "svg.hashsalt": "liteprobe",
}


def write(path: Path, name: str, log: ClockLog, smoothed: Smoothed) -> None:
    """Draw a log into a file, whose name says the format.

    Raises
    ------
    UsageError
        When the format is none of svg, png and pdf.
    """
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path} names no format: end it in {', '.join(FORMATS)}")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        upper, middle, lower = figure.subplots(3, 1, height_ratios=(1.0, 1.0, 1.15))
        figure.suptitle(name, x=0.01, ha="left", fontsize=11, fontweight="bold")
        _offset(upper, log, smoothed)
        _rate(middle, log, smoothed)
        _allan(lower, log)
        figure.savefig(path, dpi=150)


def _times(axes: Axes, log: ClockLog) -> tuple[NDArray[np.float64], str]:
    """Return the time of each edge since the first, and its unit."""
    seconds = log.index * log.period_ns / 1e9
    factor, unit = (1e3, "ms") if seconds[-1] < 1 else (1.0, "s") if seconds[-1] < 7200 else (1 / 3600, "h")
    axes.set_xlabel(f"time since the first edge ({unit})")
    return seconds * factor, unit


def _offset(axes: Axes, log: ClockLog, smoothed: Smoothed) -> None:
    time, _ = _times(axes, log)
    noise = log.oscillator_ns - smoothed.phase_ns
    error = log.offset_ns - noise
    axes.plot(time, log.offset_ns, ".", ms=3, color=EDGES, label="clock less PPS, each edge")
    axes.plot(time, error, color=CLOCK, lw=1.2, label="clock error, smoothed")
    axes.set_ylabel("offset (ns)")
    # The settling of a servo would leave the rest a straight line.
    rest = error[len(error) // 4 :]
    axes.set_title(f"Offset: RMS {np.sqrt(np.mean(rest**2)):.2f} ns over the last three quarters")
    reach = 1.25 * max(float(np.abs(log.offset_ns[len(error) // 4 :]).max()), 10.0)
    if np.abs(log.offset_ns).max() > 4 * reach:
        axes.set_ylim(-reach, reach)
    axes.legend(loc="upper right", ncols=2)


def _rate(axes: Axes, log: ClockLog, smoothed: Smoothed) -> None:
    time, _ = _times(axes, log)
    mean = float(np.mean(smoothed.rate_ppb))
    axes.plot(time, smoothed.rate_ppb - mean, color=OSCILLATOR, lw=1.2)
    axes.set_ylabel("rate less mean (ppb)")
    axes.set_title(f"Oscillator: {mean / 1e3:+.4f} ppm against the PPS in the mean")
    axes.ticklabel_format(axis="y", useOffset=False)


def _allan(axes: Axes, log: ClockLog) -> None:
    run = longest_run(log.index)
    count = run.stop - run.start
    axes.set_xlabel("averaging time (s)")
    axes.set_ylabel("Allan deviation")
    if count < LEAST:
        axes.text(0.5, 0.5, "too few edges in a row", transform=axes.transAxes, ha="center")
        return
    for label, phase, colour, marker in (
        ("oscillator against PPS", log.oscillator_ns, OSCILLATOR, "s"),
        ("clock against PPS", log.offset_ns, CLOCK, "o"),
    ):
        found = allan_deviation(phase[run], log.period_ns)
        axes.errorbar(
            found.tau_s, found.deviation, found.error, color=colour, marker=marker, ms=4, lw=1.2, capsize=2, label=label
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(True, which="both")
    axes.set_title(f"Overlapping Allan deviation, {count} edges in a row; noise of PPS and capture included")
    axes.legend(loc="best")
