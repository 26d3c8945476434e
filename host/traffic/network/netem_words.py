# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads words as tc has them: options, times, rates, per cent.

Source: tc(8), "UNITS"; lib/utils.c of iproute2.
"""

import re
from collections.abc import Iterable
from fractions import Fraction

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import WAIT_MAX
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.nearest import nearest

WORD_LEAST = 3  # Letters of an option that are taken for the whole word.
TIMES = {
    "s": 10**9,
    "sec": 10**9,
    "ms": 10**6,
    "msec": 10**6,
    "": 10**3,
    "us": 10**3,
    "usec": 10**3,
    "ns": 1,
    "nsec": 1,
}
PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
RATES = {
    "": 1,
    **{f"{prefix}bit": factor for prefix, factor in PREFIXES.items()},
    **{f"{prefix}bps": 8 * factor for prefix, factor in PREFIXES.items()},  # Octets a second.
}


class NetemWords:
    """The words of one direction, taken from the first to the last.

    Parameters
    ----------
    text : str
        What comes up to the word ``netem`` is skipped.
    """

    def __init__(self, text: str) -> None:
        words = text.split()
        self._words = words[words.index("netem") + 1 :] if "netem" in words else words
        self._next = 0

    @property
    def following(self) -> str:
        """The next word, "" behind the last."""
        return self._words[self._next] if self._next < len(self._words) else ""

    @property
    def has_number(self) -> bool:
        """Whether a number follows."""
        return bool(re.match(r"[-+.]?[0-9]", self.following))

    def skip(self, *words: str) -> str:
        """Take the next word where it is one of these; return it, else ""."""
        return self.word("") if self.following in words else ""

    def option(self, options: Iterable[str]) -> str:
        """Return the next option; three letters or more of one are enough, where they are no other's."""
        word = self.word("an option")
        names = tuple(options)
        close = [name for name in names if len(word) >= WORD_LEAST and name.startswith(word)]
        if word not in names and len(close) != 1:
            raise UsageError(f"netem has no option '{word}': {nearest(word, names)}")
        return word if word in names else close[0]

    def word(self, what: str) -> str:
        """Return the next word; ``what``: what it is, for messages."""
        if self._next >= len(self._words):
            raise UsageError(f"netem's words end where {what} is missing: give it")
        self._next += 1
        return self._words[self._next - 1]

    def time_ns(self, what: str) -> Fraction:
        """Return a time (ns)."""
        time_ns = self._quantity(what, TIMES, "a time like 20ms; without a unit it is us")
        if time_ns >= WAIT_MAX * TICK_NS:
            raise UsageError(f"{what} of {float(time_ns / 10**9):g} s is out of range: give less than 8.59 s")
        return time_ns

    def rate_bps(self) -> Fraction:
        """Return a rate (b/s)."""
        if self.following.endswith("%"):
            raise UsageError(
                f"a rate of '{self.following}' is a share of an interface that isn't known here: give b/s, like 10mbit"
            )
        return self._quantity("a rate", RATES, "a rate like 10mbit; without a unit it is b/s")

    def share(self, what: str) -> Fraction:
        """Return per cent as a share."""
        share = self._quantity(what, {"": 1, "%": 1}, "per cent, like 1%") / 100
        if share > 1:
            raise UsageError(f"{what} of {float(100 * share):g} % is out of range: give 0% to 100%")
        return share

    def whole(self, what: str, most: int) -> int:
        """Return a whole number up to ``most``."""
        word = self.word(what).lower()
        number = int(word, 0 if word.startswith("0x") else 10) if re.fullmatch("[0-9]+|0x[0-9a-f]+", word) else -1
        if not 0 <= number <= most:
            raise UsageError(f"'{word}' is not {what} of netem: give a whole number, 0 to {most}")
        return number

    def _quantity(self, what: str, units: dict[str, int], form: str) -> Fraction:
        word = self.word(what)
        match = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)([a-z%]*)", word.lower())
        unit = match[2] if match else ""
        unit = unit.removesuffix("s") if unit.endswith("secs") else unit
        if not match or unit not in units:
            raise UsageError(f"'{word}' is not {what} of netem: give {form}")
        return Fraction(match[1]) * units[unit]
