# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes an agent from a YAML document: settings and values that are files and commands of the device (docs/agent.md)."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from liteprobe.host.agent.agent import Agent
from liteprobe.host.agent.items import Item
from liteprobe.host.agent.message import NAME, Scalar, Type
from liteprobe.host.agent.system import AllowList, check_command, octets_of, reader, run_command
from liteprobe.host.base.document import (
    ByName,
    DocumentName,
    Entries,
    Key,
    OneOf,
    Quantity,
    Section,
    Several,
    Text,
    line_of,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.units import TIMES

TYPES = {kind.name.lower(): kind for kind in Type}
PATH = Text("a whole path like /proc/loadavg, with * for any part of a name", r"/[^\0]*")
WORDS = Several(Text("a word of a command", r"[^\0]+"), 64)
NUMBER = Text("a number", r"-?[0-9]+(\.[0-9]+)?")
TIME = Quantity("a time", "a time like 100ms, up to 1h (3600s)", TIMES, Fraction(3600 * 10**9), plain="ns")
ITEM = Text("a letter, then letters, digits, and _ . -", NAME.pattern.decode())


def _compiled(text: str) -> "re.Pattern[str]":
    try:
        pattern = re.compile(text, re.MULTILINE)
    except re.error as error:
        raise UsageError(f"'{text}' is not a regular expression: {error}") from None
    if pattern.groups < 1:
        raise UsageError(f"'{text}' has no group: put the value in round brackets")
    return pattern


TYPE = Key(OneOf(tuple(TYPES)), "type of the value", is_needed=True)
RUN = Key(WORDS, "a command, as a list of words; no shell is used")
SETTING = Section(
    "setting",
    {
        "type": TYPE,
        "minimum": Key(NUMBER, "least value of an int or float"),
        "maximum": Key(NUMBER, "greatest value of an int or float"),
        "write": Key(PATH, "the file that the value is written to"),
        "run": RUN,
    },
)
VALUE = Section(
    "value",
    {
        "type": TYPE,
        "read": Key(PATH, "the file that holds it; with *: a value for each file there is"),
        "run": RUN,
        "match": Key(Text("a regular expression", r".+", convert=_compiled), "its first group is the value"),
        "interval": Key(TIME, "it is pushed so often to those who watch it"),
    },
)
DOCUMENT = Section(
    "document",
    {
        "name": Key(Text("the name of the device", r".*\S.*"), "name of the device", is_needed=True),
        "allow": Key(Several(PATH, 256), "files that may be read and written; ** stands for any names"),
        "settings": Key(ByName(SETTING, ITEM), "what can be set"),
        "values": Key(ByName(VALUE, ITEM), "what can be read"),
    },
)


@dataclass(frozen=True)
class DeviceDocument:
    """Holds the device of a document."""

    name: str
    items: list[Item]

    def offer(self, agent: Agent) -> None:
        """Have an agent offer all of it; raises UsageError when it can't."""
        for item in self.items:
            agent.add(item)


def read_device(text: str, limit_s: float, name: str = "device.yaml") -> DeviceDocument:
    """Return the device of a YAML document.

    ``limit_s``: a command that takes longer is ended (s); ``name``: of the file, for messages. Raises UsageError with
    name and line where something isn't as docs/agent.md says.
    """
    source = DocumentName(name)
    node = source.compose(text, "a name, and settings or values")
    document = DOCUMENT.read(node, "document", source)
    allowed = AllowList(document.get("allow", ()))
    items: list[Item] = []
    for word, entries in document.get("settings", {}).items():
        with source.line(entries.line):
            items.append(_setting(word, entries, allowed, limit_s))
    for word, entries in document.get("values", {}).items():
        with source.line(entries.line):
            items += _values(word, entries, allowed, limit_s)
    if not items:
        raise source.error(line_of(node), "there are neither settings nor values: give some")
    return DeviceDocument(document.get("name"), items)


def _one_of(entries: Entries, first: str, second: str) -> None:
    if (first in entries.values) == (second in entries.values):
        raise UsageError(f"give either '{first}' or '{second}'")


def _setting(name: str, entries: Entries, allowed: AllowList, limit_s: float) -> Item:
    kind = TYPES[entries.get("type")]
    _one_of(entries, "write", "run")
    if "write" in entries.values:
        path = entries.get("write")
        if "*" in path:
            raise UsageError(f"{path} may be several files: a setting is written to one")
        allowed.check(path)
        call: Any = partial(_write, allowed, path)
    else:
        words = entries.get("run")
        check_command(words, True, kind)
        call = partial(_run, words, limit_s)
    low, high = (_number(kind, entries.get(key)) for key in ("minimum", "maximum"))
    return Item(name, kind, True, call, low, high)


def _values(name: str, entries: Entries, allowed: AllowList, limit_s: float) -> list[Item]:
    kind = TYPES[entries.get("type")]
    _one_of(entries, "read", "run")
    match = entries.get("match")
    interval_ns = int(entries.get("interval", 0))
    if 0 < interval_ns < 10**6:
        raise UsageError("a value can't be read more often than each 1ms")
    if "run" in entries.values:
        words = entries.get("run")
        check_command(words, False, kind)
        call = reader(name, kind, partial(run_command, words, None, limit_s), match)
        return [Item(name, kind, False, call, interval_ns=interval_ns)]
    files = allowed.found(entries.get("read"))
    if not files:
        raise UsageError(f"there is no file {entries.get('read')} now: name one that there is")
    made = []
    for part, path in files:
        own = f"{name}.{part}" if part else name
        call = reader(own, kind, partial(allowed.read, path), match)
        made.append(Item(own, kind, False, call, interval_ns=interval_ns))
    return made


def _number(kind: Type, text: str | None) -> float | None:
    if text is None:
        return None
    if kind == Type.INT and "." in text:
        raise UsageError(f"{text} is not a whole number")
    return int(text) if kind == Type.INT else float(text)


def _write(allowed: AllowList, path: str, value: Scalar) -> None:
    allowed.write(path, octets_of(value))


def _run(words: tuple[str, ...], limit_s: float, value: Scalar) -> None:
    run_command(words, value, limit_s)
