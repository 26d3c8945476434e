# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Declares what may stand in a YAML document; reader, writer, pages and JSON Schema are made from the one declaration.

A dataclass declares its keys with its fields (`key`): kind with range, meaning, default. `check_fields` checks the ranges,
for scripts as for documents; `part` makes the kind that reads and writes such a dataclass. What has no dataclass of its own
is a `Section`, which is read as `Entries`: values with their lines.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from liteprobe.host.base.errors import RangeError, UsageError, is_near, nearest
from liteprobe.host.base.units import DECIMAL, WHOLE, Factors, Number, exact, pattern_of, split, with_unit

if TYPE_CHECKING:
    import yaml

Schema = dict[str, Any]

WORD_MAX = 2**32 - 1
DEPTH_MOST = 32  # Of mappings and lists in one another: those of a network are 8 deep.
WRITTEN_DIGITS = 18  # After the point, of a number that isn't a finite decimal.
#: Keys that only documents of one command begin with.
COMMANDS_OF_KEYS = {
    "streams": "send",
    "sets": "sets",
    "both": "emulate",
    "there": "emulate",
    "settings": "agent run",
    "probes": "experiment",
}
SCHEMA_URN = "urn:liteprobe:schema"


class DocumentError(UsageError):
    """Something in a document is wrong; the message begins with its name and line."""


@dataclass(frozen=True)
class DocumentName:
    """The name of a document, for messages."""

    name: str

    def error(self, line: int, message: str) -> DocumentError:
        """Return the error of a line, which counts from 1."""
        return DocumentError(f"{self.name}:{line}: {message}")

    def at(self, node: "yaml.Node", message: str) -> DocumentError:
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

    def compose(self, text: str, what: str) -> "yaml.Node":
        """Return the root of a YAML document; ``what``: what it should have, for messages."""
        import yaml  # Not before a document is read.

        try:
            loader = yaml.SafeLoader(text)
            _limit_depth(loader)
            node = loader.get_single_node()
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise self.error(line, f"this is not YAML: character {text[error.position]!a} can't stand in it") from None
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise self.error(line, f"this is not YAML: {error.problem}") from None
        except yaml.YAMLError as error:
            raise self.error(1, f"this is not YAML: {str(error).splitlines()[0]}") from None
        if node is None:
            raise self.error(1, f"the document is empty: give {what}")
        return node


def _limit_depth(loader: "yaml.SafeLoader") -> None:
    """Have a loader refuse what is nested deeper than any document, before Python does."""
    import yaml

    def limited(act: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any) -> Any:
            if loader.flow_level + len(loader.indents) > DEPTH_MOST:
                problem = f"it is nested more than {DEPTH_MOST} deep"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=loader.get_mark())
            return act(*args)

        return checked

    # Where it scans, which takes the square of the depth.
    loader.fetch_flow_collection_start = limited(loader.fetch_flow_collection_start)
    loader.add_indent = limited(loader.add_indent)


def line_of(node: "yaml.Node") -> int:
    """Return the line on which a node begins, from 1."""
    return int(node.start_mark.line) + 1


def dumped(document: Any, flow: bool | None = False) -> str:
    """Return plain data as YAML; ``flow`` None: what has no parts of its own in a line."""
    import yaml

    text: str = yaml.safe_dump(document, sort_keys=False, default_flow_style=flow, width=120, allow_unicode=True)
    return text


# Kinds of values ---------------------------------------------------------------------------------------


class ValueKind(Protocol):
    """A kind of values: how it is written, read with the line of its errors, checked for its range, and described.

    `written` says how, with unit and range. `read` returns the value of a node, checked; ``name`` is what it is, for messages.
    `takes` says whether this kind can write a value, `write` returns it as plain data of YAML. `check` raises UsageError when a
    value is out of range; ``of``: what has it, for the message. `schema` returns the JSON Schema.
    """

    @property
    def written(self) -> str: ...
    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Any: ...
    def takes(self, value: Any) -> bool: ...
    def check(self, value: Any, name: str, of: str = "") -> None: ...
    def write(self, value: Any) -> Any: ...
    def schema(self) -> Schema: ...


