# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the headers of a frame, from the MAC addresses to the stream id of a probe, as octets for the header memory."""

import ipaddress
import struct
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from liteprobe.cores.formats import CHECKSUM_OCTETS, PAYLOAD_MIN, SIGNATURE, VLAN_TAG
from liteprobe.host.base.defaults import (
    DESTINATION_IP,
    DESTINATION_IPV6,
    DESTINATION_MAC,
    DESTINATION_PORT,
    SOURCE_IP,
    SOURCE_IPV6,
    SOURCE_MAC,
    SOURCE_PORT,
    TRAFFIC_CLASS,
    TTL,
)
from liteprobe.host.base.document import (
    ByShape,
    Entries,
    Flag,
    Key,
    Keys,
    Made,
    Section,
    Several,
    Text,
    ValueKind,
    Whole,
    check_fields,
    key,
    part,
)
from liteprobe.host.base.errors import RangeError, UsageError
from liteprobe.host.base.validate import Between, validated

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


@validated
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


@validated
def ip_address(address: str) -> IPAddress:
    """Return ``address`` parsed, IPv4 or IPv6."""
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        raise UsageError(f"'{address}' is not an IP address: write it like 198.18.0.1 or 2001:2::1") from None


# Keys of documents -------------------------------------------------------------------------------------

OCTET, HALFWORD, LABEL, WORD = Whole(0, 0xFF), Whole(0, 0xFFFF), Whole(0, 0xFFFFF), Whole(0, 0xFFFFFFFF)
VLAN_ID, VLAN_PRIORITY = Whole(0, 0xFFF), Whole(0, 7)
ETHERTYPE = Whole(ETHERTYPE_MIN, 0xFFFF, hexadecimal=True)
EXAMPLES = {4: "198.18.0.1", 6: "2001:2::1"}


def _mac(text: str) -> str:
    mac_octets(text)
    return text


def _ip(version: int, pattern: str) -> Text:
    def convert(text: str) -> str:
        if ip_address(text).version != version:
            raise UsageError(f"'{text}' is not an IPv{version} address: write it like {EXAMPLES[version]}")
        return text

    return Text(f"an IPv{version} address", pattern, convert)


MAC = Text("a MAC address like 02:4c:50:54:00:01", r"[0-9a-fA-F]{1,2}([:-][0-9a-fA-F]{1,2}){5}", _mac)


def _any_ip(text: str) -> str:
    ip_address(text)
    return text


ANY_IP = Text("an IPv4 or IPv6 address", r"[0-9a-fA-F:.]+", _any_ip)
IPV4, IPV6 = _ip(4, r"[0-9.]+"), _ip(6, r"[0-9a-fA-F:.]+")
NO_TRANSPORT = f"UDP or TCP; {PROTOCOL_EXPERIMENT} is for experiments"


@validated
def vlan_tag(number: int, priority: int = 0, drop_eligible: bool = False) -> int:
    """Return the TCI of a VLAN tag: id 0 to 4095, priority 0 to 7."""
    VLAN_ID.check(number, "VLAN id")
    VLAN_PRIORITY.check(priority, "VLAN priority")
    return priority << 13 | drop_eligible << 12 | number


def _tag(given: Entries) -> int:
    return vlan_tag(given.values["id"], given.get("priority", 0), given.get("drop_eligible", False))


def _tag_values(tag: int) -> dict[str, Any]:
    values = {"id": tag & 0xFFF, "priority": tag >> 13, "drop_eligible": bool(tag >> 12 & 1)}
    return {name: value for name, value in values.items() if value or name == "id"}


VLAN = Section(
    "vlan",
    {
        "id": Key(VLAN_ID, "VLAN id.", is_needed=True),
        "priority": Key(VLAN_PRIORITY, "Priority.", "0"),
        "drop_eligible": Key(Flag(), "Drop eligible indicator.", "false"),
    },
)


@validated
@dataclass(frozen=True)
class MplsLabel:
    """A label of an MPLS stack; whether it is at the bottom is found by its place.

    Source: RFC 3032, section 2.1; RFC 5462.
    """

    label: int = key("label", LABEL, "Label.")
    traffic_class: int = key("traffic_class", Whole(0, 7), "Traffic class.", 0)
    ttl: int = key("ttl", OCTET, "Time to live.", TTL)

    def __post_init__(self) -> None:
        check_fields(self, " of an MPLS label")


