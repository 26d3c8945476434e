# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A session-reflector of STAMP in plain Python, and a host around it that answers ARP and neighbour solicitations.

Written from the RFCs, apart from the gateware and from the host's own packing: octets are cut and joined by hand.

Source: RFC 8762, 4.3 and 4.6; RFC 8972, 3 and 4; RFC 826; RFC 4861, 7.2; RFC 4656, 4.1.2; RFC 8186.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

BASE = 44
LEAST = 14  # Sequence number, timestamp, error estimate: TWAMP Light may pad by as little as nothing.
NTP_TO_POSIX = 2_208_988_800
PADDING, LOCATION, TIMESTAMPS, CLASS, DIRECT, ACCESS, FOLLOW_UP = range(1, 8)
KNOWN = frozenset((PADDING, LOCATION, TIMESTAMPS, CLASS, DIRECT, ACCESS, FOLLOW_UP))
VALUE_OCTETS = {LOCATION: 4, TIMESTAMPS: 4, CLASS: 4, DIRECT: 12, ACCESS: 4, FOLLOW_UP: 16}  # At least, of a good one.
UNKNOWN, MALFORMED, INTEGRITY = 0x80, 0x40, 0x20
ARP, IPV4, IPV6, VLANS = 0x0806, 0x0800, 0x86DD, (0x8100, 0x88A8)
UDP, ICMPV6, SOLICITATION, ADVERTISEMENT = 17, 58, 135, 136


@dataclass(frozen=True)
class Received:
    """A test packet, as it came: who sent it, by which ports, with which TTL and traffic class, and when its SFD came (ns)."""

    payload: bytes
    source: str
    source_port: int
    port: int
    ttl: int
    traffic_class: int
    time_ns: int


@dataclass
class Session:
    """Holds what a reflector keeps of a session: packets that came, that it answered, and the last answer."""

    received: int = 0
    sent: int = 0
    last: tuple[int, bytes] = (0, bytes(8))


@dataclass
class Reflector:
    """Answers test packets.

    Attributes
    ----------
    is_stateful : whether answers have a count of their own, for each session.
    is_ptp : whether times are in PTPv2's truncated format; else NTP's.
    error : the other 14 bits of the error estimate, and S.
    known : types of TLVs that it knows; all others are flagged.
    has_tlvs : False: what follows the base is copied as it is (RFC 8762 alone).
    is_short : an answer has the base alone, whatever came (a reflector of TWAMP Light that doesn't copy padding).
    """

    is_stateful: bool = False
    is_ptp: bool = False
    error: int = 0x0001
    known: frozenset[int] = KNOWN
    has_tlvs: bool = True
    is_short: bool = False
    sessions: dict[tuple[str, int, int], Session] = field(default_factory=dict)

    def stamp(self, time_ns: int) -> bytes:
        """Return a time (ns since 1970) in 64 bits."""
        seconds, rest = time_ns // 10**9, time_ns % 10**9
        if self.is_ptp:
            return (seconds % 2**32).to_bytes(4, "big") + rest.to_bytes(4, "big")
        fraction = (rest * 2**32 + 5 * 10**8) // 10**9
        return (((seconds + NTP_TO_POSIX) * 2**32 + fraction) % 2**64).to_bytes(8, "big")

    def answer(self, one: Received, sent_ns: int) -> bytes | None:
        """Return the payload of the answer to a packet, whose SFD leaves at ``sent_ns``; None: it gets none."""
        given = one.payload
        if len(given) < LEAST or not any(given[4:14]):  # Authenticated packets have 12 zeros after the sequence number.
            return None
        base = given[:BASE] + bytes(max(BASE - len(given), 0))
        ssid = base[14:16]
        session = self.sessions.setdefault((one.source, one.source_port, int.from_bytes(ssid, "big")), Session())
        session.received += 1
        number = session.sent.to_bytes(4, "big") if self.is_stateful else base[0:4]
        session.sent += 1
        t3 = self.stamp(sent_ns)
        error = (self.error | 0x4000 * self.is_ptp).to_bytes(2, "big")
        made = number + t3 + error + ssid + self.stamp(one.time_ns) + base[0:4] + base[4:12] + base[12:14]
        made += bytes(2) + bytes([one.ttl]) + bytes(3)
        if not self.is_short:
            made += self._tlvs(given[BASE:], one, session) if self.has_tlvs else given[BASE:]
        session.last = (int.from_bytes(number, "big"), t3)
        return made

    def _tlvs(self, octets: bytes, one: Received, session: Session) -> bytes:
        made, at = b"", 0
        while at < len(octets):
            left = octets[at:]
            length = int.from_bytes(left[2:4], "big")
            if len(left) < 4 or 4 + length > len(left):  # What follows can't be told apart: it is copied.
                return made + bytes([left[0] & ~UNKNOWN & 0xFF | MALFORMED]) + left[1:]
            kind, value = left[1], left[4 : 4 + length]
            flags = 0 if kind in self.known else UNKNOWN
            if kind in self.known and length < VALUE_OCTETS.get(kind, 0):
                flags = MALFORMED
            elif kind in self.known:
                value = self._value(kind, value, one, session)
            made += bytes([flags, kind]) + left[2:4] + value
            at += 4 + length
        return made

    def _value(self, kind: int, value: bytes, one: Received, session: Session) -> bytes:
        if kind == LOCATION:
            return one.port.to_bytes(2, "big") + one.source_port.to_bytes(2, "big") + value[4:]
        if kind == TIMESTAMPS:  # By a clock of its own; hardware assisted, both ways.
            return bytes([5, 1, 5, 1]) + value[4:]
        if kind == CLASS:
            first, second = value[0] >> 2, one.traffic_class >> 2
            word = first << 26 | second << 20 | (one.traffic_class & 3) << 18
            return word.to_bytes(4, "big") + value[4:]
        if kind == DIRECT:
            return value[:4] + session.received.to_bytes(4, "big") + session.sent.to_bytes(4, "big") + value[12:]
        if kind == FOLLOW_UP and self.is_stateful and session.sent > 1:
            return session.last[0].to_bytes(4, "big") + session.last[1] + bytes([1, 0, 0, 0]) + value[16:]
        return value

    def traffic_class_of(self, one: Received) -> int:
        """Return the traffic class that the answer leaves with: that which came, or the one asked for by class of service."""
        octets, at = one.payload[BASE:], 0
        while self.has_tlvs and CLASS in self.known and at + 8 <= len(octets):
            if octets[at + 1] == CLASS:
                return octets[at + 4] & 0xFC | one.traffic_class & 3
            at += 4 + int.from_bytes(octets[at + 2 : at + 4], "big")
        return one.traffic_class


