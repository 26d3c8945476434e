# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads and writes numbers with units, exactly: documents, the command line, netem's words and URLs have them from here."""

import math
import re
from collections.abc import Mapping
from fractions import Fraction

from liteprobe.host.base.errors import UsageError

Number = int | float | Fraction
Factors = Mapping[str, int | Fraction]

TIMES: Factors = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}  # In ns.
#: Of what lasts, and not of what is on a line.
DURATIONS: Factors = {**TIMES, "min": 60 * TIMES["s"], "h": 3600 * TIMES["s"]}
PREFIXES: Factors = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
BITS: Factors = {f"{prefix}bit": factor for prefix, factor in PREFIXES.items()}  # In b/s.
RATES: Factors = {**BITS, **{prefix: factor for prefix, factor in PREFIXES.items() if prefix}}
PACKET_RATES: Factors = {**PREFIXES, **{f"{prefix}pps": factor for prefix, factor in PREFIXES.items()}}
PER_CENT: Factors = {"%": Fraction(1, 100)}
#: Other words for units, as a pattern, and the unit they stand for: what iperf, tc and TRex take, and both signs for micro.
OTHERS = {
    "nsecs?": "ns", "[µμ]s|[uµμ]secs?": "us", "msecs?": "ms", "secs?|seconds?": "s", "mins|minutes?": "min", "hours?": "h",
    "K": "k", "m": "M", "g": "G", "([kKmMgG]i?)?(?:b|[bB](?:its?|ITS?))(?:[p/]s(?:ec)?)?(?:[lL]1)?": "bit",
    "([kKmMgG])?(?:pps|fps|p/s|packets/s)": "pps",
}  # fmt: skip
_SIZES = {f"{letter}{i}": base**n for n, letter in enumerate("kmg", 1) for i, base in (("", 1000), ("i", 1024))}
#: Units of tc(8), in lower case: times in ns, rates in b/s (``bps``: octets a second).
TC_TIMES: Factors = {"": TIMES["us"], **TIMES, **{f"{unit}ec": size for unit, size in TIMES.items()}}
_TC_SIZES = {"": 1} | {letter: 1000**n for n, letter in enumerate("kmgt", 1)}
_TC_PREFIXES = _TC_SIZES | {f"{letter}i": 1024**n for n, letter in enumerate("kmgt", 1)}
_TC_WORDS = {"bit": 1, "bps": 8}
TC_RATES: Factors = {"": 1} | {p + word: n * size for word, n in _TC_WORDS.items() for p, size in _TC_PREFIXES.items()}

DECIMAL = r"[0-9]{1,99}(?:\.[0-9]{1,99})?"  # Python makes no number of thousands of digits.
EXPONENT = r"[0-9]{1,99}(?:\.[0-9]{0,99})?(?:e[+-]?[0-9]{1,3})?"  # As the command line takes it.
TC_DECIMAL = r"[0-9]{1,99}\.?[0-9]{0,99}|\.[0-9]{1,99}"
WHOLE = r"[0-9]{1,99}|0x[0-9a-fA-F]{1,99}"
DIGITS = 12  # After the point.


def exact(number: Number) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth; raises UsageError when it is infinite, or not a number."""
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError(f"{number} can't be counted with: give a finite number")
    return number if isinstance(number, Fraction) else Fraction(str(number))


def split(
    text: str, factors: Factors, number: str = DECIMAL, others: Mapping[str, str] = OTHERS
) -> tuple[str, int | Fraction] | None:
    """Return the digits of a number and the size of its unit; None where ``text`` is not one with one of these units.

    ``others``: other words for units that are taken; tc has its own.
    """
    match = re.fullmatch(rf"({number})\s*([A-Za-z/%µμ]*[0-9]?)", text)
    size = _size(match[2], factors, others) if match else None
    return (match[1], size) if match and size is not None else None


def _size(word: str, factors: Factors, others: Mapping[str, str]) -> int | Fraction | None:
    """Return the size of the unit that a word stands for, or None."""
    if word in factors:
        return factors[word]
    for pattern, unit in others.items():
        if unit in factors and (found := re.fullmatch(pattern, word)):
            return factors[unit] * (_SIZES[found[1].lower()] if found.groups() and found[1] else 1)
    return None


def pattern_of(factors: Factors) -> str:
    """Return a pattern of the units of a table, and of the other words for them."""
    return "|".join([*filter(None, factors), *(pattern for pattern, unit in OTHERS.items() if unit in factors)])


def quantity(text: str, factors: Factors) -> Fraction | None:
    """Return a number with one of these units, 0x hexadecimal or below 0, too; None where ``text`` is none."""
    if found := re.fullmatch(r"(-?)(0x[0-9a-fA-F]{1,32})", text):
        return Fraction(int(found[1] + found[2], 16))
    parts = split(text, factors, f"-?{EXPONENT}")
    return Fraction(parts[0]) * parts[1] if parts else None


def with_unit(number: Number, factors: Factors, digits: int = DIGITS, is_whole: bool = False) -> str:
    """Return a number with the largest unit in which it is 1 or more; ``is_whole``: in which it is a whole number."""
    value = exact(number)
    unit, size = fitting(value, factors, is_whole)
    return decimal(value / size, digits) + unit


def fitting(number: Number, factors: Factors, is_whole: bool = False) -> tuple[str, int | Fraction]:
    """Return the largest unit in which a number is 1 or more, and its size; ``is_whole``: in which it is a whole number."""
    fits = [unit for unit, size in factors.items() if (number % size == 0 if is_whole else number >= size)]
    unit = max(fits or [min(factors, key=factors.__getitem__)], key=factors.__getitem__)
    return unit, factors[unit]


def decimal(value: Fraction, digits: int = DIGITS) -> str:
    """Return a number in decimal, rounded to so many digits after the point."""
    whole, rest = divmod(round(value * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".")


def time_text(time_ns: Number) -> str:
    """Return a time (ns) with its unit."""
    return with_unit(time_ns, TIMES)


def rate_text(rate_bps: Number) -> str:
    """Return a rate (b/s) with its unit."""
    return with_unit(rate_bps, BITS)


def line_text(rate_bps: Number) -> str:
    """Return a rate (b/s) as reports have it: ``10 Mb/s``."""
    return with_unit(rate_bps, {f" {unit.removesuffix('bit')}b/s": scale for unit, scale in BITS.items()})


def share_text(share: Number) -> str:
    """Return a share as per cent."""
    return with_unit(share, PER_CENT)
