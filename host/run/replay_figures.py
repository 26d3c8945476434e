# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds the figures of a replay: of each port what was planned, sent and delayed."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.analysis.columns import MEGA, Column, Columns
from liteprobe.host.run.streamed_figures import Delays, PortFigures, ReplayCounts, ScheduledDelays, StreamedResult
from liteprobe.host.traffic.trace.records import Summary
from liteprobe.host.traffic.trace.trace import Trace

CLOCK_PPM = 100  # Of an end, as IEEE 802.3 allows.
ROUNDING = 5e-6  # Of starts to ticks, in a short trace.


@dataclass(frozen=True, kw_only=True)
class PortReplay(PortFigures):
    """What a port sent of a trace; the rest as of `PortFigures`.

    Attributes
    ----------
    trace : Trace
    increment : int
        Nanoseconds a tick of the probe's clock, in 8.40 fixed point, by which its times became ticks.
    summary : Summary or None
        What the trace comes to, once; None: it has no end.
    expected_late : int or None
        Frames that the line can't start when they are due, by arithmetic; None: not known.
    counts : ReplayCounts
    fetched_late : int
        Frames whose octets the probe did not have in time for its line.
    scheduled : ScheduledDelays or None
        Where frames had no stamp and were captured; None, too, where it isn't known when they started.
    """

    trace: Trace
    increment: int
    summary: Summary | None
    expected_late: int | None
    counts: ReplayCounts
    fetched_late: int = 0
    scheduled: ScheduledDelays | None = None

    @property
    def known_delays(self) -> Delays | None:
        """Delays by stamps, or else by the trace's schedule."""
        return self.delays or (self.scheduled.delays if self.scheduled else None)

    def planned_starts(self) -> Iterator[NDArray[np.int64]]:
        """Yield the tick at which each frame of the trace starts, from the first one on, some thousands at once."""
        return self.trace.starts(self.increment)

    @property
    def is_whole(self) -> bool:
        """Whether all frames were sent, each when the line let it."""
        is_late = self.expected_late is not None and self.late > self.expected_late
        return not (
            is_late or self.underruns or self.counts.errors or (self.asked is not None and self.frames != self.asked)
        )

    @property
    def rate_bps(self) -> float | None:
        """Of its frames, as planned (on the wire)."""
        return self.summary.rate_bps if self.summary else None

    def notes(self, was_stopped: bool) -> list[str]:
        """Return what the reader of the figures must know, a sentence each."""
        expected, asked = self.expected_late or 0, self.asked or 0
        late = f"{self.late} frames started after their tick, number {self.first_late} first"
        said = {
            f"{self.underruns} frames came too late from this host, number {self.first_underrun} first: give --snap, a lower "
            "--speed, or a faster network to the probe": self.underruns,
            f"{late}; {expected} of them had to, because the frame before was still on the line": self.late
            and self.expected_late is not None,
            late: self.late and self.expected_late is None,
            f"{self.fetched_late} frames were fetched from the ring too late for the line: report this with the file": (
                self.fetched_late
            ),
            f"{self.counts.errors} records were no frames, so it ended there: report this with the file": self.counts.errors,
            f"{asked - self.frames} of {asked} frames were not sent": self.frames < asked and not was_stopped,
        }
        found = [note for note, holds in said.items() if holds] + self.without_stamp() + self._without_delay()
        return found + list(self.summary.notes if self.summary else ()) + self._margin()

    def row(self) -> dict[str, Any]:
        """Return the figures as what JSON can hold."""
        return {
            **super().row(),
            "expected_late": self.expected_late,
            "fetched_late": self.fetched_late,
            "planned": _planned(self.summary) if self.summary else None,
            "counts": asdict(self.counts),
            "latency_by_schedule_ns": self.scheduled.document() if self.scheduled else None,
        }

    # # #

    def _without_delay(self) -> list[str]:
        found = self.scheduled
        if found is None or not found.delays.without:
            return []
        return [
            f"{found.delays.without} captured frames without a stamp have no delay: {found.strange} are not in the trace, "
            f"{found.repeated} are copies, of {found.ambiguous} it can't be told which they are; {found.missing} did not come"
        ]

    def _margin(self) -> list[str]:
        """Return what must be said of a load that a slower device can't take."""
        if self.summary is None or self.summary.load * (1 + 2 * CLOCK_PPM / 1e6) <= 1 + ROUNDING:
            return []
        return [
            f"{100 * self.summary.load:.3f} % of the line; clocks of both ends may be {CLOCK_PPM} ppm off, so a device that is "
            f"{2 * CLOCK_PPM} ppm slower drops frames that it has no fault in: give --margin-ppm {2 * CLOCK_PPM}"
        ]


ReplayResult = StreamedResult[PortReplay]
#: Of a replay alone: of a port, and of the summary of what it was to send.
EXPECTED_LATE = Column("expected_late", "had to")
TRACES = Columns(
    Column("frames", "frames", "Frames"),
    Column("octets", "octets", "Octets"),
    Column("duration_s", "s", "Time, s", 6),
    Column("rate_bps", "Mb/s", "Mb/s", 3, MEGA),
    Column("share", "of the line", "Of the line,\n%", 3, 0.01),
    Column("expected_late", "can't start\nin time", "Can't start\nin time"),
    Column("cut", "cut", "Cut"),
)


def _planned(summary: Summary) -> dict[str, Any]:
    names = ("frames", "octets", "duration_s", "share", "rate_bps", "cut", "stamped")
    starts = {"last_due_ns": summary.last_due * TICK_NS, "last_start_ns": summary.last_start * TICK_NS}
    return {name: getattr(summary, name) for name in names} | starts
