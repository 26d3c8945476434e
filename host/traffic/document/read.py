# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads streams from a YAML document, and says what may stand in one."""

from collections.abc import Sequence
from typing import Any

import yaml

from liteprobe.host import defaults
from liteprobe.host.errors import UsageError
from liteprobe.host.traffic.document.keys import DOCUMENT
from liteprobe.host.traffic.document.kinds import Schema, Source
from liteprobe.host.traffic.document.sections import Entries, a, document_schema
from liteprobe.host.traffic.headers import Headers, MplsLabel, vlan_tag
from liteprobe.host.traffic.intervals import Burst, Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, Lengths, RandomLength, Stepped, weighted
from liteprobe.host.traffic.load import check_port
from liteprobe.host.traffic.modifiers import Decrement, Field, Increment, Modifier, Random, Values
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream, StreamError

#: Keys of a stream of which one is given at most; one in a stream replaces any of the defaults.
GROUPS = (("interval", "rate", "pps", "share"), ("ipv4", "ipv6", "ethertype"), ("udp", "tcp"))

#: Where the error of a setting is found in a document, besides its own key.
PLACES_OF_ERRORS = {
    "interval": ("interval", "rate", "pps", "share", "exponential", "burst"),
    "payload": ("payload", "mpls", "vlan"),
}


def read_document(text: str, name: str = "streams.yaml") -> list[Stream]:
    """Return the streams of a YAML document.

    Parameters
    ----------
    text : str
    name : str
        Of the file, for messages.

    Raises
    ------
    UsageError
        With name and line where something isn't as docs/traffic.md says, or no probe can send it: each stream, and what the
        streams of a port add up to.
    """
    source = Source(name)
    document = DOCUMENT.read(compose(text, source, "streams, as docs/traffic.md shows"), "document", source)
    common = document.get("defaults", Entries({}, {}, document.line))
    streams = [
        stream_of(entries.over(common, GROUPS), number, source)
        for number, entries in enumerate(document.get("streams"), 1)
    ]
    with source.line(document.line_of("streams")):
        for port in sorted({stream.port for stream in streams}):
            check_port([stream for stream in streams if stream.port == port])
    return streams


def compose(text: str, source: Source, what: str) -> yaml.Node:
    """Return the root of a document; ``what``: what it should have, for messages."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise source.error(line, f"this is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise source.error(1, f"this is not YAML: {str(error).splitlines()[0]}") from None
    if node is None:
        raise source.error(1, f"the document is empty: give {what}")
    return node


def schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a document."""
    return document_schema(DOCUMENT, "LiteProbe streams")


# # #


def _refuse_both(entries: Entries, keys: Sequence[str], title: str, source: Source) -> None:
    """Refuse a second one of keys of which one is given at most."""
    given = [key for key in entries.values if key in keys]
    if len(given) > 1:
        raise source.error(
            entries.lines[given[1]], f"'{given[0]}' and '{given[1]}' of {a(title)} are both given: leave out one"
        )


def stream_of(entries: Entries, number: int, source: Source) -> Stream:
    """Return the stream of keys; ``number``: its id where they have none."""
    for group in GROUPS:
        _refuse_both(entries, group, "stream", source)
    if "length" not in entries.values:
        raise source.error(entries.line, "a stream needs 'length': give octets without FCS, like 512")
    identity = entries.get("id", number)
    headers = _headers(entries, source)
    is_udp = headers.has_transport and headers.transport == "udp"
    settings: dict[str, Any] = {
        "name": entries.get("name", f"stream-{identity}"),
        "stream_id": identity,
        "length": _length(entries, source),
        "interval": _interval(entries, source),
        "start_ns": entries.get("start", 0),
        "headers": headers,
        "modifiers": tuple(_modifier(one, source) for one in entries.get("modify", ())),
        "probe": entries.get("probe", is_udp),
        "stamp": _stamp(entries, source),
    }
    plain = {
        key: entries.values[key]
        for key in ("count", "port", "payload", "fill", "checksum", "seed")
        if key in entries.values
    }
    try:
        return Stream(**settings, **plain)
    except StreamError as error:
        raise source.error(_line_of_error(entries, error.key), str(error)) from None


def _line_of_error(entries: Entries, key: str) -> int:
    if key.startswith("modify["):
        modifier: Entries = entries.values["modify"][int(key[7:-1])]
        return modifier.line
    return entries.line_of(*PLACES_OF_ERRORS.get(key, (key,)))


def _length(entries: Entries, source: Source) -> Length:
    given = entries.values["length"]
    if given == "imix":
        return IMIX
    if isinstance(given, int):
        return Fixed(given)
    if isinstance(given, tuple):
        return Lengths(given)
    length: Entries = given
    for key in ("weights", "table"):
        for other in ("least", "greatest", "step", "weights", "table"):
            if key != other:
                _refuse_both(length, (key, other), "length", source)
    is_random = length.get("order") == "random"
    with source.line(length.line):
        if "weights" in length.values:
            return weighted(length.values["weights"], is_random)
        if "table" in length.values:
            table = length.values["table"]
            return Lengths(IMIX.entries if table == "imix" else table, is_random)
        if not {"least", "greatest"} <= length.values.keys():
            raise UsageError("a length needs 'least' and 'greatest', or 'weights', or 'table': give one of these")
        if not is_random:
            return Stepped(length.values["least"], length.values["greatest"], length.get("step", 1))
        _refuse_both(length, ("step", "order"), "length of random order", source)
        return RandomLength(length.values["least"], length.values["greatest"])


