# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Documents of configuration sets: a stream whose frames differ in a few fields, the table, and the sets."""

from dataclasses import replace
from typing import Any

from liteprobe.cores.formats import MAX_LENGTH, MIN_LENGTH, TABLE_ENTRIES
from liteprobe.host.errors import UsageError, nearest
from liteprobe.host.traffic.document.keys import STREAM
from liteprobe.host.traffic.document.kinds import NAME, Choice, Schema, Source, Value, Whole
from liteprobe.host.traffic.document.read import compose, stream_of
from liteprobe.host.traffic.document.sections import Either, Entries, Key, Section, Several, document_schema
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.modifiers import FIELD_NAMES
from liteprobe.host.traffic.sets import ADDRESSES, FIELDS, REPEATS_MAX, Repeat, Sets, Values

SETS_MAX = 1_000_000  # Of a document; more of them come from a script.
NOT_OF_SETS = ("modify", "exponential", "burst", "start", "count", "seed")

REPEATS = Whole(0, REPEATS_MAX)
TCI = Whole(0, 0xFFFF, hexadecimal=True)
SET = Section(
    "set",
    {
        "address": Key(Value(), "IP address, the source or the destination as `address` of the document says."),
        "vlan": Key(TCI, "The 16 bits of the first VLAN tag."),
        "inner_vlan": Key(TCI, "The 16 bits of the second VLAN tag."),
        "length": Key(Whole(MIN_LENGTH, MAX_LENGTH), "Octets of the frame without FCS."),
        "index": Key(Whole(0, TABLE_ENTRIES - 1), "Of the entry of the table."),
        "repeat": Key(REPEATS, "Alone: repeats that are allowed from here on; not a frame."),
    },
)
SETS = Section(
    "document",
    {
        "stream": Key(
            Section("stream", {name: key for name, key in STREAM.keys.items() if name not in NOT_OF_SETS}),
            "What is the same in all frames, and in the first one where its set says nothing.",
            is_needed=True,
        ),
        "fields": Key(Several(Choice(FIELDS), len(FIELDS)), "What sets may have.", "what the first one has"),
        "address": Key(Choice(ADDRESSES), "Which address sets have.", "source"),
        "entry": Key(
            Either(
                NAME, Section("entry", {"offset": Key(Whole(0, 124), "First of four octets, even.", is_needed=True)})
            ),
            f"What an entry of the table is: one of {', '.join(FIELD_NAMES[:4])}..., or any four octets by `offset`.",
        ),
        "table": Key(Several(Value(), TABLE_ENTRIES), "Entries: numbers of 32 bits, or IPv4 addresses."),
        "repeats": Key(REPEATS, "How often in a row the last frame is repeated when no set is there in time.", "0"),
        "sets": Key(Several(SET, SETS_MAX), "What varies, a frame each.", is_needed=True),
    },
)


def read_sets(
    text: str,
    name: str = "sets.yaml",
    interval: Interval | None = None,
    repeats: int | None = None,
    port: int | None = None,
) -> Sets:
    """Return the sets of a YAML document, all of them checked.

    Parameters
    ----------
    text : str
    name : str
        Of the file, for messages.
    interval, repeats, port : or None
        In the place of what the document says.

    Raises
    ------
    UsageError
        With name and line where something isn't as docs/sets.md says, or no probe can send it.
    """
    source = Source(name)
    document = SETS.read(compose(text, source, "a stream and sets, as docs/sets.md shows"), "document", source)
    stream = stream_of(document.values["stream"], 1, source)
    stream = replace(stream, interval=interval or stream.interval, port=stream.port if port is None else port)
    items = [_item(one, source) for one in document.values["sets"]]
    entry: str | Entries | None = document.get("entry")
    settings: dict[str, Any] = {
        "fields": document.get("fields"),
        "address": document.get("address", "source"),
        "entry": entry.values["offset"] if isinstance(entry, Entries) else entry,
        "table": document.get("table", ()),
        "repeats": document.get("repeats", 0) if repeats is None else repeats,
    }
    with source.line(document.line):
        made = Sets(stream, items, **settings)
    for item, entries in zip(items, document.values["sets"], strict=True):
        if not isinstance(item, Repeat):
            _check(made, item, entries, source)
    return made


def sets_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document of sets."""
    return document_schema(SETS, "LiteProbe configuration sets")


# # #


def _item(entries: Entries, source: Source) -> Values | Repeat:
    if "repeat" not in entries.values:
        return entries.values
    if len(entries.values) > 1:
        raise source.error(
            entries.lines["repeat"], "'repeat' stands alone, it is not of a frame: give it a line of its own"
        )
    return Repeat(entries.values["repeat"])


def _check(made: Sets, values: Values, entries: Entries, source: Source) -> None:
    for name in values:
        if name not in made.fields:
            advice = nearest(name, made.fields) if made.fields else "they have none"
            raise source.error(
                entries.lines[name], f"'{name}' is not among the fields of these sets: {advice}, or name it there"
            )
        try:
            made.check({name: values[name]})
        except UsageError as error:
            raise source.error(entries.lines[name], str(error)) from None
