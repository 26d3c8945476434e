# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the parser: from the octets of a frame to its unified header.

Source: IEEE 802.1Q-2022, 9 (tags); RFC 3032 and 4928 (labels, and what is behind them); RFC 826, 791, 8200, 4302
(ARP, IPv4, IPv6 and its extension headers, AH); RFC 9293, 768, 792, 4443 (TCP, UDP, ICMP); docs/design/unified-header.md.
"""

import struct
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache

from liteprobe.cores.formats import (
    EXTENSION,
    EXTENSIONS_MAX,
    GIANT_LENGTH,
    LABELS_MAX,
    MIN_LENGTH,
    PAYLOAD_MIN,
    SIGNATURE,
    STAMP_OFFSET,
    TAG_KINDS,
    TAGS_MAX,
    Layer3,
    UnifiedFlag,
)

ETHERNET = 14
ARP, RARP, IPV4, IPV6 = 0x0806, 0x8035, 0x0800, 0x86DD
MPLS = (0x8847, 0x8848)

HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION_OPTIONS = 0, 43, 44, 51, 60
EXTENSIONS = (HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION_OPTIONS)
ICMP, TCP, UDP, ICMPV6, SCTP = 1, 6, 17, 58, 132
WITH_PORTS = (TCP, UDP, SCTP)
HEADS = {ICMP: 8, ICMPV6: 4, SCTP: 12}  # Octets: RFC 792, RFC 4443 (2.1), RFC 9260 (3.1).

UNBOUNDED = 1 << 20
"""Length of an IPv4 packet that says 0, as before segmentation by a network card: the frame's end is its end."""


class StoppedError(Exception):
    """The walk ends here; its argument is the flag that says why."""


@dataclass
class UnifiedHeader:
    """A unified header, field by field as in ``UNIFIED_DTYPE``; octets and words are as on the wire."""

    stamp: int = 0
    length: int = 0
    snap_length: int = 0
    flags: UnifiedFlag = UnifiedFlag.NONE
    ethertype: int = 0
    port: int = 0
    channel: int = 0
    rule: int = 0
    protocol: int = 0
    layer3: Layer3 = Layer3.NONE
    tag_kinds: list[int] = field(default_factory=list)
    extensions: list[int] = field(default_factory=list)
    hash: int = 0
    sequence: int = 0
    tags: list[bytes] = field(default_factory=list)
    labels: list[bytes] = field(default_factory=list)
    source: bytes = b""
    destination: bytes = b""
    ports: bytes = bytes(4)
    ip: list[bytes] = field(default_factory=list)
    macs: bytes = bytes(12)
    detail: bytes = bytes(4)
    tx_stamp: int | None = None
    """Of a probe that has all of it; like what follows, it is not a field of the header."""
    behind: list[bytes] = field(default_factory=list)
    """Up to four whole words behind the IP header (IPv6: the fixed one) that belong to the packet."""

    def octets(self) -> bytes:
        """Return the header as it leaves the board."""
        kinds = sum(kind << 2 * place for place, kind in enumerate(self.tag_kinds))
        layers = self.layer3 | len(self.tags) << 2 | len(self.labels) << 5
        status = struct.pack(
            "<QHHHBBHBBBx2sI",
            *(self.stamp, self.length, self.snap_length, self.flags, self.rule, self.port << 4 | self.channel),
            *(self.ethertype, self.protocol, layers, kinds, bytes(self.extensions), self.hash),
        )
        return b"".join(
            [
                *(status, struct.pack(">I", self.sequence)),
                *(b"".join(words).ljust(16, b"\0") for words in (self.tags, self.labels)),
                *(address.ljust(16, b"\0") for address in (self.source, self.destination)),
                *(self.ports, b"".join(self.ip).ljust(12, b"\0"), self.macs, self.detail),
            ]
        )


