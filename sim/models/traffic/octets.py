# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Every octet of the frames of a stream, one after the other, each put together anew.

Source: IEEE 802.1Q-2022, 9; RFC 3032, 791, 8200, 768, 9293, 1071 (headers, checksums), RFC 7820 (complement).
"""

import ipaddress
import re
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import cycle
from typing import Protocol

from liteprobe.cores.formats import SIGNATURE, Fill
from liteprobe.host.traffic.stream import Decrement, Field, Headers, Increment, Modifier, Random, Stream, Values
from liteprobe.sim.models.traffic.trains import fill_octets

FILLS = {"zero": Fill.ZERO, "counting": Fill.COUNTING, "prbs": Fill.PRBS}
MOST = 9000


class Draw(Protocol):
    """Random numbers of 32 bits."""

    def draw(self) -> int:
        """Return the next number."""

    def below(self, bound: int) -> int:
        """Return a number from 0 to bound - 1."""


@cache
def filling(fill: str) -> bytes:
    """Return the fill of the longest frame."""
    return fill_octets(FILLS[fill], MOST)


def lacking(data: bytes | bytearray) -> int:
    """Return what a sum of 16-bit words (RFC 1071) lacks to all ones, 0 to 0xfffe."""
    return -int.from_bytes(data + bytes(len(data) % 2)) % 0xFFFF


# Headers -----------------------------------------------------------------------------------------------


class Shape:
    """Places things in the frames of a stream, counted up from the start of the frame."""

    def __init__(self, headers: Headers) -> None:
        self.tags = len(headers.vlan_tags)
        self.labels = 14 + 4 * self.tags
        self.ip = self.labels + 4 * len(headers.mpls_labels)
        self.version = 0 if headers.ethertype is not None else ipaddress.ip_address(headers.source_ip).version
        self.transport = self.ip + {0: 0, 4: 20, 6: 40}[self.version]
        self.kind = headers.transport if self.version else "none"
        self.payload = self.transport + {"udp": 8, "tcp": 20, "none": 0}[self.kind]


def mac(text: str) -> bytes:
    """Return the octets of a MAC address."""
    return bytes(int(digits, 16) for digits in re.split("[:-]", text))


def bare_headers(headers: Headers, shape: Shape) -> bytes:
    """Return all headers, lengths and checksums as 0."""
    ethernet = mac(headers.destination_mac) + mac(headers.source_mac)
    for place, tag in enumerate(headers.vlan_tags):
        ethernet += struct.pack(">HH", 0x88A8 if place == 0 and shape.tags > 1 else 0x8100, tag)
    ethertype = 0x8847 if headers.mpls_labels else {4: 0x0800, 6: 0x86DD}.get(shape.version, headers.ethertype)
    ethernet += struct.pack(">H", ethertype)
    for place, label in enumerate(headers.mpls_labels, 1):
        bottom = place == len(headers.mpls_labels)
        ethernet += ((label.label * 8 + label.traffic_class) * 2 + bottom).to_bytes(3) + bytes([label.ttl])
    if not shape.version:
        return ethernet
    protocol = {"udp": 17, "tcp": 6, "none": headers.protocol}[shape.kind]
    source, destination = (ipaddress.ip_address(one).packed for one in (headers.source_ip, headers.destination_ip))
    if shape.version == 4:
        ip = bytes([0x45, headers.traffic_class, 0, 0]) + headers.identification.to_bytes(2)
        ip += bytes([0x40 * headers.dont_fragment, 0, headers.ttl, protocol, 0, 0])
    else:
        ip = (6 * 2**28 + headers.traffic_class * 2**20 + headers.flow_label).to_bytes(4)
        ip += bytes([0, 0, protocol, headers.ttl])
    ports = struct.pack(">HH", headers.source_port, headers.destination_port)
    numbers = headers.tcp_sequence.to_bytes(4) + headers.tcp_acknowledgment.to_bytes(4)
    rest = {
        "udp": bytes(4),
        "tcp": numbers + bytes([0x50, headers.tcp_flags]) + headers.tcp_window.to_bytes(2) + bytes(4),
    }
    return ethernet + ip + source + destination + (ports + rest[shape.kind] if shape.kind != "none" else b"")


# Modifiers ---------------------------------------------------------------------------------------------


def place_of(name: str | Field, shape: Shape) -> tuple[int, int, int]:
    """Return first octet, octets and mask of what a modifier changes."""
    if isinstance(name, Field):
        return name.offset, 4, name.mask
    if name.startswith("vlan"):
        tag = 14 + 4 * int(name[5 : name.index("]")])
        return tag, 2, {"id": 0x0FFF, "priority": 0xE000}[name.split(".")[1]]
    if name.startswith("mpls"):
        return shape.labels + 4 * int(name[5 : name.index("]")]), 4, 0xFFFFF000
    places = {
        "mac.destination": (2, 4),
        "mac.source": (8, 4),
        "ipv4.tos": (shape.ip, 2),
        "ipv4.identification": (shape.ip + 4, 2),
        "ipv4.source": (shape.ip + 12, 4),
        "ipv4.destination": (shape.ip + 16, 4),
        "ipv6.flow_label": (shape.ip, 4),
        "ipv6.source": (shape.ip + 20, 4),
        "ipv6.destination": (shape.ip + 36, 4),
        "udp.source": (shape.transport, 2),
        "udp.destination": (shape.transport + 2, 2),
        "tcp.source": (shape.transport, 2),
        "tcp.destination": (shape.transport + 2, 2),
        "tcp.sequence": (shape.transport + 4, 4),
    }
    masks = {"ipv4.tos": 0x00FF, "ipv6.flow_label": 0x000FFFFF}
    octet, count = places[name]
    return octet, count, masks.get(name, 2 ** (8 * count) - 1)


def number_of(value: int | str) -> int:
    """Return a value as a number: of an address, its last 32 bits."""
    if isinstance(value, int):
        return value
    is_mac = re.fullmatch("([0-9a-fA-F]{1,2}[:-]){5}[0-9a-fA-F]{1,2}", value)
    return int.from_bytes((mac(value) if is_mac else ipaddress.ip_address(value).packed)[-4:])


def bits_of(modifier: Modifier, mask: int, present: int, random: Draw) -> Iterator[int]:
    """Yield, for each frame, what stands under the mask; ``present``: what the headers have there."""
    unit = mask & -mask
    match modifier:
        case Random():
            while True:
                yield random.draw() & mask
        case Values(_, values, is_drawn):
            words = [number_of(value) * unit & mask for value in values]
            while is_drawn:
                yield words[random.below(len(words))]
            yield from cycle(words)
        case Increment(_, first, step, count):
            begin = present & mask if first is None else number_of(first) * unit
            step *= -unit if isinstance(modifier, Decrement) else unit
            frame = 0
            while True:
                yield (begin + step * (frame % count if count else frame)) & mask
                frame += 1


# Frames ------------------------------------------------------------------------------------------------


class FrameOctets:
    """Writes the frames of a stream, from sequence 0 on.

    ``draws``: random numbers of each of its modifiers.
    """

    def __init__(self, stream: Stream, draws: Sequence[Draw]) -> None:
        self.stream, self.shape = stream, Shape(stream.headers)
        self.headers = bare_headers(stream.headers, self.shape)
        self.sequence = 0
        self.changes = []
        for modifier, draw in zip(stream.modifiers, draws, strict=False):
            octet, count, mask = place_of(modifier.field, self.shape)
            present = int.from_bytes(self.whole_headers()[octet : octet + count])
            self.changes.append((octet, count, mask, bits_of(modifier, mask, present, draw)))
        self.fill = filling(stream.fill)
        default = "probe" if stream.probe else "none"
        self.stamp_place = stream.stamp.place if stream.stamp else default
        self.checksum = stream.checksum
        self.coverage = stream.coverage
        if self.checksum == "auto":
            is_free = self.shape.kind == "none" or (self.shape.kind == "udp" and self.shape.version == 4)
            self.checksum = "none" if is_free else "complement"

    def whole_headers(self) -> bytes:
        """Return the headers and what stands behind them before the fill or the sequence."""
        start = self.headers
        if self.stream.probe:
            return start + struct.pack(">IH", SIGNATURE, self.stream.stream_id)
        start += self.stream.payload
        return start + bytes(-len(start) % 4)

    def next(self, length: int, stamp_ns: int) -> bytes:
        """Return the next frame without FCS; ``stamp_ns``: time at its SFD (ns)."""
        shape = self.shape
        frame = bytearray(self.whole_headers())
        if self.stream.probe:
            frame += self.sequence.to_bytes(4) + bytes(8)
        self.sequence = (self.sequence + 1) % 2**32
        frame += self.fill[: max(length - len(frame), 0)]
        for octet, count, mask, values in self.changes:
            word = int.from_bytes(frame[octet : octet + count])
            frame[octet : octet + count] = (word & ~mask | next(values)).to_bytes(count)
        del frame[length:]  # Headers may end within their last word.
        if shape.version == 4:
            frame[shape.ip + 2 : shape.ip + 4] = (length - shape.ip).to_bytes(2)
        elif shape.version == 6:
            frame[shape.ip + 4 : shape.ip + 6] = (length - shape.transport).to_bytes(2)
        if shape.kind == "udp":
            frame[shape.transport + 4 : shape.transport + 6] = (length - shape.transport).to_bytes(2)
        self.write_stamp(frame, stamp_ns)
        self.write_checksums(frame)
        return bytes(frame)

    def write_stamp(self, frame: bytearray, stamp_ns: int) -> None:
        """Put the time of sending where it belongs."""
        stamp, shape, place = self.stream.stamp, self.shape, self.stamp_place
        if place == "none":
            return
        time = stamp_ns >> 4 * (stamp.tick if stamp else 0)
        if place == "ipv6.flow_label":
            octet, octets = shape.ip + 1, 3
            time = (frame[octet] >> 4) << 20 | time & 0xFFFFF
        elif place.startswith("ipv4"):
            octet, octets = shape.ip + (4 if place == "ipv4.identification" else 10), 2
        elif place == "probe":
            octet, octets = shape.payload + 10, 8
        else:
            assert stamp and stamp.octet is not None
            octet, octets = stamp.octet, (stamp.width or 64) // 8
        frame[octet : octet + octets] = (time % 2 ** (8 * octets)).to_bytes(octets)

    def write_checksums(self, frame: bytearray) -> None:
        """Make the checksums of IPv4, and of UDP or TCP, right."""
        shape = self.shape
        if shape.version == 4 and self.stamp_place != "ipv4.checksum":
            frame[shape.ip + 10 : shape.ip + 12] = lacking(frame[shape.ip : shape.transport]).to_bytes(2)
        if self.coverage:
            first, before = self.coverage.start, b""
            if self.shape.version == 6 and first == shape.transport:
                addresses = bytes(frame[shape.ip + 8 : shape.transport])
                before = addresses + struct.pack(">II", len(frame) - first, frame[shape.ip + 6])
            before += bytes(frame[self.coverage.addresses :][: self.coverage.octets])
            before += self.coverage.constant.to_bytes(2)
            frame[-2:] = bytes(2)
            rest = lacking(before + frame[first:])
            frame[-2:] = rest.to_bytes(2, "little" if (len(frame) - first) % 2 else "big")
            return
        if self.checksum == "none":
            return
        at = shape.transport + (6 if shape.kind == "udp" else 16)
        addresses = bytes(frame[shape.ip + (8 if shape.version == 6 else 12) : shape.transport])
        protocol = frame[shape.ip + (6 if shape.version == 6 else 9)]
        pseudo_header = addresses + struct.pack(">II", len(frame) - shape.transport, protocol)
        if self.checksum == "host":
            checksum = lacking(pseudo_header + frame[shape.transport :])
            frame[at : at + 2] = (0xFFFF if checksum == 0 and shape.kind == "udp" else checksum).to_bytes(2)
            return
        frame[at : at + 2] = b"\xff\xff" if shape.kind == "udp" else bytes(2)  # TCP: RFC 1624, 3.
        frame[-2:] = bytes(2)
        rest = lacking(pseudo_header + frame[shape.transport :])
        is_odd = (len(frame) - shape.transport) % 2
        frame[-2:] = rest.to_bytes(2, "little" if is_odd else "big")
