# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes streams as a YAML document: of each what differs from what holds anyway."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import yaml

from liteprobe.host.traffic.document.kinds import RATE_UNITS, TIME_UNITS_NS
from liteprobe.host.traffic.headers import Headers, MplsLabel
from liteprobe.host.traffic.intervals import Interval, Number, exact
from liteprobe.host.traffic.lengths import IMIX, Fixed, Length, Lengths, RandomLength, Stepped
from liteprobe.host.traffic.modifiers import Decrement, Field, Increment, Modifier, Random, Values
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.stream import Stream

DIGITS = 18

Mapping = dict[str, Any]


def write_document(streams: Iterable[Stream]) -> str:
    """Return streams as a YAML document, which gives the same streams when it is read.

    Limits: a time or rate that is no finite decimal is written to 18 digits.
    """
    document = {"streams": [mapping_of(stream) for stream in streams]}
    written: str = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    return written


def mapping_of(stream: Stream) -> Mapping:
    """Return the keys of a stream."""
    headers = stream.headers
    is_udp = headers.has_transport and headers.transport == "udp"
    written: Mapping = {"name": stream.name, "id": stream.stream_id}
    if stream.port:
        written["port"] = stream.port
    written["length"] = _length(stream.length)
    written |= _interval(stream.interval)
    if stream.count is not None:
        written["count"] = stream.count
    if exact(stream.start_ns):
        written["start"] = _with_unit(stream.start_ns, TIME_UNITS_NS)
    written |= _headers(headers)
    if stream.payload:
        written["payload"] = stream.payload.hex()
    if stream.fill != "zero":
        written["fill"] = stream.fill
    if stream.probe != is_udp:
        written["probe"] = stream.probe
    if stream.stamp is not None:
        written["stamp"] = _stamp(stream.stamp)
    if stream.checksum != "auto":
        written["checksum"] = stream.checksum
    if stream.modifiers:
        written["modify"] = [_modifier(one) for one in stream.modifiers]
    if stream.seed != 1:
        written["seed"] = stream.seed
    return written


# # #


def _with_unit(number: Number, units: dict[str, int]) -> str | int | float:
    """Return a number with the largest unit in which it has no more digits."""
    value = exact(number)
    for unit, size in sorted(units.items(), key=lambda one: (-one[1], -len(one[0]))):
        if (value / size).denominator == 1:
            return f"{value // size}{unit}" if unit else int(value)
    smallest = max((unit for unit in units if units[unit] == 1), key=len)
    if not smallest and Fraction(repr(float(value))) == value:
        return float(value)
    return _decimal(value) + smallest


def _decimal(value: Fraction) -> str:
    """Return a number in decimal; one that doesn't end, to so many digits."""
    whole, rest = divmod(value, 1)
    return f"{whole}.{round(rest * 10**DIGITS):0{DIGITS}d}".rstrip("0").rstrip(".")


def _length(length: Length) -> Any:
    match length:
        case Fixed(one):
            return one
        case Stepped(least, greatest, step):
            return {"least": least, "greatest": greatest, "step": step}
        case RandomLength(least, greatest):
            return {"least": least, "greatest": greatest, "order": "random"}
        case Lengths(entries, random):
            table: Any = "imix" if entries == IMIX.entries else list(entries)
            return {"table": table, "order": "random"} if random else table


def _interval(interval: Interval) -> Mapping:
    written: Mapping = {}
    if interval.interval_ns is not None:
        written["interval"] = _with_unit(interval.interval_ns, TIME_UNITS_NS)
    if interval.rate_bps is not None:
        written["rate"] = _with_unit(interval.rate_bps, RATE_UNITS)
    if interval.pps is not None:
        written["pps"] = _with_unit(interval.pps, {"": 1, "k": 10**3, "M": 10**6})
    if interval.share is not None:
        written["share"] = _decimal(exact(interval.share) * 100) + "%"
    if interval.exponential:
        written["exponential"] = True
    if interval.burst is not None:
        written["burst"] = {"count": interval.burst.count}
        if interval.burst.inner_ns is not None:
            written["burst"]["interval"] = _with_unit(interval.burst.inner_ns, TIME_UNITS_NS)
    return written


def _headers(headers: Headers) -> Mapping:
    usual = Headers()

    def given(names: dict[str, str]) -> Mapping:
        """Return the fields that aren't as usual, by key."""
        return {
            key: getattr(headers, name) for key, name in names.items() if getattr(headers, name) != getattr(usual, name)
        }

    written: Mapping = {
        "mac": given({"source": "source_mac", "destination": "destination_mac"}),
        "vlan": [_tag(tag) for tag in headers.vlan_tags],
        "mpls": [_label(label) for label in headers.mpls_labels],
    }
    if headers.ethertype is not None:
        return {key: value for key, value in written.items() if value} | {"ethertype": headers.ethertype}
    version = "ipv6" if headers.is_ipv6 else "ipv4"
    names = {"source": "source_ip", "destination": "destination_ip"}
    if headers.is_ipv6:
        names |= {"hop_limit": "ttl", "traffic_class": "traffic_class", "flow_label": "flow_label"}
    else:
        names |= {"ttl": "ttl", "tos": "traffic_class", "identification": "identification"}
    written[version] = given(names)
    ports = {"source": "source_port", "destination": "destination_port"}
    if headers.transport == "none":
        written[version]["next_header" if headers.is_ipv6 else "protocol"] = headers.protocol
    else:
        written[headers.transport] = given(ports if headers.transport == "udp" else ports | {"flags": "tcp_flags"})
    return {key: value for key, value in written.items() if value or key == "tcp"}


def _tag(tag: int) -> int | Mapping:
    written: Mapping = {"id": tag & 0xFFF}
    if tag >> 13:
        written["priority"] = tag >> 13
    if tag >> 12 & 1:
        written["drop_eligible"] = True
    return written if len(written) > 1 else tag


def _label(label: MplsLabel) -> int | Mapping:
    if label == MplsLabel(label.label):
        return label.label
    return {"label": label.label, "traffic_class": label.traffic_class, "ttl": label.ttl}


def _stamp(stamp: Stamp) -> str | Mapping:
    if stamp.place != "octet" and stamp == Stamp(stamp.place):
        return stamp.place
    written = {"place": stamp.place, "octet": stamp.octet, "width": stamp.width, "tick": stamp.tick or None}
    return {key: value for key, value in written.items() if value is not None}


def _modifier(modifier: Modifier) -> Mapping:
    field = modifier.field
    written: Mapping = {"offset": field.offset, "mask": field.mask} if isinstance(field, Field) else {"field": field}
    match modifier:
        case Random():
            written["op"] = "random"
        case Values():
            written |= {"op": "values", "values": list(modifier.values)}
            if modifier.random:
                written["order"] = "random"
        case Increment():
            written["op"] = "decrement" if isinstance(modifier, Decrement) else "increment"
            given = {"first": modifier.first, "step": modifier.step, "count": modifier.count}
            written |= {key: value for key, value in given.items() if value != {"step": 1, "count": 0}.get(key)}
    return written
