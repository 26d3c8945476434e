# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The headers of a probe frame, from the MAC addresses to the stream id, as octets for the header memory."""

import ipaddress
import struct
from dataclasses import dataclass, replace

from liteprobe.cores.formats import CHECKSUM_OCTETS, PAYLOAD_MIN, SIGNATURE, VLAN_TAG
from liteprobe.host.defaults import (
    DESTINATION_IP,
    DESTINATION_MAC,
    DESTINATION_PORT,
    SOURCE_IP,
    SOURCE_MAC,
    SOURCE_PORT,
    TRAFFIC_CLASS,
    TTL,
)
from liteprobe.host.errors import UsageError

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

ETHERTYPE_VLAN = 0x8100  # IEEE 802.1Q, customer tag.
ETHERTYPE_SERVICE_VLAN = 0x88A8  # IEEE 802.1Q, service tag, outer of two.
ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_IPV6 = 0x86DD
PROTOCOL_UDP = 17

MACS_LENGTH = 12
IPV4_LENGTH = 20
IPV6_LENGTH = 40
UDP_LENGTH = 8
VLAN_TAGS_MAX = 2

# All ones is minus zero: the constant adds nothing to the sum, and is not the 0 that says "no checksum".
UDP_CHECKSUM_CONSTANT = 0xFFFF


