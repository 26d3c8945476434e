# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Numbers that draws are compared with, and the states that they begin from."""

from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.intervals import Number, exact

WORD_MAX = 2**32 - 1


def share_word(share: Number) -> int:
    """Return a share in parts of 2^32; all ones is 1.

    Raises
    ------
    UsageError
        When it is so small that it would be never.
    """
    value = exact(share)
    word = WORD_MAX if value == 1 else min(round(value * 2**32), WORD_MAX - 1)
    if value and not word:
        raise UsageError(
            f"a share of {float(100 * value):g} % is out of range: give 0 %, or {100 / 2**32:.2g} % or more"
        )
    return word


def seed_of(seed: int, *parts: int) -> int:
    """Return the first state of draws, never 0: each of ``parts`` gives others.

    Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014 (SplitMix64).
    """
    state = _mixed(seed)
    for part in parts:
        state = _mixed(state ^ part)
    return state or 1


def _mixed(number: int) -> int:
    number = number + 0x9E3779B97F4A7C15 & 2**64 - 1
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    number = (number ^ number >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return number ^ number >> 31
