# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes values of the text of arguments: numbers with units, and files."""

import argparse
import os
from pathlib import Path

from liteprobe.host.base.output import STDOUT
from liteprobe.host.base.units import DURATIONS, EXPONENT, PREFIXES, TIMES, Factors, split


def _with_unit(text: str, units: Factors, what: str, example: str) -> float:
    found = split(text, units, EXPONENT)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not a {what}: write it like {example}")
    return float(found[0]) * int(found[1])


def rate_bps(text: str) -> float:
    """Return a rate (b/s) from text like ``500M``."""
    return _with_unit(text, PREFIXES, "rate", "500M, 1G or 123456789")


def time_ns(text: str) -> float:
    """Return a time on the line (ns): a gap, a delay; text like ``1.5us``, or ``1344`` for nanoseconds."""
    return _with_unit(text, {**TIMES, "": TIMES["ns"]}, "time", "1344, 1344ns or 1.5us")


def duration_ns(text: str) -> float:
    """Return how long something lasts (ns), above 0, from text like ``10s`` or ``100ms``; a number alone is seconds."""
    found = span_ns(text)
    if found <= 0:
        raise argparse.ArgumentTypeError(f"{text} leaves no time: give one above 0, like 1ms")
    return found


def span_ns(text: str) -> float:
    """Return how long something lasts (ns), 0 or more, from text like ``10s``; a number alone is seconds."""
    return _with_unit(text, {**DURATIONS, "": TIMES["s"]}, "time", "10s, 100ms, 2h, or 10 for seconds")


def whole(text: str) -> int:
    """Return a whole number, decimal or 0x hexadecimal."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number: write it like 10 or 0x1f") from None


def number(text: str) -> float:
    """Return a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number: write it like 8 or 0.5") from None


def wholes(text: str) -> list[int]:
    """Return whole numbers from a list with commas."""
    return [whole(item) for item in text.split(",")]


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
