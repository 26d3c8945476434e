# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes captures of all kinds, in plain Python, apart from what reads them.

Source: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng.
"""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

ETHERNET = 1


@dataclass(frozen=True)
class Packet:
    """A packet: its time (s), the octets that are kept, its length on the wire, its interface."""

    time_s: Fraction
    octets: bytes
    length: int
    interface: int = 0


@dataclass(frozen=True)
class Interface:
    """An interface of a pcapng: ``if_tsresol`` and ``if_tsoffset``, octets of FCS, link type."""

    resolution: int = 9
    offset_s: int = 0
    fcs: int = 0
    link: int = ETHERNET

    @property
    def per_second(self) -> int:
        """Units of a second."""
        return 1 << (self.resolution & 0x7F) if self.resolution & 0x80 else int(10**self.resolution)


def random_packets(
    seed: int, count: int, most: int = 1514, gap_ns: int = 20_000, interfaces: int = 1
) -> list[Packet]:
    """Return packets of 0 to ``most`` octets, some of them cut, some at the time of the one before, all in whole microseconds."""
    chance = random.Random(seed)
    time_us, found = 1_700_000_000 * 10**6 + 999_000, []
    for _ in range(count):
        length = chance.choice((chance.randint(0, most), chance.randint(14, 80), 60, most))
        octets = chance.randbytes(length if chance.random() < 0.8 else chance.randint(0, length))
        time_us += chance.choice((0, 1, chance.randint(0, 2 * gap_ns // 1000)))
        found.append(Packet(Fraction(time_us, 10**6), octets, length, chance.randrange(interfaces)))
    return found


def pcap(packets: Sequence[Packet], per_second: int = 10**9, order: str = "<", fcs: int = 0, link: int = ETHERNET) -> bytes:
    """Return a pcap; ``fcs``: octets at the end of each packet that the file says are its FCS."""
    field = link | (1 << 26 | fcs // 2 << 28 if fcs else 0)
    magic = {10**6: 0xA1B2C3D4, 10**9: 0xA1B23C4D}[per_second]
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 1 << 18, field)]
    for one in packets:
        second, part = divmod(int(one.time_s * per_second), per_second)
        parts.append(struct.pack(order + "IIII", second, part, len(one.octets), one.length) + one.octets)
    return b"".join(parts)


def block(kind: int, content: bytes, order: str = "<") -> bytes:
    """Return a block of a pcapng."""
    content += bytes(-len(content) % 4)
    size = struct.pack(order + "I", len(content) + 12)
    return struct.pack(order + "I", kind) + size + content + size


def section(interfaces: Sequence[Interface], order: str = "<") -> bytes:
    """Return the blocks that a section begins with, and one that nobody knows between them."""
    parts = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)]
    for one in interfaces:
        options = struct.pack(order + "HHB3x", 9, 1, one.resolution) + struct.pack(order + "HHq", 14, 8, one.offset_s)
        options += struct.pack(order + "HHB3x", 13, 1, one.fcs) + bytes(4)
        parts.append(block(1, struct.pack(order + "HHI", one.link, 0, 0) + options, order))
        parts.append(block(0x0BAD, bytes(7), order))
    return b"".join(parts)


def pcapng(
    packets: Sequence[Packet], interfaces: Sequence[Interface] = (Interface(),), order: str = "<", comment: bytes = b""
) -> bytes:
    """Return a pcapng of one section; ``comment``: of every packet."""
    parts = [section(interfaces, order)]
    for one in packets:
        interface = interfaces[one.interface]
        time = int((one.time_s - interface.offset_s) * interface.per_second)
        head = struct.pack(order + "IIIII", one.interface, time >> 32, time & 0xFFFFFFFF, len(one.octets), one.length)
        options = struct.pack(order + "HH", 1, len(comment)) + comment + bytes(-len(comment) % 4) + bytes(4) if comment else b""
        parts.append(block(6, head + one.octets + bytes(-len(one.octets) % 4) + options, order))
    return b"".join(parts)


def epb(time: int, octets: bytes, flags: int | None = None, interface: int = 0) -> bytes:
    """Return an Enhanced Packet Block; ``time``: in units of its interface."""
    head = struct.pack("<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(octets), len(octets))
    options = b"" if flags is None else struct.pack("<HHIHH", 2, 4, flags, 0, 0)
    return block(6, head + octets + bytes(-len(octets) % 4) + options)
