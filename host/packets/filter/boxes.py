# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Turns an expression into a union of boxes: sets that each field of a frame may be in, as a term of the probe can ask.

The last number of a field's set stands for a frame that hasn't the field; so a complement is exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from liteprobe.cores.formats import Layer3
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.filter import nodes


@dataclass(frozen=True)
class Numbers:
    """A set of numbers from 0 to ``size`` - 1: ranges with both ends in them, in order, none touching another."""

    size: int
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, size: int, ranges: Iterable[tuple[int, int]]) -> "Numbers":
        """Return the union of ranges."""
        found: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if found and low <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(found[-1][1], high))
            else:
                found.append((low, high))
        return cls(size, tuple(found))

    @classmethod
    def every(cls, size: int) -> "Numbers":
        """Return all of them."""
        return cls(size, ((0, size - 1),))

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self.ranges

    @property
    def is_every(self) -> bool:
        """Whether all are there."""
        return self.ranges == ((0, self.size - 1),)

    def __contains__(self, number: int) -> bool:
        return any(low <= number <= high for low, high in self.ranges)

    def __invert__(self) -> "Numbers":
        edges = [-1, *(edge for ends in self.ranges for edge in ends), self.size]
        gaps = [(edges[place] + 1, edges[place + 1] - 1) for place in range(0, len(edges), 2)]
        return Numbers(self.size, tuple((low, high) for low, high in gaps if low <= high))

    def __or__(self, other: "Numbers") -> "Numbers":
        return Numbers.of(self.size, self.ranges + other.ranges)

    def __and__(self, other: "Numbers") -> "Numbers":
        common = [(max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges]
        return Numbers.of(self.size, [(low, high) for low, high in common if low <= high])

    def __le__(self, other: "Numbers") -> bool:
        return self & other == self


IPV6_FIRST = 1 << 32  # In a set of addresses: those of IPv6 are behind those of IPv4.
ADDRESSES = IPV6_FIRST + (1 << 128)

#: Fields of a box, and how many values each has, "none" among them.
SIZES = {
    "kind": len(Layer3),
    "source": ADDRESSES + 1,
    "destination": ADDRESSES + 1,
    "protocol": 256 + 1,
    "source_port": 65536 + 1,
    "destination_port": 65536 + 1,
    "vlan": 4096 + 1,
    "source_mac": (1 << 48) + 1,
    "destination_mac": (1 << 48) + 1,
}
FIELDS = tuple(SIZES)
MOST = 512  # Boxes on the way: an expression that needs more will not fit.

Box = tuple[Numbers, ...]
Boxes = tuple[Box, ...]

EVERY: Box = tuple(Numbers.every(size) for size in SIZES.values())


class FilterDoesNotFit(UsageError):
    """The probe's tables can't hold an expression; the message names the part and the reason.

    Parameters
    ----------
    part : str
        Of the expression.
    reason : str
        Why not.
    remedy : str
        What to do instead.
    """

    def __init__(self, part: str, reason: str, remedy: str = "let this host filter (--host-filter)") -> None:
        super().__init__(f"'{part}' does not fit into the probe: {reason}; {remedy}")
        self.part, self.reason = part, reason


def box(**fields: Iterable[tuple[int, int]]) -> Box:
    """Return a box that asks some fields to be in ranges."""
    return tuple(
        Numbers.of(SIZES[name], fields[name]) if name in fields else whole
        for name, whole in zip(FIELDS, EVERY, strict=True)
    )


def tidy(boxes: Iterable[Box]) -> Boxes:
    """Join boxes that differ in one field alone, and leave out those within others."""
    found: list[Box] = []
    for new in boxes:
        joined = new
        place = 0
        while place < len(found):
            other = found[place]
            if all(a <= b for a, b in zip(joined, other, strict=True)):
                break
            differing = [number for number, (a, b) in enumerate(zip(joined, other, strict=True)) if a != b]
            is_wider = all(b <= a for a, b in zip(joined, other, strict=True))
            if len(differing) == 1 or is_wider:
                joined = tuple(a | b for a, b in zip(joined, other, strict=True))
                del found[place]
                place = 0
            else:
                place += 1
        else:
            found.append(joined)
    return tuple(found)


def union(first: Boxes, second: Boxes) -> Boxes:
    """Return what is in one or the other."""
    return tidy((*first, *second))


def intersection(first: Boxes, second: Boxes) -> Boxes:
    """Return what is in both."""
    products = [tuple(a & b for a, b in zip(one, other, strict=True)) for one in first for other in second]
    return tidy(product for product in products if not any(field.is_empty for field in product))


def complement(boxes: Boxes) -> Boxes:
    """Return what is in none."""
    found: Boxes = (EVERY,)
    for one in boxes:
        sides = [(number, ~field) for number, field in enumerate(one) if not field.is_every]
        found = intersection(found, tuple((*EVERY[:number], field, *EVERY[number + 1 :]) for number, field in sides))
    return found


def kinds_of(kinds: Iterable[Layer3]) -> list[tuple[int, int]]:
    """Return ranges of kinds of layer 3."""
    return [(int(kind), int(kind)) for kind in kinds]


def address_range(node: nodes.Address) -> tuple[int, int]:
    """Return the range of a network."""
    first = 0 if node.network.version == 4 else IPV6_FIRST
    return first + int(node.network.network_address), first + int(node.network.broadcast_address)


def primitive(node: nodes.Node) -> Boxes:
    """Return the boxes of what joins nothing."""
    match node:
        case nodes.Everything():
            return (EVERY,)
        case nodes.Layer3Type(kinds=kinds):
            return (box(kind=kinds_of(kinds)),)
        case nodes.CarriedProtocol(number=number, kinds=kinds) if number in nodes.EXTENSIONS and Layer3.IPV6 in kinds:
            reason = "they know the protocol behind extension headers of IPv6, not that one is there"
            raise FilterDoesNotFit(node.text, reason)
        case nodes.CarriedProtocol(number=number, kinds=kinds):
            asked = {} if kinds >= nodes.IP else {"kind": kinds_of(kinds & nodes.EVERY_KIND)}
            return (box(protocol=[(number, number)], **asked),)
        case nodes.Address(side=side):
            return (box(**{side: [address_range(node)]}),)
        case nodes.PortRange(side=side, least=least, most=most):
            return (box(**{f"{side}_port": [(least, most)]}),)
        case nodes.Vlan(number=number, depth=0):
            return (box(vlan=[(0, 4095) if number is None else (number, number)]),)
        case nodes.Vlan():
            raise FilterDoesNotFit(node.text, "its tables know the outermost tag alone")
        case nodes.Mac(side=side, octets=octets):
            return (box(**{f"{side}_mac": [(int.from_bytes(octets), int.from_bytes(octets))]}),)
        case nodes.OnHost(reason=reason):
            raise FilterDoesNotFit(node.text, reason)
        case nodes.Mpls():
            raise FilterDoesNotFit(node.text, "its tables hold no labels")
    reason = "its tables see MACs, VLAN id, ip, ip6, arp, addresses, protocol and ports, and no other octets"
    raise FilterDoesNotFit(node.text, reason, f"{nodes.BY_LIBPCAP} (tcpdump -r FILE '{node.text}')")


def boxes_of(node: nodes.Node) -> Boxes:
    """Return the union of boxes that an expression is.

    Raises FilterDoesNotFit when a part asks what no box can say, or too many are needed.
    """
    match node:
        case nodes.Not(part=part):
            found = complement(boxes_of(part))
        case nodes.And(parts=parts):
            found = reduce(intersection, map(boxes_of, parts))
        case nodes.Or(parts=parts):
            found = reduce(union, map(boxes_of, parts))
        case _:
            found = primitive(node)
    if len(found) > MOST:
        raise FilterDoesNotFit(node.text, f"it is {len(found)} cases")
    return found
