# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Headers, decoded and summed by scapy as an independent witness."""

import itertools
import random
import struct

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, in6_chksum
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from liteprobe.cores.formats import HEADER_OCTETS, SEQUENCE_OFFSET
from liteprobe.host.base.errors import UsageError
from liteprobe.host.traffic.headers import Headers, header_words, ones_complement_sum

SEED = 7820
FAMILIES = {4: ("198.18.0.1", "198.18.0.2"), 6: ("2001:2::1", "2001:2::abcd")}
TAGS: list[tuple[int, ...]] = [(), (0xA123,), (0x0FFE, 0xE001)]
LENGTHS = [128, 129, 1514, 9000]
LAYOUTS = list(itertools.product(FAMILIES, TAGS, LENGTHS))


def headers_of(version: int, tags: tuple[int, ...]) -> Headers:
    source, destination = FAMILIES[version]
    return Headers(
        destination_mac="02:00:00:00:00:fe",
        source_mac="06-01-02-03-04-05",
        source_ip=source,
        destination_ip=destination,
        source_port=1000,
        destination_port=65535,
        vlan_tags=tags,
        ttl=7,
        traffic_class=0xB8,
    )


def frame_of(headers: Headers, length: int, stream_id: int = 0xBEEF) -> bytes:
    """Return a whole frame with a random payload, ended as the gateware ends it (RFC 7820)."""
    print(f"seed {SEED}")
    head = headers.octets(length, stream_id)
    octets = bytearray(head + random.Random(SEED + length).randbytes(length - len(head)))
    if headers.is_ipv6:
        octets[-2:] = bytes(2)
        total = headers.checksum_seed(length) + ones_complement_sum(bytes(octets[headers.payload_offset :]))
        complement = 0xFFFF - (total % 0xFFFF)
        # In a payload of odd length the last two octets stand across the 16-bit words of the sum.
        is_odd = (length - headers.payload_offset) % 2
        octets[-2:] = struct.pack("<H" if is_odd else ">H", complement)
    return bytes(octets)


@pytest.mark.parametrize(("version", "tags", "length"), LAYOUTS)
def test_scapy_reads_every_field(version: int, tags: tuple[int, ...], length: int) -> None:
    headers = headers_of(version, tags)
    packet = Ether(frame_of(headers, length))
    assert (packet.dst, packet.src) == ("02:00:00:00:00:fe", "06:01:02:03:04:05")
    dots = [layer for layer in (packet.getlayer(Dot1AD), packet.getlayer(Dot1Q)) if layer]
    assert [dot.prio << 13 | dot.dei << 12 | dot.vlan for dot in dots] == list(tags)
    ip = packet[IP] if version == 4 else packet[IPv6]
    assert (ip.src, ip.dst) == FAMILIES[version]
    assert (
        (ip.ttl, ip.tos, ip.len) == (7, 0xB8, length - headers.network_offset)
        if version == 4
        else ((ip.hlim, ip.tc, ip.plen) == (7, 0xB8, length - headers.network_offset - 40))
    )
    udp = packet[UDP]
    assert (udp.sport, udp.dport, udp.len) == (1000, 65535, length - headers.payload_offset + 8)
    assert bytes(udp.payload)[:6] == bytes.fromhex("4c50524f beef")


@pytest.mark.parametrize(("version", "tags", "length"), LAYOUTS)
def test_scapy_computes_the_same_checksums(version: int, tags: tuple[int, ...], length: int) -> None:
    packet = Ether(frame_of(headers_of(version, tags), length))
    if version == 4:
        given = packet[IP].chksum
        del packet[IP].chksum
        assert Ether(bytes(packet))[IP].chksum == given
        assert packet[UDP].chksum == 0
    else:
        # The sum over what carries its own checksum is 0, whatever the payload.
        assert in6_chksum(17, packet[IPv6], bytes(packet[UDP])) in (0, 0xFFFF)


@pytest.mark.parametrize(("version", "tags"), list(itertools.product(FAMILIES, TAGS)))
def test_header_octets_end_where_the_sequence_begins(version: int, tags: tuple[int, ...]) -> None:
    headers = headers_of(version, tags)
    octets = headers.octets(256, 1)
    assert headers.payload_offset == (42 if version == 4 else 62) + 4 * len(tags)
    assert len(octets) == headers.payload_offset + SEQUENCE_OFFSET
    assert len(octets) % 4 == 0
    assert len(octets) <= HEADER_OCTETS


def test_shortest_frames_hold_the_payload_and_the_complement() -> None:
    lengths = [headers_of(version, tags).length_min for version in FAMILIES for tags in TAGS]
    assert lengths == [60, 64, 68, 82, 86, 90]


def test_two_tags_have_the_service_tag_outside() -> None:
    octets = headers_of(4, (1, 2)).octets(128, 0)
    assert octets[12:22].hex() == "88a80001810000020800"


def test_seed_is_that_of_a_worked_example() -> None:
    # 2001:2::1 -> 2001:2::abcd, UDP length 66 + 8, next header 17, ports 1000 and 65535, length again, checksum ffff.
    total = 0x2001 + 2 + 1 + 0x2001 + 2 + 0xABCD + 0x4A + 0x11 + 0x3E8 + 0xFFFF + 0x4A + 0xFFFF
    assert headers_of(6, ()).checksum_seed(128) == (total & 0xFFFF) + (total >> 16)
    assert headers_of(4, ()).checksum_seed(128) == 0


def test_words_have_octet_0_in_their_lowest_bits() -> None:
    assert header_words(bytes.fromhex("0102030405")) == [0x04030201, 0x00000005]


def test_swapped_headers_are_those_of_the_answer() -> None:
    headers = headers_of(6, (5,))
    swapped = headers.swapped()
    assert (swapped.source_mac, swapped.destination_mac) == (headers.destination_mac, headers.source_mac)
    assert (swapped.source_ip, swapped.destination_ip) == (headers.destination_ip, headers.source_ip)
    assert (swapped.source_port, swapped.destination_port) == (headers.destination_port, headers.source_port)
    assert swapped.swapped() == headers


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source_mac": "02:00"}, "'02:00' is not a MAC address"),
        ({"destination_mac": "02:00:00:00:00:0g"}, "is not a MAC address"),
        ({"destination_mac": "02:00:00:00:00:123"}, "is not a MAC address"),
        ({"source_ip": "300.0.0.1"}, "'300.0.0.1' is not an IP address"),
        ({"source_ip": "2001:2::1"}, "different families"),
        ({"vlan_tags": (1, 2, 3, 4, 5)}, "5 VLAN tags are too many"),
        ({"vlan_tags": (65536,)}, "VLAN tag 65536 is out of range"),
        ({"source_port": 65536}, "source port 65536 is out of range"),
        ({"destination_port": -1}, "destination port -1 is out of range"),
        ({"ttl": 256}, "TTL 256 is out of range"),
        ({"traffic_class": 256}, "traffic class 256 is out of range"),
    ],
)
def test_headers_that_cannot_be_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Headers(**fields)  # type: ignore[arg-type]


def test_a_frame_too_short_for_its_headers_is_refused() -> None:
    with pytest.raises(UsageError, match="length 81 is too short for these headers: give 82 or more"):
        headers_of(6, ()).octets(81, 0)
