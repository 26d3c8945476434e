# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes headers, and modifiers of them, of a flow's packet: every bit that is asked for is on the wire, or refused by its path.

The bits that a packet says are held against the octets that a probe sends for the headers found. Where they differ, a modifier
of one value puts them right.

Source: Open Traffic Generator models 1.61, flow/packet-headers.
"""

import ipaddress
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from liteprobe.cores.formats import LIST_ENTRIES_MAX
from liteprobe.host.base.errors import UsageError
from liteprobe.host.otg.messages import Given, OtgReport
from liteprobe.host.traffic.headers import (
    ETHERTYPE_MIN,
    Headers,
    MplsLabel,
    mac_octets,
    vlan_tag,
)
from liteprobe.host.traffic.modifiers import WINDOW, Decrement, Field, Increment, Modifier, Values

RESERVED_TYPE, ANY_HOST, NO_NEXT = 0xFFFF, 61, 59  # What follows where nothing does, by the models.
COUNT_MOST = 1 << 32
ENUMERATED = 4096  # Values of a count that are looked at one by one.


# Patterns -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FieldPattern:
    """The values that a field takes, one after the other and again: ``start + k * step`` for ``count``, or a list."""

    path: str
    values: tuple[int, ...]  # All of them where there are few; else the first.
    count: int = 1
    step: int = 0  # 0 with several values: they are a list.

    @property
    def is_constant(self) -> bool:
        """Whether it is always the same."""
        return self.count == 1 and len(set(self.values)) == 1

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last value of a count."""
        return self.values[0], self.values[0] + (self.count - 1) * self.step


def number_of(value: object) -> int:
    """Return a number, a MAC or an IP address as a number; UsageError where it is none."""
    if isinstance(value, int):
        return value
    text = str(value)
    if ":" in text and text.count(":") == 5 and "::" not in text:
        return int.from_bytes(mac_octets(text))
    try:
        return int(ipaddress.ip_address(text))
    except ValueError:
        raise UsageError(
            f"'{text}' is not an address: write it like 02:4c:50:54:00:01, 198.18.0.1 or 2001:2::1"
        ) from None


def pattern(given: Given, default: int = 0) -> FieldPattern | None:
    """Return what a field takes; None: what the probe puts there by itself (``auto``), or an error was reported."""
    kind = given.choice("value")
    try:
        if kind == "auto":
            given.value("auto")
            if given.message.DESCRIPTOR.fields_by_name["auto"].message_type:
                given.error("auto", "no address comes from a DHCP server: give a value")
            return None
        if kind == "value":
            return FieldPattern(given.at(), (number_of(given.value("value", default)),))
        if kind == "values":
            return _list_of(given, [number_of(one) for one in given.values("values")])
        if kind in ("increment", "decrement"):
            return _count_of(given, kind)
        if kind == "random":
            return _random_of(given)
        given.error("choice", f"'{kind}' is not supported: give value, values, increment, decrement or random")
    except UsageError as error:
        given.error(kind, error)
    return None


def _list_of(given: Given, values: Sequence[int]) -> FieldPattern | None:
    if not values:
        given.error("values", "it has no value: give one or more")
        return None
    steps = {after - before for before, after in itertools.pairwise(values)}
    if len(values) > LIST_ENTRIES_MAX and len(steps) == 1 and 0 not in steps:
        return FieldPattern(given.at(), (values[0],), len(values), steps.pop())
    if len(values) > LIST_ENTRIES_MAX and len(set(values)) > 1:
        given.error("values", f"{len(values)} values are too many: give {LIST_ENTRIES_MAX}, or an increment")
        return None
    return FieldPattern(given.at(), tuple(values) if len(set(values)) > 1 else (values[0],))


