# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Which blocks of a channel follow one another: numbers into runs, with a count of everything that is not as sent.

Source: docs/design/monitor.md ("Block").
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

LEAP = 1 << 16  # Blocks: a step further than that is not a loss (it would be 100 MB), the numbers began anew.
WRAP = 1 << 32
REMEMBERED = 4096  # Numbers of missing blocks, to tell a late block from a repeated one.


@dataclass
class OrderCounters:
    """What became of blocks.

    Attributes
    ----------
    missing : int
        Numbers that were passed over; late ones are among them.
    repeated : int
        Blocks that had come before: refused.
    late : int
        Blocks that came after their place was given up: refused.
    out_of_order : int
        Blocks that came after a later one, and could still be put into their place.
    restarts : int
        Times that the numbers began anew.
    """

    missing: int = 0
    repeated: int = 0
    late: int = 0
    out_of_order: int = 0
    restarts: int = 0


@dataclass(frozen=True)
class Run:
    """Blocks that follow one another: indices into what came, and whether they go on from the last run."""

    blocks: NDArray[np.int64]
    goes_on: bool
    is_new: bool = False  # The numbers began anew.


@dataclass
class Order:
    """The numbers of one channel.

    Attributes
    ----------
    expected : int or None
        Number of the next block; None before the first.
    """

    counters: OrderCounters
    expected: int | None = None
    _missing: dict[int, None] = field(default_factory=dict)

    def runs(self, numbers: NDArray[np.uint32]) -> Iterator[Run]:
        """Yield runs of the blocks with these ``numbers``, in the order in which they came."""
        if not len(numbers):
            return
        before = numbers[0] if self.expected is None else np.uint32(self.expected)
        steps = np.diff(numbers, prepend=before).view(np.int32).astype(np.int64)
        cuts = np.flatnonzero(np.abs(steps) > LEAP)
        for place, part in zip([0, *cuts.tolist()], np.split(np.arange(len(numbers)), cuts), strict=True):
            if not len(part):
                continue
            is_leap = bool(abs(int(steps[place])) > LEAP)
            if is_leap:
                self.counters.restarts += 1
                self.expected = None
                self._missing.clear()
            yield from self._near(numbers, part, is_leap)

    def _near(self, numbers: NDArray[np.uint32], part: NDArray[np.int64], is_new: bool) -> Iterator[Run]:
        """Yield runs of blocks whose numbers are close to one another."""
        first = int(numbers[part[0]]) if self.expected is None else self.expected
        ahead = (numbers[part] - np.uint32(first)).view(np.int32).astype(np.int64)
        if self.expected is None and (least := int(ahead.min())) < 0:
            first = (first + least) % WRAP
            ahead -= least
        is_behind = ahead < 0
        if is_behind.any():
            self._refuse(numbers[part[is_behind]])
            part, ahead = part[~is_behind], ahead[~is_behind]
        if not len(part):
            return
        if (np.diff(ahead) <= 0).any():
            order = self._sort(ahead)
            part, ahead = part[order], ahead[order]
        jumps = np.diff(ahead, prepend=-1) - 1
        self._miss(first, ahead, jumps)
        self.expected = (first + int(ahead[-1]) + 1) % WRAP
        for number, run in enumerate(np.split(part, np.flatnonzero(jumps[1:]) + 1)):
            yield Run(run, goes_on=number == 0 and jumps[0] == 0 and not is_new, is_new=is_new and number == 0)

    def _sort(self, ahead: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first copy of each block, in order."""
        order = np.argsort(ahead, kind="stable")
        order = order[np.diff(ahead[order], prepend=-1) > 0]
        self.counters.repeated += len(ahead) - len(order)
        as_they_came = ahead[np.sort(order)]
        self.counters.out_of_order += int(np.count_nonzero(as_they_came < np.maximum.accumulate(as_they_came)))
        return order

    def _refuse(self, numbers: NDArray[np.uint32]) -> None:
        for number in numbers.tolist():
            if number in self._missing:
                del self._missing[number]
                self.counters.late += 1
            else:
                self.counters.repeated += 1

    def _miss(self, first: int, ahead: NDArray[np.int64], jumps: NDArray[np.int64]) -> None:
        for place in np.flatnonzero(jumps).tolist():
            count = int(jumps[place])
            self.counters.missing += count
            for step in range(int(ahead[place]) - min(count, REMEMBERED), int(ahead[place])):
                self._missing[(first + step) % WRAP] = None
        while len(self._missing) > REMEMBERED:
            del self._missing[next(iter(self._missing))]