def ones_complement_sum(octets: bytes) -> int:
    """Return the 16-bit one's complement sum of ``octets``, padded with a zero octet to an even length.

    Source: RFC 1071, section 1.
    """
    padded = octets + bytes(len(octets) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def mac_octets(mac: str) -> bytes:
    """Return the six octets of a MAC address written ``02:4c:50:54:00:01`` (or with dashes)."""
    digits = mac.replace("-", ":").split(":")
    try:
        octets = bytes(int(digit, 16) for digit in digits)
    except ValueError:
        octets = b""
    if len(octets) != 6 or any(not 1 <= len(digit) <= 2 for digit in digits):
        raise UsageError(f"'{mac}' is not a MAC address: write six octets, like 02:4c:50:54:00:01")
    return octets


def ip_address(address: str) -> IPAddress:
    """Return ``address`` parsed, IPv4 or IPv6."""
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(f"'{address}' is not an IP address: write it like 198.18.0.1 or 2001:2::1") from None


def _check_range(name: str, value: int, most: int) -> None:
    if not 0 <= value <= most:
        raise UsageError(f"{name} {value} is out of range: give 0 to {most}")


@dataclass(frozen=True)
class Headers:
    """What every frame of a train carries before its sequence number.

    Addresses default to locally administered MACs and to the network of benchmarks (RFC 2544, C.2.2; IPv6: RFC 5180).

    Parameters
    ----------
    destination_mac, source_mac : str
        MAC addresses, ``02:4c:50:54:00:02``.
    source_ip, destination_ip : str
        IPv4 or IPv6 addresses, both of one family; the family decides the layout.
    source_port, destination_port : int
        UDP ports, 0 to 65535.
    vlan_tags : tuple of int
        Up to two tags, outer first, each the whole 16-bit TCI (priority, drop eligible, VLAN id).
    ttl : int
        TTL (IPv4) or hop limit (IPv6), 0 to 255.
    traffic_class : int
        TOS (IPv4) or traffic class (IPv6), 0 to 255.

    Raises
    ------
    UsageError
        When an address can't be read, the families differ, or a number is out of range.
    """

    destination_mac: str = DESTINATION_MAC
    source_mac: str = SOURCE_MAC
    source_ip: str = SOURCE_IP
    destination_ip: str = DESTINATION_IP
    source_port: int = SOURCE_PORT
    destination_port: int = DESTINATION_PORT
    vlan_tags: tuple[int, ...] = ()
    ttl: int = TTL
    traffic_class: int = TRAFFIC_CLASS

    def __post_init__(self) -> None:
        mac_octets(self.destination_mac)
        mac_octets(self.source_mac)
        if ip_address(self.source_ip).version != ip_address(self.destination_ip).version:
            raise UsageError(
                f"{self.source_ip} and {self.destination_ip} are of different families: give both IPv4 or both IPv6"
            )
        if len(self.vlan_tags) > VLAN_TAGS_MAX:
            raise UsageError(f"{len(self.vlan_tags)} VLAN tags are too many: give up to {VLAN_TAGS_MAX}")
        for tag in self.vlan_tags:
            _check_range("VLAN tag", tag, 0xFFFF)
        _check_range("source port", self.source_port, 0xFFFF)
        _check_range("destination port", self.destination_port, 0xFFFF)
        _check_range("TTL", self.ttl, 0xFF)
        _check_range("traffic class", self.traffic_class, 0xFF)

    @property
    def is_ipv6(self) -> bool:
        """Whether the frames are IPv6, and so carry a UDP checksum."""
        return ip_address(self.source_ip).version == 6

    @property
    def network_offset(self) -> int:
        """Octets before the IP header."""
        return MACS_LENGTH + 2 + VLAN_TAG * len(self.vlan_tags)

    @property
    def payload_offset(self) -> int:
        """Octets before the UDP payload: 42 (IPv4) or 62 (IPv6), plus 4 a VLAN tag."""
        return self.network_offset + (IPV6_LENGTH if self.is_ipv6 else IPV4_LENGTH) + UDP_LENGTH

    @property
    def length_min(self) -> int:
        """Length of the shortest frame (without FCS) that holds these headers and the probe payload."""
        return max(60, self.payload_offset + PAYLOAD_MIN + (CHECKSUM_OCTETS if self.is_ipv6 else 0))

    def swapped(self) -> "Headers":
        """Return the headers of the opposite direction."""
        return replace(
            self,
            destination_mac=self.source_mac,
            source_mac=self.destination_mac,
            source_ip=self.destination_ip,
            destination_ip=self.source_ip,
            source_port=self.destination_port,
            destination_port=self.source_port,
        )

    def octets(self, length: int, stream_id: int) -> bytes:
        """Return everything before the sequence of a frame of ``length`` octets (without FCS)."""
        _check_range("stream id", stream_id, 0xFFFF)
        if length < self.length_min:
            raise UsageError(f"length {length} is too short for these headers: give {self.length_min} or more")
        udp_length = length - self.payload_offset + UDP_LENGTH
        probe = struct.pack(">IH", SIGNATURE, stream_id)
        return self._link() + self._network(udp_length) + self._udp(udp_length) + probe

    def checksum_seed(self, length: int) -> int:
        """Return the one's complement sum of pseudo-header and UDP header of an IPv6 frame; 0 for IPv4.

        Source: RFC 8200, section 8.1.
        """
        if not self.is_ipv6:
            return 0
        udp_length = length - self.payload_offset + UDP_LENGTH
        addresses = ip_address(self.source_ip).packed + ip_address(self.destination_ip).packed
        pseudo_header = addresses + struct.pack(">II", udp_length, PROTOCOL_UDP)
        return ones_complement_sum(pseudo_header + self._udp(udp_length))

    def _link(self) -> bytes:
        types = [ETHERTYPE_SERVICE_VLAN, ETHERTYPE_VLAN][VLAN_TAGS_MAX - len(self.vlan_tags) :]
        tags = b"".join(struct.pack(">HH", *tag) for tag in zip(types, self.vlan_tags, strict=True))
        ethertype = ETHERTYPE_IPV6 if self.is_ipv6 else ETHERTYPE_IPV4
        return mac_octets(self.destination_mac) + mac_octets(self.source_mac) + tags + struct.pack(">H", ethertype)

    def _network(self, udp_length: int) -> bytes:
        addresses = ip_address(self.source_ip).packed + ip_address(self.destination_ip).packed
        if self.is_ipv6:
            version = (6 << 28) | (self.traffic_class << 20)
            return struct.pack(">IHBB", version, udp_length, PROTOCOL_UDP, self.ttl) + addresses
        # Don't fragment, identification 0 (RFC 6864): a probe frame is atomic.
        fields = (0x45, self.traffic_class, IPV4_LENGTH + udp_length, 0, 0x4000, self.ttl, PROTOCOL_UDP)
        head = struct.pack(">BBHHHBB", *fields)
        checksum = 0xFFFF - ones_complement_sum(head + addresses)
        return head + struct.pack(">H", checksum) + addresses

    def _udp(self, udp_length: int) -> bytes:
        checksum = UDP_CHECKSUM_CONSTANT if self.is_ipv6 else 0
        return struct.pack(">HHHH", self.source_port, self.destination_port, udp_length, checksum)


def header_words(octets: bytes) -> list[int]:
    """Return ``octets`` as 32-bit words of the header memory: octet 0 in bits 7..0 of word 0."""
    padded = octets + bytes(-len(octets) % 4)
    return list(struct.unpack(f"<{len(padded) // 4}I", padded))
