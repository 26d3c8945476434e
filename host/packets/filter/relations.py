# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads relations of an expression (``len <= 100``, ``tcp[tcpflags] & tcp-syn != 0``) as far as unified headers have the octets.

Source: pcap-filter(7) for names; RFC 791, 792, 826, 4443, 8200, 9293 for places. As in libpcap ``tcp``, ``udp``,
``sctp`` and ``icmp`` are of IPv4 alone.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TAG_KINDS, Layer3, UnifiedFlag
from liteprobe.host.packets.filter import words
from liteprobe.host.packets.filter.nodes import (
    WORD_MOST,
    And,
    CarriedProtocol,
    Depth,
    Everything,
    Headers,
    Layer3Type,
    Node,
    Not,
    Octets,
    OnHost,
    Or,
    PortRange,
    Relation,
    Truth,
    ethertype,
)
from liteprobe.host.packets.unified import has, tag_count

Column = NDArray[np.uint8]
#: Names of places.
OFFSETS = {"icmptype": 0, "icmpcode": 1, "icmp6type": 0, "icmp6code": 1, "tcpflags": 13}
#: Names of values.
NAMES = {
    **{f"tcp-{name}": 1 << bit for bit, name in enumerate(("fin", "syn", "rst", "push", "ack", "urg", "ece", "cwr"))},
    "icmp-echoreply": 0, "icmp-unreach": 3, "icmp-sourcequench": 4, "icmp-redirect": 5, "icmp-echo": 8,
    "icmp-routeradvert": 9, "icmp-routersolicit": 10, "icmp-timxceed": 11, "icmp-paramprob": 12, "icmp-tstamp": 13,
    "icmp-tstampreply": 14, "icmp-ireq": 15, "icmp-ireqreply": 16, "icmp-maskreq": 17, "icmp-maskreply": 18,
    "icmp6-destinationunreach": 1, "icmp6-packettoobig": 2, "icmp6-timeexceeded": 3, "icmp6-parameterproblem": 4,
    "icmp6-echo": 128, "icmp6-echoreply": 129, "icmp6-multicastlistenerquery": 130,
    "icmp6-multicastlistenerreportv1": 131, "icmp6-multicastlistenerdone": 132, "icmp6-routersolicit": 133,
    "icmp6-routeradvert": 134, "icmp6-neighborsolicit": 135, "icmp6-neighboradvert": 136, "icmp6-redirect": 137,
}  # fmt: skip
ARP_HEAD = bytes.fromhex("00010800")  # All that unified headers know of is of IPv4 over Ethernet.


def value_of(text: str | None, names: Mapping[str, int]) -> int | None:
    """Return a number or names joined by ``|``, in parentheses or not; None where it is more than that."""
    value = 0
    for word in (text or " ").strip().removeprefix("(").removesuffix(")").split("|"):
        name = word.strip()
        if name in names:
            value |= names[name]
            continue
        try:
            value |= int(name, 16 if name[:2].lower() == "0x" else 8 if name[:1] == "0" else 10)
        except ValueError:
            return None
    return value if 0 <= value < 1 << 32 else None


def columns(headers: Headers, first: int, *fields: str | tuple[str, int]) -> dict[int, Column]:
    """Return the octets of fields that stand one behind another on the wire, from place ``first`` on; a field may be cut."""
    found: dict[int, Column] = {}
    for field in fields:
        name, count = field if isinstance(field, tuple) else (field, None)
        octets = np.ascontiguousarray(headers[name]).view(np.uint8).reshape(len(headers), headers.dtype[name].itemsize)
        for number in range(octets.shape[1] if count is None else count):
            found[first] = octets[:, number]
            first += 1
    return found


def ipv4(headers: Headers) -> dict[int, Column]:
    """IPv4 without its options."""
    return columns(headers, 0, "ip", ("source", 4), ("destination", 4))


def ipv6(headers: Headers) -> dict[int, Column]:
    """IPv6 without what follows it."""
    return columns(headers, 0, ("ip", 8), "source", "destination")


def arp(headers: Headers) -> dict[int, Column]:
    """ARP without MACs."""
    found = {place: np.full(len(headers), octet, np.uint8) for place, octet in enumerate(ARP_HEAD)}
    for place, name in ((4, "ip"), (14, "source"), (24, "destination")):
        found |= columns(headers, place, (name, 4))
    return found


def ether(headers: Headers) -> dict[int, Column]:
    """MACs, and the type behind them: the last one where no tag is."""
    found = columns(headers, 0, "destination_mac", "source_mac")
    kinds = {kind: number for number, kind in TAG_KINDS.items()}
    outermost = np.array([0, *(kinds[kind] for kind in (1, 2, 3))], np.uint16)[headers["tag_kinds"] & 3]
    number = np.where(tag_count(headers) > 0, outermost, headers["ethertype"])
    return found | {12: (number >> 8).astype(np.uint8), 13: (number & 255).astype(np.uint8)}


