# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""When the frames of a replay started, by the probe's clock: from the time at which it was to start, and looks at the clock."""

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.clock.timebase import INCREMENT_ONE, Timebase
from liteprobe.host.packets.frames import Index
from liteprobe.host.run.start import START_MARGIN_NS

MARGIN_NS = 5 * START_MARGIN_NS  # From the choice of the start to it: the ports get ready in between.
STEP_NS = 1000.0  # From look to look; a servo changes less.
NEARLY = 1e-5  # Of a tick: rounding of what is exact.
FRACTIONS = 1 << 32  # Of a nanosecond, in a look.


class ReplaySchedule:
    """A start at a time of the probe's clock, and what that clock was while the ports sent.

    Parameters
    ----------
    timebase : Timebase
    increment : int
        Nanoseconds a tick by which the trace's times became ticks, in 8.40 fixed point.

    Attributes
    ----------
    start_ns : int
        Time of the first SFD.
    """

    def __init__(self, timebase: Timebase, increment: int) -> None:
        self._timebase = timebase
        self._tick_ns = increment / INCREMENT_ONE
        self._looks: list[tuple[int, int, int]] = []
        self._is_in_time = False
        self.start_ns = self.look() + MARGIN_NS

    def look(self) -> int:
        """Keep what the clock is now, and return it (ns)."""
        self._looks.append(self._timebase.moment())
        return self._looks[-1][0]

    def begin(self) -> None:
        """Note that the start has reached the probe: in time or not, as the clock says."""
        self._is_in_time = self.look() < self.start_ns

    @property
    def trouble(self) -> str:
        """Why it isn't known when frames started; empty: it is."""
        if not self._is_in_time:
            return "the start reached the probe too late for its time"
        now, ticks = self._clock()
        if np.any(np.abs(np.diff(now) - np.diff(ticks) * self._tick_ns) > STEP_NS):
            return "the probe's clock was set while it replayed"
        return ""

    def starts_ns(self, ticks: Index) -> Index:
        """Return the times of SFDs (ns); ``ticks``: of each, from the first SFD on."""
        now, at = self._clock()
        base_ns = self._looks[0][0]
        first = np.ceil(np.interp(self.start_ns - base_ns, now, at) - NEARLY)
        wanted = first + ticks
        found = np.interp(wanted, at, now)
        found = np.where(wanted > at[-1], now[-1] + (wanted - at[-1]) * self._tick_ns, found)
        return np.asarray(base_ns + np.floor(found + NEARLY).astype(np.int64))

    # # #

    def _clock(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return time (ns) and tick of each look, from the whole ns and the tick of the first one on."""
        base_ns, _, base_tick = self._looks[0]
        now = np.array([now - base_ns + part / FRACTIONS for now, part, _ in self._looks])
        return now, np.array([float(tick - base_tick) for _, _, tick in self._looks])