def _interval(entries: Entries, source: Source) -> Interval:
    burst: Entries | None = entries.get("burst")
    share = entries.get("share")
    with source.line(entries.line_of("exponential", "burst")):
        return Interval(
            interval_ns=entries.get("interval"),
            rate_bps=entries.get("rate"),
            pps=entries.get("pps"),
            share=None if share is None else share / 100,
            exponential=entries.get("exponential", False),
            burst=None if burst is None else Burst(burst.values["count"], burst.get("interval")),
        )


def _headers(entries: Entries, source: Source) -> Headers:
    nothing = Entries({}, {}, entries.line)
    is_ipv6 = "ipv6" in entries.values
    ip: Entries = entries.get("ipv6" if is_ipv6 else "ipv4", nothing)
    mac: Entries = entries.get("mac", nothing)
    transport = "tcp" if "tcp" in entries.values else "udp"
    ports: Entries = entries.get(transport, nothing)
    protocol_key = "next_header" if is_ipv6 else "protocol"
    fields: dict[str, Any] = {}
    if protocol_key in ip.values:
        fields["protocol"] = ip.values[protocol_key]
    for has_none in ("ethertype", protocol_key if "protocol" in fields else ""):
        if (has_none in entries.values or has_none in ip.values) and transport in entries.values:
            raise source.error(
                entries.lines[transport],
                f"'{transport}' does not follow '{has_none}', which the payload follows: leave out one",
            )
    names = {
        "ttl": "hop_limit" if is_ipv6 else "ttl",
        "traffic_class": "traffic_class" if is_ipv6 else "tos",
        "identification": "identification",
        "flow_label": "flow_label",
    }
    fields |= {name: ip.values[key] for name, key in names.items() if key in ip.values}
    fields |= {f"{end}_mac": mac.values[end] for end in ("source", "destination") if end in mac.values}
    fields |= {f"{end}_port": ports.values[end] for end in ("source", "destination") if end in ports.values}
    if "flags" in ports.values:
        fields["tcp_flags"] = ports.values["flags"]
    with source.line(entries.line_of("ethertype")):
        return Headers(
            source_ip=ip.get("source", defaults.SOURCE_IPV6 if is_ipv6 else defaults.SOURCE_IP),
            destination_ip=ip.get("destination", defaults.DESTINATION_IPV6 if is_ipv6 else defaults.DESTINATION_IP),
            vlan_tags=tuple(_tag(one) for one in entries.get("vlan", ())),
            mpls_labels=tuple(_label(one) for one in entries.get("mpls", ())),
            ethertype=entries.get("ethertype"),
            transport="none" if "protocol" in fields else transport,
            **fields,
        )


def _tag(given: int | Entries) -> int:
    if isinstance(given, int):
        return given
    return vlan_tag(given.values["id"], given.get("priority", 0), given.get("drop_eligible", False))


def _label(given: int | Entries) -> MplsLabel:
    return MplsLabel(given) if isinstance(given, int) else MplsLabel(**given.values)


def _stamp(entries: Entries, source: Source) -> Stamp | None:
    given: str | Entries | None = entries.get("stamp")
    if given is None:
        return None
    with source.line(entries.line_of("stamp")):
        return Stamp(given) if isinstance(given, str) else Stamp(**given.values)


#: Keys that a modifier has besides its place.
OF_OPERATION = {
    "increment": ("first", "step", "count"),
    "decrement": ("first", "step", "count"),
    "random": (),
    "values": ("values", "order"),
}


def _modifier(entries: Entries, source: Source) -> Modifier:
    operation = entries.values["op"]
    _refuse_both(entries, ("field", "offset"), "modifier", source)
    for key in entries.values:
        if key not in ("op", "field", "offset", "mask", *OF_OPERATION[operation]):
            raise source.error(entries.lines[key], f"'{key}' is not of op '{operation}': leave it out, or change op")
    with source.line(entries.line):
        if "field" in entries.values:
            if "mask" in entries.values:
                raise UsageError("a mask belongs to 'offset', a field has its own: leave it out")
            field: str | Field = entries.values["field"]
        elif {"offset", "mask"} <= entries.values.keys():
            field = Field(entries.values["offset"], entries.values["mask"])
        else:
            raise UsageError("a modifier needs 'field', or 'offset' and 'mask': say what changes")
        if operation == "random":
            return Random(field)
        if operation == "values":
            if "values" not in entries.values:
                raise UsageError("op 'values' needs 'values': give those that the field takes")
            return Values(field, entries.values["values"], entries.get("order") == "random")
        kind = Increment if operation == "increment" else Decrement
        return kind(field, entries.get("first"), entries.get("step", 1), entries.get("count", 0))