def ports(headers: Headers) -> dict[int, Column]:
    """Ports; type and code of ICMP in their place."""
    return columns(headers, 0, "source_port", "destination_port")


def tcp(headers: Headers) -> dict[int, Column]:
    """TCP without its acknowledgement."""
    sequence = headers["sequence"].astype(">u4").view(np.uint8).reshape(-1, 4)
    found = ports(headers) | {4 + number: sequence[:, number] for number in range(4)}
    return found | columns(headers, 12, "detail")


@dataclass(frozen=True)
class Accessed:
    """Lists what can be asked of one protocol."""

    offsets: frozenset[int]  # Places that unified headers have.
    octets: Callable[[Headers], dict[int, Column]]  # From headers to those octets, by place, shape (headers,) each.
    names: Mapping[int, str]  # What begins at a place.
    kind: Layer3 = Layer3.NONE  # What the frame must be.
    protocol: int | None = None
    depth: Depth = Depth.LINK

    def name_of(self, offsets: Sequence[int]) -> str:
        """Return what lies at these places."""
        begun = [place for place in self.names if place <= offsets[0]]
        return self.names[max(begun)] if begun else "such octets"

    def are_there(self, headers: Headers, last: int) -> Truth:
        """Return which headers have octets up to ``last``."""
        if self.protocol is None:
            return np.ones(len(headers), np.bool_)
        return has(headers, UnifiedFlag.TCP if self.protocol == 6 and last > 3 else UnifiedFlag.TRANSPORT)


def places(*ranges: Iterable[int]) -> frozenset[int]:
    """Return all places of ranges."""
    return frozenset(place for one in ranges for place in one)


_ADDRESSES = "octets of addresses: write 'net' and a prefix, if that is what is meant"
_IPV4 = {
    0: "version or header length of IP", 1: "DSCP", 2: "length of IP", 4: "identification of IP",
    6: "flags or offset of fragments", 8: "TTL", 9: "relation of protocols but = and !=", 10: "checksum of IP",
    12: _ADDRESSES,
}  # fmt: skip
_IPV6 = {
    0: "class or flow label of IPv6",
    4: "length of IPv6",
    6: "first header behind IPv6",
    7: "hop limit",
    8: _ADDRESSES,
}
_ARP = {0: "kinds of ARP", 6: "operation of ARP", 14: _ADDRESSES}
_PORTS = {0: "octets of ports"}
_TCP = {**_PORTS, 4: "sequence numbers", 12: "flags of TCP", 14: "window of TCP"}
_ICMP = {0: "types of ICMP", 1: "codes of ICMP"}
_ETHER = {0: "octets of MACs", 12: "types but those of ip, ip6 and arp"}
ACCESSED = {
    "ether": Accessed(places(range(14)), ether, _ETHER, depth=Depth.MACS),
    "ip": Accessed(places(range(20)), ipv4, _IPV4, Layer3.IPV4),
    "ip6": Accessed(places(range(40)), ipv6, _IPV6, Layer3.IPV6),
    "arp": Accessed(places(range(8), range(14, 18), range(24, 28)), arp, _ARP, Layer3.ARP),
    "tcp": Accessed(places(range(8), range(12, 16)), tcp, _TCP, Layer3.IPV4, 6, Depth.DETAIL),
    "udp": Accessed(places(range(4)), ports, _PORTS, Layer3.IPV4, 17, Depth.TRANSPORT),
    "sctp": Accessed(places(range(4)), ports, _PORTS, Layer3.IPV4, 132, Depth.TRANSPORT),
    "icmp": Accessed(places(range(2)), ports, _ICMP, Layer3.IPV4, 1, Depth.TRANSPORT),
    "icmp6": Accessed(places(range(2)), ports, _ICMP, Layer3.IPV6, 58, Depth.TRANSPORT),
}


