# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads streams and configuration sets from YAML documents, with the line of each error, and writes streams.

What may stand in them is declared with the dataclasses that hold it (host/base/document.py).
"""

from collections.abc import Iterable
from dataclasses import replace

from liteprobe.cores.formats import MAX_LENGTH, MIN_LENGTH, STREAMS, TABLE_ENTRIES
from liteprobe.host.base.document import (
    NAME,
    ByShape,
    DocumentName,
    Entries,
    FieldValue,
    Key,
    Made,
    OneOf,
    Schema,
    Section,
    Several,
    Whole,
    build,
    dumped,
    values_of,
)
from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic import headers, intervals, lengths, modifiers, stamps
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.load import check_port
from liteprobe.host.traffic.modifiers import FIELD_NAMES, OFFSET_MAX
from liteprobe.host.traffic.sets import ADDRESSES, FIELDS, REPEATS_MAX, Repeat, Sets, Values
from liteprobe.host.traffic.stream import COVERAGE, STREAM, Stream, StreamError

SETS_MAX = 1_000_000  # Of a document; more of them come from a script.

# Streams -----------------------------------------------------------------------------------------------

#: Keys of a stream of which one is given at most; one in a stream replaces any of the defaults.
STREAM_GROUPS = (("interval", "rate", "pps", "share"), ("ipv4", "ipv6", "ethertype"), ("udp", "tcp"))
#: Where the error of a setting is found in a document, besides its own key.
PLACES_OF_ERRORS = {
    "interval": ("interval", "rate", "pps", "share", "exponential", "burst"),
    "payload": ("payload", "mpls", "vlan"),
}
OF_ALL = {name: one for name, one in STREAM.keys.items() if name not in ("name", "id")}
STREAMS_DOCUMENT = Section(
    "document",
    {
        "defaults": Key(Section("stream", OF_ALL), "Keys that all streams have, unless they give them."),
        "streams": Key(Several(STREAM, 16 * STREAMS), "The streams; up to 16 of each port.", is_needed=True),
    },
)


@validated
def read_document(text: str, name: str = "streams.yaml", line: Line = GIGABIT) -> list[Stream]:
    """Return the streams of a YAML document.

    ``name``: of the file, for messages; ``line``: of the ports that are to send them. Raises UsageError with name and line
    where something isn't as docs/traffic.md says, or no probe can send it: each stream, and what those of a port add up to.
    """
    source = DocumentName(name)
    document = STREAMS_DOCUMENT.read(source.compose(text, "streams, as docs/traffic.md shows"), "document", source)
    common = document.get("defaults", Entries({}, {}, document.line, source))
    streams = [
        stream_of(entries.over(common, STREAM_GROUPS), number, line)
        for number, entries in enumerate(document.get("streams"), 1)
    ]
    with source.line(document.line_of("streams")):
        for port in sorted({stream.port for stream in streams}):
            check_port([stream for stream in streams if stream.port == port])
    return streams


@validated
def write_document(streams: Iterable[Stream]) -> str:
    """Return streams as a YAML document, which gives the same streams when it is read: of each what differs from the defaults.

    Limits: a time or rate that isn't a finite decimal is written to 18 digits.
    """
    written = []
    for stream in streams:
        values = values_of(stream) | {"probe": stream.probe}
        if stream.probe == _is_udp(stream.headers):
            values.pop("probe")
        written.append(STREAM.write(values))
    return dumped({"streams": written}, flow=None)


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document of streams."""
    return STREAMS_DOCUMENT.document_schema("streams.json", "LiteProbe streams")


def _is_udp(given: headers.Headers) -> bool:
    return given.has_transport and given.transport == "udp"


def stream_of(entries: Entries, number: int, line: Line = GIGABIT) -> Stream:
    """Return the stream of the keys of `STREAM`; ``number``: its id where they have none; ``line``: of its port."""
    for group in STREAM_GROUPS:
        entries.refuse_both(group, "stream")
    if "length" not in entries.values:
        raise entries.source.error(entries.line, "a stream needs 'length': give octets without FCS, like 512")
    identity = entries.get("id", number)
    given = headers.Headers.of_entries(entries)
    others = {
        "name": entries.get("name", f"stream-{identity}"),
        "stream_id": identity,
        "headers": given,
        "probe": entries.get("probe", _is_udp(given)),
        "line": line,
    }
    try:
        made: Stream = build(Stream, entries, **others)
    except StreamError as error:
        raise entries.source.error(
            entries.line_of(*PLACES_OF_ERRORS.get(error.key, (error.key,))), str(error)
        ) from None
    return made


