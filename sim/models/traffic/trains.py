# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives each start of a train, in absolute time, and every octet of its probe frames, from their program.

Source: docs/design/interfaces.md; RFC 791, 8200, 768, 1071 (headers, checksums), RFC 7820 (complement),
IEEE 802.3 3.2 (FCS), ITU-T O.150 5.8 (PRBS-31).
"""

import struct
import zlib
from dataclasses import dataclass
from fractions import Fraction

from liteprobe.cores.formats import SIGNATURE, Fill

# Starts -------------------------------------------------------------------------------------------


def starts(count: int, repeats: int, interval_ticks: Fraction, gap_ticks: int = 0) -> list[int]:
    """Return the tick of each start, from the first.

    Parameters
    ----------
    count, repeats : frames of a train and trains.
    interval_ticks : from start to start, within a train and, with the gap on top, between trains.
    gap_ticks : between the slot of a train's last frame and the next head.

    Returns
    -------
    list of int
        Frame k starts in the tick in which ``k * interval`` plus the gaps before it falls.
    """
    return [int(k * interval_ticks) + k // count * gap_ticks for k in range(count * repeats)]


# Frames -------------------------------------------------------------------------------------------


PREAMBLE = b"\x55" * 7 + b"\xd5"
SOURCE_IPV4 = bytes([198, 18, 0, 1])
DESTINATION_IPV4 = bytes([198, 18, 0, 2])
SOURCE_IPV6 = bytes.fromhex("20010002000000000000000000000001")
DESTINATION_IPV6 = bytes.fromhex("20010002000000000000000000000002")
UDP_CHECKSUM_IPV6 = 0x1234  # Any constant but 0: the complement mends the rest.


def ones_sum(data: bytes, start: int = 0) -> int:
    """Return the 16-bit one's complement sum of ``data``, padded with a zero octet if odd."""
    padded = data + b"\x00" * (len(data) % 2)
    total: int = start + sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def prbs_octets(count: int) -> bytes:
    """Return the first octets of PRBS-31, bit by bit: x^31 + x^28 + 1 from all ones, bit 7 first."""
    bits = [1] * 31  # bits[0] is the newest.
    octets = bytearray()
    for _ in range(count):
        octet = 0
        for _ in range(8):
            new = bits[30] ^ bits[27]
            bits = [new, *bits[:-1]]
            octet = octet << 1 | new
        octets.append(octet)
    return bytes(octets)


def fill_octets(fill: Fill, count: int) -> bytes:
    """Return ``count`` octets of fill."""
    if fill == Fill.COUNTING:
        return bytes(k % 256 for k in range(count))
    return prbs_octets(count) if fill == Fill.PRBS else bytes(count)


@dataclass(frozen=True)
class ProbeFrame:
    """The frames of one program; ``length`` without FCS, VLAN tags by their TCI, outer first."""

    length: int
    ipv6: bool = False
    vlan_tags: tuple[int, ...] = ()
    stream_id: int = 1
    fill: Fill = Fill.ZERO

    @property
    def payload_offset(self) -> int:
        """Octets before the UDP payload."""
        return (62 if self.ipv6 else 42) + 4 * len(self.vlan_tags)

    def udp(self) -> bytes:
        """Return the UDP header."""
        octets = self.length - self.payload_offset + 8
        return struct.pack(">HHHH", 49184, 49185, octets, UDP_CHECKSUM_IPV6 if self.ipv6 else 0)

    def pseudo_header(self) -> bytes:
        """Return the pseudo-header of IPv6."""
        octets = self.length - self.payload_offset + 8
        return SOURCE_IPV6 + DESTINATION_IPV6 + struct.pack(">IHBB", octets, 0, 0, 17)

    @property
    def checksum_seed(self) -> int:
        """One's complement sum of pseudo-header and UDP header."""
        return ones_sum(self.pseudo_header() + self.udp())

    def header(self) -> bytes:
        """Return everything before the sequence."""
        ethernet = bytes.fromhex("024c50000002024c50000001")
        for tag in self.vlan_tags:
            ethernet += struct.pack(">HH", 0x8100, tag)
        ethernet += struct.pack(">H", 0x86DD if self.ipv6 else 0x0800)
        octets = self.length - self.payload_offset + 8
        if self.ipv6:
            ip = struct.pack(">IHBB", 6 << 28, octets, 17, 64) + SOURCE_IPV6 + DESTINATION_IPV6
        else:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + octets, 0, 0x4000, 64, 17, 0)
            ip += SOURCE_IPV4 + DESTINATION_IPV4
            ip = ip[:10] + struct.pack(">H", ones_sum(ip) ^ 0xFFFF) + ip[12:]
        return ethernet + ip + self.udp() + struct.pack(">IH", SIGNATURE, self.stream_id)

    def octets(self, sequence: int, stamp: int) -> bytes:
        """Return frame ``sequence`` without FCS, as it leaves the board; ``stamp`` in ns."""
        fill = fill_octets(self.fill, self.length - self.payload_offset - 18)
        frame = self.header() + struct.pack(">IQ", sequence, stamp) + fill
        if not self.ipv6:
            return frame
        payload = frame[self.payload_offset : -2]
        complement = ones_sum(payload, self.checksum_seed) ^ 0xFFFF
        order = ">H" if len(payload) % 2 == 0 else "<H"
        return frame[:-2] + struct.pack(order, complement)


def wire_octets(frame: bytes) -> bytes:
    """Return what TX_EN frames on the wire: preamble, SFD, the frame padded to 60 octets, FCS."""
    padded = frame + bytes(max(0, 60 - len(frame)))
    return PREAMBLE + padded + struct.pack("<I", zlib.crc32(padded))
