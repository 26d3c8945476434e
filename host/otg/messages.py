# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads messages of Open Traffic Generator so that nothing in them is passed over: what nobody has read is refused by its path."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from snappi import otg_pb2 as pb

from liteprobe.host.base.errors import UsageError

__all__ = ["Given", "OtgError", "OtgReport", "enum_value", "pb"]

ENUM = FieldDescriptor.TYPE_ENUM
UNREAD = "liteprobe does not support this field: leave it out (docs/otg.md)"
TAGS = "a port counts the frames of a flow by the number in their probe header, not by values of fields: give a flow for each value"
REASONS = {"egress_packet": TAGS, "metric_tags": TAGS}  # By the name of the field.
ERRORS_MOST = 100  # Of one answer.


class OtgError(Exception):
    """An error as a client of Open Traffic Generator gets it: ``code`` of HTTP, ``kind`` (validation, internal), ``errors``."""

    def __init__(self, errors: list[str], code: int = 400, kind: str = "validation") -> None:
        super().__init__("; ".join(errors))
        if len(errors) > ERRORS_MOST:
            errors = [*errors[:ERRORS_MOST], f"and {len(errors) - ERRORS_MOST} more errors"]
        self.errors, self.code, self.kind = errors, code, kind


@dataclass
class OtgReport:
    """Collects what is wrong with a message, by path, and what its sender should know."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    opened: list["Given"] = field(default_factory=list)

    def error(self, path: str, text: object) -> None:
        """Keep that what stands at ``path`` can't be."""
        self.errors.append(f"{path}: {text}")

    def warn(self, path: str, text: object) -> None:
        """Keep a remark on what stands at ``path``."""
        self.warnings.append(f"{path}: {text}")

    def check(self) -> None:
        """Raise OtgError where something is wrong, or was read by nobody."""
        unread = [path for one in self.opened for path in one.unread()]
        self.errors += [f"{path}: {REASONS.get(path.rpartition('.')[2], UNREAD)}" for path in unread]
        if self.errors:
            raise OtgError(self.errors)


class Given:
    """A message, or a part of one, that notes which of its fields were read.

    Parameters
    ----------
    path : str
        Of the message, like ``flows[0].rate``; empty: it is the whole.
    """

    def __init__(self, message: Message, report: OtgReport, path: str = "") -> None:
        self.message, self.report, self.path = message, report, path
        self._fields: dict[str, FieldDescriptor] = {one.name: one for one, _ in message.ListFields()}
        self._unread = set(self._fields)
        report.opened.append(self)

    def at(self, name: str = "") -> str:
        """Return the path of a field."""
        return ".".join(one for one in (self.path, name) if one)

    def has(self, name: str) -> bool:
        """Return whether a field is given."""
        return name in self._fields

    def error(self, name: str, text: object) -> None:
        """Keep that a field can't be."""
        self.report.error(self.at(name), text)

    def value(self, name: str, default: Any = None) -> Any:
        """Return a number, text, truth value or name of an enumeration."""
        if name not in self._fields:
            return default
        self._unread.discard(name)
        found, kind = getattr(self.message, name), self._fields[name]
        if kind.type != ENUM:
            return found
        numbers = kind.enum_type.values_by_number
        names = [numbers[one].name if one in numbers else str(one) for one in (found if kind.is_repeated else [found])]
        return names if kind.is_repeated else names[0]

    def values(self, name: str) -> list[Any]:
        """Return a list of numbers, texts or names."""
        return list(self.value(name, []))

    def part(self, name: str) -> "Given | None":
        """Return a message in this one."""
        if name not in self._fields:
            return None
        self._unread.discard(name)
        return Given(getattr(self.message, name), self.report, self.at(name))

    def parts(self, name: str) -> Iterator["Given"]:
        """Yield the messages of a list."""
        self._unread.discard(name)
        for number, one in enumerate(getattr(self.message, name)):
            yield Given(one, self.report, f"{self.at(name)}[{number}]")

    def choice(self, default: str = "") -> str:
        """Return which of its fields counts; without a choice the one that is given."""
        found = self.value("choice", "unspecified")
        if found != "unspecified":
            return str(found)
        known = {one.name for one in self.message.DESCRIPTOR.fields_by_name["choice"].enum_type.values}
        given = [name for name in self._fields if name in known]
        return given[0] if len(given) == 1 else default

    def abandon(self) -> None:
        """Let what was not reached pass: an error says already why."""
        self._unread.clear()

    def unread(self) -> Iterator[str]:
        """Yield the paths of what is given and was not read; what is switched off (false) asks for nothing."""
        for name in sorted(self._unread):
            if getattr(self.message, name) is not False:
                yield self.at(name)


def enum_value(message: Message, name: str, word: str) -> int:
    """Return the number of a word of a field's enumeration."""
    found = message.DESCRIPTOR.fields_by_name[name].enum_type.values_by_name
    if word not in found:
        raise UsageError(f"there is no '{word}': give one of {', '.join(found)}")
    return int(found[word].number)
