# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Bandwidth traces: when a link can deliver octets, as Mahimahi writes them down."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.errors import UsageError

OPPORTUNITY = 1500  # Octets that a line stands for.
MS = 10**6
STAMP_MAX = 2**40  # 34 years.
TICKS_MAX = 2**32 - 1
OCTETS_MAX = 2**32 - 1


@dataclass(frozen=True)
class BandwidthTrace:
    """Opportunities to deliver octets; what isn't used of one is lost, and the trace repeats when its last one has passed.

    Parameters
    ----------
    stamps_ms : tuple of int
        Of the opportunities, ascending.
    octets : tuple of int
        Of each.
    name : str
        Of the file.
    """

    stamps_ms: tuple[int, ...]
    octets: tuple[int, ...]
    name: str = "trace"

    def __post_init__(self) -> None:
        if len(self.stamps_ms) != len(self.octets) or not self.stamps_ms:
            raise UsageError("a bandwidth trace needs one or more opportunities, each with its octets: give some")
        ascends = all(low < high for low, high in pairwise(self.stamps_ms))
        if not ascends or self.stamps_ms[0] < 0 or self.stamps_ms[-1] == 0:
            raise UsageError("the stamps of a bandwidth trace ascend from 0 ms, and the last is above 0: sort them")
        if min(self.octets) < 0 or max(self.octets) > OCTETS_MAX:
            raise UsageError(f"an opportunity has 0 to {OCTETS_MAX} octets: give fewer at once")

    @classmethod
    def from_file(cls, path: Path) -> "BandwidthTrace":
        """Return the trace of a file in the format of Mahimahi: a stamp in ms a line, for 1500 octets each.

        Raises
        ------
        UsageError
            With its line, where the file isn't one.
        """
        try:
            with path.open(encoding="utf-8") as file:
                return cls.from_lines(file, str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read {path} ({error}): name a trace of Mahimahi, a stamp in ms a line") from None

    @classmethod
    def from_lines(cls, lines: Iterable[str], name: str = "trace") -> "BandwidthTrace":
        """Return the trace of lines; the same stamp on several lines is one opportunity."""
        found: dict[int, int] = {}
        last = 0
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text.isascii() or not text.isdigit():
                raise UsageError(f"{name}:{number}: '{text[:40]}' is not a stamp: give whole milliseconds, one a line")
            stamp = int(text)
            if stamp > STAMP_MAX:
                raise UsageError(f"{name}:{number}: {stamp} ms is out of range: give {STAMP_MAX} ms at most")
            if stamp < last:
                raise UsageError(
                    f"{name}:{number}: {stamp} ms is before the {last} ms of the line above: sort the lines"
                )
            last = stamp
            found[stamp] = found.get(stamp, 0) + OPPORTUNITY
        if not found:
            raise UsageError(f"{name}:1: the file is empty: give a stamp in ms a line, each for {OPPORTUNITY} octets")
        if not last:
            raise UsageError(f"{name}:{number}: the last stamp is 0 ms, so the trace takes no time: give a later one")
        return cls(tuple(found), tuple(found.values()), name)

    @property
    def rate_bps(self) -> Fraction:
        """The mean rate."""
        return Fraction(8 * sum(self.octets) * 1000, self.stamps_ms[-1])

    @cached_property
    def _twice(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Its stamps, and again those of the next turn; what came before each, and in all."""
        stamps = np.array(self.stamps_ms, np.int64)
        sums = np.cumsum(np.array(self.octets * 2, np.int64))
        return np.concatenate([stamps, stamps + self.stamps_ms[-1]]), np.concatenate([[0], sums])

    def most_octets(self, time_ms: Fraction) -> int:
        """Return the most octets that opportunities within ``time_ms`` bring, both ends counted."""
        stamps, sums = self._twice
        count = len(self.stamps_ms)
        turns, rest = divmod(int(time_ms), self.stamps_ms[-1])
        ends = np.searchsorted(stamps, stamps[:count] + rest, side="right")
        return turns * int(sums[count]) + int((sums[ends] - sums[:count]).max())

    def words(self, ticks_per_ns: Fraction) -> list[int]:
        """Return its entries: ticks since the one before, octets. Rounding never adds up.

        Raises
        ------
        UsageError
            When a pause in it is longer than an entry can say.
        """
        ends = [round(stamp * MS * ticks_per_ns) for stamp in self.stamps_ms]
        words: list[int] = []
        for before, end, octets in zip([0, *ends], ends, self.octets, strict=False):
            if end - before > TICKS_MAX:
                most_ms = int(TICKS_MAX / ticks_per_ns / MS)
                raise UsageError(
                    f"{self.name} has a pause of {float((end - before) / ticks_per_ns) / MS:g} ms: give pauses of {most_ms} ms "
                    "at most"
                )
            words += [end - before, octets]
        return words
