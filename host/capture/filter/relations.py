# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Relations of an expression (``len <= 100``, ``tcp[tcpflags] & tcp-syn != 0``): what of them this host can tell.

Source: pcap-filter(7).
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Layer3
from liteprobe.host.capture.filter import words
from liteprobe.host.capture.filter.nodes import (
    And,
    Depth,
    Everything,
    Headers,
    Kind,
    Node,
    Not,
    Octets,
    OnHost,
    Or,
    Port,
    Protocol,
    ethertype,
)
from liteprobe.host.capture.filter.octets import ACCESSED, NAMES, OFFSETS, Accessed, value_of

LONGEST = 65535
LLC_MOST = 1500  # Types up to it are lengths.
FOUR = frozenset({Layer3.IPV4})
SIDES = {(0, 2): "source", (2, 2): "destination"}
PORT_PROTOCOLS = {"tcp": 6, "udp": 17, "sctp": 132}
WORD_MOST = 0xFFFFFFFF
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
        node = Kind(text, frozenset({kinds[value]})) if value in kinds else ethertype(text, value)
        return node if compare == "=" else Not(text, node)
    if protocol == "ip" and place == (9, 1) and compare in ("=", "!="):
        found = Protocol(text, value, FOUR) if value < 256 else Not(text, Everything(""))
        return found if compare == "=" else And(text, (Kind(text, FOUR), Not(text, found)))
    if protocol in PORT_PROTOCOLS and place in SIDES:
        ports = compared(text, compare, value, lambda low, high: Port(text, SIDES[place], low, high), 65535)
        return And(text, (Protocol(text, PORT_PROTOCOLS[protocol], FOUR), ports))  # As tcpdump: of IPv4 alone.
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

    node = OnHost(text, f"its tables hold no {accessed.name_of(offsets)}", ask, depth=accessed.depth)
    if protocol == "ether":
        return node
    if accessed.protocol is None:
        return And(text, (Kind(text, frozenset({accessed.kind})), node))
    return And(text, (Protocol(text, accessed.protocol, frozenset({accessed.kind})), node))


def relation(text: str) -> Node:
    """Return what a relation means."""
    plain = PARENTHESES.sub(r"\1 \2", text)
    swapped = SWAPPED.fullmatch(plain)
    if swapped:
        plain = f"{swapped[3]} {MIRRORED.get(swapped[2], swapped[2])} {swapped[1]}"
    found = LENGTH.fullmatch(plain)
    if found:
        compare, value = RELATIONS[found[1]], words.number_of(found[2], WORD_MOST, "length")
        return OnHost(
            text, "its tables hold no lengths", lambda headers: compare(headers["length"], value), depth=Depth.NONE
        )
    found = ACCESS.fullmatch(plain)
    if not found or found[1] not in ACCESSED:
        return Octets(text)
    at, mask, wanted = value_of(found[2], OFFSETS), value_of(found[4], NAMES), value_of(found[6], NAMES)
    if at is None or wanted is None or (found[4] and mask is None):
        return Octets(text)  # libpcap may know more of sums and names.
    return access(text, found[1], (at, int(found[3] or 1)), mask, found[5], wanted)