def _count_of(given: Given, kind: str) -> FieldPattern | None:
    count = given.part(kind)
    assert count is not None or not given.has(kind)
    if count is None:
        given.error(kind, "it is empty: give start, step and count")
        return None
    step = number_of(count.value("step", 1))
    found = FieldPattern(
        given.at(),
        (number_of(count.value("start", 0)),),
        int(count.value("count", 1)),
        step if kind == "increment" else -step,
    )
    if not found.count:
        count.error("count", "0 is out of range: give 1 or more")
        return None
    return found if found.count > 1 and step else FieldPattern(given.at(), found.values)


def _random_of(given: Given) -> FieldPattern | None:
    drawn = given.part("random")
    if drawn is None:
        given.error("random", "it is empty: give min, max and count")
        return None
    least, most = number_of(drawn.value("min", 0)), number_of(drawn.value("max", 0))
    count, seed = int(drawn.value("count", 1)), int(drawn.value("seed", 1))
    if least > most:
        drawn.error("min", f"{least} is above max, {most}: exchange them")
        return None
    if not 1 <= count <= LIST_ENTRIES_MAX:
        drawn.error("count", f"{count} random values are out of range: give 1 to {LIST_ENTRIES_MAX}")
        return None
    rng = random.Random(seed)
    return _list_of(given, [rng.randint(least, most) for _ in range(count)])


# Fields -------------------------------------------------------------------------------------------


@dataclass
class FieldBits:
    """A field of the packet: its place in bits from the first octet of the frame, and what it takes."""

    path: str
    at: int
    width: int
    takes: FieldPattern | None  # None: what the probe puts there.


@dataclass
class FlowPacket:
    """Holds the headers of a flow, and every bit that was asked for."""

    headers: dict[str, Any] = field(default_factory=dict)  # Of Headers.
    bits: list[FieldBits] = field(default_factory=list)
    payload: bytes = b""  # Of custom headers.
    custom_path: str = ""
    octets: int = 0  # Of all headers but custom ones.
    checksum: str = "auto"  # ``auto``: right if that can be; ``good``: must be right; ``zero``: 0.
    checksum_path: str = ""
    kinds: list[str] = field(default_factory=list)  # Of its headers, in order.
    needs_mac: bool = False  # Its destination address is not given.
    automatic: dict[str, str] = field(default_factory=dict)  # Paths of addresses that come from a device, by field.

    @property
    def is_udp(self) -> bool:
        """Whether a probe header can follow."""
        return self.headers.get("transport") == "udp" and self.headers.get("ethertype") is None


