# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Describes what a device offers: settings and values, each with its name, type, range and callback."""

import math
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from liteprobe.host.agent.message import (
    NAME,
    PYTHON_TYPES,
    AgentStatus,
    MessageError,
    Scalar,
    Type,
    type_of,
    value_frame,
)
from liteprobe.host.base.errors import UsageError

OWN_PREFIX = "agent."  # Of the agent's own counters.
FORM = "a letter, then up to 62 letters, digits, and _ . -"
Callback = Callable[..., Any]


@dataclass
class Item:
    """Describes a setting or a value."""

    name: str
    type: Type
    is_setting: bool
    #: Of a setting: takes the value, and returns what the device took of it, or None: as it was asked. Of a value:
    #: returns it.
    call: Callback
    minimum: float | None = None  # Range of an int or float; None: any.
    maximum: float | None = None
    interval_ns: int = 0  # A value is read and pushed so often where somebody watches it; 0: it can't be watched.
    last: Scalar | None = None  # What a setting was set to last; None: nothing yet.
    is_own: bool = False  # A counter of the agent: read without a callback of the device.
    hangs_since_ns: int | None = None  # Monotonic time at which a callback that still runs went over its time limit.

    def __post_init__(self) -> None:
        """Refuse what no message could carry."""
        if not NAME.fullmatch(self.name.encode()):
            raise UsageError(f"'{self.name}' is not a name: give {FORM}")
        if self.name.startswith(OWN_PREFIX) and not self.is_own:
            raise UsageError(
                f"names that begin with '{OWN_PREFIX}' are the agent's own: give '{self.name}' another one"
            )
        bounds = [bound for bound in (self.minimum, self.maximum) if bound is not None]
        if bounds and self.type not in (Type.INT, Type.FLOAT):
            raise UsageError(
                f"'{self.name}' is a {self.type.name.lower()}, which has no minimum and maximum: leave them out"
            )
        if not all(map(math.isfinite, bounds)) or bounds != sorted(bounds):
            raise UsageError(f"no value lies between the minimum and the maximum of '{self.name}': give others")
        if self.last is not None:
            self.check(self.last)

    def check(self, value: Scalar) -> None:
        """Raise MessageError when a value that is asked for is of another type or out of range."""
        if type_of(value) != self.type:
            kinds = self.type.name.lower(), type_of(value).name.lower()
            raise MessageError(f"'{self.name}' is of type {kinds[0]}, not {kinds[1]}", AgentStatus.TYPE)
        if not isinstance(value, str | bytes):
            low = -math.inf if self.minimum is None else self.minimum
            high = math.inf if self.maximum is None else self.maximum
            if not low <= value <= high:
                raise MessageError(f"{value} is out of range: '{self.name}' is {low} to {high}", AgentStatus.RANGE)

    def taken(self, asked: Scalar | None, returned: Any) -> Scalar:
        """Return the value that a callback has made, sure that it can be sent.

        Raises MessageError when the callback returned something else than its type.
        """
        found = asked if returned is None and self.is_setting else returned
        if self.type == Type.FLOAT and type(found) is int:
            found = float(found)
        if PYTHON_TYPES.get(type(found)) != self.type:
            kind = self.type.name.lower()
            raise MessageError(
                f"the callback of '{self.name}' returned a {type(found).__name__}, not {kind}", AgentStatus.REFUSED
            )
        value = typing.cast(Scalar, found)
        value_frame(value)
        return value


def type_of_setting(name: str, callback: Callback) -> Type:
    """Return the type of a setting, which is that of its callback's parameter."""
    hints = typing.get_type_hints(callback)
    hints.pop("return", None)
    return _known(name, list(hints.values())[-1:], f"def {name}(value: int) -> None")


def type_of_value(name: str, callback: Callback) -> Type:
    """Return the type of a value, which is what its callback returns."""
    returned = typing.get_type_hints(callback).get("return")
    return _known(name, [returned], f"def {name}() -> int")


def _known(name: str, hints: list[Any], example: str) -> Type:
    if len(hints) != 1 or hints[0] not in PYTHON_TYPES:
        raise UsageError(
            f"the callback of '{name}' does not say its type: write it like '{example}', with int, float, bool, str or bytes"
        )
    return PYTHON_TYPES[hints[0]]