MPLS = part(MplsLabel, "mpls")
_PORTS = {
    "source": ("source_port", HALFWORD, "Source port.", SOURCE_PORT),
    "destination": ("destination_port", HALFWORD, "Destination port.", DESTINATION_PORT),
}
#: By section and key: the field of the headers, its kind, what it means, and what holds without it.
_ROWS: dict[str, dict[str, tuple[str, ValueKind, str, object]]] = {
    "mac": {
        "source": ("source_mac", MAC, "Source address.", SOURCE_MAC),
        "destination": ("destination_mac", MAC, "Destination address.", DESTINATION_MAC),
    },
    "ipv4": {
        "source": ("source_ip", IPV4, "Source address.", SOURCE_IP),
        "destination": ("destination_ip", IPV4, "Destination address.", DESTINATION_IP),
        "ttl": ("ttl", OCTET, "Time to live.", TTL),
        "tos": ("traffic_class", OCTET, "Type of service: DSCP and ECN.", TRAFFIC_CLASS),
        "identification": ("identification", HALFWORD, "Identification.", 0),
        "dont_fragment": ("dont_fragment", Flag(), "Don't fragment.", True),
        "protocol": ("protocol", OCTET, "The payload follows IP at once, with this protocol.", NO_TRANSPORT),
    },
    "ipv6": {
        "source": ("source_ip", IPV6, "Source address.", SOURCE_IPV6),
        "destination": ("destination_ip", IPV6, "Destination address.", DESTINATION_IPV6),
        "hop_limit": ("ttl", OCTET, "Hop limit.", TTL),
        "traffic_class": ("traffic_class", OCTET, "Traffic class: DSCP and ECN.", TRAFFIC_CLASS),
        "flow_label": ("flow_label", LABEL, "Flow label.", 0),
        "next_header": ("protocol", OCTET, "The payload follows IP at once, with this next header.", NO_TRANSPORT),
    },
    "udp": {**_PORTS},
    "tcp": {
        **_PORTS,
        "flags": ("tcp_flags", OCTET, "The octet of flags: 0x02 is SYN, 0x10 ACK.", f"{TCP_ACK:#04x}"),
        "sequence": ("tcp_sequence", WORD, "Sequence number.", 0),
        "acknowledgment": ("tcp_acknowledgment", WORD, "Acknowledgment number.", 0),
        "window": ("tcp_window", HALFWORD, "Window.", TCP_WINDOW),
    },
}
SECTIONS = {
    title: Section(title, {name: Key(kind, about, str(default)) for name, (_, kind, about, default) in rows.items()})
    for title, rows in _ROWS.items()
}
FIELDS_OF = {title: {name: row[0] for name, row in rows.items()} for title, rows in _ROWS.items()}
#: Ranges of numbers, by what a message calls them: their field in capitals, with spaces.
RANGES = {
    **{"source port": HALFWORD, "destination port": HALFWORD, "TTL": OCTET, "traffic class": OCTET, "protocol": OCTET},
    **{"identification": HALFWORD, "flow label": LABEL, "TCP flags": OCTET, "ethertype": ETHERTYPE},
    **{"TCP sequence": WORD, "TCP acknowledgment": WORD, "TCP window": HALFWORD},
}


