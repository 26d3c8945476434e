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
from dataclasses import dataclass, field, replace
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
    wraps_at: int = 0  # A count goes on at 0 instead of it, and below 0 from it; 0: it stays within the field.

    @property
    def is_constant(self) -> bool:
        """Whether it is always the same."""
        return self.count == 1 and len(set(self.values)) == 1

    @property
    def period(self) -> int:
        """Frames until its values come again."""
        return self.count if self.count > 1 else len(self.values)

    def value(self, frame: int) -> int:
        """Return the value in a frame, from 0."""
        if self.count > 1:
            value = self.values[0] + frame % self.count * self.step
            return value % self.wraps_at if self.wraps_at else value
        return self.values[frame % len(self.values)]

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
    counts_from: int | None = None  # It is a length: octets from here to the end of the frame.


@dataclass(frozen=True)
class LayerSum:
    """A checksum of a header that streams have no fields for."""

    path: str
    kind: str
    start: int  # Its first octet in the frame; it covers what follows, to the end of the frame or of an IPv4 header.
    place: int  # Octet of the checksum.
    addresses: tuple[int, int] | None = None  # First octet, and the one after the last, of those of the pseudo-header.
    is_optional: bool = False  # It may be 0.


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

    ip: tuple[int, int] = (0, 0)  # First octet of the last IP header, and its version.
    sums: list[LayerSum] = field(default_factory=list)
    custom_octets: int = 0  # Of custom headers.
    has_layers: bool = False  # Headers that streams have no fields for: they are octets of the payload.

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
    "ethernetpause": {
        "dst": (0, 48, 0x0180C2000001),
        "src": (48, 48, 0),
        "ether_type": (96, 16, 0x8808),
        "control_op_code": (112, 16, 1),
        "time": (128, 16, 0),
    },
    "pfcpause": {
        "dst": (0, 48, 0x0180C2000001),
        "src": (48, 48, 0),
        "ether_type": (96, 16, 0x8808),
        "control_op_code": (112, 16, 0x0101),
        "class_enable_vector": (128, 16, 0),
        **{f"pause_class_{number}": (144 + 16 * number, 16, 0) for number in range(8)},
    },
    "arp": {
        "hardware_type": (0, 16, 1),
        "protocol_type": (16, 16, 0x0800),
        "hardware_length": (32, 8, 6),
        "protocol_length": (40, 8, 4),
        "operation": (48, 16, 1),
        "sender_hardware_addr": (64, 48, 0),
        "sender_protocol_addr": (112, 32, 0),
        "target_hardware_addr": (144, 48, 0),
        "target_protocol_addr": (192, 32, 0),
    },
    "icmp": {"type": (0, 8, 8), "code": (8, 8, 0), "identifier": (32, 16, 0), "sequence_number": (48, 16, 0)},
    "icmpv6": {"type": (0, 8, 128), "code": (8, 8, 0), "identifier": (32, 16, 0), "sequence_number": (48, 16, 0)},
    "igmpv1": {"version": (0, 4, 1), "type": (4, 4, 1), "unused": (8, 8, 0), "group_address": (32, 32, 0)},
    "gre": {
        "checksum_present": (0, 1, 0),
        "reserved0": (1, 12, 0),
        "version": (13, 3, 0),
        "protocol": (16, 16, AUTO),
        "reserved1": (48, 16, 0),
    },
    "ppp": {"address": (0, 8, 0xFF), "control": (8, 8, 3), "protocol_type": (16, 16, AUTO)},
    "vxlan": {"flags": (0, 8, 8), "reserved0": (8, 24, 0), "vni": (32, 24, 0), "reserved1": (56, 8, 0)},
    "gtpv1": {
        "version": (0, 3, 1),
        "protocol_type": (3, 1, 1),
        "reserved": (4, 1, 0),
        "e_flag": (5, 1, 0),
        "s_flag": (6, 1, 0),
        "pn_flag": (7, 1, 0),
        "message_type": (8, 8, 0),
        "message_length": (16, 16, AUTO),
        "teid": (32, 32, 0),
        "squence_number": (64, 16, 0),
        "n_pdu_number": (80, 8, 0),
        "next_extension_header_type": (88, 8, 0),
    },
    "gtpv2": {
        "version": (0, 3, 2),
        "piggybacking_flag": (3, 1, 0),
        "teid_flag": (4, 1, 0),
        "spare1": (5, 3, 0),
        "message_type": (8, 8, 0),
        "message_length": (16, 16, AUTO),
        "teid": (32, 32, 0),
        "sequence_number": (64, 24, 0),
        "spare2": (88, 8, 0),
    },
}
SIZES = {
    **{"ethernet": 14, "vlan": 4, "mpls": 4, "ipv4": 20, "ipv6": 40, "udp": 8, "tcp": 20},
    **{"ethernetpause": 18, "pfcpause": 34, "arp": 28, "icmp": 8, "icmpv6": 8, "igmpv1": 8, "gre": 8, "ppp": 4},
    **{"vxlan": 8, "gtpv1": 12, "gtpv2": 12},
}
#: Octets of a header that are there only with one of some flags: the flags, first octet, octets.
OPTIONAL = {
    "gre": (("checksum_present",), 4, 4),
    "gtpv1": (("e_flag", "s_flag", "pn_flag"), 8, 4),
    "gtpv2": (("teid_flag",), 4, 4),
}
#: Lengths: octets of the header that they don't count.
LENGTHS = {
    "ipv4.total_length": 0,
    "ipv6.payload_length": 40,
    "udp.length": 0,
    "gtpv1.message_length": 8,
    "gtpv2.message_length": 4,
}
#: Checksums: their name, their place in the header, the protocol of their pseudo-header (0: none).
SUMS = {
    "ipv4": ("header_checksum", 10, 0),
    "udp": ("checksum", 6, 17),
    "tcp": ("checksum", 16, 6),
    "icmp": ("checksum", 2, 0),
    "icmpv6": ("checksum", 2, 58),
    "igmpv1": ("checksum", 2, 0),
    "gre": ("checksum", 4, 0),
}
#: What may follow each header.
AFTER_LINK = ("vlan", "mpls", "ipv4", "ipv6", "arp", "ppp", "custom")
FOLLOWS = {
    "": ("ethernet", "ethernetpause", "pfcpause"),
    "ethernet": AFTER_LINK,
    "vlan": AFTER_LINK,
    "mpls": ("mpls", "ipv4", "ipv6", "ethernet"),
    "ipv4": ("udp", "tcp", "icmp", "igmpv1", "gre", "ipv4", "ipv6", "custom"),
    "ipv6": ("udp", "tcp", "icmpv6", "gre", "ipv4", "ipv6", "custom"),
    "udp": ("vxlan", "gtpv1", "gtpv2", "custom"),
    "vxlan": ("ethernet",),
    "gre": ("ipv4", "ipv6", "ethernet", "mpls", "ppp", "custom"),
    "ppp": ("ipv4", "ipv6", "custom"),
    "gtpv1": ("ipv4", "ipv6", "custom"),
    **dict.fromkeys(("tcp", "gtpv2", "arp", "icmp", "icmpv6", "igmpv1", "custom"), ("custom",)),
    **dict.fromkeys(("ethernetpause", "pfcpause"), ("custom",)),
}
ETHERTYPES = {
    "vlan": 0x8100,
    "mpls": 0x8847,
    "ipv4": 0x0800,
    "ipv6": 0x86DD,
    "arp": 0x0806,
    "ppp": 0x880B,
    "ethernet": 0x6558,
}
PROTOCOLS = {"udp": 17, "tcp": 6, "icmp": 1, "icmpv6": 58, "igmpv1": 2, "gre": 47, "ipv4": 4, "ipv6": 41}
#: Fields that say what follows: the numbers of what may, and the one where nothing does.
NEXT: dict[str, tuple[dict[str, int], int]] = {
    "ether_type": (ETHERTYPES, RESERVED_TYPE),
    "tpid": (ETHERTYPES, RESERVED_TYPE),
    "ipv4.protocol": (PROTOCOLS, ANY_HOST),
    "next_header": (PROTOCOLS, NO_NEXT),
    "gre.protocol": (ETHERTYPES, 0x0800),
    "protocol_type": ({"ipv4": 0x0021, "ipv6": 0x0057}, 0x0021),
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
    found, tags, labels = FlowPacket(), [], []
    parts = list(flow.parts("packet"))
    if not parts:
        flow.report.warn(flow.at("packet"), "it is empty, so frames have an Ethernet header alone")
        _ethernet(found, {"dst": 0, "src": 0})
        found.headers["ethertype"], found.octets = RESERVED_TYPE, SIZES["ethernet"]
        return found
    kinds, is_whole = _kinds_of(parts)
    own = _own_headers(kinds)
    for place, (part, kind) in enumerate(zip(parts, kinds, strict=False)):
        after = kinds[place + 1] if place + 1 < len(kinds) else ""
        body = part.part(kind)
        if kind in ("icmp", "icmpv6"):
            body = body.part(body.choice("echo")) if body else None
        if kind == "custom":
            _custom(found, part, body)
            continue
        values = _fields_of(found, part, kind, body, None if place < own else after)
        if place >= own:
            found.has_layers = True
        elif kind == "vlan":
            tags.append(vlan_tag(values["id"], values["priority"], bool(values["cfi"])))
        elif kind == "mpls":
            labels.append(MplsLabel(values["label"], values["traffic_class"], values["time_to_live"]))
        else:
            SETTERS[kind](found, values)
        found.kinds.append(kind)
        if place < own:
            _type_of_next(found, kind, values, part, after, after in ("", "custom") or place + 1 == own)
    found.headers |= {"vlan_tags": tuple(tags), "mpls_labels": tuple(labels)}
    if found.has_layers:
        found.custom_path = found.custom_path or parts[own - 1 if own == len(parts) else own].path
    if is_whole and kinds[-1] == "mpls":
        parts[-1].error("mpls", "nothing follows the last label: give an IPv4 or IPv6 header")
    return found


def _kinds_of(parts: Sequence[Given]) -> tuple[list[str], bool]:
    """Return the kinds of headers up to the first that can't be, which is reported; and whether that are all."""
    kinds: list[str] = []
    for place, part in enumerate(parts):
        kind, before = part.choice("ethernet"), kinds[-1] if kinds else ""
        if kind in FOLLOWS[before]:
            kinds.append(kind)
            continue
        if kind in FOLLOWS:
            may = ", ".join(FOLLOWS[before])
            part.error(kind, f"{kind} does not follow {before or 'the start of a frame'}: give {may}")
        else:
            part.error(
                kind, "liteprobe sends no such header: leave it out, or give its octets as a custom header at the end"
            )
        _abandon(parts[place:])
        return kinds, False
    return kinds, True


def _own_headers(kinds: Sequence[str]) -> int:
    """Return how many headers, from the first on, are those of a stream; the others are octets of its payload."""
    own = 1
    if kinds[:1] != ["ethernet"]:
        return 0 if not kinds else 1
    while kinds[own : own + 1] == ["vlan"]:
        own += 1
    labels = own
    while kinds[labels : labels + 1] == ["mpls"]:
        labels += 1
    if kinds[labels : labels + 1] not in (["ipv4"], ["ipv6"]):
        return own if len(kinds) > labels or labels == own else labels
    own = labels + 1
    rest = [kind for kind in kinds[own:] if kind != "custom"]
    return own + 1 if rest in (["udp"], ["tcp"]) else own


def _abandon(parts: Sequence[Given]) -> None:
    for part in parts:
        part.abandon()


def _fields_of(packet: FlowPacket, part: Given, kind: str, body: Given | None, after: str | None) -> dict[str, int]:
    """Keep the bits of a header; return its first values by name.

    ``after``: the header that follows one that streams have no fields for; None: they have.
    """
    octets, values = packet.octets, dict[str, int]()
    taken, left_out = _rows_of(kind, body)
    rows = [(name, body.part(name) if body else None, *row) for name, row in taken.items()]
    if kind == "ipv4":
        rows += _priority(body)
    path = body.path if body else part.at(kind)
    if kind in ("ipv4", "ipv6"):
        packet.ip = octets, int(kind[-1])
    if after is None and body:
        _checksums(packet, body, kind)
    elif after is not None:
        _sum_of_layer(packet, body, kind, path, SIZES[kind] - left_out)
    for name, given, first, width, default in rows:
        takes = None if default is None else FieldPattern(f"{path}.{name}", (default,))
        if kind == "ethernet" and name == "dst" and after is None:
            packet.needs_mac = given is None or given.choice("value") == "auto"
        if given is not None:
            is_auto = given.choice("value") == "auto"
            if is_auto and name in ("dst", "src"):
                if after is None:
                    packet.automatic[f"{kind}.{name}"] = given.at()
                else:
                    given.error("auto", "no device is behind an inner header: give a value")
            found = pattern(given, default=default or 0)
            takes = found if found or not (is_auto and after is not None) else takes
        if takes is not None and not _fits(takes, width) and (takes := _wrapping(fault := takes, width)) is None:
            part.report.error(fault.path, f"its values do not fit into {width} bits: give 0 to {(1 << width) - 1}")
        if (
            given is not None
            and takes is not None
            and name in ("ether_type", "tpid")
            and takes.values == (RESERVED_TYPE,)
        ):
            takes = None  # By the models the reserved type stands for the type of what follows.
        bits = FieldBits(takes.path if takes else f"{path}.{name}", 8 * octets + first, width, takes)
        if takes is None and after is not None:
            _follow(bits, kind, name, octets, after)
            takes = bits.takes
        packet.bits.append(bits)
        values[name] = takes.values[0] if takes else default or 0
    packet.octets += SIZES[kind] - left_out
    return values


def _rows_of(kind: str, body: Given | None) -> tuple[dict[str, tuple[int, int, int | None]], int]:
    """Return the fields of a header, and how many octets less than usual it has: those of flags that are not set."""
    rows = FIELDS[kind]
    if kind not in OPTIONAL:
        return rows, 0
    flags, first, octets = OPTIONAL[kind]
    given = [pattern(one) for name in flags if body and (one := body.part(name))]
    for flag in given:
        if body and flag and not flag.is_constant:
            body.report.error(flag.path, "it says which octets the header has: give one value")
    if any(flag and flag.values[0] for flag in given):
        return rows, 0
    start, end = 8 * first, 8 * (first + octets)
    return {
        name: (at - 8 * octets if at >= end else at, width, default)
        for name, (at, width, default) in rows.items()
        if not start <= at < end
    }, octets


def _follow(bits: FieldBits, kind: str, name: str, octets: int, after: str) -> None:
    """Have a field take what follows from the rest: a type, a length."""
    numbers, usual = NEXT.get(f"{kind}.{name}", NEXT.get(name, ({}, 0)))
    if f"{kind}.{name}" in LENGTHS:
        bits.counts_from = octets + LENGTHS[f"{kind}.{name}"]
        return
    value = {"header_length": 5, "data_offset": 5, "bottom_of_stack": int(after != "mpls")}.get(
        name, numbers.get(after, usual)
    )
    bits.takes = FieldPattern(bits.path, (value,))


def _sum_of_layer(packet: FlowPacket, body: Given | None, kind: str, path: str, octets: int) -> None:
    """Keep that a header has a checksum; one that is given is a field as others are."""
    if kind not in SUMS:
        return
    name, place, protocol = SUMS[kind]
    if kind == "gre" and octets < SIZES["gre"]:
        return
    given, start = (body.part(name) if body else None), packet.octets
    how = given.choice("generated") if given else "generated"
    if given and how == "custom":
        number = int(given.value("custom", 0))
        if number > 0xFFFF:
            given.error("custom", f"{number} does not fit into 16 bits: give 0 to 65535")
        packet.bits.append(FieldBits(given.at(), 8 * (start + place), 16, FieldPattern(given.at(), (number & 0xFFFF,))))
        return
    is_good = given is not None and given.value("generated", "good") == "good"
    if given and not is_good:
        given.error("generated", "a wrong checksum is a custom one: give custom, or good")
    at, version = packet.ip
    addresses = ((at + 12, at + 20) if version == 4 else (at + 8, at + 40)) if protocol else None
    is_optional = kind == "udp" and version == 4 and not is_good
    packet.sums.append(LayerSum(path, kind, start, start + place, addresses, is_optional))


def _fits(takes: FieldPattern, width: int) -> bool:
    values = takes.ends if takes.count > 1 else takes.values
    return all(0 <= one < 1 << width for one in values) and takes.count < COUNT_MOST


def _wrapping(takes: FieldPattern, width: int) -> FieldPattern | None:
    """Return a count that leaves its field's range as one that goes on at the other end; None: that is not why it does not fit."""
    most = 1 << width
    is_count = 1 < takes.count < COUNT_MOST and 0 <= takes.values[0] < most and abs(takes.step) < most
    return replace(takes, wraps_at=most) if is_count else None


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
        octets = bytes.fromhex(text)
        packet.payload, packet.custom_octets = packet.payload + octets, packet.custom_octets + len(octets)
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


def _pause(packet: FlowPacket, values: dict[str, int]) -> None:
    _ethernet(packet, values)
    packet.headers["ethertype"], packet.has_layers = max(values["ether_type"], ETHERTYPE_MIN), True


SETTERS: dict[str, Callable[[FlowPacket, dict[str, int]], None]] = {
    "ethernet": _ethernet,
    "ethernetpause": _pause,
    "pfcpause": _pause,
    "ipv4": _ipv4,
    "ipv6": _ipv6,
    "udp": _ports,
    "tcp": _tcp,
}


def _type_of_next(
    packet: FlowPacket, kind: str, values: dict[str, int], part: Given, after: str, is_last: bool
) -> None:
    """Set the type or protocol of what follows a header where nothing that a stream has does."""
    if not is_last:
        return
    if kind in ("ethernet", "vlan"):
        given = values["ether_type" if kind == "ethernet" else "tpid"] or ETHERTYPES.get(after, RESERVED_TYPE)
        if given < ETHERTYPE_MIN:
            part.error(kind, f"the type {given:#06x} is a length, below {ETHERTYPE_MIN:#06x}: give that or more")
        packet.headers["ethertype"] = max(given, ETHERTYPE_MIN)
    elif kind in ("ipv4", "ipv6"):
        name, usual = ("protocol", ANY_HOST) if kind == "ipv4" else ("next_header", NO_NEXT)
        given_bits = next(one for one in packet.bits if one.path.endswith(f"{kind}.{name}"))
        protocol = given_bits.takes.values[0] if given_bits.takes else PROTOCOLS.get(after, usual)
        packet.headers |= {"transport": "none", "protocol": protocol}


# Modifiers ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedModifier:
    """A modifier, and the path of the field that asks for it."""

    path: str
    modifier: Modifier


def modifiers_of(bits: Sequence[FieldBits], octets: bytes, end: int, report: OtgReport) -> list[PlacedModifier]:
    """Return what changes the headers from frame to frame, and what puts right what the probe would send otherwise.

    ``octets``: those that the probe sends of the headers, without modifiers; ``end``: octets that it can change.
    """
    found: list[PlacedModifier] = []
    for one in bits:
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
                changing |= takes.value(k) ^ start
            if takes.wraps_at:
                changing |= takes.wraps_at >> 1  # The sum wraps where its window ends.
        else:
            low = (takes.step & -takes.step).bit_length() - 1
            changing = (takes.wraps_at or 1 << (start ^ last).bit_length()) - (1 << low)
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