# Configuration sets ------------------------------------------------------------------------------------

NOT_OF_SETS = ("modify", "exponential", "burst", "start", "count", "seed", "from", "via")
REPEATS, TCI = Whole(0, REPEATS_MAX), Whole(0, 0xFFFF, hexadecimal=True)
SET = Section(
    "set",
    {
        "address": Key(FieldValue(), "IP address, the source or the destination as `address` of the document says."),
        "vlan": Key(TCI, "The 16 bits of the first VLAN tag."),
        "inner_vlan": Key(TCI, "The 16 bits of the second VLAN tag."),
        "length": Key(Whole(MIN_LENGTH, MAX_LENGTH), "Octets of the frame without FCS."),
        "index": Key(Whole(0, TABLE_ENTRIES - 1), "Of the entry of the table."),
        "repeat": Key(REPEATS, "Alone: repeats that are allowed from here on; not a frame."),
    },
)
ENTRY = Section("entry", {"offset": Key(Whole(0, OFFSET_MAX), "First of four octets, even.", is_needed=True)})
SETS_DOCUMENT = Section(
    "document",
    {
        "stream": Key(
            Section("stream", {name: one for name, one in STREAM.keys.items() if name not in NOT_OF_SETS}),
            "What is the same in all frames, and in the first one where its set says nothing.",
            is_needed=True,
        ),
        "fields": Key(Several(OneOf(FIELDS), len(FIELDS)), "What sets may have.", "what the first one has"),
        "address": Key(OneOf(ADDRESSES), "Which address sets have.", "source"),
        "entry": Key(
            ByShape(NAME, Made(ENTRY, lambda given: given.values["offset"])),
            f"What an entry of the table is: one of {', '.join(FIELD_NAMES[:4])}..., or any four octets by `offset`.",
        ),
        "table": Key(Several(FieldValue(), TABLE_ENTRIES), "Entries: numbers of 32 bits, or IPv4 addresses."),
        "repeats": Key(REPEATS, "How often in a row the last frame is repeated when no set is there in time.", "0"),
        "sets": Key(Several(SET, SETS_MAX), "What varies, a frame each.", is_needed=True),
    },
)


@validated
def read_sets(
    text: str,
    name: str = "sets.yaml",
    interval: Interval | None = None,
    repeats: int | None = None,
    port: int | None = None,
) -> Sets:
    """Return the sets of a YAML document, all of them checked.

    Raises UsageError with name and line where something isn't as docs/sets.md says, or no probe can send it.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    interval, repeats, port : or None
        In the place of what the document says.
    """
    source = DocumentName(name)
    document = SETS_DOCUMENT.read(source.compose(text, "a stream and sets, as docs/sets.md shows"), "document", source)
    stream = stream_of(document.values["stream"], 1)
    stream = replace(stream, interval=interval or stream.interval, port=stream.port if port is None else port)
    items = [_item(one) for one in document.values["sets"]]
    settings = {key: one for key, one in document.values.items() if key not in ("stream", "sets")}
    if repeats is not None:
        settings["repeats"] = repeats
    with source.line(document.line):
        made = Sets(stream, items, **settings)
    for item, entries in zip(items, document.values["sets"], strict=True):
        if not isinstance(item, Repeat):
            _check_set(made, item, entries)
    return made


def sets_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document of sets."""
    return SETS_DOCUMENT.document_schema("sets.json", "LiteProbe configuration sets")


def _item(entries: Entries) -> Values | Repeat:
    if "repeat" not in entries.values:
        return entries.values
    if len(entries.values) > 1:
        raise entries.error("repeat", "'repeat' stands alone, it is not of a frame: give it a line of its own")
    return Repeat(entries.values["repeat"])


def _check_set(made: Sets, values: Values, entries: Entries) -> None:
    for name in values:
        if name not in made.fields:
            advice = nearest(name, made.fields) if made.fields else "they have none"
            raise entries.error(name, f"'{name}' is not among the fields of these sets: {advice}, or name it there")
        try:
            made.check({name: values[name]})
        except UsageError as error:
            raise entries.error(name, str(error)) from None


#: Sections in the order of docs/traffic.md.
SECTIONS: tuple[Section, ...] = (
    *(STREAMS_DOCUMENT, STREAM, lengths.LENGTH_TABLE, intervals.BURST.section, headers.SECTIONS["mac"], headers.VLAN),
    headers.MPLS.section,
    *(headers.SECTIONS[name] for name in ("ipv4", "ipv6", "udp", "tcp")),
    *(COVERAGE.section, stamps.STAMP.section, modifiers.MODIFIER),
)
