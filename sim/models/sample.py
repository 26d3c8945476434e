# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for sampling: the hash of a packet, and which of many are chosen.

Source: RFC 5475, 6.2; RFC 3720, B.4 (CRC-32C); docs/design/monitor.md.
"""

from dataclasses import dataclass

from liteprobe.cores.formats import Layer3
from liteprobe.sim.models.unified import UnifiedHeader

POLYNOMIAL = 0x82F63B78  # CRC-32C, lowest bit first.
WORDS_BEHIND = 4


def octet_table() -> list[int]:
    """Return what each octet adds to the CRC."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table


TABLE = octet_table()


def crc32c(octets: bytes, crc: int) -> int:
    """Return the register of a CRC-32C that began with ``crc``; not inverted at either end."""
    for octet in octets:
        crc = crc >> 8 ^ TABLE[(crc ^ octet) & 0xFF]
    return crc


def packet_octets(header: UnifiedHeader, flow_hash: int) -> bytes:
    """Return what the hash of a packet is taken of; all of it stays the same on the way."""
    first, second = bytes(4), bytes(4)
    if header.layer3 is Layer3.IPV4:
        first, second = bytes(2) + header.ip[0][2:], header.ip[1][:2] + bytes(2)  # Length; id.
    elif header.layer3 is Layer3.IPV6:
        label = bytes([0, header.ip[0][1] & 0x0F]) + header.ip[0][2:]
        first, second = label, header.ip[1][:2] + bytes(2)  # Flow label; length.
    behind = b"".join(header.behind) if header.layer3 in (Layer3.IPV4, Layer3.IPV6) else b""
    return first + second + behind.ljust(4 * WORDS_BEHIND, b"\0") + flow_hash.to_bytes(4, "little")


def packet_hash(header: UnifiedHeader, flow_hash: int, seed: int = 0) -> int:
    """Return the hash of a packet: CRC-32C that begins with ``seed``."""
    return crc32c(packet_octets(header, flow_hash), seed)


@dataclass
class SamplerModel:
    """Chooses one frame in 2^``shift``: by count, the first of each; or by the hash of the packet."""

    shift: int = 0
    by_hash: bool = False
    count: int = 0

    def is_chosen(self, hash_: int) -> bool:
        """Tell whether the next frame is chosen."""
        shift, count = min(self.shift, 4), self.count
        self.count += 1
        return hash_ < 1 << 32 - shift if self.by_hash else count % (1 << shift) == 0