class Plain:
    """Kinds whose values are written as they are, and have no range."""

    def takes(self, value: Any) -> bool:
        return True

    def check(self, value: Any, name: str, of: str = "") -> None:
        pass

    def write(self, value: Any) -> Any:
        return value


def text_of(node: "yaml.Node", name: str, source: DocumentName, kind: ValueKind) -> str:
    """Return the text of a scalar as it is written."""
    if node.id != "scalar":
        shape = "a list" if node.id == "sequence" else "a mapping"
        raise source.at(node, f"'{name}' is {shape}: give {kind.written}")
    return str(node.value)


@dataclass(frozen=True)
class Whole(Plain):
    """A whole number, decimal or 0x hexadecimal; ``note``: what is said after its range."""

    least: int
    most: int
    hexadecimal: bool = False
    note: str = ""

    @property
    def written(self) -> str:
        return f"{self._text(self.least)} to {self._text(self.most)}{self.note}"

    def _text(self, value: int) -> str:
        return f"{value:#x}" if self.hexadecimal else f"{value}"

    def takes(self, value: Any) -> bool:
        return isinstance(value, int)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> int:
        text = text_of(node, name, source, self)
        if not re.fullmatch(WHOLE, text.removeprefix("-") if self.least < 0 else text):
            raise source.at(node, f"'{name}' is a whole number, not '{text}': give {self.written}")
        value = int(text, 16 if "0x" in text else 10)
        with source.line(line_of(node)):
            self._check(value, f"{name} {text}")
        return value

    def check(self, value: Any, name: str, of: str = "") -> None:
        self._check(value, f"{name} {self._text(value)}{of}")

    def _check(self, value: int, what: str) -> None:
        if not self.least <= value <= self.most:
            raise UsageError(f"{what} is out of range: give {self.written}")

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True)
class Quantity(Plain):
    """A number above 0, or from 0, with a unit; exact as it is written."""

    #: ``what``, ``written``: what it is, and how it is written.
    what: str
    written: str
    units: Factors  # Size of each unit, as the value counts.
    most: Fraction
    may_be_0: bool = False
    plain: str | None = None  # Unit of a number without one; None: it needs one.
    #: It is written in the largest unit in which it is 1 or more, to 12 digits; else in one in which it is whole.
    is_short: bool = False

    def takes(self, value: Any) -> bool:
        return isinstance(value, Number)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Fraction:
        """Return it in the unit that its value counts."""
        text = text_of(node, name, source, self)
        found = split(text, self.units if self.plain is None else {**self.units, "": self.units[self.plain]})
        if not found:
            raise source.at(node, f"'{name}' is {self.what}, not '{text}': give {self.written}")
        value = Fraction(found[0]) * found[1]
        with source.line(line_of(node)):
            self._check(value, f"{name} {text}")
        return value

    def check(self, value: Any, name: str, of: str = "") -> None:
        self._check(exact(value), f"{name} {self.write(value)}{of}")

    def _check(self, number: Fraction, what: str) -> None:
        if number > self.most or number < 0 or (number == 0 and not self.may_be_0):
            raise UsageError(f"{what} is out of range: give {self.written}")

    def write(self, value: Number) -> str | int | float:
        number = exact(value)
        if "" in self.units and number.denominator != 1 and Fraction(repr(float(number))) == number:
            return float(number)
        if "" in self.units and not number:
            return 0
        text = with_unit(number, self.units) if self.is_short else with_unit(number, self.units, WRITTEN_DIGITS, True)
        return int(text) if text.isdecimal() else text

    def schema(self) -> Schema:
        units = pattern_of(self.units)
        optional = "?" if self.plain is not None else ""
        with_its_unit = {
            "type": "string",
            "pattern": rf"^{DECIMAL}\s*({units}){optional}$" if units else f"^{DECIMAL}$",
        }
        if self.plain is None:
            return with_its_unit
        bound = "minimum" if self.may_be_0 else "exclusiveMinimum"
        most = self.most / self.units[self.plain]
        return {"anyOf": [with_its_unit, {"type": "number", bound: 0, "maximum": int(most)}]}


@dataclass(frozen=True)
class OneOf(Plain):
    """One of some words."""

    words: Sequence[str]

    @property
    def written(self) -> str:
        return ", ".join(self.words)

    def takes(self, value: Any) -> bool:
        return value in self.words

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> str:
        text = text_of(node, name, source, self)
        with source.line(line_of(node)):
            self.check(text, name)
        return text

    def check(self, value: Any, name: str, of: str = "") -> None:
        if value not in self.words:
            raise UsageError(f"{name} '{value}'{of} is unknown: {nearest(value, self.words)}")

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