#: Fields of a header: first bit, width, what holds where it is absent (None: what the probe puts there).
AUTO = None
FIELDS: dict[str, dict[str, tuple[int, int, int | None]]] = {
    "ethernet": {"dst": (0, 48, 0), "src": (48, 48, 0), "ether_type": (96, 16, AUTO)},
    "vlan": {"priority": (0, 3, 0), "cfi": (3, 1, 0), "id": (4, 12, 0), "tpid": (16, 16, AUTO)},
    "mpls": {
        "label": (0, 20, 16),
        "traffic_class": (20, 3, 0),
        "bottom_of_stack": (23, 1, AUTO),
        "time_to_live": (24, 8, 64),
    },
    "ipv4": {
        "version": (0, 4, 4),
        "header_length": (4, 4, AUTO),
        "total_length": (16, 16, AUTO),
        "identification": (32, 16, 0),
        "reserved": (48, 1, 0),
        "dont_fragment": (49, 1, 0),
        "more_fragments": (50, 1, 0),
        "fragment_offset": (51, 13, 0),
        "time_to_live": (64, 8, 64),
        "protocol": (72, 8, AUTO),
        "src": (96, 32, 0),
        "dst": (128, 32, 0),
    },
    "ipv6": {
        "version": (0, 4, 6),
        "traffic_class": (4, 8, 0),
        "flow_label": (12, 20, 0),
        "payload_length": (32, 16, AUTO),
        "next_header": (48, 8, AUTO),
        "hop_limit": (56, 8, 64),
        "src": (64, 128, 0),
        "dst": (192, 128, 0),
    },
    "udp": {"src_port": (0, 16, 0), "dst_port": (16, 16, 0), "length": (32, 16, AUTO)},
    "tcp": {
        "src_port": (0, 16, 0),
        "dst_port": (16, 16, 0),
        "seq_num": (32, 32, 0),
        "ack_num": (64, 32, 0),
        "data_offset": (96, 4, AUTO),
        "ecn_ns": (103, 1, 0),
        "ecn_cwr": (104, 1, 0),
        "ecn_echo": (105, 1, 0),
        "ctl_urg": (106, 1, 0),
        "ctl_ack": (107, 1, 0),
        "ctl_psh": (108, 1, 0),
        "ctl_rst": (109, 1, 0),
        "ctl_syn": (110, 1, 0),
        "ctl_fin": (111, 1, 0),
        "window": (112, 16, 0),
    },
}
SIZES = {"ethernet": 14, "vlan": 4, "mpls": 4, "ipv4": 20, "ipv6": 40, "udp": 8, "tcp": 20}
#: What may follow each header.
FOLLOWS = {
    "": ("ethernet",),
    "ethernet": ("vlan", "mpls", "ipv4", "ipv6", "custom"),
    "vlan": ("vlan", "mpls", "ipv4", "ipv6", "custom"),
    "mpls": ("mpls", "ipv4", "ipv6"),
    "ipv4": ("udp", "tcp", "custom"),
    "ipv6": ("udp", "tcp", "custom"),
    "udp": ("custom",),
    "tcp": ("custom",),
    "custom": ("custom",),
}
PRIORITIES = {
    "raw": {"": (8, 8, 0)},
    "dscp": {"phb": (8, 6, 0), "ecn": (14, 2, 0)},
    "tos": {
        "precedence": (8, 3, 0),
        "delay": (11, 1, 0),
        "throughput": (12, 1, 0),
        "reliability": (13, 1, 0),
        "monetary": (14, 1, 0),
        "unused": (15, 1, 0),
    },
}


def packet_of(flow: Given) -> FlowPacket:
    """Return the packet of a flow; what can't be is reported."""
    found, before, tags, labels = FlowPacket(), "", [], []
    parts = list(flow.parts("packet"))
    if not parts:
        flow.report.warn(flow.at("packet"), "it is empty, so frames have an Ethernet header alone")
    for place, part in enumerate(parts):
        kind = part.choice("ethernet")
        if kind not in SIZES and kind != "custom":
            part.error(
                kind, "liteprobe sends no such header: leave it out, or give its octets as a custom header at the end"
            )
            _abandon(parts[place:])
            return found
        if kind not in FOLLOWS[before]:
            part.error(
                kind, f"{kind} does not follow {before or 'the start of a frame'}: give {', '.join(FOLLOWS[before])}"
            )
            _abandon(parts[place:])
            return found
        body = part.part(kind)
        following = parts[place + 1].message if place + 1 < len(parts) else None
        values = _fields_of(found, part, kind, body) if kind != "custom" else {}
        if kind == "custom":
            _custom(found, part, body)
        elif kind == "vlan":
            tags.append(vlan_tag(values["id"], values["priority"], bool(values["cfi"])))
        elif kind == "mpls":
            labels.append(MplsLabel(values["label"], values["traffic_class"], values["time_to_live"]))
        else:
            SETTERS[kind](found, values)
        found.kinds.append(kind)
        _type_of_next(found, kind, values, part, following is None or _kind(following) == "custom")
        before = kind
    found.headers |= {"vlan_tags": tuple(tags), "mpls_labels": tuple(labels)}
    if before == "mpls":
        parts[-1].error("mpls", "nothing follows the last label: give an IPv4 or IPv6 header")
    if not parts:
        _ethernet(found, {"dst": 0, "src": 0})
        found.headers["ethertype"], found.octets = RESERVED_TYPE, SIZES["ethernet"]
    return found