# A host around it ---------------------------------------------------------------------------------

Reflect = Callable[[Received, int], bytes | None]


@dataclass
class Host:
    """A host with addresses of its own and a reflector: it takes frames without FCS, and returns what it answers.

    Attributes
    ----------
    addresses : IPv4 and IPv6 addresses that it has.
    port : of UDP, of the reflector.
    counts : frames by what became of them.
    is_silent : it answers neither ARP nor solicitations.
    """

    addresses: tuple[str, ...]
    mac: bytes = bytes.fromhex("024c5054aa01")
    port: int = 862
    reflector: Reflector = field(default_factory=Reflector)
    is_silent: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    heard: list[bytes] = field(default_factory=list)  # Announcements: gratuitous ARP, unsolicited advertisements.

    def take(self, frame: bytes, came_ns: int, leaves_ns: Callable[[int], int]) -> list[bytes]:
        """Return what it answers to a frame whose SFD came at a time (ns); ``leaves_ns``: when a payload of a length leaves."""
        at = 12
        while int.from_bytes(frame[at : at + 2], "big") in VLANS:
            at += 4
        head, kind, packet = frame[:at], int.from_bytes(frame[at : at + 2], "big"), frame[at + 2 :]
        if frame[0:6] != self.mac and not frame[0] & 1:
            return self._count("other_mac")
        if kind == ARP:
            return self._arp(head, packet)
        if kind == IPV4:
            return self._ipv4(head, packet, came_ns, leaves_ns)
        if kind == IPV6:
            return self._ipv6(head, packet, came_ns, leaves_ns)
        return self._count("other_type")

    def _count(self, name: str) -> list[bytes]:
        self.counts[name] = self.counts.get(name, 0) + 1
        return []

    def _back(self, head: bytes, kind: int, packet: bytes, to: bytes | None = None) -> bytes:
        """Return a frame of the same tags, to whom the other one was from, 60 octets long at least."""
        made = (to or head[6:12]) + self.mac + head[12:] + kind.to_bytes(2, "big") + packet
        return made.ljust(60, b"\0")

    def _arp(self, head: bytes, packet: bytes) -> list[bytes]:
        if len(packet) < 28 or packet[:6] != bytes.fromhex("000108000604"):
            return self._count("bad_arp")
        sender, target = packet[14:18], packet[24:28]
        if sender == target:
            self.heard.append(packet[:28])
            return self._count("announced")
        if packet[6:8] != b"\0\1" or str(IPv4Address(target)) not in self.addresses or self.is_silent:
            return self._count("other_arp")
        self._count("arp")
        made = packet[:6] + b"\0\2" + self.mac + target + packet[8:14] + sender
        return [self._back(head, ARP, made)]

    def _ipv4(self, head: bytes, packet: bytes, came_ns: int, leaves_ns: Callable[[int], int]) -> list[bytes]:
        size, total = 4 * (packet[0] & 15), int.from_bytes(packet[2:4], "big")
        if (
            packet[0] >> 4 != 4
            or size < 20
            or not size + 8 <= total <= len(packet)
            or total_of(packet[:size]) != 0xFFFF
        ):
            return self._count("bad_ip")
        if packet[9] != UDP or packet[6] & 0x3F or packet[7]:
            return self._count("other_protocol")
        source, target = packet[12:16], packet[16:20]
        if str(IPv4Address(target)) not in self.addresses:
            return self._count("other_ip")
        segment = packet[size:total]
        pseudo = source + target + b"\0\x11" + len(segment).to_bytes(2, "big")
        if segment[6:8] != b"\0\0" and total_of(pseudo + segment) != 0xFFFF:
            return self._count("bad_checksum")
        one = self._received(segment, str(IPv4Address(source)), packet[8], packet[1], came_ns)
        made = self._reflected(one, leaves_ns)
        if one is None or made is None:
            return []
        tos = self.reflector.traffic_class_of(one)
        has_sum = segment[6:8] != b"\0\0"
        udp = joined(one.port, one.source_port, made, target + source + b"\0\x11", has_sum)
        ip = bytes([0x45, tos]) + (20 + len(udp)).to_bytes(2, "big") + bytes(4) + b"\xff\x11\0\0" + target + source
        ip = ip[:10] + (0xFFFF - total_of(ip)).to_bytes(2, "big") + ip[12:]
        return [self._back(head, IPV4, ip + udp)]

    def _ipv6(self, head: bytes, packet: bytes, came_ns: int, leaves_ns: Callable[[int], int]) -> list[bytes]:
        length = int.from_bytes(packet[4:6], "big")
        source, target, segment = packet[8:24], packet[24:40], packet[40 : 40 + length]
        if len(segment) < length or packet[0] >> 4 != 6:
            return self._count("bad_ip")
        pseudo = source + target + length.to_bytes(4, "big") + b"\0\0\0" + packet[6:7]
        if total_of(pseudo + segment) != 0xFFFF:
            return self._count("bad_checksum")
        if packet[6] == ICMPV6:
            return self._icmpv6(head, packet[7], source, segment)
        if packet[6] != UDP:
            return self._count("other_protocol")
        if str(IPv6Address(target)) not in self.addresses:
            return self._count("other_ip")
        traffic_class = (packet[0] << 8 | packet[1]) >> 4 & 0xFF
        one = self._received(segment, str(IPv6Address(source)), packet[7], traffic_class, came_ns)
        made = self._reflected(one, leaves_ns)
        if one is None or made is None:
            return []
        udp = joined(one.port, one.source_port, made, target + source + bytes(3) + b"\x11", True)
        back = (6 << 28 | self.reflector.traffic_class_of(one) << 20).to_bytes(4, "big")
        ip = back + len(udp).to_bytes(2, "big") + b"\x11\xff" + target + source
        return [self._back(head, IPV6, ip + udp)]

    def _icmpv6(self, head: bytes, hops: int, source: bytes, message: bytes) -> list[bytes]:
        if message[0] == ADVERTISEMENT and hops == 255:
            self.heard.append(message)
            return self._count("announced")
        target = message[8:24]
        if (
            message[0] != SOLICITATION
            or hops != 255
            or str(IPv6Address(target)) not in self.addresses
            or self.is_silent
        ):
            return self._count("other_icmp")
        self._count("solicited")
        made = bytes([ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0]) + target + b"\2\1" + self.mac
        pseudo = target + source + len(made).to_bytes(4, "big") + b"\0\0\0\x3a"
        made = made[:2] + (0xFFFF - total_of(pseudo + made)).to_bytes(2, "big") + made[4:]
        ip = b"\x60\0\0\0" + len(made).to_bytes(2, "big") + b"\x3a\xff" + target + source
        return [self._back(head, IPV6, ip + made)]

    def _received(self, segment: bytes, source: str, ttl: int, traffic_class: int, came_ns: int) -> Received | None:
        source_port, port, length = (int.from_bytes(segment[n : n + 2], "big") for n in (0, 2, 4))
        if port != self.port:
            self._count("other_port")
            return None
        address = ip_address(source)
        is_broadcast = address.is_multicast or address.is_unspecified or source == "255.255.255.255"
        if not source_port or not 8 <= length <= len(segment) or is_broadcast or source in self.addresses:
            self._count("refused")
            return None
        return Received(segment[8:length], source, source_port, port, ttl, traffic_class, came_ns)

    def _reflected(self, one: Received | None, leaves_ns: Callable[[int], int]) -> bytes | None:
        if one is None:
            return None
        made = self.reflector.answer(one, leaves_ns(len(one.payload)))
        self._count("refused" if made is None else "stamp")
        return made


def total_of(octets: bytes) -> int:
    """Return the one's complement sum of 16-bit words (RFC 1071)."""
    total = sum(int.from_bytes(octets[n : n + 2].ljust(2, b"\0"), "big") for n in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def joined(source: int, target: int, payload: bytes, pseudo: bytes, has_sum: bool) -> bytes:
    """Return a UDP datagram; ``pseudo``: addresses and protocol of the pseudo-header, without the length."""
    length = (8 + len(payload)).to_bytes(2, "big")
    made = source.to_bytes(2, "big") + target.to_bytes(2, "big") + length + bytes(2) + payload
    if not has_sum:
        return made
    total = 0xFFFF - total_of(pseudo + length + made)
    return made[:6] + (total or 0xFFFF).to_bytes(2, "big") + made[8:]