class Flag(Plain):
    """Yes or no."""

    written = "true or false"

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> bool:
        text = text_of(node, name, source, self)
        if text.lower() not in ("true", "false"):
            raise source.at(node, f"'{name}' is true or false, not '{text}'")
        return text.lower() == "true"

    def schema(self) -> Schema:
        return {"type": "boolean"}


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Text(Plain):
    """Text of a form; ``convert`` makes the value of it, or raises UsageError."""

    written: str
    pattern: str
    convert: Callable[[str], Any] = _same
    back: Callable[[Any], str] = _same

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Any:
        text = text_of(node, name, source, self)
        if not re.fullmatch(self.pattern, text):
            raise source.at(node, f"'{name}' is not '{text}': give {self.written}")
        with source.line(line_of(node)):
            return self.convert(text)

    def write(self, value: Any) -> str:
        return self.back(value)

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^{self.pattern}$"}


NAME = Text("some text", r".*\S.*")


class FieldValue(Plain):
    """A value of a field of headers: a number or an address."""

    written = "a whole number, 0 to 4294967295, or an address, as the field has it"

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> int | str:
        """Return the number, or the address as it is written."""
        text = text_of(node, name, source, self)
        if re.fullmatch(WHOLE, text):
            return Whole(0, WORD_MAX).read(node, name, source)
        if not re.fullmatch(r"[0-9a-fA-F:.-]+", text):
            raise source.at(node, f"'{name}' is {self.written}, not '{text}'")
        return text

    def check(self, value: Any, name: str, of: str = "") -> None:
        """Raise UsageError when a number has more than 32 bits."""
        if isinstance(value, int):
            Whole(0, WORD_MAX).check(value, name, of)

    def schema(self) -> Schema:
        return {"anyOf": [Whole(0, WORD_MAX).schema(), {"type": "string", "pattern": r"^[0-9a-fA-F:.-]+$"}]}


@dataclass(frozen=True)
class NoneWord(Plain):
    """A word that stands for None."""

    written: str

    def takes(self, value: Any) -> bool:
        return value is None

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> None:
        OneOf((self.written,)).read(node, name, source)

    def write(self, value: Any) -> str:
        return self.written

    def schema(self) -> Schema:
        return {"enum": [self.written]}


# Kinds that have parts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Several(Plain):
    """A list of values of one kind."""

    kind: ValueKind
    most: int
    least: int = 1

    @property
    def written(self) -> str:
        return f"a list of {self.least} to {self.most}: {self.kind.written}"

    def takes(self, value: Any) -> bool:
        return isinstance(value, Sequence) and not isinstance(value, str)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> tuple[Any, ...]:
        if node.id != "sequence":
            raise source.at(node, f"'{name}' is a list: put it in square brackets, or one item a line after a dash")
        with source.line(line_of(node)):
            self._check_count(len(node.value), f"'{name}'")
        return tuple(self.kind.read(item, name, source) for item in node.value)

    def check(self, value: Any, name: str, of: str = "") -> None:
        self._check_count(len(value), f"'{name}'{of}")
        for one in value:
            self.kind.check(one, name, of)

    def _check_count(self, count: int, what: str) -> None:
        if not self.least <= count <= self.most:
            raise UsageError(f"{what} has {count} items: give {self.least} to {self.most}")

    def write(self, value: Any) -> list[Any]:
        return [self.kind.write(one) for one in value]

    def schema(self) -> Schema:
        return {"type": "array", "items": self.kind.schema(), "minItems": self.least, "maxItems": self.most}


