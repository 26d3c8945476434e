# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes values of the text of arguments: numbers with units, and files."""

import argparse
import os
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from liteprobe.host.base.output import STDOUT
from liteprobe.host.base.units import (
    DURATIONS,
    EXPONENT,
    PACKET_RATES,
    PER_CENT,
    PREFIXES,
    RATES,
    TIMES,
    Factors,
    Number,
    split,
)
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.cores import formats

OCTETS = re.compile(r"[0-9.]+\s*[kKmMgG]?i?(B|bytes?|Bytes?|octets?)(ps|/s|/sec)?")
NUMBERS_MOST = 10_000  # Of a list.
MOST = 10**300  # What a float holds.
PACE = "500M or 500Mbit/s (b/s), 100kpps (frames a second) or 50% (of the line)"


def _with_unit(text: str, units: Factors, what: str, example: str) -> Fraction:
    found = split(text, units, EXPONENT)
    if not found:
        bare = " has no unit, and" if split(text, {"": 1}, f"-?{EXPONENT}") else ""
        octets = "; octets a second are 8 times as many b/s" if OCTETS.fullmatch(text) and "rate" in what else ""
        raise argparse.ArgumentTypeError(f"'{text}'{bare} is not a {what}: write it like {example}{octets}")
    value = Fraction(found[0]) * found[1]
    if value > MOST:
        raise argparse.ArgumentTypeError(f"{what} {text} is out of range: give less")
    return value


def pace(text: str) -> dict[str, Number]:
    """Return how fast frames are sent, from text like ``500M``, ``100kpps`` or ``50%``, by its key of an interval."""
    if found := split(text, PER_CENT, EXPONENT):
        return {"share": Fraction(found[0]) * found[1]}
    if split(text, {"": 1, **RATES}, EXPONENT):
        return {"rate_bps": rate_bps(text)}
    return {"pps": float(_with_unit(text, {one: n for one, n in PACKET_RATES.items() if "pps" in one}, "rate", PACE))}


def rate_bps(text: str) -> float:
    """Return a rate (b/s) from text like ``500M``, ``500Mbit/s`` or ``50%`` of the line."""
    of_line = {"%": PER_CENT["%"] * formats.LINE_RATE_BPS} if text.endswith("%") else {}
    return float(_with_unit(text, {"": 1, **RATES, **of_line}, "rate", "500M, 500Mbit/s, 1G or 50%"))


def rate_or_share(text: str) -> float | Fraction:
    """Return a rate (b/s) from text like ``500M``, or a share of the line from text like ``50%``, as a fraction."""
    return pace(text)["share"] if text.endswith("%") else rate_bps(text)


def pps(text: str) -> float:
    """Return frames a second from text like ``20k`` or ``20kpps``."""
    return float(_with_unit(text, PACKET_RATES, "rate of frames", "20000, 20k or 20kpps"))


def share(text: str) -> Fraction:
    """Return a share of the line from per cent, like ``50`` or ``50%``."""
    return _with_unit(text, {**PER_CENT, "": PER_CENT["%"]}, "share", "50%")


def time_ns(text: str) -> float:
    """Return a time on the line (ns): a gap, a delay; text like ``1.5us``. A number alone is refused, unless it is 0."""
    return 0.0 if text == "0" else float(_with_unit(text, TIMES, "time", "1344ns or 1.5us"))


def duration_ns(text: str) -> float:
    """Return how long something lasts (ns), above 0, from text like ``10s`` or ``100ms``; a number alone is seconds."""
    found = span_ns(text)
    if found <= 0:
        raise argparse.ArgumentTypeError(f"{text} leaves no time: give one above 0, like 1ms")
    return found


def span_ns(text: str) -> float:
    """Return how long something lasts (ns), 0 or more, from text like ``10s``; a number alone is seconds."""
    return float(_with_unit(text, {**DURATIONS, "": TIMES["s"]}, "time", "10s, 100ms, 2h, or 10 for seconds"))


def whole(text: str) -> int:
    """Return a whole number, decimal or 0x hexadecimal, or like ``10k``."""
    try:
        return int(text, 0)
    except ValueError:
        found = split(text, PREFIXES, EXPONENT)
    value = Fraction(found[0]) * found[1] if found else None
    if value is None or value.denominator != 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number: write it like 10, 10k or 0x1f")
    return int(value)


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number: write it like 8 or 0.5") from None


class NumberRange(NamedTuple):
    """Whole numbers from the least to the most, in steps; a step of 0: none is given."""

    least: int
    most: int
    step: int = 0

    def less(self, number: int) -> "NumberRange":
        return NumberRange(self.least - number, self.most - number, self.step)

    @property
    def numbers(self) -> Sequence[int]:
        return range(self.least, self.most + 1, self.step or 1)


def spans(text: str) -> list[NumberRange]:
    """Return what a list with commas has: numbers and ranges, like ``1,4-6`` or, in steps, ``64-1514:50``."""
    items = text.split(",")
    if "" in items and len(items) > 1:
        raise argparse.ArgumentTypeError(f"'{text}' has an item too few: lists have commas, and no spaces")
    return [_span(item) for item in items]


def _span(text: str) -> NumberRange:
    match = re.fullmatch(r"([^-:]+)-([^-:]+)(?::([^-:]+))?", text)
    if not match:
        return NumberRange(*[whole(text)] * 2)
    least, most, step = (whole(one or "0") for one in match.groups())
    if least > most or (match[3] and step < 1):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a range: write it like 64-1514, or 64-1514:50 in steps of 50"
        )
    return NumberRange(least, most, step)


def wholes(text: str) -> list[int]:
    """Return whole numbers from a list of numbers and ranges."""
    found = spans(text)
    if sum(len(one.numbers) for one in found) > NUMBERS_MOST:
        raise argparse.ArgumentTypeError(f"'{text}' is more than {NUMBERS_MOST} numbers: give a step, like {text}:1000")
    return [number for one in found for number in one.numbers]


def lengths(text: str) -> list[int]:
    """Return lengths of frames (octets, without FCS) from a list."""
    if text.lower() == "imix":
        raise argparse.ArgumentTypeError("trains have one length at a time: 'liteprobe send --length imix' mixes them")
    return wholes(text)


def words(text: str) -> list[str]:
    """Return the words of a list with commas."""
    found = [word.strip() for word in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of words: write it like one,two")
    return found


def frame_sizes(text: str) -> list[int]:
    """Return lengths of frames without FCS from a list of sizes with it."""
    return [size - formats.FCS for size in lengths(text)]


def vlan_tags(text: str) -> list[int]:
    """Return the TCIs of VLAN tags from ids, 0 to 4095, each with its priority where it has one: ``100``, ``100:5``, ``7,100``."""
    return [_vlan_tag(item) for item in text.split(",")]


def _vlan_tag(text: str) -> int:
    name, colon, priority = text.partition(":")
    number, high = whole(name), whole(priority) if colon else 0
    if not (0 <= number < 1 << 12 and 0 <= high < 8):
        raise argparse.ArgumentTypeError(
            f"VLAN tag {text} is out of range: give an id, 0 to 4095, and its priority, 0 to 7, like 100:5"
        )
    return high << 13 | number


def output(text: str) -> Path:
    """Return the path of a file to write, sure that it can be written, before anything is measured."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"cannot write {text}, which is a folder: name a file in it")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"cannot write {text}: make the folder {path.parent} first, or name another one"
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"cannot write {text}: you have no permission there; name another file")
    return path


def output_or_stdout(text: str) -> Path:
    """Return the path of a file to write; ``-`` is stdout."""
    return STDOUT if text == str(STDOUT) else output(text)
