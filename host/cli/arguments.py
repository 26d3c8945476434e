# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments that several commands share, and how numbers with units are read."""

import argparse
import os
import re
from pathlib import Path
from typing import NoReturn

from liteprobe.host.errors import UsageError

PROBE_VARIABLE = "LITEPROBE_PROBE"
DEFAULT_PROBE = "sim://loopback"
RATE_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
TIME_UNITS_NS = {"": 1, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with the next step."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing the whole usage."""
        raise UsageError(f"{message}; see: {self.prog} --help")


def _with_unit(text: str, units: dict[str, int], what: str, example: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)\s*([A-Za-z]*)", text)
    if not match or match[2] not in units:
        raise argparse.ArgumentTypeError(f"'{text}' is no {what}: write it like {example}")
    return float(match[1]) * units[match[2]]


def rate_bps(text: str) -> float:
    """Return a rate (b/s) from text like ``500M``."""
    return _with_unit(text, RATE_UNITS, "rate", "500M, 1G or 123456789")


def time_ns(text: str) -> float:
    """Return a time (ns) from text like ``1.5us`` or ``1344``."""
    return _with_unit(text, TIME_UNITS_NS, "time", "1344, 1344ns or 1.5us")


def whole(text: str) -> int:
    """Return a whole number, decimal or 0x hexadecimal."""
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number") from None


def wholes(text: str) -> list[int]:
    """Return whole numbers from a list with commas."""
    return [whole(item) for item in text.split(",")]


def output(text: str) -> Path:
    """Return the path of a file to write, sure that its folder is there, before anything is measured."""
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"can't write {text}: give a file in a folder that exists")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(f"can't write {text}: no permission")
    return path


def add_probe(parser: argparse.ArgumentParser) -> None:
    """Add what says which probe is meant."""
    group = parser.add_argument_group("probe")
    group.add_argument(
        "--probe",
        metavar="URL",
        default=os.environ.get(PROBE_VARIABLE, DEFAULT_PROBE),
        help="sim://loopback, sim://cable?delay=1us, sim://switch?latency=3us&rate=1G, etherbone://HOST[:PORT], "
        f"pcie:///dev/litepcie0 or uart:///dev/ttyUSB0 (default: {PROBE_VARIABLE}, or {DEFAULT_PROBE})",
    )
    group.add_argument("--map", metavar="FILE", type=Path, help="register map (csr.json) of the build that runs")


def add_ports(parser: argparse.ArgumentParser) -> None:
    """Add which ports send and receive."""
    group = parser.add_argument_group("ports")
    group.add_argument("--transmit", metavar="PORT", type=whole, default=0, help="port that sends (default: 0)")
    group.add_argument(
        "--receive", metavar="PORT", type=whole, help="port that measures (default: the one that the wire leads to)"
    )
