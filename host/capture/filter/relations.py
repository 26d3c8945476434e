# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Relations of an expression (``len <= 100``, ``tcp[tcpflags] & tcp-syn != 0``): what of them this host can tell.

Source: pcap-filter(7); RFC 9293, 3.1 (flags of TCP).
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Layer3, UnifiedFlag
from liteprobe.host.capture.decode.unified import has, layer3, tcp_flags
from liteprobe.host.capture.filter import words
from liteprobe.host.capture.filter.nodes import (
    And,
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

LONGEST = 65535
LLC_MOST = 1500  # Types up to it are lengths.
FOUR = frozenset({Layer3.IPV4})
SIDES = {"0:2": "source", "2:2": "destination"}
PORT_PROTOCOLS = {"tcp": 6, "udp": 17, "sctp": 132}
OPERATORS = "<=|>=|==|!=|=|<|>"
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
PARENTHESES = re.compile(rf"^\(\s*(.*?)\s*\)\s*((?:{OPERATORS})\s*\w+)$")
SWAPPED = re.compile(rf"(\w+)\s*({OPERATORS})\s*(len|\w+\s*\[.*)")
ACCESS = re.compile(rf"(ether|ip|tcp|udp|sctp)\s*\[\s*(12\s*:\s*2|9|[02]\s*:\s*2)\s*\]\s*({OPERATORS})\s*(\d\w*)")
LENGTH = re.compile(rf"len\s*({OPERATORS})\s*(\w+)")
FLAGS = re.compile(r"tcp\[\s*(?:tcpflags|13)\s*\]\s*(?:&\s*([^=!<>]+?)\s*)?(<=|>=|==|!=|=|<|>)\s*([^=!<>]+)")
RELATIONS: dict[str, Callable[[Any, int], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "==": np.equal,
    "!=": np.not_equal,
}
TCP_FLAGS = {
    name: 1 << bit
    for bit, name in enumerate(
        ("tcp-fin", "tcp-syn", "tcp-rst", "tcp-push", "tcp-ack", "tcp-urg", "tcp-ece", "tcp-cwr")
    )
}


def flags_of(text: str) -> int:
    """Return the bits of ``tcp-syn|tcp-ack``, ``0x12`` or such, in parentheses or not."""
    value = 0
    for word in text.strip().removeprefix("(").removesuffix(")").split("|"):
        name = word.strip()
        value |= TCP_FLAGS[name] if name in TCP_FLAGS else words.number_of(name or " ", 255, "flag of TCP")
    return value


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


def access(text: str, protocol: str, place: str, compare: str, value: int) -> Node:
    """Return what a relation of octets means that are a field of the unified header: type, protocol, port."""
    if protocol == "ether" and place == "12:2" and value > LLC_MOST and compare in ("=", "!="):
        kinds = {0x0800: Layer3.IPV4, 0x0806: Layer3.ARP, 0x86DD: Layer3.IPV6}
        node = Kind(text, frozenset({kinds[value]})) if value in kinds else ethertype(text, value)
        return node if compare == "=" else Not(text, node)
    if protocol == "ip" and place == "9" and compare in ("=", "!="):
        found = Protocol(text, value, FOUR)
        return found if compare == "=" else And(text, (Kind(text, FOUR), Not(text, found)))
    if protocol in PORT_PROTOCOLS and place in SIDES:
        ports = compared(text, compare, value, lambda low, high: Port(text, SIDES[place], low, high), 65535)
        return And(text, (Protocol(text, PORT_PROTOCOLS[protocol], FOUR), ports))  # As tcpdump: of IPv4 alone.
    return Octets(text)


def relation(text: str) -> Node:
    """Return what a relation means."""
    plain = PARENTHESES.sub(r"\1 \2", text)
    swapped = SWAPPED.fullmatch(plain)
    if swapped:
        plain = f"{swapped[3]} {MIRRORED.get(swapped[2], swapped[2])} {swapped[1]}"
    found = LENGTH.fullmatch(plain)
    if found:
        compare, value = RELATIONS[found[1]], words.number_of(found[2], 0xFFFFFFFF, "length")
        return OnHost(
            text, "its tables hold no lengths", lambda headers: compare(headers["length"], value), is_length=True
        )
    found = ACCESS.fullmatch(plain)
    if found:
        place = re.sub(r"\s", "", found[2])
        return access(
            text, found[1], place, found[3].replace("==", "="), words.number_of(found[4], 0xFFFFFFFF, "number")
        )
    found = FLAGS.fullmatch(plain)
    if not found:
        return Octets(text)
    mask, compare, value = flags_of(found[1]) if found[1] else 255, RELATIONS[found[2]], flags_of(found[3])

    def ask(headers: Headers) -> NDArray[Any]:
        # As tcpdump: of IPv4 alone.
        is_there = has(headers, UnifiedFlag.TCP) & (layer3(headers) == Layer3.IPV4)
        return np.asarray(is_there & compare(tcp_flags(headers) & mask, value))

    return OnHost(text, "its tables hold no flags of TCP", ask, "VLAN tags and labels")
