# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds faults of a frame, by a check that shares nothing with parser and model: it takes layers off by scapy's fields.

Source: IEEE 802.3, 3.1; RFC 3032, 2.1; RFC 826; RFC 791, 3.1; RFC 8200, 3 and 4; RFC 9293, 3.1; RFC 9260, 3.1; RFC 792.
"""

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.layers.sctp import SCTP
from scapy.contrib.mpls import MPLS
from scapy.packet import Packet

TAGS, LABELS = (0x8100, 0x88A8, 0x9100), (0x8847, 0x8848)
MOST_TAGS = MOST_LABELS = 4
MOST_EXTENSIONS = 2
#: Octets that must be there: with its sequence, window and flags for TCP; type, code and checksum for ICMPv6.
TRANSPORTS: dict[int, tuple[type[Packet], int]] = {
    1: (ICMP, 8), 6: (TCP, 16), 17: (UDP, 8), 58: (ICMPv6EchoRequest, 4), 132: (SCTP, 12),
}  # fmt: skip
AH = 51
ARP_OF_IPV4 = bytes(ARP(hwlen=6, plen=4))[:6]
LONGEST_HEAD = 60  # Of those below: scapy reads all of a header, or fails.
EXTENSIONS = (0, 43, 44, AH, 60)


class FaultyError(Exception):
    """Says what is wrong."""


def head(kind: type[Packet], octets: bytes, size: int) -> Packet:
    """Return a header without what follows it; raise where it isn't there to its end."""
    if len(octets) < size:
        raise FaultyError(f"cut in {kind.__name__}")
    found = kind()
    found.do_dissect(octets[:size].ljust(LONGEST_HEAD, b"\0"))
    return found


def fault(frame: bytes) -> str:
    """Return what is wrong with a frame (without FCS), "" where nothing is."""
    try:
        _link(frame)
    except FaultyError as error:
        return str(error)
    return ""


def _link(frame: bytes) -> None:
    kind, rest = head(Ether, frame, 14).type, frame[14:]
    count = 0
    while kind in TAGS:
        count += 1
        if count > MOST_TAGS:
            raise FaultyError("more than 4 tags")
        kind, rest = head(Dot1Q, rest, 4).type, rest[4:]
    if kind in LABELS:
        _labels(rest)
    elif kind == 0x0806:
        if rest[:6].ljust(6, b"\0") != ARP_OF_IPV4:
            raise FaultyError("ARP that is cut, or of something else than IPv4 over Ethernet")
        head(ARP, rest, 28)
    elif kind in (0x0800, 0x86DD):
        _ip(rest, {0x0800: 4, 0x86DD: 6}[kind])


def _labels(rest: bytes) -> None:
    count, is_bottom = 0, False
    while not is_bottom:
        count += 1
        if count > MOST_LABELS:
            raise FaultyError("more than 4 labels")
        is_bottom, rest = bool(head(MPLS, rest, 4).s), rest[4:]
    if len(rest) < 4:
        raise FaultyError("cut behind labels")
    if rest[0] >> 4 in (4, 6):
        _ip(rest, rest[0] >> 4)


def _ip(packet: bytes, version: int) -> None:
    if len(packet) < 4:
        raise FaultyError("cut in IP")
    if packet[0] >> 4 != version:
        raise FaultyError("another version of IP than its type says")
    (_four if version == 4 else _six)(packet)


def _four(packet: bytes) -> None:
    # Without its options, for scapy refuses some; its lengths are in the first four octets.
    size, ip = 4 * (packet[0] & 15), head(IP, b"\x45" + packet[1:], 4)
    if size < 20 or 0 < ip.len < size:
        raise FaultyError("IPv4 shorter than its own header")
    ip = head(IP, b"\x45" + packet[1:], 20)
    within = packet[: ip.len or None]
    if len(within) < size:
        raise FaultyError("cut in the options of IPv4")
    if ip.frag == 0:
        _transport(ip.proto, within[size:])


def _six(packet: bytes) -> None:
    ip = head(IPv6, packet, 40)
    is_jumbogram = ip.plen == 0 and ip.nh == 0
    kind, rest = ip.nh, packet[40:] if is_jumbogram else packet[40 : 40 + ip.plen]
    count = 0
    while kind in EXTENSIONS:
        count += 1
        if count > MOST_EXTENSIONS:
            raise FaultyError("more than 2 extension headers")
        if len(rest) < 4:
            raise FaultyError("cut in an extension header")
        size = 8 if kind == 44 else 4 * rest[1] + 8 if kind == AH else 8 * rest[1] + 8
        if len(rest) < size:
            raise FaultyError("cut in an extension header")
        if kind == 44 and int.from_bytes(rest[2:4]) >> 3:
            return  # What follows continues an earlier fragment.
        kind, rest = rest[0], rest[size:]
    _transport(kind, rest)


def _transport(protocol: int, rest: bytes) -> None:
    if protocol not in TRANSPORTS:
        return
    kind, size = TRANSPORTS[protocol]
    if len(rest) < size:
        raise FaultyError(f"cut in {kind.__name__}")
    if protocol == 6 and rest[12] >> 4 < 5:
        raise FaultyError("TCP shorter than its own header")
