# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Frames that are made up: probe frames of chosen lengths at chosen intervals, numbered as a stream's are."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import OVERHEAD, STAMP_OCTETS
from liteprobe.host.errors import UsageError
from liteprobe.host.packets.copy_ranges import Index
from liteprobe.host.packets.frames import SLACK, Frames
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.intervals import NOMINAL, Interval, head_ticks
from liteprobe.host.traffic.lengths import Length, RandomLength

CHUNK = 1 << 14  # Frames at once.
PARTS = 1 << 10  # Of a tick, that exponential intervals are drawn in.
SEQUENCE_OCTETS = 4


@dataclass(frozen=True)
class MadeSource:
    """Probe frames whose sequence numbers count from 0; a monitor tells by them what was lost.

    Parameters
    ----------
    interval : Interval
        From start to start; bursts are not made.
    length : Length
    count : int or None
        Frames; None: without an end.
    headers : Headers
        Of IPv4.
    stream_id : int
    seed : int
        Of what is random.

    Attributes
    ----------
    ticks_per_unit : Fraction
        Of the times of its frames, by a clock without an error.
    follows_line : bool
        Its times are shares of the line, whatever the probe's clock does.
    notes : list of str

    Raises
    ------
    UsageError
        When it can't be made.
    """

    interval: Interval
    length: Length
    count: int | None
    headers: Headers = field(default_factory=Headers)
    stream_id: int = 1
    seed: int = 1
    ticks_per_unit: Fraction = field(init=False)
    follows_line: bool = field(init=False)
    notes: list[str] = field(default_factory=list, init=False, compare=False)

    def __post_init__(self) -> None:
        interval = self.interval
        if self.count is not None and self.count < 1:
            raise UsageError(
                f"a trace of {self.count} frames is out of range: give 1 or more, or None for one without an end"
            )
        if interval.burst:
            raise UsageError("a trace is made without bursts: send them as a stream, or write them to a pcap")
        if self.headers.is_ipv6:
            raise UsageError("a trace is made with IPv4 headers alone: send IPv6 as a stream, or write it to a pcap")
        is_line = interval.is_back_to_back or interval.share is not None
        if interval.is_back_to_back or interval.exponential:
            unit = Fraction(1, PARTS) if interval.exponential else Fraction(1)
        else:
            unit = head_ticks(interval, self.length, NOMINAL)
        object.__setattr__(self, "ticks_per_unit", unit)
        object.__setattr__(self, "follows_line", is_line)
        self._templates()

    @property
    def is_endless(self) -> bool:
        """Whether it has no last frame."""
        return self.count is None

    def frames(self) -> Iterator[Frames]:
        """Yield all frames, some at once; the same ones each time."""
        chance = np.random.default_rng(self.seed)
        templates = self._templates()
        lengths = np.array(list(templates), np.int64)
        order = np.argsort(lengths)
        rows = np.frombuffer(b"".join(templates.values()), np.uint8).reshape(len(templates), -1)[order]
        first = time = 0
        while self.count is None or first < self.count:
            count = CHUNK if self.count is None else min(CHUNK, self.count - first)
            length = self._lengths(chance, first, count)
            octets = self._octets(rows[np.searchsorted(lengths[order], length)], first)
            times = self._times(chance, length, first, time)
            time = int(times[-1])
            width = rows.shape[1]
            kept = np.minimum(width, length)
            yield Frames(octets, width * np.arange(count), kept, length, times[:-1], first + 1)
            first += count

    # # #

    def _templates(self) -> dict[int, bytes]:
        """Return the octets up to the stamp, by length."""
        cycle = self.length.cycle
        lengths = (
            range(self.length.least, self.length.greatest + 1)
            if isinstance(self.length, RandomLength)
            else set(cycle or self._entries())
        )
        return {
            length: self.headers.octets(length, self.stream_id) + bytes(SEQUENCE_OCTETS + STAMP_OCTETS)
            for length in lengths
        }

    def _entries(self) -> tuple[int, ...]:
        return self.length.entries if hasattr(self.length, "entries") else ()

    def _lengths(self, chance: np.random.Generator, first: int, count: int) -> Index:
        if isinstance(self.length, RandomLength):
            return chance.integers(self.length.least, self.length.greatest, count, np.int64, endpoint=True)
        if self.length.cycle is None:
            return chance.choice(np.array(self._entries(), np.int64), count)
        return np.array(self.length.cycle, np.int64)[(first + np.arange(count)) % len(self.length.cycle)]

    def _times(self, chance: np.random.Generator, length: Index, first: int, time: int) -> Index:
        """Return when these frames and the one after them start, in units; ``time``: when the first one does."""
        if self.interval.is_back_to_back:
            gaps = length + OVERHEAD
        elif self.interval.exponential:
            mean = float(head_ticks(self.interval, self.length, NOMINAL) * PARTS)
            gaps = np.rint(chance.exponential(mean, len(length))).astype(np.int64)
        else:
            return first + np.arange(len(length) + 1)
        return np.concatenate([[time], time + np.cumsum(gaps)])

    def _octets(self, rows: NDArray[np.uint8], first: int) -> NDArray[np.uint8]:
        """Return frames one after the other, with their sequence numbers."""
        sequences = np.arange(first, first + len(rows)).astype(">u4").view(np.uint8).reshape(-1, SEQUENCE_OCTETS)
        at = rows.shape[1] - STAMP_OCTETS
        rows[:, at - SEQUENCE_OCTETS : at] = sequences
        return np.concatenate([rows.reshape(-1), np.zeros(SLACK, np.uint8)])
