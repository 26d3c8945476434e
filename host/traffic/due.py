# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says in which tick each frame of a stream is due, as the gateware draws it, and which wait for others of their port.

Stands alone because a plan, which needs it, and figures, which need it too, are on two floors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import EXPONENTIAL_INDEX_BITS, LN2, OVERHEAD, exponential_table
from liteprobe.host.traffic.lengths import Length, Lengths

WORD = 1 << 32
CHUNK_BITS = 14
CHUNK = 1 << CHUNK_BITS  # Of random numbers that are drawn at once.
#: Bursts at random intervals that are drawn at the most: two seconds of work, and 45 s of a line full of the shortest frames.
DRAWN_MAX = 1 << 26
MEAN_BITS = 5  # Of -ln(u): 27 fraction bits, of which 32 go.
MEAN_MOST = 1.01  # Of so many intervals the mean is within 0.02 % of what was asked for, 19 times of 20.


class UnknownDueError(Exception):
    """Says that a tick is too many random numbers away."""


@dataclass(frozen=True)
class Timing:
    """Times of a stream in ticks, as the memories take them."""

    interval: int  # From head to head (ticks); of exponential intervals the mean, in 2^-5 ticks.
    fraction: int  # 2^-32 ticks more; 0 of exponential intervals.
    burst: int  # Frames of a burst; 0: none.
    inner: int  # From start to start within a burst (ticks); 0: back to back.
    phase: int  # From the start of the program to the first frame (ticks).


