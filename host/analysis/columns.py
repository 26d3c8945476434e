# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes the figures of results once, for tables, pages, JSON and metrics: name, unit, digits, error, a dash where unknown.

Each kind of result lists its columns beside its rows; terminal and pages choose among them, and only word what is their own.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from liteprobe.host.base.units import TIMES, fitting

NONE = "-"
MEGA = 1e6
#: How runs end, for tables and pages.
ENDS = {
    "": "not started",
    "running": "still running",
    "sent": "all was sent",
    "done": "stopped after its time",
    "finished": "stopped when its stations had done all",
    "stopped": "stopped",
    "interrupted": "interrupted",
    "detached": "left running",
}


def ended(seconds: float, end: str, is_complete: bool = True) -> str:
    """Return within or after which time a run ended, and how, in words; ``end``: one of `ENDS`."""
    time = time_text(1e9 * seconds)
    said = f"All was sent within {time}" if end == "sent" else f"{time}, {ENDS[end]}"
    return f"{said}{'' if is_complete else ', incomplete'}"


def time_text(time_ns: float) -> str:
    """Return a time in the unit that shows it with one digit or more before the point."""
    unit, size = fitting(abs(time_ns), TIMES)
    return f"{time_ns / float(size):,.{0 if size == 1 else 3}f} {unit.replace('u', 'µ')}"


def shown(value: Any, digits: int = 0, scale: float = 1.0) -> str:
    """Return a figure over ``scale``: thousands apart, with its error where it has one and the digits show it, else a dash."""
    if value is None or isinstance(value, str):
        return NONE if value is None else value
    if isinstance(value, int) and not digits and scale == 1.0:
        return f"{value:,}"
    if isinstance(value, int | float):
        return _fixed(value / scale, digits) if math.isfinite(value) else NONE
    middle, error = _fixed(value.middle / scale, digits), _fixed(value.error / scale, digits)
    return middle if _is_zero(error) else f"{middle}±{error}"


def _fixed(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if _is_zero(text) else text


def _is_zero(text: str) -> bool:
    return not text.strip("-0.,")


@dataclass(frozen=True)
class Column:
    """Describes a figure of a row."""

    key: str  # Of JSON, and of the row's attribute unless ``of`` says how it is found.
    #: ``head``, ``title``: of a terminal's column, and of a page's; empty: it is in none there.
    head: str = ""
    title: str = ""
    digits: int = 0  # Behind the point.
    scale: float = 1.0  # By which the value is divided for a reader: 1e6 for Mb/s.
    is_fault: bool = False  # Anything but 0 is a fault.
    #: Of the figures as they are shown, where the head doesn't say it; columns of one unit stand together.
    unit: str = ""
    #: Returns the value of a row: a count, a number, `percentiles.Bounds`, a text, None where it is not known.
    of: Callable[[Any], Any] | None = None
    #: ``metric``, ``about``: name in Prometheus, which ends in the base unit, and what it says there; empty: it is none.
    metric: str = ""
    about: str = ""

    def value(self, row: Any) -> Any:
        return self.of(row) if self.of else getattr(row, self.key)

    def text(self, row: Any) -> str:
        """Return the figure of a row as a reader sees it."""
        return shown(self.value(row), self.digits, self.scale)

    def plain(self, row: Any) -> Any:
        """Return the value of a row as JSON has it: bounds as a list of two, null for what is not a number."""
        value = self.value(row)
        if hasattr(value, "least") and hasattr(value, "most"):
            return [value.least, value.most]
        return None if isinstance(value, float) and not math.isfinite(value) else value


class Columns(Mapping[str, Column]):
    """Holds the columns of a kind of row, by their keys, in the order of JSON."""

    def __init__(self, *columns: Column) -> None:
        self._columns = {column.key: column for column in columns}

    def __getitem__(self, key: str) -> Column:
        return self._columns[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def of(self, keys: str) -> list[Column]:
        return [self._columns[key] for key in keys.split()]

    def known(self, rows: Sequence[Any], keys: str, if_any: str) -> list[Column]:
        """Return these columns; those of ``if_any`` only where a row has a figure for them."""
        return [
            one
            for one in self.of(keys)
            if one.key not in if_any.split() or any(one.value(row) is not None for row in rows)
        ]

    def document(self, row: Any, keys: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the values of a row as what JSON can hold."""
        return {key: self._columns[key].plain(row) for key in keys or self}


def delays(of: Callable[[Any], Mapping[str, Any] | None], modulo: bool = False) -> Columns:
    """Return the columns of a sample of delays (ns); ``of``: what a row has of these, by key, None where it has none.

    ``modulo``: they may be known modulo the range of a stamp alone.
    """

    def column(key: str, head: str, title: str, digits: int = 0) -> Column:
        return Column(key, head, title, digits, of=lambda row: None if (found := of(row)) is None else found[key])

    return Columns(
        column("least", "least", "Least"),
        column("mean", "mean", "Mean", 1),
        column("std", "std", "Std", 1),
        column("p50", "P50", "p50"),
        column("p99", "P99", "p99"),
        column("p99_9", "P99.9", "p99.9"),
        column("most", "most", "Greatest"),
        *([column("modulo", "modulo", "Modulo")] if modulo else []),
    )


def in_unit(columns: Sequence[Column], unit: str, scale: float, digits: int) -> list[Column]:
    """Return columns of times in another unit than ns; a mean keeps a digit more than none."""
    return [replace(one, unit=unit, scale=scale, digits=digits or one.digits) for one in columns]