@dataclass(frozen=True)
class ByShape(Plain):
    """One kind where it is a single value, another where it is a mapping, and maybe one where it is a list."""

    plain: ValueKind
    mapping: ValueKind | None = None
    several: Several | None = None

    @property
    def written(self) -> str:
        if self.several:
            return f"{self.plain.written}, or a list of up to {self.several.most} of them"
        return f"{self.plain.written}; or {self.mapping.written}" if self.mapping else self.plain.written

    @property
    def _kinds(self) -> list[ValueKind]:
        return [kind for kind in (self.plain, self.several, self.mapping) if kind]

    def _of(self, value: Any) -> ValueKind:
        return next((kind for kind in self._kinds if kind.takes(value)), self.plain)

    def takes(self, value: Any) -> bool:
        return any(kind.takes(value) for kind in self._kinds)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Any:
        if self.mapping and node.id == "mapping":
            return self.mapping.read(node, name, source)
        if self.several and node.id == "sequence":
            return self.several.read(node, name, source)
        plain = self.plain.kind if isinstance(self.plain, Made) else self.plain
        words = getattr(plain, "words", (plain.written,) if isinstance(plain, NoneWord) else None)
        if words and text_of(node, name, source, self) not in words:
            raise source.at(node, f"{name} '{node.value}' is unknown: give {self.written}")
        return self.plain.read(node, name, source)

    def check(self, value: Any, name: str, of: str = "") -> None:
        self._of(value).check(value, name, of)

    def write(self, value: Any) -> Any:
        return self._of(value).write(value)

    def schema(self) -> Schema:
        return {"anyOf": [kind.schema() for kind in self._kinds]}


@dataclass(frozen=True)
class WordOr(Plain):
    """A word, or else another kind, by the text of a value."""

    word: ValueKind
    other: ValueKind

    @property
    def written(self) -> str:
        return f"{self.other.written}, or {self.word.written}"

    def takes(self, value: Any) -> bool:
        return self.word.takes(value) or self.other.takes(value)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Any:
        if node.id != "scalar" or not re.fullmatch(r"[a-z]+", node.value):
            return self.other.read(node, name, source)
        if node.value != self.word.written and not is_near(node.value, [self.word.written]):
            raise source.at(node, f"{name} '{node.value}' is unknown: give {self.written}")
        return self.word.read(node, name, source)

    def check(self, value: Any, name: str, of: str = "") -> None:
        if not self.word.takes(value):
            self.other.check(value, name, of)

    def write(self, value: Any) -> Any:
        return (self.word if self.word.takes(value) else self.other).write(value)

    def schema(self) -> Schema:
        return {"anyOf": [self.word.schema(), self.other.schema()]}


@dataclass(frozen=True)
class Made(Plain):
    """A value that is made of what another kind reads, and is checked where it is made."""

    kind: ValueKind
    make: Callable[[Any], Any]
    back: Callable[[Any], Any] = _same
    holds: Callable[[Any], bool] = field(default=lambda value: True)

    @property
    def written(self) -> str:
        return self.kind.written

    @property
    def section(self) -> "Section":
        """The section that it is made of."""
        assert isinstance(self.kind, Section)
        return self.kind

    def takes(self, value: Any) -> bool:
        return self.holds(value)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Any:
        found = self.kind.read(node, name, source)
        with source.line(line_of(node)):
            return self.make(found)

    def write(self, value: Any) -> Any:
        return self.kind.write(self.back(value))

    def schema(self) -> Schema:
        return self.kind.schema()


# Mappings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key of a mapping."""

    kind: ValueKind  # Of its value.
    about: str  # What it means, for the page and the schema.
    default: str = ""  # What holds where it isn't given, as it is written; "": it must be given, or others decide.
    is_needed: bool = False  # Whether it must be given.


Keys = Mapping[str, Key]


@dataclass(frozen=True)
class Entries:
    """A mapping that was read: values and their lines by key."""

    values: dict[str, Any]
    lines: dict[str, int]
    line: int
    source: DocumentName = DocumentName("document")

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a key, or what holds without it."""
        return self.values.get(name, default)

    def error(self, name: str, message: str) -> DocumentError:
        """Return the error of a key that is given."""
        return self.source.error(self.lines[name], message)

    def over(self, under: "Entries", groups: Iterable[Sequence[str]]) -> "Entries":
        """Return these keys, and those of ``under`` that they don't replace: a key replaces itself, and all of its group."""
        replaced = {key for group in groups if any(key in self.values for key in group) for key in group}
        values = {key: value for key, value in under.values.items() if key not in replaced} | self.values
        lines = {key: line for key, line in (under.lines | self.lines).items() if key.partition("[")[0] in values}
        return Entries(values, lines, self.line if self.values else under.line, self.source)

    def only(self, names: Iterable[str]) -> "Entries":
        return dataclasses.replace(self, values={name: self.values[name] for name in names if name in self.values})

    def line_of(self, *names: str) -> int:
        """Return the line of the first of these keys that is given, else that of the mapping."""
        return next((self.lines[name] for name in names if name in self.lines), self.line)

    def refuse_both(self, names: Sequence[str], of: str = "") -> None:
        """Raise DocumentError where more than one of these keys is given; ``of``: what has them, for the message."""
        given = [name for name in self.values if name in names]
        if len(given) > 1:
            what = f" of {a(of)}" if of else ""
            raise self.error(given[1], f"'{given[0]}' and '{given[1]}'{what} are both given: leave out one")


