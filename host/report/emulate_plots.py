# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Plots of an emulated network: rates and queues over time, and delays, a line a class."""

from collections.abc import Callable, Sequence
from typing import Any

from liteprobe.host.machine import extras
from liteprobe.host.report.plots import HEIGHT_IN, SERIES, axes_of, svg
from liteprobe.host.report.traffic_plots import DASHES, PLAIN
from liteprobe.host.run.emulate_figures import ClassDelays, ClassLook, DirectionLook

with extras.named():
    import matplotlib
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator

Figure = Callable[[ClassLook], float | None]


def rates(looks: Sequence[DirectionLook]) -> str:
    """Draw the rate at which each class left, over time."""
    return _over_time(looks, lambda one: _scaled(one.sent_bps), "octets of frames without FCS (Mb/s)", "rates")


def queues(looks: Sequence[DirectionLook]) -> str:
    """Draw what waited of each class, over time."""
    return _over_time(looks, lambda one: float(one.queue.frames), "frames that wait for the link", "queues")


def delays(look: DirectionLook) -> str:
    """Draw which part of the frames of each class was due within which delay: known at the dots."""
    known = [one for one in look.classes if any(one.delays.counts)]
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN)
        lines = []
        for place, one in enumerate(look.classes):
            if one not in known:
                continue
            ends, shares = _steps(one.delays)
            axes.plot(ends, shares, marker="o", ms=3, lw=1.4, **_look(place))
            lines.append(Line2D([], [], label=one.name, **_look(place)))
        if not lines:
            axes.set_title("nothing to draw", loc="left")
        else:
            if axes.dataLim.x1 > 5 * axes.dataLim.x0:  # Else it would have a tick or none.
                axes.set_xscale("log", subs=())
                axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            figure.legend(handles=lines, loc="outside lower center", ncols=3)
        axes.set_ylim(0, 105)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlabel("delay, SFD to SFD (ms)")
        axes.set_ylabel("frames that were due")
    return svg(figure, f"emulate-delays-{look.way}")


# # #


def _steps(delays: ClassDelays) -> tuple[list[float], list[float]]:
    """Return delays (ms), and per cent of the frames that were due within them: at the ends, and where bins meet."""
    total, within = sum(delays.counts), 0
    least, most = (delays.least_ns or 0.0, delays.most_ns or 0.0)
    ends, shares = [least / 1e6], [0.0]
    for count, edge in zip(delays.counts, delays.edges_ns[1:], strict=True):
        within += count
        if least < edge < most:
            ends.append(edge / 1e6)
            shares.append(100 * within / total)
    return [*ends, most / 1e6], [*shares, 100.0]


def _look(place: int) -> dict[str, Any]:
    return {"color": SERIES[place % len(SERIES)], "ls": DASHES[place // len(SERIES) % len(DASHES)]}


def _scaled(value_bps: float | None) -> float | None:
    return None if value_bps is None else value_bps / 1e6


def _over_time(looks: Sequence[DirectionLook], figure_of: Figure, label: str, name: str) -> str:
    with matplotlib.rc_context(PLAIN):
        figure, (axes,) = axes_of(1, HEIGHT_IN)
        lines = []
        for place, one in enumerate(looks[-1].classes):
            points = [
                (look.seconds, value)
                for look in looks
                for kept in look.classes
                if kept.number == one.number and (value := figure_of(kept)) is not None
            ]
            if not points:
                continue
            axes.plot(*zip(*points, strict=True), lw=1.4, marker="o" if len(points) < 3 else "", **_look(place))
            lines.append(Line2D([], [], label=one.name, **_look(place)))
        if not lines:
            axes.set_title("nothing to draw", loc="left")
        else:
            figure.legend(handles=lines, loc="outside lower center", ncols=3)
        axes.set_xlim(0, looks[-1].seconds or 1.0)
        axes.set_ylim(0, max(1.0, axes.get_ylim()[1]))
        axes.set_xlabel("since the start (s)")
        axes.set_ylabel(label)
    return svg(figure, f"emulate-{name}-{looks[-1].way}")
