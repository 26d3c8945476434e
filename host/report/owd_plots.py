# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plots of one-way delays, a panel each way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.analysis import arrivals
from liteprobe.host.machine import extras
from liteprobe.host.report.plots import INK, SERIES, STYLE, axes_of, svg, thin
from liteprobe.host.suites.owd import OneWayResult

with extras.named():
    import matplotlib
    from matplotlib.axes import Axes

BINS = 40


@dataclass(frozen=True)
class Points:
    """Packets of a program.

    Attributes
    ----------
    length : int
        Of its frames (octets).
    sent_ns : array, shape (packets,)
        When each that arrived was sent, by the sender's clock.
    owd_ns : array, shape (packets,)
    lost_ns : array, shape (lost packets,)
        When each that is lost was sent, to within an interval.
    bound_ns : float or None
        95 % bound of the error of each delay.
    is_resolved : bool
        The tick of the receive stamps is resolved by the line's clock; else each delay may be half a tick off.
    """

    length: int
    sent_ns: NDArray[np.int64]
    owd_ns: NDArray[np.float64]
    lost_ns: NDArray[np.int64]
    bound_ns: float | None
    is_resolved: bool = True

    @staticmethod
    def of(result: OneWayResult, constant_ns: float, bound_ns: float | None) -> Points:
        """Return what is drawn of a result; ``constant_ns`` is taken off each delay.

        Of a program of which records are missing nothing is drawn: what isn't there would look lost.
        """
        arrived, length = result.arrived, result.train.program.length
        if not arrivals.has_all_records(result.train):
            nothing = np.zeros(0, np.int64)
            return Points(length, nothing, np.zeros(0), nothing, bound_ns, False)
        order = np.argsort(arrived.sequence, kind="stable")
        number, sent_ns = arrived.sequence[order], arrived.tx_stamp[order].astype(np.int64)
        lost = np.setdiff1d(np.arange(result.train.sent), number)
        known = len(number) > 0
        start = result.start_time_ns
        lost_ns = start + np.interp(lost, number, sent_ns - start) if known else np.full(len(lost), float(start))
        owd_ns = result.owd_ns[order] - constant_ns
        is_resolved = result.line is not None and result.line.is_resolved
        return Points(length, sent_ns, owd_ns, lost_ns.astype(np.int64), bound_ns, is_resolved)


def _colour(points: Points, named: Sequence[tuple[str, Sequence[Points]]]) -> str:
    lengths = sorted({one.length for _, drawn in named for one in drawn})
    return SERIES[lengths.index(points.length) % len(SERIES)]


def _begin(named: Sequence[tuple[str, Sequence[Points]]]) -> tuple[int, float, str]:
    """Return the first moment (ns), and what the time since then is divided by, with its unit."""
    moments = [part for _, drawn in named for one in drawn for part in (one.sent_ns, one.lost_ns) if len(part)]
    if not moments:
        return 0, 1e9, "s"
    first, last = min(int(part.min()) for part in moments), max(int(part.max()) for part in moments)
    return first, *((1e6, "ms") if last - first < 10**9 else (1e9, "s"))


def _named(name: str, drawn: Sequence[Points]) -> str:
    """Return the title of a panel, which says where half a tick is not resolved."""
    unresolved = sorted({one.length for one in drawn if len(one.sent_ns) and not one.is_resolved})
    if not unresolved:
        return name
    lengths = " and ".join(str(length) for length in unresolved)
    return f"{name}; not resolved within the tick, ± {TICK_NS / 2:g} ns: {lengths} octets"


def _one_axis(panels: Sequence[Axes]) -> None:
    """Give all panels the same x axis, so that both ways can be compared moment by moment."""
    ends = [axes.get_xlim() for axes in panels]
    for axes in panels:
        axes.set_xlim(min(least for least, _ in ends), max(most for _, most in ends))


def _bins(delays: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the edges of the bins that all delays fall into."""
    everything = np.concatenate(delays) if delays else np.zeros(1)
    return np.linspace(everything.min() - 0.5, everything.max() + 0.5, BINS + 1)


def over_time(named: Sequence[tuple[str, Sequence[Points]]]) -> str:
    """Draw the delay of each packet at the time at which it was sent, its bound behind it, what was lost below.

    All panels have one time axis. Where the tick of the receive stamps is not resolved, each delay has half a tick either way.
    """
    first_ns, factor, unit = _begin(named)
    with matplotlib.rc_context(STYLE):
        figure, panels = axes_of(len(named), 0.9 + 2.1 * len(named))
        for axes, (name, drawn) in zip(panels, named, strict=True):
            axes.set_title(_named(name, drawn), loc="left")
            shown: set[int] = set()
            for one in drawn:
                label = None if one.length in shown else f"{one.length} octets"
                shown.add(one.length)
                _program(axes, one, (first_ns, factor), _colour(one, named), label)
            axes.set_ylabel("delay (ns)")
            axes.ticklabel_format(axis="y", useOffset=False)
            axes.margins(y=0.15)
            if any(len(one.sent_ns) for one in drawn):
                axes.legend(loc="upper right", ncols=4, markerscale=2)
        _one_axis(panels)
        panels[-1].set_xlabel(f"time since the first frame ({unit})")
    return svg(figure, "owd-time")


def _program(axes: Axes, one: Points, time: tuple[int, float], colour: str, label: str | None) -> None:
    first_ns, factor = time
    at = (one.sent_ns - first_ns) / factor
    if len(at):
        x, y = thin(at, one.owd_ns)
        if one.is_resolved:
            axes.plot(x, y, ".", ms=3, color=colour, label=label)
        else:
            axes.errorbar(x, y, TICK_NS / 2, fmt="o", ms=3, mfc="none", color=colour, elinewidth=0.5, label=label)
        if one.bound_ns is not None:
            mean = float(one.owd_ns.mean())
            ends = [float(at[0]), float(at[-1])]
            axes.fill_between(ends, mean - one.bound_ns, mean + one.bound_ns, color=colour, alpha=0.15, lw=0)
    for moment in (one.lost_ns - first_ns) / factor:
        axes.axvline(moment, 0, 0.06, color=INK, lw=1)


def shares(named: Sequence[tuple[str, Sequence[Points]]]) -> str:
    """Draw how often which delay came, a panel each way on one axis of delays, one outline a length."""
    with matplotlib.rc_context(STYLE):
        figure, panels = axes_of(len(named), 0.9 + 1.6 * len(named))
        edges = _bins([one.owd_ns for _, drawn in named for one in drawn if len(one.owd_ns)])
        for axes, (name, drawn) in zip(panels, named, strict=True):
            axes.set_title(_named(name, drawn), loc="left")
            axes.set_xlim(edges[0], edges[-1])
            delays = [one.owd_ns for one in drawn if len(one.owd_ns)]
            if not delays:
                axes.set_title(f"{name}: nothing to draw", loc="left")
                continue
            for length in sorted({one.length for one in drawn}):
                of_length = [one for one in drawn if one.length == length]
                counts, _ = np.histogram(np.concatenate([one.owd_ns for one in of_length]), edges)
                share = 100 * counts / max(1, counts.sum())
                axes.stairs(share, edges, color=_colour(of_length[0], named), lw=1.4, label=f"{length} octets")
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
            axes.ticklabel_format(axis="x", useOffset=False)
            axes.legend(loc="best")
        panels[-1].set_xlabel("one-way delay (ns)")
    return svg(figure, "owd-shares")
