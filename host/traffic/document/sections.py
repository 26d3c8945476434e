# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Values of a document that have parts: lists, mappings with known keys, and either of several kinds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from liteprobe.host.errors import is_near, nearest
from liteprobe.host.traffic.document.kinds import NAME, Choice, Kind, Schema, Source, Whole, line_of, text_of


@dataclass(frozen=True)
class Several:
    """A list of values of one kind."""

    kind: Kind
    most: int
    least: int = 1

    @property
    def written(self) -> str:
        """How it is written."""
        return f"a list of {self.least} to {self.most}: {self.kind.written}"

    def read(self, node: yaml.Node, name: str, source: Source) -> tuple[Any, ...]:
        """Return the values."""
        if not isinstance(node, yaml.SequenceNode):
            raise source.at(node, f"'{name}' is a list: put it in square brackets, or one item a line after a dash")
        if not self.least <= len(node.value) <= self.most:
            raise source.at(node, f"'{name}' has {len(node.value)} items: give {self.least} to {self.most}")
        return tuple(self.kind.read(item, name, source) for item in node.value)

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"type": "array", "items": self.kind.schema(), "minItems": self.least, "maxItems": self.most}


@dataclass(frozen=True)
class Either:
    """One kind where it is a single value or a list, another where it is a mapping."""

    plain: Kind
    mapping: Kind

    @property
    def written(self) -> str:
        """How it is written."""
        return f"{self.plain.written}; or {self.mapping.written}"

    def read(self, node: yaml.Node, name: str, source: Source) -> Any:
        """Return what it is."""
        if isinstance(node, yaml.MappingNode):
            return self.mapping.read(node, name, source)
        if isinstance(self.plain, Choice) and text_of(node, name, source, self) not in self.plain.words:
            raise source.at(node, f"{name} '{node.value}' is unknown: give {self.written}")
        return self.plain.read(node, name, source)

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"anyOf": [self.plain.schema(), self.mapping.schema()]}


@dataclass(frozen=True)
class AnyOf:
    """The kind that the text of a value belongs to: a word, or else the other kind."""

    words: Choice
    other: Kind

    @property
    def written(self) -> str:
        """How it is written."""
        return f"{self.other.written}, or {self.words.written}"

    def read(self, node: yaml.Node, name: str, source: Source) -> Any:
        """Return what it is."""
        if not isinstance(node, yaml.ScalarNode) or not re.fullmatch(r"[a-z]+", node.value):
            return self.other.read(node, name, source)
        if node.value not in self.words.words and not is_near(node.value, self.words.words):
            raise source.at(node, f"{name} '{node.value}' is unknown: give {self.written}")
        return self.words.read(node, name, source)

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"anyOf": [self.words.schema(), self.other.schema()]}


@dataclass(frozen=True)
class WholeOrList:
    """A whole number, or a list of them."""

    whole: Whole
    several: Several

    @property
    def written(self) -> str:
        """How it is written."""
        return f"{self.whole.written}, or a list of up to {self.several.most} of them"

    def read(self, node: yaml.Node, name: str, source: Source) -> int | tuple[int, ...]:
        """Return the number or the numbers."""
        if isinstance(node, yaml.SequenceNode):
            return self.several.read(node, name, source)
        return self.whole.read(node, name, source)

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"anyOf": [self.whole.schema(), self.several.schema()]}


@dataclass(frozen=True)
class Weights:
    """A mapping of numbers to numbers."""

    key: Whole
    value: Whole
    written: str = "a mapping of lengths to weights of 1 to 64 each, which in lowest terms add up to 64 at most"

    def read(self, node: yaml.Node, name: str, source: Source) -> dict[int, int]:
        """Return the mapping."""
        if not isinstance(node, yaml.MappingNode) or not node.value:
            raise source.at(node, f"'{name}' is {self.written}, like {{60: 7, 590: 4, 1514: 1}}")
        found: dict[int, int] = {}
        for key, value in node.value:
            number = self.key.read(key, "length", source)
            if number in found:
                raise source.at(key, f"length {number} has two weights: leave out one")
            found[number] = self.value.read(value, "weight", source)
        return found

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {
            "type": "object",
            "propertyNames": {"pattern": "^[0-9]+$"},
            "additionalProperties": self.value.schema(),
            "minProperties": 1,
        }


