# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""How long the frames of a stream are: always the same, in steps, at random or by a table. Octets without FCS."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import LIST_ENTRIES_MAX, MAX_LENGTH, MIN_LENGTH
from liteprobe.host.errors import UsageError

STEP_MAX = 2**14 - 1


def _check_length(name: str, length: int) -> None:
    if not MIN_LENGTH <= length <= MAX_LENGTH:
        raise UsageError(f"{name} {length} is out of range: give {MIN_LENGTH} to {MAX_LENGTH} octets without FCS")


def _check_order(least: int, greatest: int) -> None:
    _check_length("least length", least)
    _check_length("greatest length", greatest)
    if least > greatest:
        raise UsageError(f"the least length {least} is above the greatest, {greatest}: exchange them")


@dataclass(frozen=True)
class Fixed:
    """All frames have the same length.

    Parameters
    ----------
    length : int
        60 to 9000.
    """

    length: int

    def __post_init__(self) -> None:
        _check_length("length", self.length)

    @property
    def least(self) -> int:
        """Length of the shortest frame."""
        return self.length

    @property
    def greatest(self) -> int:
        """Length of the longest frame."""
        return self.length

    @property
    def cycle(self) -> tuple[int, ...]:
        """Lengths until they come again."""
        return (self.length,)

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(self.length)


@dataclass(frozen=True)
class Stepped:
    """Each frame is ``step`` longer than the one before; the least length follows when that were above the greatest.

    Parameters
    ----------
    least, greatest : int
        60 to 9000.
    step : int
        1 to 16383.
    """

    least: int
    greatest: int
    step: int = 1

    def __post_init__(self) -> None:
        _check_order(self.least, self.greatest)
        if not 1 <= self.step <= STEP_MAX:
            raise UsageError(f"step {self.step} of the length is out of range: give 1 to {STEP_MAX}")

    @property
    def cycle(self) -> tuple[int, ...]:
        """Lengths until they come again."""
        return tuple(range(self.least, self.greatest + 1, self.step))

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(sum(self.cycle), len(self.cycle))


@dataclass(frozen=True)
class RandomLength:
    """Each length from the least to the greatest is as likely as any other.

    Limits: 2^16 values of a random number are shared by the lengths, so that one is at most 1/7 likelier than another.

    Parameters
    ----------
    least, greatest : int
        60 to 9000.
    """

    least: int
    greatest: int

    def __post_init__(self) -> None:
        _check_order(self.least, self.greatest)

    @property
    def cycle(self) -> None:
        """None: they come in no order."""
        return None

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(self.least + self.greatest, 2)


@dataclass(frozen=True)
class Lengths:
    """Frames have the lengths of a table, from its first to its last and again, or drawn at random.

    Parameters
    ----------
    entries : tuple of int
        1 to 64 lengths, 60 to 9000 each; one that comes n times is n times as frequent. See ``weighted``.
    random : bool
        Each frame draws an entry.
    """

    entries: tuple[int, ...]
    random: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.entries) <= LIST_ENTRIES_MAX:
            raise UsageError(f"a table of {len(self.entries)} lengths is out of range: give 1 to {LIST_ENTRIES_MAX}")
        for length in self.entries:
            _check_length("length", length)

    @property
    def least(self) -> int:
        """Length of the shortest frame."""
        return min(self.entries)

    @property
    def greatest(self) -> int:
        """Length of the longest frame."""
        return max(self.entries)

    @property
    def cycle(self) -> tuple[int, ...] | None:
        """Lengths until they come again; None: they are drawn."""
        return None if self.random else self.entries

    @property
    def mean(self) -> Fraction:
        """Mean length."""
        return Fraction(sum(self.entries), len(self.entries))


Length = Fixed | Stepped | RandomLength | Lengths


def weighted(weights: Mapping[int, int], random: bool = False) -> Lengths:
    """Return the table in which each length comes as often as its weight says, spread as evenly as can be.

    Parameters
    ----------
    weights : mapping
        Length (octets without FCS) to weight, 1 or more; divided by their greatest common divisor they add up to 64 at most.
    random : bool
        Each frame draws an entry.
    """
    if any(weight < 1 for weight in weights.values()):
        raise UsageError(
            f"a weight of {min(weights.values())} is out of range: give 1 or more, or leave the length out"
        )
    divisor = math.gcd(*weights.values()) if weights else 1
    counts = {length: weight // divisor for length, weight in weights.items()}
    total = sum(counts.values())
    if total > LIST_ENTRIES_MAX:
        raise UsageError(f"weights add up to {total} entries: give smaller ones, {LIST_ENTRIES_MAX} at most in all")
    # Each turn all gain their weight, and the one with most pays for the turn.
    credit = dict.fromkeys(counts, 0)
    entries = []
    for _ in range(total):
        for length, count in counts.items():
            credit[length] += count
        richest = max(credit, key=credit.__getitem__)
        credit[richest] -= total
        entries.append(richest)
    return Lengths(tuple(entries), random)


#: The simple Internet mix, 7 : 4 : 1 packets of IP of 40 (padded to the shortest frame), 576 and 1500 octets.
IMIX = weighted({60: 7, 590: 4, 1514: 1})
