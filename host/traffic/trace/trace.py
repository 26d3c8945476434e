# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A trace: frames of any number, each due at a time of its own, made as they are needed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np

from liteprobe.cores.formats import LINE_RATE_BPS, MAX_LENGTH, OVERHEAD
from liteprobe.host.errors import UsageError
from liteprobe.host.packets.copy_ranges import Index
from liteprobe.host.packets.files import FileSource
from liteprobe.host.packets.frames import Frames
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import NOMINAL, Interval, Number, exact
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.made import MadeSource
from liteprobe.host.traffic.trace.order import checked, in_order
from liteprobe.host.traffic.trace.records import Words, records
from liteprobe.host.traffic.trace.stamping import check
from liteprobe.host.traffic.trace.summary import Summary, starts_of, summarize
from liteprobe.host.traffic.trace.ticks import fitting, scaled

PARTS = 10**6


class TraceSource(Protocol):
    """Where the frames of a trace come from, the same ones each time."""

    @property
    def ticks_per_unit(self) -> Fraction:
        """Ticks of a unit of the frames' times, by a clock without an error."""

    @property
    def follows_line(self) -> bool:
        """Whether times are shares of the line, whatever the probe's clock does."""

    @property
    def is_endless(self) -> bool:
        """Whether it has no last frame."""

    @property
    def notes(self) -> list[str]:
        """What was left out."""

    def frames(self) -> Iterator[Frames]:
        """Yield all frames, some at once."""


