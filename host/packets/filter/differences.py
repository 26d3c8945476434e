# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds where an expression holds for other frames than in tcpdump: a line for a person, a predicate over unified headers.

Source: pcap-filter(7): ``vlan`` and ``mpls`` move where all that is written behind them is looked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from liteprobe.cores.formats import Layer3, UnifiedFlag
from liteprobe.host.packets.filter.nodes import (
    EXTENSIONS,
    Address,
    And,
    CarriedProtocol,
    Depth,
    Everything,
    Headers,
    Layer3Type,
    Mac,
    Mpls,
    Node,
    Not,
    OnHost,
    Or,
    PortRange,
    Truth,
    Vlan,
)
from liteprobe.host.packets.unified import has, label_count, layer3, tag_count

RARP = 0x8035
MPLS_MULTICAST = 0x8848
ETHERNET = 14
SAID = {1: "also holds for", -1: "doesn't hold for", 0: "may differ for"}


@dataclass(frozen=True)
class Difference:
    """Frames for which an expression may not be what it is in tcpdump."""

    text: str  # Which frames.
    sign: int  # 1: it may hold, where tcpdump's doesn't; -1: the other way round; 0: either.
    where: Callable[[Headers], Truth]  # From unified headers to those that are such frames.
    is_of_broken: bool = False  # They are cut, malformed, or of more than the probe looks through.

    def explains(self, headers: Headers, here: Truth, there: Truth) -> Truth:
        """Return for which headers this says that the answer ``here`` may not be the one ``there``."""
        is_so = {1: here & ~there, -1: ~here & there, 0: here != there}[self.sign]
        return np.asarray(is_so & self.where(headers))


def wrong(headers: Headers, depth: Depth) -> Truth:
    """Return which are cut, malformed, or of more than the probe looks through, before ``depth`` is known."""
    ended = np.select(
        [headers["length"] < ETHERNET, layer3(headers) == Layer3.NONE, ~has(headers, UnifiedFlag.TRANSPORT)],
        [Depth.MACS, Depth.LINK, Depth.TRANSPORT],
        Depth.DETAIL,
    )
    return np.asarray(has(headers, UnifiedFlag.UNPARSED) & (ended <= depth))


def others(headers: Headers, tags: int, labels: int, layers: str) -> Truth:
    """Return which have other counts of tags (and of labels, where ``layers`` says so) than tcpdump looks behind."""
    found = tag_count(headers) != tags
    return np.asarray(found | (label_count(headers) != labels)) if "labels" in layers else np.asarray(found)


def extended(headers: Headers) -> Truth:
    """Return which have extension headers of IPv6."""
    return np.asarray((headers["extensions"] != 0).any(axis=1))


def of_type(headers: Headers, number: int) -> Truth:
    """Return which are of a type."""
    return np.asarray(headers["ethertype"] == number)


def every(headers: Headers) -> Truth:
    """Return all: libpcap reads an inner tag or label where one would be, and asks no type of what is before it."""
    return np.ones(len(headers), bool)


def behind(tags: int, labels: int, layers: str, sign: int) -> Difference:
    """Return the difference of what is looked for behind so many tags and labels."""
    if not tags and not labels:
        return Difference(f"frames behind {layers}", sign, partial(others, tags=0, labels=0, layers=layers))
    counts = " and ".join(f"{count} {name}" for count, name in ((tags, "VLAN tags"), (labels, "labels")) if count)
    where = partial(others, tags=tags, labels=labels, layers=layers)
    return Difference(f"frames behind other tags or labels than {counts}", 0, where)


