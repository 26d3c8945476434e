# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds a filter expression as a tree that tells which unified headers match.

Source: pcap-filter(7); docs/cores/filter.md says where this differs from tcpdump.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import TAG_KINDS, Layer3, UnifiedFlag
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.unified import has, label_count, layer3, tag_count

Headers = NDArray[np.void]
Truth = NDArray[np.bool_]

IP = frozenset({Layer3.IPV4, Layer3.IPV6})
EVERY_KIND = frozenset(Layer3)
EXTENSIONS = (0, 43, 44, 51, 60)  # Headers of IPv6 that the probe walks through; 51, AH, is a protocol in IPv4.
BY_LIBPCAP = "have libpcap filter on this host (--host-filter), or filter the file"
WITH_PORTS = (6, 17, 132)  # TCP, UDP, SCTP.
WORD_MOST = 0xFFFFFFFF


class Depth(IntEnum):
    """Tells how far into a frame a part of an expression looks, and where a walk through headers may end before their end."""

    NONE = 0
    MACS = 1
    LINK = 2  # Tags, labels, addresses and protocols: all that is known once layer 3 is.
    TRANSPORT = 3  # What is behind extension headers, and ports.
    DETAIL = 4  # Behind the ports.


@dataclass(frozen=True)
class Node(ABC):
    """A part of an expression; ``text`` is how it was written."""

    text: str

    @abstractmethod
    def matches(self, headers: Headers) -> Truth:
        """Return which headers it holds for."""


@dataclass(frozen=True)
class Everything(Node):
    """Holds for every frame."""

    def matches(self, headers: Headers) -> Truth:
        return np.ones(len(headers), np.bool_)


@dataclass(frozen=True)
class And(Node):
    """All parts hold."""

    parts: tuple[Node, ...]

    def matches(self, headers: Headers) -> Truth:
        return np.asarray(np.logical_and.reduce([part.matches(headers) for part in self.parts]))


@dataclass(frozen=True)
class Or(Node):
    """One part holds at least."""

    parts: tuple[Node, ...]

    def matches(self, headers: Headers) -> Truth:
        return np.asarray(np.logical_or.reduce([part.matches(headers) for part in self.parts]))


@dataclass(frozen=True)
class Not(Node):
    """The part doesn't hold."""

    part: Node

    def matches(self, headers: Headers) -> Truth:
        return np.asarray(~self.part.matches(headers))


def of_kinds(headers: Headers, kinds: frozenset[Layer3]) -> Truth:
    """Return which headers are of one of these kinds."""
    return np.isin(layer3(headers), [int(kind) for kind in kinds])


@dataclass(frozen=True)
class Layer3Type(Node):
    """Layer 3 is one of these; ``is_outermost``: libpcap looks at the type behind the MACs, whatever was written before."""

    kinds: frozenset[Layer3]
    is_outermost: bool = False

    def matches(self, headers: Headers) -> Truth:
        return of_kinds(headers, self.kinds)


@dataclass(frozen=True)
class CarriedProtocol(Node):
    """IP of one of these kinds carries this protocol, behind its extension headers."""

    number: int
    kinds: frozenset[Layer3] = IP

    def matches(self, headers: Headers) -> Truth:
        found = of_kinds(headers, self.kinds & IP) & (headers["protocol"] == self.number)
        if self.number in EXTENSIONS and Layer3.IPV6 in self.kinds:
            # As tcpdump: the first header, or the one behind a fragment header.
            walked, numbers = headers["extensions"] & 0x80 != 0, headers["extensions"] & 0x7F
            first = np.where(walked[:, 0], numbers[:, 0], headers["protocol"])
            second = np.where(walked[:, 1], numbers[:, 1], headers["protocol"])
            is_there = (first == self.number) | ((first == 44) & walked[:, 0] & (second == self.number))
            found = np.where(layer3(headers) == Layer3.IPV6, is_there, found)
        return np.asarray(found)


@dataclass(frozen=True)
class Address(Node):
    """The address of a side (``source``, ``destination``) lies in a network."""

    side: str
    network: IPv4Network | IPv6Network

    @property
    def kinds(self) -> frozenset[Layer3]:
        """Layers 3 that have such addresses."""
        return frozenset({Layer3.ARP, Layer3.IPV4} if self.network.version == 4 else {Layer3.IPV6})

    def matches(self, headers: Headers) -> Truth:
        prefix, mask = (
            np.frombuffer(part.packed, np.uint8) for part in (self.network.network_address, self.network.netmask)
        )
        octets = headers[self.side][:, : len(prefix)]
        return np.asarray(of_kinds(headers, self.kinds) & ((octets & mask) == prefix).all(axis=1))