@dataclass(frozen=True)
class Trace:
    """Frames to be replayed, and when: ``from_pcap``, ``cbr``, ``poisson``, ``imix`` make one; others change it.

    Nothing is read or made before it is needed, and nothing is kept: a trace may be longer than any memory. Each start is
    rounded to a tick (8 ns) by itself, counted from the first frame, so that nothing drifts.

    Parameters
    ----------
    source : TraceSource
    factor : Fraction
        By which all times are stretched.
    rate_bps : number or None
        In the place of the times of the source: each frame is due when the one before has ended on a line of this rate.
    is_top : bool
        Likewise, on the line as it is: back to back.
    repeats : int or None
        How often all is sent; None: without an end.
    snap_length : int
        Octets that are sent of each frame at most; the rest is zero.
    stamp : Stamp or None
        Where frames get the time of their start.
    is_sorted : bool
        Frames whose times go back are brought into order; else that is an error.
    """

    source: TraceSource
    factor: Fraction = Fraction(1)
    rate_bps: Number | None = None
    is_top: bool = False
    repeats: int | None = 1
    snap_length: int = MAX_LENGTH
    stamp: Stamp | None = None
    is_sorted: bool = False

    # Made from -------------------------------------------------------------------------------

    @classmethod
    def from_pcap(cls, path: str | Path, sort: bool = False, repair: bool = False) -> "Trace":
        """Return the frames of a pcap or pcapng file, at its times.

        Parameters
        ----------
        path : path
        sort : bool
            Bring packets into order whose times go back, over 4096 packets at most; else that is an error.
        repair : bool
            Let a file that is cut or corrupt end before that; else it is an error.

        Raises
        ------
        UsageError
            Here when the file can't be read or is of another kind; later, when it is read, for what is wrong in it.
        """
        return cls(FileSource(Path(path), repair), is_sorted=sort)

    @classmethod
    def cbr(
        cls,
        interval: Interval,
        length: Length | int,
        count: int | None,
        headers: Headers | None = None,
        stream_id: int = 1,
        seed: int = 1,
    ) -> "Trace":
        """Return probe frames at a constant interval or rate.

        Parameters
        ----------
        interval : Interval
            Without bursts; where it is ``exponential``, it is as of ``poisson``.
        length : Length or int
            Octets without FCS.
        count : int or None
            Frames; None: without an end.
        headers : Headers or None
            Of IPv4.
        stream_id, seed : int
        """
        fixed = Fixed(length) if isinstance(length, int) else length
        return cls(MadeSource(interval, fixed, count, headers or Headers(), stream_id, seed))

    @classmethod
    def poisson(
        cls,
        interval: Interval,
        length: Length | int,
        count: int | None,
        headers: Headers | None = None,
        stream_id: int = 1,
        seed: int = 1,
    ) -> "Trace":
        """Return probe frames at intervals that are drawn from an exponential distribution; else as ``cbr``."""
        return cls.cbr(replace(interval, exponential=True), length, count, headers, stream_id, seed)

    @classmethod
    def imix(cls, interval: Interval, count: int | None, headers: Headers | None = None, seed: int = 1) -> "Trace":
        """Return probe frames of 60, 590 and 1514 octets, 7 : 4 : 1; else as ``cbr``."""
        return cls.cbr(interval, IMIX, count, headers, seed=seed)

    # Changed to ------------------------------------------------------------------------------

    def stretched(self, factor: Number) -> "Trace":
        """Return it with all times ``factor`` (above 0) as long: 2 is half the speed."""
        if exact(factor) <= 0:
            raise UsageError(f"times can't be stretched by {factor}: give more than 0")
        return replace(self, factor=self.factor * exact(factor))

    def with_margin(self, ppm: Number) -> "Trace":
        """Return it slower by ``ppm`` parts in a million, for a device whose clock is slower than the probe's."""
        return self.stretched(1 + exact(ppm) / PARTS)

    def at_rate(self, rate_bps: Number) -> "Trace":
        """Return it at a constant rate on the wire (b/s, frame + 24 octets), whatever its times were."""
        if not 0 < exact(rate_bps) <= LINE_RATE_BPS:
            raise UsageError(
                f"a rate of {rate_bps} b/s is out of range: give up to 1e9, or have it back to back (--top)"
            )
        return replace(self, rate_bps=rate_bps, is_top=False)

    def at_top(self) -> "Trace":
        """Return it with its frames back to back."""
        return replace(self, rate_bps=None, is_top=True)

    def repeated(self, repeats: int | None) -> "Trace":
        """Return it so often, one after the other, a mean interval between them; None: without an end."""
        if repeats is not None and repeats < 1:
            raise UsageError(f"a trace can't be sent {repeats} times: give 1 or more, or None for one without an end")
        return replace(self, repeats=repeats)

    def snapped(self, snap_length: int) -> "Trace":
        """Return it with ``snap_length`` octets of each frame; the rest is zero."""
        if not 0 <= snap_length <= MAX_LENGTH:
            raise UsageError(f"snap length {snap_length} is out of range: give 0 to {MAX_LENGTH}")
        return replace(self, snap_length=snap_length)

    def stamped(self, stamp: Stamp | None) -> "Trace":
        """Return it with the time of its start in each frame that has the place."""
        if stamp is not None:
            check(stamp)
        return replace(self, stamp=stamp)

    # What a probe gets -----------------------------------------------------------------------

    def due(self, increment: int = NOMINAL) -> Iterator[tuple[Frames, Index]]:
        """Yield frames, and the tick at which each is due, from the first one on (tick 0).

        Parameters
        ----------
        increment : int
            Nanoseconds a tick of the probe's clock, in 8.40 fixed point.

        Raises
        ------
        UsageError
            When a packet can't be replayed, or there is none.
        """
        ratio = self._ratio(increment)
        turn, shift, count = 0, 0, 0
        while self.repeats is None or turn < self.repeats:
            first: int | None = None
            before = count = slots = 0
            for chunk in self._frames():
                time, slots = self._times(chunk, slots)
                first = int(time[0]) if first is None else first
                time = time - first
                before, count = int(time[-1]), count + len(chunk)
                yield chunk, scaled(time + shift, ratio)
            if first is None:
                why = "; ".join(["the trace has no frame", *self.source.notes])
                raise UsageError(f"{why}: nothing would be sent")
            shift += before + self._pause(before, count, slots, ratio)
            turn += 1

    def records(self, increment: int = NOMINAL, first_ticks: int = 0) -> Iterator[Words]:
        """Yield the words of its records, some at once; the last one ends the program. Else as ``due``.

        Parameters
        ----------
        increment : int
            As of ``due``.
        first_ticks : int
            From the start of the program to the first frame.
        """
        return records(self.due(increment), self.stamp, first_ticks)

    def starts(self, increment: int = NOMINAL) -> Iterator[Index]:
        """Yield the tick at which each frame starts, max(due, line free), from the first one on; some at once. Else as ``due``."""
        free = 0
        for frames, due in self.due(increment):
            start, free = starts_of(due, frames.length + OVERHEAD, free)
            yield start

    def summary(self, increment: int = NOMINAL) -> Summary:
        """Read all of it once, and return what it comes to, and how many frames can't start when they are due.

        Of one without an end, this is one turn.

        Raises
        ------
        UsageError
            For all that is wrong in it.
        """
        if self.source.is_endless:
            raise UsageError("a trace without an end has no summary: give it a count")
        once = self if self.repeats is not None else replace(self, repeats=1)
        return replace(summarize(once.due(increment), self.stamp), notes=tuple(self.source.notes))

    def turn_ticks(self, increment: int = NOMINAL) -> int:
        """Return the ticks from the last frame of a turn to the first one of the next."""
        twice, last = replace(self, repeats=2).due(increment), 0
        size = sum(len(chunk) for chunk in self._frames())
        seen = 0
        for chunk, due in twice:
            if seen >= size:
                return int(due[0]) - last
            seen, last = seen + len(chunk), int(due[-1])
        raise UsageError("the trace has no frame: nothing would be sent")

    # # #

    def _ratio(self, increment: int) -> Fraction:
        """Return the ticks of a unit of time."""
        by_clock = Fraction(NOMINAL, increment)
        if self.is_top:
            return fitting(self.factor)
        if self.rate_bps is not None:
            return fitting(LINE_RATE_BPS / exact(self.rate_bps) * self.factor * by_clock)
        ratio = self.source.ticks_per_unit * self.factor
        return fitting(ratio if self.source.follows_line else ratio * by_clock)

    def _frames(self) -> Iterator[Frames]:
        chunks = self.source.frames()
        if not self._is_paced:
            unit = self.source.ticks_per_unit
            chunks = in_order(chunks, unit) if self.is_sorted else checked(chunks, unit)
        for chunk in chunks:
            kept = np.minimum(chunk.kept, self.snap_length) if self.snap_length < MAX_LENGTH else chunk.kept
            yield replace(chunk, kept=kept)

    @property
    def _is_paced(self) -> bool:
        return self.is_top or self.rate_bps is not None

    def _times(self, chunk: Frames, slots: int) -> tuple[Index, int]:
        """Return when frames are due, in units, and the octets of the line up to the end of the last one."""
        ends = slots + np.cumsum(chunk.length + OVERHEAD)
        time = ends - (chunk.length + OVERHEAD) if self._is_paced else chunk.time
        return time, int(ends[-1])

    def _pause(self, span: int, count: int, slots: int, ratio: Fraction) -> int:
        """Return the units from the last frame of a turn to the first one of the next: the mean interval."""
        if self._is_paced:
            return slots - span
        if span:
            return max(round(Fraction(span, count - 1)), 1)
        return -int(-slots // ratio)