def _abandon(parts: Sequence[Given]) -> None:
    for part in parts:
        part.abandon()


def _kind(message: Any) -> str:
    choice = message.DESCRIPTOR.fields_by_name["choice"].enum_type.values_by_number.get(message.choice)
    return choice.name if choice and choice.number else "ethernet"


def _fields_of(packet: FlowPacket, part: Given, kind: str, body: Given | None) -> dict[str, int]:
    """Keep the bits of a header; return its first values by name."""
    start, values = 8 * packet.octets, dict[str, int]()
    rows = [(name, body.part(name) if body else None, *row) for name, row in FIELDS[kind].items()]
    if kind == "ipv4":
        rows += _priority(body)
    if body:
        _checksums(packet, body, kind)
    path = part.at(kind)
    for name, given, first, width, default in rows:
        takes = None if default is None else FieldPattern(f"{path}.{name}", (default,))
        if kind == "ethernet" and name == "dst":
            packet.needs_mac = given is None or given.choice("value") == "auto"
        if given is not None:
            if given.choice("value") == "auto" and name in ("dst", "src"):
                packet.automatic[f"{kind}.{name}"] = given.at()
            takes = pattern(given, default=default or 0)
        if takes is not None and not _fits(takes, width):
            part.report.error(takes.path, f"its values do not fit into {width} bits: give 0 to {(1 << width) - 1}")
            takes = None
        if (
            given is not None
            and takes is not None
            and name in ("ether_type", "tpid")
            and takes.values == (RESERVED_TYPE,)
        ):
            takes = None  # By the models the reserved type stands for the type of what follows.
        packet.bits.append(FieldBits(takes.path if takes else f"{path}.{name}", start + first, width, takes))
        values[name] = takes.values[0] if takes else default or 0
    packet.octets += SIZES[kind]
    return values


def _fits(takes: FieldPattern, width: int) -> bool:
    values = takes.ends if takes.count > 1 else takes.values
    return all(0 <= one < 1 << width for one in values) and takes.count < COUNT_MOST


def _priority(body: Given | None) -> list[tuple[str, Given | None, int, int, int | None]]:
    """Return the rows of an IPv4 header's priority."""
    given = body.part("priority") if body else None
    kind = given.choice("dscp") if given else "raw"
    chosen = given.part(kind) if given else None
    return [
        (f"priority.{kind}.{name}".rstrip("."), (chosen.part(name) if name and chosen else chosen), *row)
        for name, row in PRIORITIES.get(kind, PRIORITIES["raw"]).items()
    ]


def _checksums(packet: FlowPacket, body: Given, kind: str) -> None:
    """Take what is said of checksums: generated and good, or 0 of UDP."""
    name = "header_checksum" if kind == "ipv4" else "checksum"
    given = body.part(name) if name in body.message.DESCRIPTOR.fields_by_name else None
    if given is None:
        return
    how = given.choice("generated")
    if how == "generated":
        word = given.value("generated", "good")
        if word not in ("good", "unspecified"):
            given.error("generated", "checksums are right always: give good")
        elif kind != "ipv4":
            packet.checksum, packet.checksum_path = "good", given.at()
    elif kind == "udp" and given.value("custom", 0) == 0:
        packet.checksum, packet.checksum_path = "zero", given.at()
    else:
        given.value("custom")
        given.error("custom", "checksums are right always: give generated" + (", or custom 0" if kind == "udp" else ""))


def _custom(packet: FlowPacket, part: Given, body: Given | None) -> None:
    text = str(body.value("bytes", "")) if body else ""
    packet.custom_path = packet.custom_path or part.at("custom.bytes")
    try:
        packet.payload += bytes.fromhex(text)
    except ValueError:
        part.error("custom.bytes", f"'{text[:40]}' is not hexadecimal: give an even number of digits 0 to f")


