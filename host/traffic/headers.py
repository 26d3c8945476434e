# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The headers of a frame, from the MAC addresses to the stream id of a probe, as octets for the header memory."""

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
ETHERTYPE_MPLS = 0x8847
ETHERTYPE_MIN = 0x0600  # IEEE 802.3, 3.2.6: below it, it is a length.
PROTOCOL_TCP = 6
PROTOCOL_UDP = 17
PROTOCOL_EXPERIMENT = 253  # RFC 3692, section 2.1.

MACS_LENGTH = 12
IPV4_LENGTH = 20
IPV6_LENGTH = 40
UDP_LENGTH = 8
TCP_LENGTH = 20
VLAN_TAGS_MAX = 4
MPLS_LABELS_MAX = 4
MPLS_LABEL_LENGTH = 4
TRANSPORTS = {"udp": UDP_LENGTH, "tcp": TCP_LENGTH, "none": 0}

TCP_ACK = 0x10
TCP_WINDOW = 0xFFFF

# What stands in the place of the checksum where the end of the payload makes the sum right; neither adds anything to it.
# UDP: all ones, minus zero, because 0 says "no checksum". TCP: 0, because no sender ever gets all ones (RFC 1624, section 3).
CHECKSUM_CONSTANT = {"udp": 0xFFFF, "tcp": 0, "none": 0}


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


def vlan_tag(number: int, priority: int = 0, drop_eligible: bool = False) -> int:
    """Return the TCI of a VLAN tag: id 0 to 4095, priority 0 to 7."""
    _check_range("VLAN id", number, 0xFFF)
    _check_range("VLAN priority", priority, 7)
    return priority << 13 | drop_eligible << 12 | number


@dataclass(frozen=True)
class MplsLabel:
    """A label of an MPLS stack; whether it is at the bottom is found by its place.

    Source: RFC 3032, section 2.1; RFC 5462.

    Parameters
    ----------
    label : int
        0 to 1048575.
    traffic_class : int
        0 to 7.
    ttl : int
        0 to 255.
    """

    label: int
    traffic_class: int = 0
    ttl: int = TTL

    def __post_init__(self) -> None:
        _check_range("MPLS label", self.label, 0xFFFFF)
        _check_range("MPLS traffic class", self.traffic_class, 7)
        _check_range("MPLS TTL", self.ttl, 0xFF)