@validated
@dataclass(frozen=True)
class Headers:
    """Headers come before the payload of every frame: MACs, VLAN tags, then MPLS labels, IP and a transport, or any type.

    Addresses default to locally administered MACs and to the network of benchmarks (RFC 2544, C.2.2; IPv6: RFC 5180).

    Raises
    ------
    UsageError
        When an address can't be read, the families differ, or a number is out of range.
    """

    destination_mac: str = DESTINATION_MAC  # Like ``02:4c:50:54:00:02``.
    source_mac: str = SOURCE_MAC
    source_ip: str = SOURCE_IP  # IPv4 or IPv6; the family decides the layout.
    destination_ip: str = DESTINATION_IP  # Of the same family.
    source_port: int = SOURCE_PORT  # Of UDP or TCP, 0 to 65535.
    destination_port: int = DESTINATION_PORT  # Likewise.
    #: Up to four tags, outer first, each the whole 16-bit TCI (priority, drop eligible, VLAN id; see ``vlan_tag``). The
    #: outermost of several is a service tag (0x88a8), all others are customer tags (0x8100).
    vlan_tags: tuple[int, ...] = ()
    ttl: int = TTL  # TTL (IPv4) or hop limit (IPv6), 0 to 255.
    traffic_class: int = TRAFFIC_CLASS  # TOS (IPv4) or traffic class (IPv6), 0 to 255.
    mpls_labels: tuple[MplsLabel, ...] = ()  # Up to four labels between the VLAN tags and the IP header, outer first.
    ethertype: int | None = None  # The payload follows this type (0x0600 to 0xffff), without IP; None: IP.
    transport: str = "udp"  # ``udp``, ``tcp`` or ``none``: what follows the IP header.
    protocol: int = PROTOCOL_EXPERIMENT  # Protocol of IP where the transport is ``none``, 0 to 255.
    identification: int = 0  # Of IPv4, 0 to 65535.
    flow_label: int = 0  # Of IPv6, 0 to 1048575.
    tcp_flags: int = TCP_ACK  # The octet of flags, 0 to 255 (0x10: ACK, 0x02: SYN).
    dont_fragment: bool = True  # The flag of IPv4.
    tcp_sequence: int = 0  # 32 bits.
    tcp_acknowledgment: int = 0  # 32 bits.
    tcp_window: int = TCP_WINDOW  # 0 to 65535.

    #: Keys of a stream.
    KEYS: ClassVar[Keys] = {
        "mac": Key(SECTIONS["mac"], "MAC addresses."),
        "vlan": Key(
            Several(
                ByShape(
                    Made(VLAN_ID, int, holds=lambda tag: tag <= 0xFFF),
                    Made(VLAN, _tag, _tag_values),
                ),
                VLAN_TAGS_MAX,
            ),
            "VLAN tags, outer first; a number is an id.",
        ),
        "mpls": Key(
            Several(
                ByShape(
                    Made(LABEL, MplsLabel, lambda one: one.label, lambda one: one == MplsLabel(one.label)),
                    MPLS,
                ),
                MPLS_LABELS_MAX,
            ),
            "MPLS labels, outer first; a number is a label.",
        ),
        "ipv4": Key(SECTIONS["ipv4"], "IPv4 header.", "IPv4"),
        "ipv6": Key(SECTIONS["ipv6"], "IPv6 header, in the place of `ipv4`."),
        "ethertype": Key(ETHERTYPE, "In the place of IP: the payload follows this type."),
        "udp": Key(SECTIONS["udp"], "UDP header.", "UDP"),
        "tcp": Key(SECTIONS["tcp"], "TCP header, in the place of `udp`."),
    }

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
            HALFWORD.check(tag, "VLAN tag")
        for name, kind in RANGES.items():
            value = getattr(self, name.lower().replace(" ", "_"))
            if value is not None:
                kind.check(value, name)
        if self.ethertype is not None and self.mpls_labels:
            raise UsageError("MPLS labels have an ethertype of their own: leave out the ethertype or the labels")
        if self.transport not in TRANSPORTS:
            raise UsageError(f"transport '{self.transport}' is unknown: give one of {', '.join(TRANSPORTS)}")

    @classmethod
    def of_entries(cls, entries: Entries) -> "Headers":
        """Return those of a stream's keys."""
        ip = "ipv6" if "ipv6" in entries.values else "ipv4"
        transport = "tcp" if "tcp" in entries.values else "udp"
        fields: dict[str, Any] = {"source_ip": SOURCE_IPV6, "destination_ip": DESTINATION_IPV6} if ip == "ipv6" else {}
        for title in ("mac", ip, transport):
            own = entries.get(title)
            fields |= {FIELDS_OF[title][name]: value for name, value in own.values.items()} if own else {}
        before = "next_header" if ip == "ipv6" else "protocol"
        before = "ethertype" if "ethertype" in entries.values else before if "protocol" in fields else ""
        if before and transport in entries.values:
            raise entries.error(
                transport, f"'{transport}' does not follow '{before}', which the payload follows: leave out one"
            )
        others = {"vlan_tags": entries.get("vlan", ()), "mpls_labels": entries.get("mpls", ())}
        with entries.source.line(entries.line_of("ethertype")):
            return cls(
                ethertype=entries.get("ethertype"),
                transport="none" if "protocol" in fields else transport,
                **fields,
                **others,
            )

    def to_values(self) -> dict[str, Any]:
        """Return the keys of a stream that differ from the defaults."""
        usual = Headers(source_ip=SOURCE_IPV6, destination_ip=DESTINATION_IPV6) if self.is_ipv6 else Headers()
        titles = ["mac"]
        if self.ethertype is None:
            titles += ["ipv6" if self.is_ipv6 else "ipv4", *([self.transport] if self.transport != "none" else [])]
        found: dict[str, Any] = {
            title: {
                name: getattr(self, field)
                for name, field in FIELDS_OF[title].items()
                if (self.transport == "none" if field == "protocol" else getattr(self, field) != getattr(usual, field))
            }
            for title in titles
        }
        found |= {"vlan": self.vlan_tags, "mpls": self.mpls_labels, "ethertype": self.ethertype}
        return {
            name: value for name, value in found.items() if value or (name in ("ipv6", "tcp") and value is not None)
        }

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
        """Pairs of octets that enter the checksum of UDP or TCP and may vary, by their first octet: addresses and transport."""
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

    def octets(self, length: int, stream_id: Annotated[int, Between(0, 0xFFFF)]) -> bytes:
        """Return everything before the sequence of a probe frame of ``length`` octets (without FCS)."""
        if length < self.length_min:
            raise UsageError(f"length {length} is too short for these headers: give {self.length_min} or more")
        return self.stack(length, CHECKSUM_CONSTANT["udp"] if self.is_ipv6 else 0) + probe_octets(stream_id)

    def stack(self, length: int, checksum: Annotated[int, Between(0, 0xFFFF)]) -> bytes:
        """Return all headers of a frame of ``length`` octets (without FCS); ``checksum``: that of UDP or TCP."""
        self._check_length(length)
        network = self._network(length) if self.has_ip else b""
        return self._link() + network + self._transport(length, checksum)

    def checksum_seed(self, length: int) -> int:
        """Return the one's complement sum of pseudo-header and UDP header of an IPv6 frame; 0 for IPv4.

        Source: RFC 8200, section 8.1.
        """
        return self.transport_sum(length, CHECKSUM_CONSTANT["udp"]) if self.is_ipv6 else 0

    def transport_sum(self, length: int, checksum: Annotated[int, Between(0, 0xFFFF)]) -> int:
        """Return the one's complement sum of pseudo-header and UDP or TCP header.

        Source: RFC 768; RFC 9293, section 3.1; RFC 8200, section 8.1.
        """
        self._check_length(length)
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

    def _check_length(self, length: int) -> None:
        """Raise UsageError where a frame is too short for these headers, or too long for any."""
        Whole(self.payload_offset, 2**14 - 1, note=" octets without FCS").check(length, "length")

    def _network(self, length: int) -> bytes:
        octets = length - self.transport_offset
        if self.is_ipv6:
            version = (6 << 28) | (self.traffic_class << 20) | self.flow_label
            return struct.pack(">IHBB", version, octets, self._protocol, self.ttl) + self._addresses()
        # Don't fragment unless asked otherwise; the identification is 0 unless given (RFC 6864): a probe frame is atomic.
        lengths = (0x45, self.traffic_class, IPV4_LENGTH + octets)
        flags = 0x4000 if self.dont_fragment else 0
        head = struct.pack(">BBHHHBB", *lengths, self.identification, flags, self.ttl, self._protocol)
        checksum = 0xFFFF - ones_complement_sum(head + self._addresses())
        return head + struct.pack(">H", checksum) + self._addresses()

    def _transport(self, length: int, checksum: Annotated[int, Between(0, 0xFFFF)]) -> bytes:
        if not self.has_transport:
            return b""
        ports = struct.pack(">HH", self.source_port, self.destination_port)
        if self.transport == "udp":
            return ports + struct.pack(">HH", length - self.transport_offset, checksum)
        data_offset = TCP_LENGTH // 4 << 4
        numbers = (self.tcp_sequence, self.tcp_acknowledgment, data_offset, self.tcp_flags, self.tcp_window)
        return ports + struct.pack(">IIBBHHH", *numbers, checksum, 0)