LONGEST = 65535
LLC_MOST = 1500  # Types up to it are lengths.
FOUR = frozenset({Layer3.IPV4})
SIDES = {(0, 2): "source", (2, 2): "destination"}
PORT_PROTOCOLS = {"tcp": 6, "udp": 17, "sctp": 132}
OPERATORS = "<=|>=|==|!=|=|<|>"
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
PARENTHESES = re.compile(rf"^\(\s*(.*?)\s*\)\s*((?:{OPERATORS})\s*[^()]+)$")
SWAPPED = re.compile(rf"([\w-]+)\s*({OPERATORS})\s*(len|\w+\s*\[.*)")
ACCESS = re.compile(rf"(\w+)\s*\[\s*(\w+)\s*(?::\s*([124])\s*)?\]\s*(?:&\s*([^=!<>]+?)\s*)?({OPERATORS})\s*([^=!<>]+)")
LENGTH = re.compile(rf"len\s*({OPERATORS})\s*(\w+)")
RELATIONS: dict[str, Callable[[Any, int], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def compared(text: str, compare: str, value: int, node: Callable[[int, int], Node], most: int) -> Node:
    """Return what ``node(least, most)`` means where a number from 0 to ``most`` compares so with a value."""
    ranges = {
        "<": [(0, value - 1)],
        "<=": [(0, value)],
        ">": [(value + 1, most)],
        ">=": [(value, most)],
        "=": [(value, value)],
        "!=": [(0, value - 1), (value + 1, most)],
    }[compare]
    parts = [node(max(low, 0), min(high, most)) for low, high in ranges if low <= min(high, most)]
    return Or(text, tuple(parts)) if parts else Not(text, Everything(""))


def field_of(text: str, protocol: str, place: tuple[int, int], compare: str, value: int) -> Node | None:
    """Return what a relation of octets means that the probe's tables can ask, too: type, protocol, ports; None: no such."""
    if protocol == "ether" and place == (12, 2) and value > LLC_MOST and compare in ("=", "!="):
        kinds = {0x0800: Layer3.IPV4, 0x0806: Layer3.ARP, 0x86DD: Layer3.IPV6}
        node = (
            Layer3Type(text, frozenset({kinds[value]}), is_outermost=True)
            if value in kinds
            else ethertype(text, value, protocol)
        )
        return node if compare == "=" else Not(text, node)
    if protocol == "ip" and place == (9, 1) and compare in ("=", "!="):
        found = CarriedProtocol(text, value, FOUR) if value < 256 else Not(text, Everything(""))
        return found if compare == "=" else And(text, (Layer3Type(text, FOUR), Not(text, found)))
    if protocol in PORT_PROTOCOLS and place in SIDES:
        ports = compared(text, compare, value, lambda low, high: PortRange(text, SIDES[place], low, high), 65535)
        return And(text, (CarriedProtocol(text, PORT_PROTOCOLS[protocol], FOUR), ports))  # As tcpdump: of IPv4 alone.
    return None


def access(text: str, protocol: str, place: tuple[int, int], mask: int | None, compare: str, value: int) -> Node:
    """Return what a relation of octets means that unified headers have."""
    if mask is None and (node := field_of(text, protocol, place, compare.replace("==", "="), value)):
        return node
    accessed: Accessed = ACCESSED[protocol]
    offsets = range(place[0], sum(place))
    if not set(offsets) <= accessed.offsets:
        return Octets(text)
    relation_, bits = RELATIONS[compare], WORD_MOST if mask is None else mask

    def ask(headers: Headers) -> NDArray[Any]:
        octets, are_there = accessed.octets(headers), accessed.are_there(headers, offsets[-1])
        number = sum(octets[offset].astype(np.int64) << 8 * (offsets[-1] - offset) for offset in offsets)
        return np.asarray(are_there & relation_(number & bits, value))

    asked = (Relation(protocol, place, bits, compare.replace("==", "="), value),)
    node = OnHost(text, f"its tables hold no {accessed.name_of(offsets)}", ask, asked, depth=accessed.depth)
    if protocol == "ether":
        return node
    if accessed.protocol is None:
        return And(text, (Layer3Type(text, frozenset({accessed.kind})), node))
    return And(text, (CarriedProtocol(text, accessed.protocol, frozenset({accessed.kind})), node))


def relation(text: str) -> Node:
    """Return what a relation means."""
    plain = PARENTHESES.sub(r"\1 \2", text)
    swapped = SWAPPED.fullmatch(plain)
    if swapped:
        plain = f"{swapped[3]} {MIRRORED.get(swapped[2], swapped[2])} {swapped[1]}"
    found = LENGTH.fullmatch(plain)
    if found:
        compare, value = found[1].replace("==", "="), words.number_of(found[2], WORD_MOST, "length")
        asked = (Relation("len", (0, 2), WORD_MOST, compare, value),)

        def ask(headers: Headers) -> NDArray[Any]:
            return np.asarray(RELATIONS[compare](headers["length"], value))

        return OnHost(text, "its tables hold no lengths", ask, asked, depth=Depth.NONE)
    found = ACCESS.fullmatch(plain)
    if not found or found[1] not in ACCESSED:
        return Octets(text)
    at, mask, wanted = value_of(found[2], OFFSETS), value_of(found[4], NAMES), value_of(found[6], NAMES)
    if at is None or wanted is None or (found[4] and mask is None):
        return Octets(text)  # libpcap may know more of sums and names.
    return access(text, found[1], (at, int(found[3] or 1)), mask, found[5], wanted)