@dataclass(frozen=True)
class Headers:
    """What every frame carries before its payload: MACs, VLAN tags, then MPLS labels, IP and a transport, or any type.

    Addresses default to locally administered MACs and to the network of benchmarks (RFC 2544, C.2.2; IPv6: RFC 5180).

    Parameters
    ----------
    destination_mac, source_mac : str
        MAC addresses, ``02:4c:50:54:00:02``.
    source_ip, destination_ip : str
        IPv4 or IPv6 addresses, both of one family; the family decides the layout.
    source_port, destination_port : int
        UDP or TCP ports, 0 to 65535.
    vlan_tags : tuple of int
        Up to four tags, outer first, each the whole 16-bit TCI (priority, drop eligible, VLAN id; see ``vlan_tag``).
        The outermost of several is a service tag (0x88a8), all others are customer tags (0x8100).
    ttl : int
        TTL (IPv4) or hop limit (IPv6), 0 to 255.
    traffic_class : int
        TOS (IPv4) or traffic class (IPv6), 0 to 255.
    mpls_labels : tuple of MplsLabel
        Up to four labels between the VLAN tags and the IP header, outer first.
    ethertype : int or None
        The payload follows this type (0x0600 to 0xffff), there is no IP; None: IP.
    transport : str
        ``udp``, ``tcp`` or ``none``: what follows the IP header.
    protocol : int
        Protocol of IP where the transport is ``none``, 0 to 255.
    identification : int
        Of IPv4, 0 to 65535.
    flow_label : int
        Of IPv6, 0 to 1048575.
    tcp_flags : int
        The octet of flags, 0 to 255 (0x10: ACK, 0x02: SYN).

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
    mpls_labels: tuple[MplsLabel, ...] = ()
    ethertype: int | None = None
    transport: str = "udp"
    protocol: int = PROTOCOL_EXPERIMENT
    identification: int = 0
    flow_label: int = 0
    tcp_flags: int = TCP_ACK

    def __post_init__(self) -> None:
        mac_octets(self.destination_mac)
        mac_octets(self.source_mac)
        if ip_address(self.source_ip).version != ip_address(self.destination_ip).version:
            raise UsageError(
                f"{self.source_ip} and {self.destination_ip} are of different families: give both IPv4 or both IPv6"
            )
        if len(self.vlan_tags) > VLAN_TAGS_MAX:
            raise UsageError(f"{len(self.vlan_tags)} VLAN tags are too many: give up to {VLAN_TAGS_MAX}")
        if len(self.mpls_labels) > MPLS_LABELS_MAX:
            raise UsageError(f"{len(self.mpls_labels)} MPLS labels are too many: give up to {MPLS_LABELS_MAX}")
        for tag in self.vlan_tags:
            _check_range("VLAN tag", tag, 0xFFFF)
        if self.ethertype is not None:
            self._check_ethertype(self.ethertype)
        if self.transport not in TRANSPORTS:
            raise UsageError(f"transport '{self.transport}' is unknown: give one of {', '.join(TRANSPORTS)}")
        _check_range("source port", self.source_port, 0xFFFF)
        _check_range("destination port", self.destination_port, 0xFFFF)
        _check_range("TTL", self.ttl, 0xFF)
        _check_range("traffic class", self.traffic_class, 0xFF)
        _check_range("protocol", self.protocol, 0xFF)
        _check_range("identification", self.identification, 0xFFFF)
        _check_range("flow label", self.flow_label, 0xFFFFF)
        _check_range("TCP flags", self.tcp_flags, 0xFF)

    def _check_ethertype(self, ethertype: int) -> None:
        if not ETHERTYPE_MIN <= ethertype <= 0xFFFF:
            raise UsageError(f"ethertype {ethertype:#x} is out of range: give {ETHERTYPE_MIN:#06x} to 0xffff")
        if self.mpls_labels:
            raise UsageError("MPLS labels have an ethertype of their own: leave out the ethertype or the labels")

    @property
    def has_ip(self) -> bool:
        """Whether there is an IP header."""
        return self.ethertype is None

    @property
    def is_ipv6(self) -> bool:
        """Whether the frames are IPv6, and so carry a UDP checksum."""
        return self.has_ip and ip_address(self.source_ip).version == 6

    @property
    def is_ipv4(self) -> bool:
        """Whether the frames are IPv4."""
        return self.has_ip and not self.is_ipv6

    @property
    def has_transport(self) -> bool:
        """Whether there is a UDP or TCP header."""
        return self.has_ip and self.transport != "none"

    @property
    def labels_offset(self) -> int:
        """Octets before the MPLS labels."""
        return MACS_LENGTH + 2 + VLAN_TAG * len(self.vlan_tags)

    @property
    def network_offset(self) -> int:
        """Octets before the IP header."""
        return self.labels_offset + MPLS_LABEL_LENGTH * len(self.mpls_labels)

    @property
    def transport_offset(self) -> int:
        """Octets before the UDP or TCP header."""
        if not self.has_ip:
            return self.network_offset
        return self.network_offset + (IPV6_LENGTH if self.is_ipv6 else IPV4_LENGTH)

    @property
    def payload_offset(self) -> int:
        """Octets before the payload: of UDP 42 (IPv4) or 62 (IPv6), plus 4 a VLAN tag or MPLS label."""
        return self.transport_offset + (TRANSPORTS[self.transport] if self.has_ip else 0)

    @property
    def summed_pairs(self) -> frozenset[int]:
        """What enters the checksum of UDP or TCP and may vary, by the first octet of each pair: addresses and transport."""
        if not self.has_transport:
            return frozenset()
        addresses = self.network_offset + (8 if self.is_ipv6 else 12)
        return frozenset(range(addresses, self.payload_offset, 2))

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
        """Return everything before the sequence of a probe frame of ``length`` octets (without FCS)."""
        if length < self.length_min:
            raise UsageError(f"length {length} is too short for these headers: give {self.length_min} or more")
        return self.stack(length, CHECKSUM_CONSTANT["udp"] if self.is_ipv6 else 0) + probe_octets(stream_id)

    def stack(self, length: int, checksum: int) -> bytes:
        """Return all headers of a frame of ``length`` octets (without FCS); ``checksum``: that of UDP or TCP."""
        network = self._network(length) if self.has_ip else b""
        return self._link() + network + self._transport(length, checksum)

    def checksum_seed(self, length: int) -> int:
        """Return the one's complement sum of pseudo-header and UDP header of an IPv6 frame; 0 for IPv4.

        Source: RFC 8200, section 8.1.
        """
        return self.transport_sum(length, CHECKSUM_CONSTANT["udp"]) if self.is_ipv6 else 0

    def transport_sum(self, length: int, checksum: int) -> int:
        """Return the one's complement sum of pseudo-header and UDP or TCP header.

        Source: RFC 768; RFC 9293, section 3.1; RFC 8200, section 8.1.
        """
        pseudo_header = self._addresses() + struct.pack(">II", length - self.transport_offset, self._protocol)
        return ones_complement_sum(pseudo_header + self._transport(length, checksum))

    @property
    def _protocol(self) -> int:
        return {"udp": PROTOCOL_UDP, "tcp": PROTOCOL_TCP, "none": self.protocol}[self.transport]

    def _addresses(self) -> bytes:
        return ip_address(self.source_ip).packed + ip_address(self.destination_ip).packed

    def _link(self) -> bytes:
        types = [ETHERTYPE_VLAN] * len(self.vlan_tags)
        if len(types) > 1:
            types[0] = ETHERTYPE_SERVICE_VLAN
        tags = b"".join(struct.pack(">HH", *tag) for tag in zip(types, self.vlan_tags, strict=True))
        ethertype = self.ethertype or (ETHERTYPE_IPV6 if self.is_ipv6 else ETHERTYPE_IPV4)
        labels = b""
        if self.mpls_labels:
            ethertype = ETHERTYPE_MPLS
            labels = b"".join(self._label(place, label) for place, label in enumerate(self.mpls_labels))
        macs = mac_octets(self.destination_mac) + mac_octets(self.source_mac)
        return macs + tags + struct.pack(">H", ethertype) + labels

    def _label(self, place: int, label: MplsLabel) -> bytes:
        is_bottom = place == len(self.mpls_labels) - 1
        return struct.pack(">I", label.label << 12 | label.traffic_class << 9 | is_bottom << 8 | label.ttl)

    def _network(self, length: int) -> bytes:
        octets = length - self.transport_offset
        if self.is_ipv6:
            version = (6 << 28) | (self.traffic_class << 20) | self.flow_label
            return struct.pack(">IHBB", version, octets, self._protocol, self.ttl) + self._addresses()
        # Don't fragment; the identification is 0 unless given (RFC 6864): a probe frame is atomic.
        lengths = (0x45, self.traffic_class, IPV4_LENGTH + octets)
        head = struct.pack(">BBHHHBB", *lengths, self.identification, 0x4000, self.ttl, self._protocol)
        checksum = 0xFFFF - ones_complement_sum(head + self._addresses())
        return head + struct.pack(">H", checksum) + self._addresses()

    def _transport(self, length: int, checksum: int) -> bytes:
        if not self.has_transport:
            return b""
        ports = struct.pack(">HH", self.source_port, self.destination_port)
        if self.transport == "udp":
            return ports + struct.pack(">HH", length - self.transport_offset, checksum)
        data_offset = TCP_LENGTH // 4 << 4
        return ports + struct.pack(">IIBBHHH", 0, 0, data_offset, self.tcp_flags, TCP_WINDOW, checksum, 0)


def probe_octets(stream_id: int) -> bytes:
    """Return the beginning of a probe payload, before its sequence."""
    _check_range("stream id", stream_id, 0xFFFF)
    return struct.pack(">IH", SIGNATURE, stream_id)


def header_words(octets: bytes) -> list[int]:
    """Return ``octets`` as 32-bit words of the header memory: octet 0 in bits 7..0 of word 0."""
    padded = octets + bytes(-len(octets) % 4)
    return list(struct.unpack(f"<{len(padded) // 4}I", padded))
