# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Draws frames for a host, all kinds and sizes, good ones and such as must be refused."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

from liteprobe.cores.formats.reflect import HostEnable
from liteprobe.sim.models.reflect.host import ARP, IPV4, IPV6, VLAN, Host, checksum

PEER = bytes.fromhex("021122334455")
PEER4 = bytes([10, 0, 1, 1])
PEER6 = bytes.fromhex("20010db8000000000000000000000001")


def udp_sum(by: bytes, to: bytes, datagram: bytes) -> bytes:
    """Return a datagram with its checksum."""
    pseudo = (
        by + to + (struct.pack("!xBH", 17, len(datagram)) if len(by) == 4 else struct.pack("!I3xB", len(datagram), 17))
    )
    blank = datagram[:6] + bytes(2) + datagram[8:]
    return blank[:6] + (checksum(pseudo + blank) or 0xFFFF).to_bytes(2, "big") + blank[8:]


@dataclass
class Requests:
    """Draws requests for ``host`` from ``rng``; ``most``: octets of the longest frame."""

    host: Host
    rng: random.Random
    most: int = 1514

    def _number(self, bits: int) -> int:
        return self.rng.getrandbits(bits)

    def link(self, to: bytes, ethertype: int, packet: bytes) -> bytes:
        """Return a frame with the host's tag."""
        tag = b"" if self.host.vlan is None else struct.pack("!HH", VLAN, self._number(3) << 13 | self.host.vlan)
        return (to + PEER + tag + struct.pack("!H", ethertype) + packet).ljust(60, b"\0")

    def ipv4(self, protocol: int, payload: bytes, ttl: int = 64, by: bytes = PEER4) -> bytes:
        """Return a packet for the host."""
        head = struct.pack(
            "!BBHHHBBH4s4s",
            0x45,
            self._number(8),
            20 + len(payload),
            self._number(16),
            0x4000 * self._number(1),
            ttl,
            protocol,
            0,
            by,
            self.host.ipv4,
        )
        return head[:10] + checksum(head).to_bytes(2, "big") + head[12:] + payload

    def ipv6(self, header: int, payload: bytes, hops: int = 64, to: bytes | None = None, by: bytes = PEER6) -> bytes:
        """Return a packet for the host, or for another address."""
        return (
            struct.pack("!IHBB", 6 << 28 | self._number(28), len(payload), header, hops)
            + by
            + (to or self.host.ipv6)
            + payload
        )

    def icmp6(self, message: bytes, hops: int = 64, to: bytes | None = None, by: bytes = PEER6) -> bytes:
        """Return a packet with an ICMPv6 message, whose checksum is 0 so far."""
        pseudo = by + (to or self.host.ipv6) + struct.pack("!I3xB", len(message), 58)
        message = message[:2] + checksum(pseudo + message).to_bytes(2, "big") + message[4:]
        return self.ipv6(58, message, hops, to, by)

    # Kinds ----------------------------------------------------------------------------------------

    def arp(self) -> bytes:
        """Return an ARP request."""
        to = self.rng.choice([b"\xff" * 6, self.host.mac])
        body = struct.pack(
            "!HHBBH6s4s6s4s",
            1,
            IPV4,
            6,
            4,
            1,
            PEER,
            self.rng.choice([PEER4, bytes(4)]),
            self.rng.randbytes(6),
            self.host.ipv4,
        )
        return self.link(to, ARP, body + self.rng.randbytes(18))

    def ping4(self) -> bytes:
        """Return an echo request."""
        data = self.rng.randbytes(self._size(46))
        message = struct.pack("!BBHHH", 8, 0, 0, self._number(16), self._number(16)) + data
        message = message[:2] + checksum(message).to_bytes(2, "big") + message[4:]
        return self.link(self.host.mac, IPV4, self.ipv4(1, message, self._number(8)))

    def ping6(self) -> bytes:
        """Return an echo request."""
        message = struct.pack("!BBHHH", 128, 0, 0, self._number(16), self._number(16)) + self.rng.randbytes(
            self._size(66)
        )
        return self.link(self.host.mac, IPV6, self.icmp6(message, self._number(8)))

    def solicitation(self) -> bytes:
        """Return a neighbour solicitation, to us or to the group, with or without the sender's address."""
        node = bytes.fromhex("ff0200000000000000000001ff") + self.host.ipv6[13:]
        is_group = self.rng.random() < 0.5
        to, mac = (node, b"\x33\x33\xff" + self.host.ipv6[13:]) if is_group else (self.host.ipv6, self.host.mac)
        message = struct.pack("!BBHI", 135, 0, 0, self._number(32)) + self.host.ipv6
        if is_group or self._number(1):
            message += b"\1\1" + PEER + b"\x0e\1" * self._number(1)
            message = message[: len(message) // 8 * 8]
        return self.link(mac, IPV6, self.icmp6(message, 255, to))

    def stamp(self, size: int | None = None, is_v6: bool | None = None) -> bytes:
        """Return a STAMP test packet with so many octets of UDP payload."""
        is_v6 = self._number(1) == 1 if is_v6 is None else is_v6
        size = 14 + self._size(14 + 8 + 54) if size is None else size
        payload = struct.pack("!I8sHH", self._number(32), self.rng.randbytes(8), 0x8001, self._number(16))
        if self.host.enable & HostEnable.TLV and size > 44:
            payload = (payload + self.rng.choice([bytes(28), self.rng.randbytes(28)]) + self.tlvs(size - 44))[:size]
        payload += self.rng.choice([bytes(max(0, size - 16)), self.rng.randbytes(max(0, size - 16))])
        datagram = struct.pack("!HHHH", self.rng.randint(1, 0xFFFF), self.host.stamp_port, 8 + size, 0) + payload[:size]
        ttl = self._number(8)
        if is_v6:
            return self.link(self.host.mac, IPV6, self.ipv6(17, udp_sum(PEER6, self.host.ipv6, datagram), ttl))
        datagram = datagram if self._number(3) == 0 else udp_sum(PEER4, self.host.ipv4, datagram)
        return self.link(self.host.mac, IPV4, self.ipv4(17, datagram, ttl))

    def tlvs(self, size: int) -> bytes:
        """Return TLVs of so many octets, the last one cut where it doesn't fit."""
        found = b""
        while len(found) < size:
            kind = self.rng.choice([1, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7, 8, 0, 200, 255])
            length = self.rng.choice([0, 1, 3, 4, 4, 4, 4, 5, 8, 9, 11, 12, 12, 12, 15, 16, 16, 17, self.rng.randint(0, 60)])
            flags = self.rng.choice([0x80, 0x80, 0x80, 0, self._number(8)])
            says = length if self.rng.random() < 0.95 else self._number(16)
            found += struct.pack("!BBH", flags, kind, says) + self.rng.randbytes(length)
        return found[:size] if self.rng.random() < 0.3 else found

    def heard(self) -> bytes:
        """Return an ARP reply or a neighbour advertisement."""
        if self._number(1):
            body = struct.pack("!HHBBH6s4s6s4s", 1, IPV4, 6, 4, 2, PEER, PEER4, self.host.mac, self.host.ipv4)
            return self.link(self.host.mac, ARP, body)
        return self.link(
            self.host.mac, IPV6, self.icmp6(struct.pack("!BBHI", 136, 0, 0, 0x60 << 24) + PEER6 + b"\2\1" + PEER, 255)
        )

    def foreign(self) -> bytes:
        """Return a frame for somebody else."""
        return (
            self.rng.choice([b"\xff" * 6, bytes.fromhex("0200000000ff")])
            + PEER
            + struct.pack("!H", IPV4)
            + self.rng.randbytes(60)
        )

    def damaged(self) -> bytes:
        """Return a request with some octets changed, or cut short, or with junk behind it."""
        frame = bytearray(self.good())
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            place = self.rng.randrange(12, min(len(frame), 90))
            frame[place] = self.rng.choice([0, 0xFF, frame[place] ^ 1 << self._number(3), self._number(8)])
        if self.rng.random() < 0.3:
            frame = frame[: self.rng.randint(60, len(frame))]
        return bytes(frame) + self.rng.randbytes(self.rng.choice([0, 0, 1, 5]))

    def wrong(self) -> bytes:
        """Return a request that is whole but must be refused, or must not."""
        rng = self.rng
        frame = bytearray(self.good())
        at = 14 + 4 * (self.host.vlan is not None)
        is_v4 = frame[at - 2 : at] == b"\x08\0"
        kind = rng.randrange(6)
        if kind == 0:  # From a source that nobody has.
            frame[6:12] = rng.choice([self.host.mac, b"\x01\0\x5e\0\0\1", b"\xff" * 6])
        elif kind == 1 and is_v4:
            frame[at + 12 : at + 16] = rng.choice([self.host.ipv4, bytes(4), b"\xff" * 4, bytes([224, 0, 0, 1])])
            frame[at + 10 : at + 12] = bytes(2)
            frame[at + 10 : at + 12] = checksum(frame[at : at + 20]).to_bytes(2, "big")
        elif kind == 1:
            frame[at + 8 : at + 24] = rng.choice([self.host.ipv6, bytes(16), b"\xff\2" + bytes(13) + b"\1"])
        elif kind == 2 and is_v4:
            frame[at + 6] |= rng.choice([0x20, 0x01])
        elif kind == 2:
            frame[at + 6] = rng.choice([0, 43, 44, 60, 6, 17, 58])
        elif kind == 3 and is_v4:
            frame[at] = rng.choice([0x46, 0x55, 0x44])
        elif kind == 3:
            frame[at + 7] = rng.choice([254, 255, 64])
        elif kind == 4:
            packet = struct.pack("!I8sHH", self._number(32), bytes(8), 0, 0) + bytes(28)
            datagram = struct.pack("!HHHH", rng.choice([0, 5000]), self.host.stamp_port, 8 + len(packet), 0) + packet
            return self.link(self.host.mac, IPV4, self.ipv4(17, udp_sum(PEER4, self.host.ipv4, datagram)))
        else:
            return self.stamp(rng.choice([13, 14, 15, 16, 17, 43, 44, 45]))
        return bytes(frame)

    def good(self) -> bytes:
        """Return a request that is answered."""
        kinds: list[Callable[[], bytes]] = [
            self.arp,
            self.ping4,
            self.ping6,
            self.solicitation,
            self.stamp,
            self.stamp,
            self.heard,
        ]
        return self.rng.choice(kinds)()

    def any(self) -> bytes:
        """Return a frame of any kind."""
        kinds: list[Callable[[], bytes]] = [self.good, self.good, self.good, self.wrong, self.damaged, self.foreign]
        return self.rng.choice(kinds)()

    def _size(self, least: int) -> int:
        """Return octets of data: few mostly, so many that the frame is at its longest sometimes."""
        room = self.most - least - 4
        return self.rng.choice(
            [self.rng.randint(0, min(60, room)), self.rng.randint(0, min(200, room)), self.rng.randint(0, room)]
        )