def _address(number: int, octets: int) -> str:
    packed = number.to_bytes(octets)
    return packed.hex(":") if octets == 6 else str(ipaddress.ip_address(packed))


def _ethernet(packet: FlowPacket, values: dict[str, int]) -> None:
    packet.headers |= {"destination_mac": _address(values["dst"], 6), "source_mac": _address(values["src"], 6)}


def _ipv4(packet: FlowPacket, values: dict[str, int]) -> None:
    traffic_class = 0
    for name, value in values.items():
        if name.startswith("priority."):
            rows = PRIORITIES[name.split(".")[1]]
            first, width, _ = rows[name.split(".")[2] if name.count(".") > 1 else ""]
            traffic_class |= value << (16 - first - width)
    packet.headers |= {
        "source_ip": _address(values["src"], 4),
        "destination_ip": _address(values["dst"], 4),
        "ttl": values["time_to_live"],
        "identification": values["identification"],
        "dont_fragment": bool(values["dont_fragment"]),
        "traffic_class": traffic_class,
    }


def _ipv6(packet: FlowPacket, values: dict[str, int]) -> None:
    packet.headers |= {
        "source_ip": _address(values["src"], 16),
        "destination_ip": _address(values["dst"], 16),
        "ttl": values["hop_limit"],
        "traffic_class": values["traffic_class"],
        "flow_label": values["flow_label"],
    }


def _ports(packet: FlowPacket, values: dict[str, int]) -> None:
    packet.headers |= {"transport": "udp", "source_port": values["src_port"], "destination_port": values["dst_port"]}


def _tcp(packet: FlowPacket, values: dict[str, int]) -> None:
    _ports(packet, values)
    names = ("ecn_cwr", "ecn_echo", "ctl_urg", "ctl_ack", "ctl_psh", "ctl_rst", "ctl_syn", "ctl_fin")
    flags = sum(values[name] << (7 - place) for place, name in enumerate(names))
    packet.headers |= {
        "transport": "tcp",
        "tcp_flags": flags,
        "tcp_sequence": values["seq_num"],
        "tcp_acknowledgment": values["ack_num"],
        "tcp_window": values["window"],
    }


SETTERS: dict[str, Callable[[FlowPacket, dict[str, int]], None]] = {
    "ethernet": _ethernet,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "udp": _ports,
    "tcp": _tcp,
}


def _type_of_next(packet: FlowPacket, kind: str, values: dict[str, int], part: Given, is_last: bool) -> None:
    """Set the type or protocol of what follows a header where nothing that has one does."""
    if not is_last:
        return
    if kind in ("ethernet", "vlan"):
        given = values["ether_type" if kind == "ethernet" else "tpid"] or RESERVED_TYPE
        if given < ETHERTYPE_MIN:
            part.error(kind, f"the type {given:#06x} is a length, below {ETHERTYPE_MIN:#06x}: give that or more")
        packet.headers["ethertype"] = max(given, ETHERTYPE_MIN)
    elif kind in ("ipv4", "ipv6"):
        name, usual = ("protocol", ANY_HOST) if kind == "ipv4" else ("next_header", NO_NEXT)
        given_bits = next(one for one in packet.bits if one.path.endswith(f"{kind}.{name}"))
        protocol = given_bits.takes.values[0] if given_bits.takes else usual
        packet.headers |= {"transport": "none", "protocol": protocol}


# Modifiers ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedModifier:
    """A modifier, and the path of the field that asks for it."""

    path: str
    modifier: Modifier