@dataclass(frozen=True)
class Section(Plain):
    """A mapping with known keys, read as `Entries`, written from a mapping of values."""

    title: str
    keys: Keys

    @property
    def written(self) -> str:
        return f"the keys of {a(self.title)}"

    def takes(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> Entries:
        if node.id != "mapping":
            raise source.at(node, f"'{name}' is a mapping with keys of {a(self.title)}: {', '.join(self.keys)}")
        entries = Entries({}, {}, line_of(node), source)
        for key_node, value in node.value:
            word = text_of(key_node, "key", source, NAME)
            if word not in self.keys:
                other = COMMANDS_OF_KEYS.get(word)
                advice = f"'liteprobe {other}' takes documents with it" if other else nearest(word, tuple(self.keys))
                raise source.at(key_node, f"unknown key '{word}' of {a(self.title)}: {advice}")
            if word in entries.values:
                raise source.at(key_node, f"key '{word}' of {a(self.title)} is given twice: leave out one")
            entries.lines[word] = line_of(key_node)
            entries.values[word] = self.keys[word].kind.read(value, word, source)
            if value.id == "sequence":
                entries.lines.update((f"{word}[{place}]", line_of(item)) for place, item in enumerate(value.value))
        for word, one in self.keys.items():
            if one.is_needed and word not in entries.values:
                raise source.at(node, f"{a(self.title)} needs '{word}': give {one.kind.written}")
        return entries

    def write(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: one.kind.write(value[name]) for name, one in self.keys.items() if name in value}

    def schema(self) -> Schema:
        properties = {name: {"description": one.about, **one.kind.schema()} for name, one in self.keys.items()}
        needed = [name for name, one in self.keys.items() if one.is_needed]
        head = {"title": self.title, "type": "object", "properties": properties, "additionalProperties": False}
        return head | ({"required": needed} if needed else {})

    def document_schema(self, name: str, title: str) -> Schema:
        """Return the JSON Schema (draft 2020-12) of a document with these keys; ``name``: of the file that has it."""
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{SCHEMA_URN}:{name}"}
        whole, defined = self.schema(), dict[str, Schema]()
        whole = _shared(whole, json.dumps(whole), defined)
        return {**head, **whole, "title": title, **({"$defs": defined} if defined else {})}


@dataclass(frozen=True)
class ByName(Plain):
    """A mapping of names to mappings with known keys."""

    section: Section
    names: Text = NAME

    @property
    def written(self) -> str:
        return f"a mapping of names to {self.section.written}"

    def read(self, node: "yaml.Node", name: str, source: DocumentName) -> dict[str, Entries]:
        if node.id != "mapping":
            raise source.at(node, f"'{name}' is {self.written}: put the name before each")
        found: dict[str, Entries] = {}
        for key_node, value in node.value:
            word = text_of(key_node, "name", source, self.names)
            if not re.fullmatch(self.names.pattern, word):
                raise source.at(key_node, f"'{word}' is not a name: give {self.names.written}")
            if word in found:
                raise source.at(key_node, f"'{word}' is given twice: leave out one")
            found[word] = self.section.read(value, word, source)
        return found

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.section.schema()}