class Walk:
    """A walk through the headers of one frame (without FCS), word by word; `header` says what it found.

    ``with_rarp``: RARP is walked through like ARP, as by an emulator.
    """

    def __init__(self, frame: bytes, with_rarp: bool = False) -> None:
        self.arp_kinds = (ARP, RARP) if with_rarp else (ARP,)
        self.frame = frame
        self.end = len(frame)  # No header reaches beyond it.
        self.header = UnifiedHeader()
        try:
            self.link()
        except StoppedError as stop:
            self.header.flags |= UnifiedFlag.UNPARSED | stop.args[0]

    def take(self, at: int, count: int = 4) -> bytes:
        """Return ``count`` octets, or stop because they are not all there."""
        if at + count > self.end:
            raise StoppedError(UnifiedFlag.TRUNCATED)
        return self.frame[at : at + count]

    def link(self) -> None:
        """Ethernet and its tags."""
        header, start = self.header, self.take(0, ETHERNET)
        header.macs, header.ethertype, at = start[:12], int.from_bytes(start[12:]), ETHERNET
        while header.ethertype in TAG_KINDS:
            if len(header.tags) == TAGS_MAX:
                raise StoppedError(UnifiedFlag.NONE)
            tag = self.take(at)
            header.tags.append(tag)
            header.tag_kinds.append(TAG_KINDS[header.ethertype])
            header.ethertype, at = int.from_bytes(tag[2:]), at + 4
        if header.ethertype in MPLS:
            self.mpls(at)
        elif header.ethertype in self.arp_kinds:
            self.arp(at)
        elif header.ethertype == IPV4:
            self.ip(at, (4,))
        elif header.ethertype == IPV6:
            self.ip(at, (6,))

    def mpls(self, at: int) -> None:
        """The stack of labels; what is behind its bottom is IP if its first nibble says so."""
        labels = self.header.labels
        while not labels or not labels[-1][2] & 1:
            if len(labels) == LABELS_MAX:
                raise StoppedError(UnifiedFlag.NONE)
            labels.append(self.take(at))
            at += 4
        if self.take(at)[0] >> 4 in (4, 6):
            self.ip(at, (4, 6))

    def arp(self, at: int) -> None:
        """ARP of IPv4 over Ethernet; its protocol addresses stand for those of IP."""
        if self.take(at) != bytes.fromhex("00010800") or self.take(at + 4)[:2] != bytes.fromhex("0604"):
            raise StoppedError(UnifiedFlag.NONE)
        payload = self.take(at, 28)
        self.header.layer3, self.header.ip = Layer3.ARP, [payload[4:8]]
        self.header.source, self.header.destination = payload[14:18], payload[24:28]

    def ip(self, at: int, versions: tuple[int, ...]) -> None:
        """Either IP."""
        version = self.take(at)[0] >> 4
        if version not in versions:
            raise StoppedError(UnifiedFlag.NONE)
        (self.ipv4 if version == 4 else self.ipv6)(at)

    def ipv4(self, at: int) -> None:
        """IPv4; options are passed over."""
        words, header = self.take(at)[0] & 15, self.header
        total = int.from_bytes(self.frame[at + 2 : at + 4])
        if words < 5:
            raise StoppedError(UnifiedFlag.NONE)
        if 0 < total < 4 * words:
            raise StoppedError(UnifiedFlag.LENGTH_ERROR)
        fixed = self.take(at, 20)
        header.layer3, header.protocol = Layer3.IPV4, fixed[9]
        header.ip = [fixed[0:4], fixed[4:8], fixed[8:12]]
        header.source, header.destination = fixed[12:16], fixed[16:20]
        if total == 0 or at + total > len(self.frame):
            header.flags |= UnifiedFlag.LENGTH_ERROR
        self.end = min(self.end, at + (total or UNBOUNDED))
        self.fragment(int.from_bytes(fixed[6:8]) & 0x1FFF, bool(fixed[6] & 0x20))
        self.take(at, 4 * words)
        self.behind(at + 4 * words)
        self.transport(at + 4 * words)

    def ipv6(self, at: int) -> None:
        """IPv6 and its extension headers."""
        header, fixed = self.header, self.take(at, 40)
        payload = int.from_bytes(fixed[4:6])
        header.layer3, header.protocol = Layer3.IPV6, fixed[6]
        header.ip = [fixed[0:4], fixed[4:8]]
        header.source, header.destination = fixed[8:24], fixed[24:40]
        if at + 40 + payload > len(self.frame):
            header.flags |= UnifiedFlag.LENGTH_ERROR
        # RFC 2675: a length of 0 before a hop-by-hop header is that of a jumbogram, said there.
        is_jumbogram = payload == 0 and header.protocol == HOP_BY_HOP
        self.end = min(self.end, at + 40 + (UNBOUNDED if is_jumbogram else payload))
        at += 40
        self.behind(at)
        while header.protocol in EXTENSIONS:
            if self.is_later_fragment():
                return
            at = self.extension(at)
        self.transport(at)

    def behind(self, at: int) -> None:
        """Note the first whole words behind the IP header, whatever they are."""
        count = min(4, (min(self.end, len(self.frame)) - at) // 4)
        self.header.behind = [self.frame[at + 4 * word : at + 4 * word + 4] for word in range(count)]

    def extension(self, at: int) -> int:
        """Walk through an extension header and return where it ends."""
        header = self.header
        if len(header.extensions) == EXTENSIONS_MAX:
            raise StoppedError(UnifiedFlag.NONE)
        word, kind = self.take(at), header.protocol
        header.extensions.append(EXTENSION | kind)
        header.protocol = word[0]
        if kind == FRAGMENT:
            header.ip = [*header.ip[:2], word]
            self.fragment(int.from_bytes(word[2:]) >> 3, bool(word[3] & 1))
        length = 8 if kind == FRAGMENT else 4 * (word[1] + 2) if kind == AUTHENTICATION else 8 * (word[1] + 1)
        self.take(at, length)
        return at + length

    def fragment(self, offset: int, more: bool) -> None:
        """Note whether the packet is a fragment, and which."""
        self.header.flags &= ~(UnifiedFlag.FRAGMENT | UnifiedFlag.FIRST_FRAGMENT)  # The last header decides.
        if offset or more:
            self.header.flags |= UnifiedFlag.FRAGMENT
        if more and not offset:
            self.header.flags |= UnifiedFlag.FIRST_FRAGMENT

    def is_later_fragment(self) -> bool:
        """Tell whether what follows is not a header: it continues what an earlier fragment began."""
        return self.header.flags & (UnifiedFlag.FRAGMENT | UnifiedFlag.FIRST_FRAGMENT) == UnifiedFlag.FRAGMENT

    def transport(self, at: int) -> None:
        """Ports or type and code, then TCP's flags or a probe's header."""
        header, protocol = self.header, self.header.protocol
        if self.is_later_fragment() or protocol not in (*WITH_PORTS, ICMP, ICMPV6):
            return
        first = self.take(at)
        header.flags |= UnifiedFlag.TRANSPORT
        header.ports = first if protocol in WITH_PORTS else first[:2] + bytes(2)
        if protocol == TCP:
            fixed = self.take(at, 16)
            if fixed[12] >> 4 < 5:
                raise StoppedError(UnifiedFlag.NONE)
            header.sequence, header.detail = int.from_bytes(fixed[4:8]), fixed[12:16]
            header.flags |= UnifiedFlag.TCP
        elif protocol == UDP:
            self.take(at, 8)
            self.probe(at + 8)
        elif protocol in HEADS:
            self.take(at, HEADS[protocol])

    def probe(self, at: int) -> None:
        """The payload of a UDP packet, where it is a probe's."""
        payload = self.frame[at : min(at + PAYLOAD_MIN, self.end)]
        if len(payload) >= 12 and int.from_bytes(payload[:4]) == SIGNATURE:
            self.header.detail, self.header.sequence = bytes(2) + payload[4:6], int.from_bytes(payload[6:10])
            self.header.flags |= UnifiedFlag.PROBE
            if len(payload) == PAYLOAD_MIN:
                self.header.tx_stamp = int.from_bytes(payload[STAMP_OFFSET:])


@lru_cache(1 << 14)
def walked(frame: bytes, with_rarp: bool = False) -> UnifiedHeader:
    """Return the header of a walk: the same object for the same frame, so it must not be changed."""
    return Walk(frame, with_rarp).header


def unified_header(
    frame: bytes,
    port: int = 0,
    stamp: int = 0,
    verdict: UnifiedFlag = UnifiedFlag.NONE,
    with_rarp: bool = False,
) -> UnifiedHeader:
    """Return the unified header of a frame (without FCS); ``verdict``: errors that the MAC found; ``with_rarp``: as of `Walk`."""
    header = copy(walked(frame, with_rarp))
    header.port, header.stamp = port, stamp
    header.length = header.snap_length = min(len(frame), 0xFFFF)
    header.flags |= verdict
    if len(frame) < MIN_LENGTH:
        header.flags |= UnifiedFlag.RUNT
    if len(frame) > GIANT_LENGTH:
        header.flags |= UnifiedFlag.GIANT
    return header