class DueTicks:
    """Finds the due ticks of a stream's frames, counted from the start of the program.

    Parameters
    ----------
    is_exponential : bool
        Intervals are drawn.
    interval_state, length_state : int
        First states of xorshift32, of intervals and of lengths.
    """

    def __init__(
        self, times: Timing, length: Length, is_exponential: bool, interval_state: int = 1, length_state: int = 1
    ) -> None:
        self.times, self._length, self._is_drawn = times, length, is_exponential
        self._states = (interval_state, length_state)
        self.burst = max(1, times.burst)
        #: (first burst, state before it, 2^-32 ticks to its head) of the chunks that were drawn.
        self._chunks = [(0, interval_state, 0)]

    @cached_property
    def slack(self) -> int | None:
        """Ticks by which frames may take the line longer than their mean rate says; None: without a limit."""
        if self._is_drawn or self._length.cycle is None:
            return None
        return (self.burst + len(self._length.cycle)) * (self._length.greatest + OVERHEAD)

    @cached_property
    def gap_most(self) -> int:
        """Most ticks from the due tick of a frame to that of the next."""
        draws = 32 * LN2 + max(exponential_table())
        return (self.times.interval * draws >> 32) + 1 if self._is_drawn else self.times.interval + 1

    def due(self, number: int) -> int:
        """Return the tick of frame ``number``; raises UnknownDueError."""
        burst, place = divmod(number, self.burst)
        head = self._head(burst)
        return head if place == 0 else head + int(self._offsets(burst)[place])

    def before(self, ticks: int) -> int:
        """Return how many frames are due before this tick, up to the first one that isn't; raises UnknownDueError."""
        if ticks <= self.times.phase:
            return 0
        for burst in self._bursts_near(ticks):
            head = self._head(burst)
            if head >= ticks:
                return self.burst * burst
            late = np.flatnonzero(head + self._offsets(burst) >= ticks)
            if len(late):
                return self.burst * burst + int(late[0])
        raise AssertionError("bursts have no end")

    def frames(self, first: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the due ticks and the lengths of ``count`` frames from number ``first`` on; raises UnknownDueError."""
        begin, end = first // self.burst, -(-(first + count) // self.burst)
        heads = self._heads_of(begin, end)[:, np.newaxis]
        lengths = self._lengths(begin * self.burst, (end - begin) * self.burst).reshape(-1, self.burst)
        if self.times.inner or self.burst == 1:
            dues = heads + self.times.inner * np.arange(self.burst, dtype=np.int64)
        else:
            slots = lengths + OVERHEAD
            dues = heads + np.cumsum(slots, axis=1) - slots
        own = slice(first - begin * self.burst, first - begin * self.burst + count)
        return dues.reshape(-1)[own], lengths.reshape(-1)[own]

    # # #

    def _heads_of(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the ticks of the first frames of some bursts."""
        if self._is_drawn:
            chunks = range(begin // CHUNK, -(-end // CHUNK))
            heads = np.concatenate([self._heads(chunk) for chunk in chunks] or [np.empty(0, np.int64)])
            return self.times.phase + heads[begin - CHUNK * (begin // CHUNK) :][: end - begin]
        if end * self.times.fraction >= 1 << 63:
            raise UnknownDueError
        bursts = np.arange(begin, end, dtype=np.int64)
        return self.times.phase + bursts * self.times.interval + (bursts * self.times.fraction >> 32)

    def _bursts_near(self, ticks: int) -> Iterator[int]:
        """Yield bursts from one on before which all frames are due before ``ticks``."""
        reach = self.times.inner * (self.burst - 1) or (self.burst - 1) * (self._length.greatest + OVERHEAD)
        first, left = 0, ticks - self.times.phase - reach
        if not self._is_drawn:
            step = (self.times.interval << 32) + self.times.fraction
            first = max(0, (left << 32) // step)
        elif left > 0:
            if left > MEAN_MOST * (DRAWN_MAX + CHUNK) * self.times.interval / 2**MEAN_BITS:
                raise UnknownDueError  # As drawing all of them would say in a minute or two.
            chunk = 0
            while (heads := self._heads(chunk))[-1] < left:
                chunk += 1
            first = CHUNK * chunk + int(np.searchsorted(heads, left))
        burst = max(0, first - 1)
        while True:
            yield burst
            burst += 1

    def _head(self, burst: int) -> int:
        """Return the tick of the first frame of a burst."""
        if self._is_drawn:
            chunk, place = divmod(burst, CHUNK)
            return self.times.phase + int(self._heads(chunk)[place])
        return self.times.phase + (burst * ((self.times.interval << 32) + self.times.fraction) >> 32)

    def _heads(self, chunk: int) -> NDArray[np.int64]:
        """Return the ticks from the first head to those of a chunk of bursts."""
        if CHUNK * chunk > DRAWN_MAX:
            raise UnknownDueError
        while True:
            first, state, passed = self._chunks[min(chunk, len(self._chunks) - 1)]
            draws = draws_from(state)
            intervals = np.uint64(self.times.interval) * _exponentials(draws)
            ticks = np.append(0, np.cumsum(intervals >> np.uint64(32)).astype(np.int64))
            parts = np.append(0, np.cumsum(intervals & np.uint64(WORD - 1)).astype(np.int64)) + (passed & WORD - 1)
            heads = (passed >> 32) + ticks + (parts >> 32)
            if first == chunk:
                return np.array(heads[:-1])
            self._chunks.append((first + 1, int(draws[-1]), int(heads[-1]) << 32 | int(parts[-1]) & WORD - 1))

    def _offsets(self, burst: int) -> NDArray[np.int64]:
        """Return the ticks from the head of a burst to each of its frames."""
        if self.times.inner or self.burst == 1:
            return self.times.inner * np.arange(self.burst, dtype=np.int64)
        slots = self._lengths(burst * self.burst, self.burst) + OVERHEAD
        return np.append(0, np.cumsum(slots)[:-1])

    def _lengths(self, first: int, count: int) -> NDArray[np.int64]:
        """Return the lengths of frames from number ``first`` on."""
        if self._length.cycle is not None:
            cycle = np.array(self._length.cycle, np.int64)
            return np.array(cycle[(first + np.arange(count)) % len(cycle)])
        state = np.array([self._states[1]], np.uint32)
        for bit in range(first.bit_length()):
            if first >> bit & 1:
                state = _jumped(state, bit)
        drawn = np.empty(0, np.uint32)
        while len(drawn) < count:
            drawn = np.append(drawn, draws_from(int(drawn[-1] if len(drawn) else state[0])))
        high = (drawn[:count] >> np.uint32(16)).astype(np.int64)
        if isinstance(self._length, Lengths):
            return np.array(np.array(self._length.entries, np.int64)[high * len(self._length.entries) >> 16])
        return self._length.least + (high * (self._length.greatest - self._length.least + 1) >> 16)


# The line that streams share ----------------------------------------------------------------------

#: Frames of a port that are worked out: some seconds of work, and 20 s of a line full of the shortest.
PLANNED_MOST = 1 << 25
PLANNED_ONCE = 1 << 18  # Those at once.


class SharedLine:
    """Works out which frames of a port wait because others hold its line, by the plan alone.

    Whichever frame is due first leaves first, of several the one of the lowest number; it starts when it is due and the line
    is free, in a column: in that of the tick in which it would start without columns.

    Parameters
    ----------
    dues : sequence of DueTicks
        By number of the stream.
    ends : sequence of int or None
        Frames of each stream; None: it has no end.
    column : int
        Ticks of a column; 1: there are none.
    """

    def __init__(self, dues: Sequence[DueTicks], ends: Sequence[int | None], column: int = 1) -> None:
        self._column = column
        self._dues, self._ends = dues, [WORD**2 if end is None else end for end in ends]
        self._next = [0] * len(dues)  # Frames of each stream that were looked at.
        self._waited = [0] * len(dues)  # Those of them that wait.
        self._first: list[int | None] = [None] * len(dues)  # The first of these.
        self._turn = [0] * len(dues)  # The latest tick at which one of them was due.
        self._free = 0  # Tick from which on the line is free after these.

    def waited(self, sent: Sequence[int]) -> list[tuple[int, int | None]] | None:
        """Return how many of the first ``sent`` frames of each stream wait, and the first of them; no less were sent before.

        None where that is too much work.
        """
        if sum(sent) > PLANNED_MOST:
            return None
        try:
            still = [due.due(n) for due, n, end in zip(self._dues, sent, self._ends, strict=True) if n < end]
            if still:
                self._pass(min(still), self._ends)
            kept = self._next, self._waited, self._turn, self._free
            self._next, self._waited, self._turn = ([*one] for one in kept[:3])
            last = max((due.due(n - 1) for due, n in zip(self._dues, sent, strict=True) if n), default=-1)
            self._pass(last + 1, self._ends, sent)
            found = list(zip(self._waited, self._first, strict=True))
            if still:
                self._next, self._waited, self._turn, self._free = kept
        except UnknownDueError:
            return None
        return found

    # # #

    def _pass(self, until: int, ends: Sequence[int], counted: Sequence[int] | None = None) -> None:
        """Let all frames leave that are due before a tick; of each stream the first ``counted`` ones (None: all) count."""
        least = counted or [0] * len(ends)  # A burst may have frames that are due later than its last one.
        most = [max(min(due.before(until), end), n) for due, end, n in zip(self._dues, ends, least, strict=True)]
        while (left := sum(most) - sum(self._next)) > 0:
            part = most
            if left > PLANNED_ONCE:  # By time, so that frames of all streams are in order.
                number = max(range(len(most)), key=lambda n: most[n] - self._next[n])
                step = max(1, PLANNED_ONCE // len(most))
                upto = self._dues[number].due(min(self._next[number] + step, most[number]))
                part = [min(due.before(upto), end) for due, end in zip(self._dues, most, strict=True)]
                part = part if any(map(int.__gt__, part, self._next)) else most
            self._leave(part, counted)

    def _leave(self, most: Sequence[int], counted: Sequence[int] | None) -> None:
        parts = []
        for one, (source, first, end) in enumerate(zip(self._dues, self._next, most, strict=True)):
            if end > first:
                ticks, sizes = source.frames(first, end - first)
                # One that is due before its forerunner, as after a burst that is longer than a drawn interval, follows it.
                turns = np.maximum(np.maximum.accumulate(ticks), self._turn[one])
                self._turn[one] = int(turns[-1])
                parts.append((turns, ticks, sizes, np.arange(first, end), np.full(end - first, one)))
        turn, due, length, number, stream = (np.concatenate(one) for one in zip(*parts, strict=True))
        order = np.lexsort((stream, turn))
        due, length, number, stream = due[order], length[order], number[order], stream[order]
        due -= due % self._column
        slots = length + OVERHEAD
        before = np.cumsum(slots) - slots  # Ticks that those before take.
        start = np.maximum(np.maximum.accumulate(due - before), self._free) + before
        self._free = int(start[-1] + slots[-1])
        waits = start >= due + self._column
        if counted is not None:
            waits &= number < np.array(counted)[stream]
        for one, count in enumerate(np.bincount(stream[waits], minlength=len(self._dues)).tolist()):
            self._waited[one] += count
            if count and self._first[one] is None:
                self._first[one] = int(number[waits & (stream == one)][0])
        self._next = [max(first, end) for first, end in zip(self._next, most, strict=True)]


# Random numbers -----------------------------------------------------------------------------------


def draws_from(state: int) -> NDArray[np.uint32]:
    """Return the ``CHUNK`` numbers that xorshift32 gives after ``state``.

    Source: Marsaglia, Xorshift RNGs, 2003.
    """
    found = _jumped(np.array([state], np.uint32), 0)
    for bit in range(CHUNK_BITS):
        found = np.append(found, _jumped(found, bit))
    return found


def _jumped(states: NDArray[np.uint32], bit: int) -> NDArray[np.uint32]:
    """Return what each state is after 2^bit steps, which are linear in its bits."""
    tables = _tables(bit)
    found = tables[0][states & np.uint32(255)]
    for octet in range(1, 4):
        found = found ^ tables[octet][states >> np.uint32(8 * octet) & np.uint32(255)]
    return np.array(found)


@cache
def _tables(bit: int) -> NDArray[np.uint32]:
    """Return what 2^bit steps make of each octet of a state, shape (4, 256)."""
    octets = np.arange(256, dtype=np.uint32)
    states = np.stack([octets << np.uint32(8 * place) for place in range(4)])
    if bit:
        return _jumped(_jumped(states, bit - 1), bit - 1)
    for left, shift in ((True, 13), (False, 17), (True, 5)):
        states = states ^ (states << np.uint32(shift) if left else states >> np.uint32(shift))
    return states


def _exponentials(draws: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return -ln(u / 2^32) of each u, in 2^-27, as the gateware's table has it."""
    zeros = 32 - np.frexp(draws.astype(np.float64))[1].astype(np.uint64)
    mantissa = draws.astype(np.uint64) << zeros
    index = (mantissa >> np.uint64(31 - EXPONENTIAL_INDEX_BITS)) - np.uint64(1 << EXPONENTIAL_INDEX_BITS)
    return np.array(zeros * np.uint64(LN2) + _table_of_exponentials()[index])


@cache
def _table_of_exponentials() -> NDArray[np.uint64]:
    return np.array(exponential_table(), np.uint64)