# Mappings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key of a mapping.

    Parameters
    ----------
    kind : Kind
        Of its value.
    about : str
        What it means, for the page and the schema.
    default : str
        What holds where it isn't given, as it is written; "": it must be given, or others decide.
    is_needed : bool
        Whether it must be given.
    """

    kind: Kind
    about: str
    default: str = ""
    is_needed: bool = False


@dataclass(frozen=True)
class Entries:
    """A mapping that was read: values and their lines by key."""

    values: dict[str, Any]
    lines: dict[str, int]
    line: int

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or what holds without it."""
        return self.values.get(key, default)

    def over(self, under: "Entries", groups: Iterable[Sequence[str]]) -> "Entries":
        """Return these keys, and those of ``under`` that they don't replace: a key replaces itself, and all of its group."""
        replaced = {key for group in groups if any(key in self.values for key in group) for key in group}
        values = {key: value for key, value in under.values.items() if key not in replaced} | self.values
        lines = {key: line for key, line in (under.lines | self.lines).items() if key in values}
        return Entries(values, lines, self.line if self.values else under.line)

    def line_of(self, *keys: str) -> int:
        """Return the line of the first of these keys that is given, else that of the mapping."""
        return next((self.lines[key] for key in keys if key in self.lines), self.line)


@dataclass(frozen=True)
class Section:
    """A mapping with known keys."""

    title: str
    keys: Mapping[str, Key]

    @property
    def written(self) -> str:
        """How it is written."""
        return f"the keys of {a(self.title)}"

    def read(self, node: yaml.Node, name: str, source: Source) -> Entries:
        """Return its values; ``name``: what it is, for messages."""
        if not isinstance(node, yaml.MappingNode):
            raise source.at(node, f"'{name}' is a mapping with keys of {a(self.title)}: {', '.join(self.keys)}")
        entries = Entries({}, {}, line_of(node))
        for key, value in node.value:
            word = text_of(key, "key", source, NAME)
            if word not in self.keys:
                raise source.at(key, f"unknown key '{word}' of {a(self.title)}: {nearest(word, tuple(self.keys))}")
            if word in entries.values:
                raise source.at(key, f"key '{word}' of {a(self.title)} is given twice: leave out one")
            entries.lines[word] = line_of(key)
            entries.values[word] = self.keys[word].kind.read(value, word, source)
        for word, key_of_it in self.keys.items():
            if key_of_it.is_needed and word not in entries.values:
                raise source.at(node, f"{a(self.title)} needs '{word}': give {key_of_it.kind.written}")
        return entries

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        properties = {name: {"description": key.about, **key.kind.schema()} for name, key in self.keys.items()}
        needed = [name for name, key in self.keys.items() if key.is_needed]
        required = {"required": needed} if needed else {}
        return {"type": "object", "properties": properties, "additionalProperties": False, **required}


@dataclass(frozen=True)
class Named:
    """A mapping of names to mappings with known keys."""

    section: Section

    @property
    def written(self) -> str:
        """How it is written."""
        return f"a mapping of names to {self.section.written}"

    def read(self, node: yaml.Node, name: str, source: Source) -> dict[str, Entries]:
        """Return them by name."""
        if not isinstance(node, yaml.MappingNode):
            raise source.at(node, f"'{name}' is {self.written}: put the name before each")
        found: dict[str, Entries] = {}
        for key, value in node.value:
            word = text_of(key, "name", source, NAME)
            if word in found:
                raise source.at(key, f"'{word}' is given twice: leave out one")
            found[word] = self.section.read(value, word, source)
        return found

    def schema(self) -> Schema:
        """Return its JSON Schema."""
        return {"type": "object", "additionalProperties": self.section.schema()}


def document_schema(root: Section, title: str) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document with these keys."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **root.schema()}


def a(title: str) -> str:
    """Return a title with its article."""
    return f"{'an' if title[0] in 'aeioAEIO' else 'a'} {title}"
