# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plots of a clock from the log of its PPS: offset, bound and state, rate, Allan deviation, time deviation and MTIE."""

from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.analysis.clock_smooth import Smoothed
from liteprobe.host.analysis.clock_stability import LEAST, allan_deviation, longest_run, wander
from liteprobe.host.base import extras
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.text import safe
from liteprobe.host.clock.log import ClockLog

with extras.named():
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CLOCK, OSCILLATOR, EDGES = "#1f5fa8", "#c2560a", "#6a7583"
SIZE_IN = (7.5, 11.2)
# Locked: white.
STATES = {"acquiring": "#f3d9b1", "holdover": "#f6ecc0", "free-running": "#f3c6c0", "unknown": "#e3d3e6"}
SILENCE = "#e9ecf0"
SIGMAS_95 = 1.96
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
    """Draw a log into a file, whose name says the format; raises UsageError when the format is none of svg, png and pdf."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path} names no format: end it in {', '.join(FORMATS)}")
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE_IN, layout="constrained")
        upper, middle, third, lower = figure.subplots(4, 1, height_ratios=(1.1, 0.9, 1.1, 1.1))
        figure.suptitle(safe(name), x=0.01, ha="left", fontsize=11, fontweight="bold")
        _offset(upper, log, smoothed)
        _rate(middle, log, smoothed)
        _allan(third, log)
        _wander(lower, log)
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
    _states(axes, time, log.index, log.state)
    bound = log.bound_ns.copy()
    bound[np.flatnonzero(np.diff(log.index) > 1)] = np.nan  # What was said before an outage holds until the next edge.
    if np.isfinite(bound).any():
        axes.fill_between(
            time, -bound, bound, color=CLOCK, alpha=0.15, lw=0, step="post", label="bound, as reported (95 %)"
        )
    axes.plot(time, log.offset_ns, ".", ms=3, color=EDGES, label="clock less PPS, each edge")
    axes.plot(time, error, color=CLOCK, lw=1.2, label="clock error, smoothed")
    axes.set_ylabel("offset (ns)")
    # The settling of a servo would leave the rest a straight line.
    rest = error[len(error) // 4 :]
    axes.set_title(f"Offset: RMS {np.sqrt(np.mean(rest**2)):.2f} ns over the last three quarters")
    # What is far off, a start or what a holdover left, would leave the rest a straight line, too.
    usual = [np.abs(log.offset_ns), *([bound[np.isfinite(bound)]] if np.isfinite(bound).any() else [])]
    reach = max(1.6 * max(float(np.percentile(values, 97)) for values in usual), 10.0)
    axes.set_ylim(-reach, reach)
    if outside := int((np.abs(log.offset_ns) > reach).sum()):
        axes.text(0.01, 0.04, f"{outside} edges outside", transform=axes.transAxes, fontsize=8)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=4, fontsize=8)


def _states(axes: Axes, time: NDArray[np.float64], index: NDArray[np.int64], states: tuple[str, ...]) -> None:
    """Shade the times without a pulse, and those at which the clock was not locked."""
    ends = [*time[1:], time[-1]]
    named: set[str] = set()
    for number in np.flatnonzero(np.diff(index) > 1):
        axes.axvspan(time[number], time[number + 1], color=SILENCE, lw=0, zorder=0, label=None if named else "no pulse")
        named.add("no pulse")
    for state, group in groupby(range(len(states)), key=lambda number: states[number]):
        numbers = list(group)
        if state not in STATES:
            continue
        label = None if state in named else state
        named.add(state)
        axes.axvspan(time[numbers[0]], ends[numbers[-1]], color=STATES[state], lw=0, zorder=0, label=label)


def _rate(axes: Axes, log: ClockLog, smoothed: Smoothed) -> None:
    time, _ = _times(axes, log)
    mean = float(np.mean(smoothed.rate_ppb))
    rate, band = smoothed.rate_ppb - mean, SIGMAS_95 * smoothed.rate_sigma_ppb
    axes.fill_between(time, rate - band, rate + band, color=OSCILLATOR, alpha=0.2, lw=0, label="95 % of the estimate")
    axes.plot(time, rate, color=OSCILLATOR, lw=1.2)
    # Before the first edges have said what the rate is, the band has no end.
    middle = slice(len(rate) // 10, None)
    reach = 1.3 * float((np.abs(rate) + band)[middle].max())
    if (np.abs(rate) + band).max() > 2 * reach:
        axes.set_ylim(-reach, reach)
    axes.legend(loc="best")
    axes.set_ylabel("rate less mean (ppb)")
    axes.set_title(f"Oscillator: {mean / 1e3:+.4f} ppm against the PPS in the mean")
    axes.ticklabel_format(axis="y", useOffset=False)


def _allan(axes: Axes, log: ClockLog) -> None:
    run = longest_run(log.index, log.state)
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
    _logarithmic(axes)
    axes.grid(True, which="both")
    axes.set_title(f"Overlapping Allan deviation, {count} edges in a row, with the noise of PPS and capture")
    axes.legend(loc="best")


def _logarithmic(axes: Axes) -> None:
    """Draw both axes by their logarithm; a clock that is never off, as in a simulation, has nothing to show in that way."""
    axes.set_xscale("log")
    if any((np.asarray(line.get_ydata()) > 0).any() for line in axes.lines):
        axes.set_yscale("log")


def _wander(axes: Axes, log: ClockLog) -> None:
    run = longest_run(log.index, log.state)
    axes.set_xlabel("averaging or observation time (s)")
    axes.set_ylabel("ns")
    if run.stop - run.start < LEAST:
        axes.text(0.5, 0.5, "too few edges in a row", transform=axes.transAxes, ha="center")
        return
    clock = wander(log.offset_ns[run], log.period_ns)
    oscillator = wander(log.oscillator_ns[run], log.period_ns)
    style: dict[str, Any] = {"ms": 4, "lw": 1.2, "capsize": 2}
    axes.errorbar(
        oscillator.tau_s, oscillator.tdev_ns, oscillator.tdev_error_ns, color=OSCILLATOR, marker="s",
        label="TDEV, oscillator", **style,
    )  # fmt: skip
    axes.errorbar(
        clock.tau_s, clock.tdev_ns, clock.tdev_error_ns, color=CLOCK, marker="o", label="TDEV, clock", **style
    )
    axes.plot(clock.window_s, clock.mtie_ns, "--^", color=CLOCK, ms=4, lw=1.2, label="MTIE, clock")
    _logarithmic(axes)
    axes.grid(True, which="both")
    axes.set_title("Time deviation and maximum time interval error (ITU-T G.810) against the PPS")
    axes.legend(loc="best")
