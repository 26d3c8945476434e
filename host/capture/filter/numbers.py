# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sets of numbers as ranges: addresses, ports, ids."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Numbers:
    """A set of numbers from 0 to ``size`` - 1: ranges with both ends in them, in order, none touching another."""

    size: int
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, size: int, ranges: Iterable[tuple[int, int]]) -> "Numbers":
        """Return the union of ranges."""
        found: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if found and low <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(found[-1][1], high))
            else:
                found.append((low, high))
        return cls(size, tuple(found))

    @classmethod
    def every(cls, size: int) -> "Numbers":
        """Return all of them."""
        return cls(size, ((0, size - 1),))

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self.ranges

    @property
    def is_every(self) -> bool:
        """Whether all are there."""
        return self.ranges == ((0, self.size - 1),)

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.ranges)

    def __invert__(self) -> "Numbers":
        edges = [-1, *(edge for ends in self.ranges for edge in ends), self.size]
        gaps = [(edges[place] + 1, edges[place + 1] - 1) for place in range(0, len(edges), 2)]
        return Numbers(self.size, tuple((low, high) for low, high in gaps if low <= high))

    def __or__(self, other: "Numbers") -> "Numbers":
        return Numbers.of(self.size, self.ranges + other.ranges)

    def __and__(self, other: "Numbers") -> "Numbers":
        common = [(max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges]
        return Numbers.of(self.size, [(low, high) for low, high in common if low <= high])

    def __le__(self, other: "Numbers") -> bool:
        return self & other == self