def _shared(schema: Schema, text: str, defined: dict[str, Schema]) -> Schema:
    """Return a schema in which a section that comes again stands under ``$defs``; ``text``: the whole as JSON."""

    def of(value: Any) -> Any:
        if isinstance(value, list):
            return [of(one) for one in value]
        return _shared(value, text, defined) if isinstance(value, dict) else value

    about = {name: value for name, value in schema.items() if name == "description" and isinstance(value, str)}
    own = {name: value for name, value in schema.items() if name not in about}
    found = {name: of(value) for name, value in own.items()}
    if (
        "properties" not in own
        or text.count(json.dumps(own)[1:]) == 1
        or defined.setdefault(own["title"], found) != found
    ):
        return {**about, **found}
    return {**about, "$ref": f"#/$defs/{own['title']}"}


def a(title: str) -> str:
    """Return a title with its article."""
    return f"{'an' if title[0] in 'aeioAEIO' else 'a'} {title}"


# Keys of a dataclass -----------------------------------------------------------------------------------


def key(name: str, kind: ValueKind, about: str, default: Any = MISSING, without: str = "") -> Any:
    """Return a field of a dataclass that a document has under a key.

    Parameters
    ----------
    kind : ValueKind
        Of its value, with the range that `check_fields` checks.
    about : str
        What it means.
    default
        Of the field; MISSING: it must be given.
    without : str
        What holds where it isn't given, where the default doesn't say it.
    """
    if default is not MISSING and default is not None and not without:
        text = kind.write(default)
        without = str(text).lower() if isinstance(text, bool) else str(text)
    return keys({name: Key(kind, about, without, default is MISSING)}, default)


def keys(names: Keys, default: Any = MISSING) -> Any:
    """Return a field of a dataclass that a document has under one of several keys."""
    return field(default=default, metadata={"keys": names})


def inline(cls: Any) -> Any:
    """Return a field that holds a dataclass whose keys stand among those of the dataclass that has the field."""
    return field(default_factory=cls, metadata={"inline": cls, "keys": keys_of(cls)})


def keys_of(cls: Any) -> dict[str, Key]:
    """Return the keys of a dataclass; one that has no field for each declares them as ``KEYS``."""
    own: Keys | None = getattr(cls, "KEYS", None)
    if own is not None:
        return dict(own)
    return {name: one for field_ in dataclasses.fields(cls) for name, one in field_.metadata.get("keys", {}).items()}


def check_fields(made: Any, of: str = "") -> None:
    """Raise RangeError when a field of a dataclass is out of the range that its key declares; ``of``: what has the fields."""
    for field_ in dataclasses.fields(made):
        value, names = getattr(made, field_.name), field_.metadata.get("keys", {})
        if not names or "inline" in field_.metadata or value is None or value == field_.default:
            continue
        name = next((name for name, one in names.items() if one.kind.takes(value)), next(iter(names)))
        try:
            names[name].kind.check(value, name, of)
        except UsageError as error:
            raise RangeError(str(error), name) from None


def build(cls: Any, entries: Entries, **others: Any) -> Any:
    """Return a dataclass made of what a document says; ``others``: fields that have no keys."""
    values = dict(others)
    for field_ in dataclasses.fields(cls):
        inner = field_.metadata.get("inline")
        names = [name for name in field_.metadata.get("keys", {}) if name in entries.values]
        if field_.name in values:
            continue
        if inner:
            values[field_.name] = inner.of_entries(entries) if hasattr(inner, "of_entries") else build(inner, entries)
        elif names:
            values[field_.name] = entries.values[names[0]]
    return cls(**values)


def values_of(made: Any, before: Any = None) -> dict[str, Any]:
    """Return by key what of a dataclass isn't the default; or what differs from that of ``before``."""
    found: dict[str, Any] = {}
    for field_ in dataclasses.fields(made):
        value, names = getattr(made, field_.name), field_.metadata.get("keys", {})
        if "inline" in field_.metadata:
            found |= value.to_values() if hasattr(value, "to_values") else values_of(value)
        elif names and value != (field_.default if before is None else getattr(before, field_.name)):
            found[next((name for name, one in names.items() if one.kind.takes(value)), next(iter(names)))] = value
    return found


def section_of(cls: Any, title: str) -> Section:
    """Return the section of a dataclass."""
    return Section(title, keys_of(cls))


def part(cls: Any, title: str) -> Made:
    """Return the kind of a mapping with the keys of a dataclass, which is made of it."""
    return Made(
        section_of(cls, title), lambda entries: build(cls, entries), values_of, lambda value: isinstance(value, cls)
    )