class Walk:
    """A walk through an expression as libpcap reads it, from the left."""

    def __init__(self) -> None:
        self.tags = self.labels = 0

    def of(self, node: Node, sign: int, is_bound: bool = False) -> Iterator[Difference]:
        """Yield what differs; ``is_bound``: another part says which layer 3 it is."""
        match node:
            case Not(part=part):
                yield from self.of(part, -sign, is_bound)
            case And(parts=parts):
                is_bound |= any(isinstance(part, Layer3Type | CarriedProtocol) for part in parts)
                for part in parts:
                    yield from self.of(part, sign, is_bound)
            case Or(parts=parts):
                for part in parts:
                    yield from self.of(part, sign, is_bound)
            case Vlan(depth=depth):
                if depth != self.tags:
                    yield Difference("VLAN tags joined by 'or' (tcpdump takes the second for an inner one)", 0, every)
                elif self.tags > 1:
                    yield Difference("frames of more than 4 VLAN tags", 0, partial(wrong, depth=Depth.LINK), True)
                self.tags += 1
            case Mpls(depth=depth):
                yield behind(self.tags, depth, "VLAN tags", sign)
                yield Difference("MPLS multicast", sign, partial(of_type, number=MPLS_MULTICAST))
                if depth != self.labels:
                    yield Difference("labels joined by 'or' (tcpdump takes the second for an inner one)", 0, every)
                self.labels += 1
            case OnHost(through=through) if through:
                yield behind(self.tags, self.labels, through, sign)
            case Layer3Type() | CarriedProtocol() | Address() | PortRange():
                yield behind(self.tags, self.labels, "VLAN tags and labels", sign)
                yield from self.deeper(node, sign, is_bound)

    def deeper(self, node: Node, sign: int, is_bound: bool) -> Iterator[Difference]:
        """Yield what differs at layer 3 and beyond."""
        match node:
            case CarriedProtocol(number=number, kinds=kinds) if Layer3.IPV6 in kinds and number not in EXTENSIONS:
                yield Difference("frames behind extension headers of IPv6", sign, extended)
            case PortRange():
                yield Difference("frames behind extension headers of IPv6", sign, extended)
            case Address(network=network) if network.version == 4 and not is_bound:
                yield Difference("RARP", -sign, partial(of_type, number=RARP))


def depth_of(node: Node) -> Depth:
    """Return how far an expression looks at the most. libpcap refuses a frame that ends before, whatever else it says."""
    match node:
        case Not(part=part):
            return depth_of(part)
        case And(parts=parts) | Or(parts=parts):
            return max(map(depth_of, parts))
        case Everything():
            return Depth.NONE
        case OnHost(depth=depth):
            return depth
        case Mac():
            return Depth.MACS
        case PortRange():
            return Depth.TRANSPORT
        case CarriedProtocol(kinds=kinds) if Layer3.IPV6 in kinds:
            return Depth.TRANSPORT
    return Depth.LINK


#: What is said of frames that end, or are wrong, before what an expression looks at.
BROKEN = {
    Depth.MACS: "frames of fewer than 14 octets",
    Depth.LINK: "frames that are cut or malformed before layer 3, or of more tags or labels than 4",
}
BROKEN_DEEP = "frames that are cut, malformed, or of more tags, labels or extension headers than 4, 4, 2"


def differences(tree: Node) -> Sequence[Difference]:
    """Return where an expression may hold for other frames than in tcpdump, each kind once."""
    depth = depth_of(tree)
    if depth is Depth.NONE:
        return ()
    found: dict[tuple[str, int], Difference] = {}
    broken = Difference(BROKEN.get(depth, BROKEN_DEEP), 0, partial(wrong, depth=depth), True)
    for one in (*Walk().of(tree, 1), broken):
        if (one.text, 0) not in found:
            opposite = found.pop((one.text, -one.sign), None)
            sign = one.sign if opposite is None else 0
            found.setdefault((one.text, sign), replace(one, sign=sign))
    return tuple(found.values())


def said(found: Sequence[Difference], is_trigger: bool = False) -> str:
    """Return one line for a person, "" where nothing differs; there is no exact trigger."""
    kinds = [
        f"{SAID[sign]} {', '.join(one.text for one in found if one.sign == sign)}"
        for sign in SAID
        if any(one.sign == sign for one in found)
    ]
    what, remedy = ("trigger", "") if is_trigger else ("filter", ": --host-filter is exact")
    return f"other than in tcpdump, the {what} {'; '.join(kinds)}{remedy}" if kinds else ""
