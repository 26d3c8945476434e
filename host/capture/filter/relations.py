# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Relations of an expression (``len <= 100``, ``tcp[tcpflags] & tcp-syn != 0``): what of them this host can tell.

Source: pcap-filter(7); RFC 9293, 3.1 (flags of TCP).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import Layer3, UnifiedFlag
from liteprobe.host.capture.decode.unified import has, layer3, tcp_flags
from liteprobe.host.capture.filter import words
from liteprobe.host.capture.filter.nodes import Headers, Node, OnHost, Truth
from liteprobe.host.errors import UsageError

LONGEST = 65535
LENGTH = re.compile(r"len\s*(<=|>=|==|!=|=|<|>)\s*(\w+)")
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


@dataclass(frozen=True)
class Octets(Node):
    """Looks at octets that only the frame has."""

    def matches(self, headers: Headers) -> Truth:
        raise UsageError(
            f"'{self.text}' looks at octets that unified headers don't have: capture without it, then filter the file "
            f"(tcpdump -r FILE '{self.text}')"
        )


def flags_of(text: str) -> int:
    """Return the bits of ``tcp-syn|tcp-ack``, ``0x12`` or such, in parentheses or not."""
    value = 0
    for word in text.strip().removeprefix("(").removesuffix(")").split("|"):
        name = word.strip()
        value |= TCP_FLAGS[name] if name in TCP_FLAGS else words.number_of(name or " ", 255, "flag of TCP")
    return value


def relation(text: str) -> Node:
    """Return what a relation means."""
    found = LENGTH.fullmatch(text)
    if found:
        compare, value = RELATIONS[found[1]], words.number_of(found[2], LONGEST, "length")
        return OnHost(text, "its tables hold no lengths", lambda headers: compare(headers["length"], value))
    found = FLAGS.fullmatch(text)
    if not found:
        return Octets(text)
    mask, compare, value = flags_of(found[1]) if found[1] else 255, RELATIONS[found[2]], flags_of(found[3])

    def ask(headers: Headers) -> NDArray[Any]:
        # As tcpdump: of IPv4 alone.
        is_there = has(headers, UnifiedFlag.TCP) & (layer3(headers) == Layer3.IPV4)
        return np.asarray(is_there & compare(tcp_flags(headers) & mask, value))

    return OnHost(text, "its tables hold no flags of TCP", ask)