def probe_octets(stream_id: Annotated[int, Between(0, 0xFFFF)]) -> bytes:
    """Return the beginning of a probe payload, before its sequence."""
    HALFWORD.check(stream_id, "stream id")
    return struct.pack(">IH", SIGNATURE, stream_id)


def header_words(octets: bytes) -> list[int]:
    """Return ``octets`` as 32-bit words of the header memory: octet 0 in bits 7..0 of word 0."""
    padded = octets + bytes(-len(octets) % 4)
    return list(struct.unpack(f"<{len(padded) // 4}I", padded))


def sourced(headers: Headers, source: str | None, via: str | None) -> Headers:
    """Return headers that come from the address of the port that sends, ``source``, by the router ``via``, where they are given.

    Raises RangeError where these can't be.
    """
    if source is None:
        if via is not None:
            raise RangeError("'via' names a router, which is asked from an address: give 'from', too", "via")
        return headers
    if not headers.has_ip:
        raise RangeError("'from' is of IP, which these headers don't have: leave out one of them", "from")
    if headers.source_ip not in (source, SOURCE_IP, SOURCE_IPV6):
        raise RangeError("'from' is in the place of the source of the IP header: give one of them", "from")
    if len({ip_address(one).version for one in (source, via, headers.destination_ip) if one}) > 1:
        raise RangeError(
            f"'from' {source}, {f'via {via}, ' if via else ''}and the destination {headers.destination_ip} are of different "
            "families: give all of IPv4 or all of IPv6",
            "from",
        )
    return replace(headers, source_ip=source)
