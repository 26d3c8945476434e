# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What a trace comes to, by arithmetic: frames, octets, time, and the starts that the line can't have."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from liteprobe.cores.formats import LINE_RATE_BPS, MIN_LENGTH, OVERHEAD, TICK_NS
from liteprobe.host.packets.copy_ranges import Index
from liteprobe.host.packets.frames import Frames
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.records import record_words
from liteprobe.host.traffic.trace.stamping import NOWHERE, stamp_offsets


@dataclass(frozen=True)
class Summary:
    """What a trace comes to.

    Attributes
    ----------
    frames, octets : int
        Frames, and their octets on the wire without FCS.
    words : int
        Words of its records, without those of long waits.
    kept : int
        Octets that are sent of the frames; the rest is zero.
    last_due, last_start : int
        Ticks from the first start to when the last frame is due, and starts.
    line_ticks : int
        Ticks that the line is taken.
    expected_late : int
        Frames that can't start when they are due, because the line is taken.
    first_late : int or None
        Number of the first of them, from 0.
    cut : int
        Frames of which the file, or the snap length, has not all octets.
    stamped : int or None
        Frames that have a place for the stamp; None: none is asked for.
    notes : tuple of str
    """

    frames: int = 0
    octets: int = 0
    words: int = 0
    kept: int = 0
    last_due: int = 0
    last_start: int = 0
    line_ticks: int = 0
    expected_late: int = 0
    first_late: int | None = None
    cut: int = 0
    stamped: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """From the first start to the end of the last frame (s)."""
        return (self.last_start + self._last_slot) * TICK_NS / 1e9

    @property
    def share(self) -> float:
        """Of the line, from the first start to the end of the last frame."""
        ticks = self.last_start + self._last_slot
        return self.line_ticks / ticks if ticks else 0.0

    @property
    def load(self) -> float:
        """Of the line, from the first start to the last one: what a device sees whose clock is another."""
        return (self.line_ticks - self._last_slot) / self.last_start if self.last_start else 0.0

    @property
    def rate_bps(self) -> float:
        """Mean rate on the wire (b/s)."""
        return self.share * LINE_RATE_BPS

    _last_slot: int = 0


def starts_of(due: Index, slots: Index, free: int) -> tuple[Index, int]:
    """Return when frames start, max(due, line free), and when the line is free again.

    Parameters
    ----------
    due : array, shape (frames,)
        Tick at which each is due, in order.
    slots : array, shape (frames,)
        Ticks that each takes of the line, the gap behind it included.
    free : int
        Tick from which on the line is free.
    """
    before = np.cumsum(slots) - slots
    start = np.maximum(np.maximum.accumulate(due - before), free) + before
    return start, int(start[-1] + slots[-1])


def summarize(chunks: Iterator[tuple[Frames, Index]], stamp: Stamp | None) -> Summary:
    """Return what frames come to; ``chunks``: frames, and the tick at which each is due."""
    frames = octets = words = kept = late = cut = stamped = free = last_due = last_start = slot = line = 0
    first_late: int | None = None
    for chunk, due in chunks:
        slots = chunk.length + OVERHEAD
        start, free = starts_of(due, slots, free)
        is_late = start > due
        if first_late is None and is_late.any():
            first_late = frames + int(np.argmax(is_late))
        offsets = stamp_offsets(stamp, chunk.octets, chunk.at, chunk.kept) if stamp else None
        stamped += int(np.count_nonzero(offsets != NOWHERE)) if offsets is not None else 0
        late += int(np.count_nonzero(is_late))
        cut += int(np.count_nonzero((chunk.kept < chunk.length) & (chunk.length > MIN_LENGTH)))
        frames, octets, kept = frames + len(chunk), octets + int(chunk.length.sum()), kept + int(chunk.kept.sum())
        words += int(record_words(chunk, offsets).sum())
        line += int(slots.sum())
        last_due, last_start, slot = int(due[-1]), int(start[-1]), int(slots[-1])
    return Summary(
        frames,
        octets,
        words,
        kept,
        last_due,
        last_start,
        line,
        late,
        first_late,
        cut,
        stamped if stamp else None,
        _last_slot=slot,
    )
