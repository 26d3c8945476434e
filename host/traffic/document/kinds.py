# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Kinds of values in a document of streams: how each is written, read with the line of its errors, and said as JSON Schema."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import yaml

from liteprobe.host.errors import UsageError, nearest
from liteprobe.host.traffic.headers import ip_address, mac_octets

Schema = dict[str, Any]

RATE_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
TIME_UNITS_NS = {"": 1, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
NUMBER = r"[0-9]+(?:\.[0-9]+)?"


class DocumentError(UsageError):
    """Something in a document is wrong; the message begins with its name and line."""


@dataclass(frozen=True)
class Source:
    """A document by name, for messages.

    Parameters
    ----------
    name : str
        Of the file.
    """

    name: str

    def error(self, line: int, message: str) -> DocumentError:
        """Return the error of a line, which counts from 1."""
        return DocumentError(f"{self.name}:{line}: {message}")

    def at(self, node: yaml.Node, message: str) -> DocumentError:
        """Return the error of a node."""
        return self.error(line_of(node), message)

    @contextmanager
    def line(self, line: int) -> Iterator[None]:
        """Give errors of what is done within it this line, unless they have one."""
        try:
            yield
        except DocumentError:
            raise
        except UsageError as error:
            raise self.error(line, str(error)) from None


def line_of(node: yaml.Node) -> int:
    """Return the line on which a node begins, from 1."""
    return int(node.start_mark.line) + 1


class Kind(Protocol):
    """What a value may be."""

    @property
    def written(self) -> str:
        """How it is written, with unit and range."""

    def read(self, node: yaml.Node, name: str, source: Source) -> Any:
        """Return the value of a node; ``name``: what it is, for messages."""

    def schema(self) -> Schema:
        """Return its JSON Schema."""


# Scalars -----------------------------------------------------------------------------------------------


def text_of(node: yaml.Node, name: str, source: Source, kind: Kind) -> str:
    """Return the text of a scalar as it is written."""
    if not isinstance(node, yaml.ScalarNode):
        shape = "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
        raise source.at(node, f"'{name}' is {shape}: give {kind.written}")
    return str(node.value)


@dataclass(frozen=True)
class Whole:
    """A whole number, decimal or 0x hexadecimal."""

    least: int
    most: int
    hexadecimal: bool = False

    @property
    def written(self) -> str:
        """How it is written."""
        form = "{:#x}" if self.hexadecimal else "{}"
        return f"{form.format(self.least)} to {form.format(self.most)}"

    def read(self, node: yaml.Node, name: str, source: Source) -> int:
        """Return the number."""
        text = text_of(node, name, source, self)
        if not re.fullmatch(r"[0-9]+|0x[0-9a-fA-F]+", text):
            raise source.at(node, f"'{name}' is a whole number, not '{text}': give {self.written}")
        number = int(text, 16 if text.startswith("0x") else 10)
        if not self.least <= number <= self.most:
            raise source.at(node, f"{name} {text} is out of range: give {self.written}")
        return number

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Quantity:
    """A number above 0, or from 0, with a unit; exact as it is written."""

    what: str
    written: str
    units: Mapping[str, int]
    most: Fraction
    may_be_0: bool = False

    def read(self, node: yaml.Node, name: str, source: Source) -> Fraction:
        """Return it in the smallest unit."""
        text = text_of(node, name, source, self)
        match = re.fullmatch(rf"({NUMBER})\s*([A-Za-z%]*)", text)
        if not match or match[2] not in self.units:
            raise source.at(node, f"'{name}' is {self.what}, not '{text}': give {self.written}")
        value = Fraction(match[1]) * self.units[match[2]]
        if value > self.most or value < 0 or (value == 0 and not self.may_be_0):
            raise source.at(node, f"{name} {text} is out of range: give {self.written}")
        return value

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        units = "|".join(unit for unit in self.units if unit)
        optional = "?" if "" in self.units else ""
        with_unit = {"type": "string", "pattern": rf"^{NUMBER}\s*({units}){optional}$"}
        if not optional:
            return with_unit
        bound = "minimum" if self.may_be_0 else "exclusiveMinimum"
        return {"anyOf": [with_unit, {"type": "number", bound: 0, "maximum": int(self.most)}]}


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    words: Sequence[str]

    @property
    def written(self) -> str:
        """How it is written."""
        return ", ".join(self.words)

    def read(self, node: yaml.Node, name: str, source: Source) -> str:
        """Return the word."""
        text = text_of(node, name, source, self)
        if text not in self.words:
            raise source.at(node, f"{name} '{text}' is unknown: {nearest(text, self.words)}")
        return text

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"enum": list(self.words)}


@dataclass(frozen=True)
class Flag:
    """Yes or no."""

    written: str = "true or false"

    def read(self, node: yaml.Node, name: str, source: Source) -> bool:
        """Return it."""
        text = text_of(node, name, source, self)
        if text.lower() not in ("true", "false"):
            raise source.at(node, f"'{name}' is true or false, not '{text}'")
        return text.lower() == "true"

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"type": "boolean"}


def _same(text: str) -> str:
    return text


@dataclass(frozen=True)
class Text:
    """Text of a form; ``check`` raises UsageError where it isn't."""

    written: str
    pattern: str
    convert: Callable[[str], Any] = _same
    check: Callable[[str], object] = field(default=_same)

    def read(self, node: yaml.Node, name: str, source: Source) -> Any:
        """Return it."""
        text = text_of(node, name, source, self)
        if not re.fullmatch(self.pattern, text):
            raise source.at(node, f"'{name}' is not '{text}': give {self.written}")
        with source.line(line_of(node)):
            self.check(text)
        return self.convert(text)

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"type": "string", "pattern": f"^{self.pattern}$"}


def _check_version(version: int) -> Callable[[str], None]:
    def check(text: str) -> None:
        if ip_address(text).version != version:
            raise UsageError(f"'{text}' is not an IPv{version} address: write it like {EXAMPLES[version]}")

    return check


EXAMPLES = {4: "198.18.0.1", 6: "2001:2::1"}
MAC = Text("a MAC address like 02:4c:50:54:00:01", r"[0-9a-fA-F]{1,2}([:-][0-9a-fA-F]{1,2}){5}", check=mac_octets)
IPV4 = Text("an IPv4 address", r"[0-9.]+", check=_check_version(4))
IPV6 = Text("an IPv6 address", r"[0-9a-fA-F:.]+", check=_check_version(6))
OCTETS = Text("octets in hexadecimal, like 00ff 12", r"([0-9a-fA-F]{2}\s*)*", convert=bytes.fromhex)
NAME = Text("some text", r".*\S.*")


@dataclass(frozen=True)
class Value:
    """A value of a field: a number or an address."""

    written: str = "a whole number, 0 to 4294967295, or an address, as the field has it"

    def read(self, node: yaml.Node, name: str, source: Source) -> int | str:
        """Return the number, or the address as it is written."""
        text = text_of(node, name, source, self)
        if re.fullmatch(r"[0-9]+|0x[0-9a-fA-F]+", text):
            return Whole(0, 2**32 - 1).read(node, name, source)
        if not re.fullmatch(r"[0-9a-fA-F:.-]+", text):
            raise source.at(node, f"'{name}' is {self.written}, not '{text}'")
        return text

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 2**32 - 1},
                {"type": "string", "pattern": r"^[0-9a-fA-F:.-]+$"},
            ]
        }