def modifiers_of(packet: FlowPacket, octets: bytes, end: int, report: OtgReport) -> list[PlacedModifier]:
    """Return what changes the headers from frame to frame, and what puts right what the probe would send otherwise.

    ``octets``: those that the probe sends of the headers, without modifiers; ``end``: octets that it can change.
    """
    found: list[PlacedModifier] = []
    for one in packet.bits:
        if one.takes is None:
            continue
        try:
            if not one.takes.is_constant:
                found.append(PlacedModifier(one.path, _changing(one, end)))
            elif _bits_of(octets, one) != one.takes.values[0]:
                found.append(PlacedModifier(one.path, _constant(one, end)))
        except UsageError as error:
            report.error(one.path, error)
    return _merged(found)


def _bits_of(octets: bytes, one: FieldBits) -> int:
    whole = int.from_bytes(octets)
    return whole >> (8 * len(octets) - one.at - one.width) & ((1 << one.width) - 1)


def _window(one: FieldBits, changing: int, end_of_headers: int) -> tuple[Field, int]:
    """Return a window over the changing bits of a field, and how far a value is to be shifted right for it."""
    low = (changing & -changing).bit_length() - 1
    high = changing.bit_length()
    first, end = one.at + one.width - high, one.at + one.width - low  # In bits of the frame.
    offset = min(first // 16 * 2, end_of_headers // 2 * 2 - WINDOW)
    if offset < 0 or end > 8 * (offset + WINDOW):
        raise UsageError(
            f"its values differ in more bits than the {8 * WINDOW} that a probe changes at once: let them differ in their last ones"
        )
    mask = ((1 << (end - first)) - 1) << (8 * (offset + WINDOW) - end)
    return Field(offset, mask), low


def _changing(one: FieldBits, octets: int) -> Modifier:
    takes = one.takes
    assert takes is not None
    if takes.count > 1:
        start, last = takes.ends
        if takes.count <= ENUMERATED:
            changing = 0
            for k in range(takes.count):
                changing |= (start + k * takes.step) ^ start
        else:
            low = (takes.step & -takes.step).bit_length() - 1
            changing = (1 << (start ^ last).bit_length()) - (1 << low)
        high, low = changing.bit_length(), (changing & -changing).bit_length() - 1
        window, shift = _window(one, (1 << high) - (1 << low), octets)
        kind = Increment if takes.step > 0 else Decrement
        return kind(window, start >> shift & window.most, abs(takes.step) >> shift, takes.count)
    changing = 0
    for value in takes.values:
        changing |= value ^ takes.values[0]
    span = (1 << changing.bit_length()) - (changing & -changing)
    window, shift = _window(one, span, octets)
    return Values(window, tuple(value >> shift & window.most for value in takes.values))


def _constant(one: FieldBits, octets: int) -> Modifier:
    assert one.takes is not None
    window, shift = _window(one, (1 << one.width) - 1, octets)
    return Values(window, (one.takes.values[0] >> shift & window.most,))


def _merged(placed: Sequence[PlacedModifier]) -> list[PlacedModifier]:
    """Join constants of one window."""
    found: list[PlacedModifier] = []
    for one in placed:
        before = found[-1] if found else None
        if before and _is_constant(before.modifier) and _is_constant(one.modifier):
            first, second = before.modifier, one.modifier
            assert isinstance(first, Values) and isinstance(second, Values)
            assert isinstance(first.field, Field) and isinstance(second.field, Field)
            shift = 8 * (second.field.offset - first.field.offset)
            if 0 <= shift < 8 * WINDOW and second.field.mask & ((1 << shift) - 1) == 0:
                joined = Field(first.field.offset, first.field.mask | second.field.mask >> shift)
                value = int(first.values[0]) << first.field.shift | int(second.values[0]) << second.field.shift >> shift
                found[-1] = PlacedModifier(before.path, Values(joined, (value >> joined.shift,)))
                continue
        found.append(one)
    return found


def _is_constant(modifier: Modifier) -> bool:
    return isinstance(modifier, Values) and len(modifier.values) == 1


def headers_of(packet: FlowPacket) -> Headers:
    """Return the headers; UsageError where a probe sends no such."""
    return Headers(**packet.headers)