@dataclass(frozen=True)
class PortRange(Node):
    """The port of a side lies between two, both included."""

    side: str
    least: int
    most: int

    def matches(self, headers: Headers) -> Truth:
        ports = headers[f"{self.side}_port"]
        there = has(headers, UnifiedFlag.TRANSPORT) & np.isin(headers["protocol"], WITH_PORTS)
        return np.asarray(there & (ports >= self.least) & (ports <= self.most))


@dataclass(frozen=True)
class Vlan(Node):
    """There is a tag beyond ``depth`` others, with this id unless None."""

    number: int | None
    depth: int = 0

    def matches(self, headers: Headers) -> Truth:
        there = tag_count(headers) > self.depth
        if self.number is None or self.depth >= headers["tags"].shape[1]:
            return np.asarray(there)
        return np.asarray(there & (headers["tags"][:, self.depth]["tci"] & 0xFFF == self.number))


@dataclass(frozen=True)
class Mpls(Node):
    """There is a label beyond ``depth`` others, this one unless None."""

    number: int | None
    depth: int = 0

    def matches(self, headers: Headers) -> Truth:
        there = label_count(headers) > self.depth
        if self.number is None or self.depth >= headers["labels"].shape[1]:
            return np.asarray(there)
        return np.asarray(there & (headers["labels"][:, self.depth] >> 12 == self.number))


@dataclass(frozen=True)
class Octets(Node):
    """Looks at what only libpcap can tell, from a frame's octets."""

    def matches(self, headers: Headers) -> Truth:
        raise UsageError(
            f"'{self.text}' looks at octets that unified headers don't have: {BY_LIBPCAP} (tcpdump -r FILE "
            f"'{self.text}')"
        )


@dataclass(frozen=True)
class Mac(Node):
    """The MAC of a side is this."""

    side: str
    octets: bytes

    def matches(self, headers: Headers) -> Truth:
        return np.asarray((headers[f"{self.side}_mac"] == np.frombuffer(self.octets, np.uint8)).all(axis=1))


@dataclass(frozen=True)
class Relation:
    """Compares octets of a header, or the length of a frame, with a value, as libpcap does."""

    protocol: str  # Whose octets; ``type``: of Ethernet; ``len``: the length.
    place: tuple[int, int]  # The first octet, and how many.
    mask: int
    compare: str  # =, !=, <, <=, > or >=.
    value: int


@dataclass(frozen=True)
class OnHost(Node):
    """Asks what the unified header tells, but no table of the probe can; rules of an emulator can.

    ``reason`` says why, ``through`` what is seen through, ``depth`` how far into the frame it looks.
    """

    reason: str
    ask: Callable[[Headers], NDArray[Any]]
    relations: tuple[Relation, ...]  # All of which hold.
    through: str = ""
    depth: Depth = Depth.LINK

    def matches(self, headers: Headers) -> Truth:
        return np.asarray(self.ask(headers), np.bool_)


def length(text: str, least: int, most: int) -> OnHost:
    """Return what holds for frames from ``least`` to ``most`` octets, without FCS."""

    def ask(headers: Headers) -> NDArray[Any]:
        return (headers["length"] >= least) & (headers["length"] <= most)

    bounds = (Relation("len", (0, 2), WORD_MOST, ">=", least), Relation("len", (0, 2), WORD_MOST, "<=", most))
    return OnHost(text, "its tables hold no lengths", ask, bounds, depth=Depth.NONE)


def multicast(text: str) -> OnHost:
    """Return what holds for frames to a group: the lowest bit of the first octet."""
    reason = "its tables hold one range of MACs, and groups are not a range"
    group = (Relation("ether", (0, 1), 1, "!=", 0),)
    return OnHost(text, reason, lambda headers: headers["destination_mac"][:, 0] & 1, group, depth=Depth.MACS)


def ethertype(text: str, number: int, protocol: str = "type") -> OnHost:
    """Return what holds for frames of a type, behind tags; or, if it is that of a tag, with this one outermost.

    ``protocol``: ``ether``, where libpcap looks at the type behind the MACs, whatever was written before.
    """

    def ask(headers: Headers) -> NDArray[Any]:
        if number not in TAG_KINDS:
            return np.asarray(headers["ethertype"] == number)
        first = np.where(tag_count(headers) > 0, headers["tag_kinds"] & 3, 0)
        return np.asarray((first == TAG_KINDS[number]) | ((first == 0) & (headers["ethertype"] == number)))

    through = "" if number in TAG_KINDS else "VLAN tags"
    asked = (Relation(protocol, (12, 2), WORD_MOST, "=", number),)
    return OnHost(text, "its tables know the types of ip, ip6 and arp alone", ask, asked, through)
