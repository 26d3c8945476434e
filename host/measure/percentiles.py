# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes percentiles of values that are known by the bins that they fell into: each has its bounds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from liteprobe.host.measure.monitor import BinSetting

LEAST, MOST = -(1 << 63), (1 << 63) - 1  # Of a value (ns).
BIN_BITS = 7  # Log-linear bins to an octave: 2^7.


@dataclass(frozen=True)
class Bounds:
    """A figure that lies between two values, both included."""

    least: float
    most: float

    @property
    def middle(self) -> float:
        return (self.least + self.most) / 2

    @property
    def error(self) -> float:
        """Greatest error of the middle."""
        return (self.most - self.least) / 2


class Measured(float):
    """A number that is known to lie between two bounds; the number itself is what is most likely, or the middle.

    >>> p99 = Measured.of(Bounds(4096, 4351))
    >>> p99, p99 < 5000, p99.bounds
    (4223.5, True, Bounds(least=4096, most=4351))
    """

    bounds: Bounds

    def __new__(cls, value: float, bounds: Bounds) -> "Measured":
        made = super().__new__(cls, value)
        made.bounds = bounds
        return made

    def __getnewargs__(self) -> tuple[float, Bounds]:  # type: ignore[override]
        return float(self), self.bounds

    @staticmethod
    def of(value: Any) -> "Measured | None":
        """Return a figure with its bounds, which are its own value where it is exact; None where it isn't a number."""
        if isinstance(value, Measured):
            return value
        if isinstance(value, Bounds):
            return Measured(value.middle, value)
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            return None
        number = float(value)
        return Measured(number, Bounds(number, number))


@dataclass(frozen=True)
class Cells:
    """Values of which each is known to lie within one of these intervals."""

    #: ``lows``, ``highs``: shape (cells,): ends of each interval, both included (ns).
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    counts: NDArray[np.int64]  # Shape (cells,): values that lie in it, 1 at least.

    @staticmethod
    def of(cells: Iterable[tuple[int, int, int]]) -> "Cells":
        """Return cells of low, high and count; those without values are left out."""
        table = np.array([cell for cell in cells if cell[2]], np.int64).reshape(-1, 3)
        return Cells(table[:, 0], table[:, 1], table[:, 2])

    @staticmethod
    def of_bins(setting: BinSetting, counts: NDArray[np.int64]) -> "Cells":
        """Return the cells of a histogram: "below", the regular bins, "above"."""
        edges = setting.origin + (np.arange(len(counts) - 1, dtype=np.int64) << setting.shift)
        lows, highs = np.append(LEAST, edges), np.append(edges - 1, MOST)
        has_values = counts > 0
        return Cells(lows[has_values], highs[has_values], counts[has_values])

    @staticmethod
    def of_values(values: ArrayLike) -> "Cells":
        """Return values (ns) that are known one by one, shape (values,), in log-linear bins: `log_linear`."""
        found = np.asarray(values, np.int64).reshape(-1)
        return Cells(found, found, np.ones(len(found), np.int64)).log_linear()

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def log_linear(self) -> "Cells":
        """Return the cells in order, each within a log-linear bin made that bin, and those that are alike made one.

        Below 256 ns a bin is 1 ns wide. Above, each octave has 128 bins of one width. Negative values have the same bins. So
        a bin is no wider than 1/128 of its values, and histograms of any time merge by adding what is in the same bin. A
        cell that is wider than the bins there stays as it is.

        >>> cells = Cells.of([(1000, 1000, 2), (1003, 1003, 1), (1000, 1999, 5), (-2, -2, 1)]).log_linear()
        >>> list(zip(cells.lows.tolist(), cells.highs.tolist(), cells.counts.tolist()))
        [(-2, -2, 1), (1000, 1003, 3), (1000, 1999, 5)]
        """
        lows, highs = _bin_of(self.lows)
        is_within = self.highs <= highs
        lows, highs = np.where(is_within, lows, self.lows), np.where(is_within, highs, self.highs)
        order = np.lexsort((highs, lows))
        lows, highs, counts = lows[order], highs[order], self.counts[order]
        is_first = np.ones(len(lows), np.bool_)
        is_first[1:] = (lows[1:] != lows[:-1]) | (highs[1:] != highs[:-1])
        firsts = np.flatnonzero(is_first)
        return Cells(lows[firsts], highs[firsts], np.add.reduceat(counts, firsts) if len(firsts) else counts)

    def and_those(self, *more: "Cells") -> "Cells":
        parts = (self, *more)
        lows, highs, counts = (
            np.concatenate([getattr(one, name) for one in parts]) for name in ("lows", "highs", "counts")
        )
        return Cells(lows, highs, counts)

    def within(self, least: int, most: int) -> "Cells":
        """Return the same cells, cut to where no value is less than ``least`` or greater than ``most``."""
        return Cells(np.clip(self.lows, least, most), np.clip(self.highs, least, most), self.counts)

    def percentile(self, percent: float) -> Bounds | None:
        """Return between what the least value lies that at least ``percent`` of all do not exceed; None without values.

        Source: RFC 2330, section 11.3 (empirical distribution function).
        """
        if not len(self.counts):
            return None
        rank = max(1, math.ceil(Fraction(str(percent)) * self.total / 100))
        return Bounds(_at_rank(self.lows, self.counts, rank), _at_rank(self.highs, self.counts, rank))

    def distribution(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return values (ns) in order, and for each the least and the greatest share of delays up to it."""
        at = np.unique(np.concatenate([self.lows, self.highs]))
        shares = []
        for ends in (self.highs, self.lows):
            order = np.argsort(ends)
            below = np.append(0, np.cumsum(self.counts[order]))
            shares.append(below[np.searchsorted(ends[order], at, side="right")] / max(self.total, 1))
        return at.astype(np.float64), shares[0], shares[1]


def _bin_of(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends of the log-linear bin that each value is in, both included (ns)."""
    sizes = np.where(values < 0, ~values, values)  # -1 is in the bin 0 of the other side.
    # Bits of each size: of its upper ones where a double can't hold all.
    bits = np.where(
        sizes >> 52, 11 + np.frexp((sizes >> 11).astype(np.float64))[1], np.frexp(sizes.astype(np.float64))[1]
    )
    shifts = np.maximum(bits - 1 - BIN_BITS, 0).astype(np.int64)
    lows = values >> shifts << shifts
    return lows, lows + (np.int64(1) << shifts) - 1


def _at_rank(values: NDArray[np.int64], counts: NDArray[np.int64], rank: int) -> float:
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(counts[order]), rank)])
