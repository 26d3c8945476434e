# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says what delays are whose stamp has few bits: a stamp of w bits, of units of T, says them modulo 2^w T.

The gateware takes the last time before an arrival that has the stamp's bits, so what it accumulates is from 0 to one range.
By how many ranges that is too little is known where no frame can be older than the run, or where the frames came in the order
of their numbers, and the delay of the first and of the last one is known by the schedule.

Stands alone: it is arithmetic, which `Traffic` and a bench's model share.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from liteprobe.cores.formats import TICK_NS
from liteprobe.host.measure.percentiles import Cells
from liteprobe.host.measure.streams import ReceivedStream
from liteprobe.host.traffic.due import DueTicks, UnknownDueError

ARC_PARTS = 4  # Delays that leave less than this part of the range free may be anything.
DRIFT = Fraction(2, 10**4)  # Bound of what a clock's servo does to a tick.


@dataclass(frozen=True)
class Departures:
    """Holds what is known of when the frames of a stream left.

    Parameters
    ----------
    start_ns : (int, int)
        Between what times the first tick of the program was.
    tick_ns : Fraction
    late_ticks : int or None
        By how much a frame left after its tick at the most; None: not known.
    is_numbered : bool
        Frames carry their numbers, and leave in their order, from the start on.
    is_steady : bool
        Nothing changes the clock's rate.
    """

    due: DueTicks
    start_ns: tuple[int, int]
    tick_ns: Fraction
    late_ticks: int | None
    is_numbered: bool
    is_steady: bool

    def delay_of(self, arrived_ns: int, first: int, last: int) -> tuple[Fraction, Fraction]:
        """Return between what the delay (ns) lies of a frame that is one of numbers ``first`` to ``last``."""
        assert self.late_ticks is not None
        least, most = (self.due.due(number) * self.tick_ns for number in (first, last))
        most += self.late_ticks * self.tick_ns
        error = Fraction(2 * TICK_NS) + (0 if self.is_steady else most * DRIFT)
        return arrived_ns - self.start_ns[1] - most - error, arrived_ns - self.start_ns[0] - least + error


@dataclass(frozen=True)
class Resolved:
    """Holds delays of which it is known what they are, or modulo what.

    Parameters
    ----------
    shift_ns : int
        To be added to what was accumulated.
    cells : Cells
        The delays; those that were read as short because they are past the end of the range are one range longer.
    wrapped : int
        How many those are; None: delays are all over the range.
    modulo_ns : int or None
        None: they are what they are.
    """

    cells: Cells
    shift_ns: int
    wrapped: int | None
    modulo_ns: int | None


def resolved(range_ns: int, unit_ns: int, came: ReceivedStream, cells: Cells, left: Departures) -> Resolved:
    """Return what the delays of a stream are, whose stamps have a range and a unit (ns)."""
    if came.last_stamp_ns - left.start_ns[0] + TICK_NS + unit_ns < range_ns:
        return Resolved(cells, 0, 0, None)  # No frame is older than the run.
    free = _free_arc(range_ns, came, cells)
    if free is None:
        return Resolved(Cells.of(()), 0, None, range_ns)
    is_past = cells.highs < free[0]
    past = int(cells.counts[is_past].sum()) if free[1] < came.delay_max_ns else 0
    if past:
        ahead = is_past * range_ns
        cells = Cells(cells.lows + ahead, cells.highs + ahead, cells.counts)
    ends = (int(cells.lows.min()), int(cells.highs.max())) if past else (came.delay_min_ns, came.delay_max_ns)
    ranges = _ranges(range_ns, unit_ns, ends, came, left)
    shift_ns = (ranges or 0) * range_ns
    return Resolved(
        Cells(cells.lows + shift_ns, cells.highs + shift_ns, cells.counts),
        shift_ns,
        past,
        range_ns if ranges is None else None,
    )


def _free_arc(range_ns: int, came: ReceivedStream, cells: Cells) -> tuple[int, int] | None:
    """Return where, between two delays, the widest part of the range is that no delay is in; None: it isn't wide enough."""
    around = range_ns - (came.delay_max_ns - came.delay_min_ns)
    found, best = (range_ns, range_ns), around
    if cells.total == came.frames and len(cells.counts):
        order = np.argsort(cells.lows)
        lows, highs = cells.lows[order].tolist(), np.maximum.accumulate(cells.highs[order]).tolist()
        for high, low in zip(highs, lows[1:], strict=False):
            if low - high > best:
                found, best = (high + 1, low), low - high
    return found if best * ARC_PARTS >= range_ns else None


def _ranges(range_ns: int, unit_ns: int, ends: tuple[int, int], came: ReceivedStream, left: Departures) -> int | None:
    """Return how many ranges are to be added to all delays; None: that isn't certain.

    Frames that come in order can't have a delay that falls by more than the time from one to the next. If that is less than what a
    fall into the range below takes, no frame is in a lower range than the one before it: so the first and the last one's say all.
    """
    if not left.is_numbered or left.late_ticks is None or came.lost is None:
        return None
    if came.reordered or came.duplicated or came.beyond_window:
        return None
    falls_ns = (left.due.gap_most * (came.lost + 1) + left.late_ticks) * left.tick_ns
    if falls_ns + unit_ns >= range_ns - (ends[1] - ends[0]):
        return None
    try:
        first = left.delay_of(came.first_stamp_ns, 0, came.lost)
        last = left.delay_of(came.last_stamp_ns, came.expected - 1, came.expected - 1)
    except UnknownDueError:
        return None
    found = set[int]()
    for least, most in (first, last):
        low, high = -((ends[1] + unit_ns - least) // range_ns), (most - ends[0] + unit_ns) // range_ns
        found |= {max(low, 0), max(high, 0)}
    return found.pop() if len(found) == 1 else None
