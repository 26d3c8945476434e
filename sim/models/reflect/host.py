# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Says what a host on a test port makes of each frame: its answer, or why there is none.

Every checksum is computed anew, from the pseudo header on; nothing is mended.

Source: RFC 826; RFC 791; RFC 792; RFC 768; RFC 1071; RFC 8200, 8.1; RFC 4443, 4.1 and 4.2; RFC 4861, 7.1 and 7.2.4; RFC 8762, 4.3.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag

from liteprobe.cores.formats.reflect import HostCount, HostEnable

ARP, IPV4, IPV6, VLAN = 0x0806, 0x0800, 0x86DD, 0x8100
EXTENSION_HEADERS = (0, 43, 44, 60)
SECOND_NS = 10**9


class Enable(IntFlag):
    """All that answers."""

    ALL = HostEnable.ARP | HostEnable.PING4 | HostEnable.ND | HostEnable.PING6 | HostEnable.STAMP4 | HostEnable.STAMP6


@dataclass
class Host:
    """A host and what it is set to.

    ``information``: value of the TLV timestamp information; 0: it is not known. ``access``: (address, bits of its prefix)
    of those that may use STAMP, with HostEnable.ACCESS.
    """

    mac: bytes
    ipv4: bytes
    ipv6: bytes
    enable: int = int(Enable.ALL)
    vlan: int | None = None
    stamp_port: int = 862
    error_estimate: int = 0x7FFF
    information: int = 0
    access: Sequence[tuple[bytes, int]] = ()
    sessions: dict[int, int] = field(default_factory=dict)  # Answers so far.
    received: dict[int, int] = field(default_factory=dict)  # Requests.

    def copy(self) -> "Host":
        """Return another one that has counted the same so far."""
        return replace(self, sessions=dict(self.sessions), received=dict(self.received))

    def outcome(self, frame: bytes, t2_ns: int = 0, t3_ns: int = 0) -> tuple[HostCount | None, bytes | None]:
        """Return what is counted of a good frame (None: it isn't for the host), and the answer, without FCS and padding."""
        if not self.enable or len(frame) < 60:
            return None, None
        tag = frame[12:16]
        body = frame[12:]
        if self.vlan is not None:
            if tag[:2] != VLAN.to_bytes(2, "big") or int.from_bytes(tag[2:], "big") & 0xFFF != self.vlan:
                return None, None
            body = frame[16:]
        ethertype = int.from_bytes(body[:2], "big")
        to, by = frame[:6], frame[6:12]
        group = by[0] & 1 != 0 or by == self.mac
        link = _Link(to == self.mac, to == b"\xff" * 6, to == b"\x33\x33\xff" + self.ipv6[13:], group)
        if ethertype == ARP and (link.is_ours or link.is_broadcast):
            found = self._arp(body[2:], link)
        elif ethertype == IPV4 and link.is_ours:
            found = self._ipv4(body[2:], link, t2_ns, t3_ns)
        elif ethertype == IPV6 and (link.is_ours or link.is_solicited):
            found = self._ipv6(body[2:], link, t2_ns, t3_ns)
        else:
            return None, None
        count, octets = found
        if octets is None:
            return count, None
        if count is HostCount.HEARD:
            return count, frame
        head = by + self.mac + frame[12 : len(frame) - len(body) + 2]
        # As long as the request, its padding included; longer only where the short base of STAMP makes it so, and then without.
        packet = body[2:]
        if count is HostCount.ARP:
            octets = octets.ljust(len(packet), b"\0")
        elif not _is_short(packet, len(octets)):
            octets += packet[len(octets) :]
        return count, head + octets

    # Kinds ----------------------------------------------------------------------------------------

    def _arp(self, packet: bytes, link: "_Link") -> tuple[HostCount, bytes | None]:
        form, operation = struct.unpack_from("!6sH", packet)
        sha, spa, tpa = struct.unpack_from("!6s4s6x4s", packet, 8)
        if form != bytes.fromhex("000108000604") or operation not in (1, 2):
            return HostCount.MALFORMED, None
        if tpa != self.ipv4 or (operation == 2 and not link.is_ours):
            return HostCount.NOT_OURS, None
        if operation == 1 and not self.enable & HostEnable.ARP:
            return HostCount.NO_SERVICE, None
        if link.is_bad_source or sha[0] & 1 or spa == self.ipv4:
            return HostCount.SOURCE, None
        if operation == 2:
            return HostCount.HEARD, packet
        return HostCount.ARP, form + struct.pack("!H6s4s6s4s", 2, self.mac, self.ipv4, sha, spa)

    def _ipv4(self, packet: bytes, link: "_Link", t2: int, t3: int) -> tuple[HostCount, bytes | None]:
        head, total, flags = packet[0], *struct.unpack_from("!H2xH", packet, 2)
        ttl, protocol = packet[8], packet[9]
        by, to = packet[12:16], packet[16:20]
        if to != self.ipv4:
            return HostCount.NOT_OURS, None
        if head != 0x45 or flags & 0x3FFF:
            return HostCount.UNSUPPORTED, None
        if total < 28 or total > len(packet):
            return HostCount.MALFORMED, None
        payload = packet[20:total]
        is_bad = by[0] >= 0xE0 or by in (bytes(4), self.ipv4) or link.is_bad_source
        is_sound = checksum(packet[:20]) == 0
        pseudo = by + to + struct.pack("!xBH", protocol, len(payload))
        if protocol == 1 and payload[:2] == b"\x08\0" and self.enable & HostEnable.PING4:
            if not is_sound or checksum(payload):
                return HostCount.CHECKSUM, None
            if is_bad:
                return HostCount.SOURCE, None
            # 0 and 0xffff are the same sum; of an answer that is all 0, only the second one is right.
            count, answer, new_ttl = HostCount.PING4, _summed(b"\0\0", payload[4:], b"", zero=0xFFFF), 64
        elif protocol == 17 and self._is_stamp(payload, HostEnable.STAMP4):
            if problem := self._stamp_problem(payload, pseudo, is_sound, is_bad, False):
                return problem, None
            if not self._has_access(by):
                return HostCount.NO_ACCESS, None
            count, answer, new_ttl = HostCount.STAMP4, self._stamp(payload, ttl, packet[1], t2, t3), 255
            if payload[6:8] != b"\0\0":
                answer = _with_udp_sum(answer, to + by + struct.pack("!xBH", 17, len(answer)))
        else:
            return HostCount.NO_SERVICE, None
        new = bytearray(packet[:20])
        new[2:4] = (20 + len(answer)).to_bytes(2, "big")
        new[8] = new_ttl
        new[10:12], new[12:16], new[16:20] = b"\0\0", to, by
        new[10:12] = checksum(new).to_bytes(2, "big")
        return count, bytes(new) + answer

    def _ipv6(self, packet: bytes, link: "_Link", t2: int, t3: int) -> tuple[HostCount, bytes | None]:
        packet_of = packet.ljust(80, b"\0")
        length, header, hops = struct.unpack_from("!HBB", packet_of, 4)
        by, to = packet_of[8:24], packet_of[24:40]
        kind = packet_of[40:42]
        is_solicitation = header == 58 and kind == b"\x87\0"
        is_solicited = to == bytes.fromhex("ff0200000000000000000001ff") + self.ipv6[13:]
        if to != self.ipv6 and not (is_solicited and is_solicitation):
            return HostCount.NOT_OURS, None
        if is_solicitation and (packet_of[48:64] != self.ipv6 or len(packet) < 64):
            return HostCount.NOT_OURS, None
        if packet[0] >> 4 != 6 or header in EXTENSION_HEADERS:
            return HostCount.UNSUPPORTED, None
        if length < 8 or 40 + length > len(packet):
            return HostCount.MALFORMED, None
        payload = packet[40 : 40 + length]
        is_bad = by[0] == 0xFF or by in (bytes(16), self.ipv6) or link.is_bad_source
        pseudo = by + to + struct.pack("!I3xB", length, header)
        is_wrong = checksum(pseudo + payload) != 0
        if header == 58 and kind == b"\x80\0" and self.enable & HostEnable.PING6:
            count, answer, new_hops, new_by = HostCount.PING6, None, 64, to
        elif header == 58 and (kind == b"\x88\0" or (is_solicitation and self.enable & HostEnable.ND)):
            count, answer, new_hops, new_by = HostCount.ND, None, 255, self.ipv6
            has_option = length >= 32 and payload[24:26] == b"\1\1"
            if hops != 255 or length < 24:
                return HostCount.MALFORMED, None
            if is_solicitation and (24 < length < 32 or (to != self.ipv6 and not has_option)):
                return HostCount.MALFORMED, None
        elif header == 17 and self._is_stamp(payload, HostEnable.STAMP6):
            if problem := self._stamp_problem(payload, pseudo, True, is_bad, True):
                return problem, None
            if not self._has_access(by):
                return HostCount.NO_ACCESS, None
            traffic_class = int.from_bytes(packet[:2], "big") >> 4 & 0xFF
            answer, new_hops, new_by = self._stamp(payload, hops, traffic_class, t2, t3), 255, to
            answer = _with_udp_sum(answer, to + by + struct.pack("!I3xB", len(answer), 17))
            count = HostCount.STAMP6
        else:
            return HostCount.NO_SERVICE, None
        if count is not HostCount.STAMP6:
            if is_wrong:
                return HostCount.CHECKSUM, None
            if is_bad:
                return HostCount.SOURCE, None
            if kind == b"\x88\0":
                return HostCount.HEARD, packet
            new_pseudo = new_by + by + struct.pack("!I3xB", length, 58)
            if count is HostCount.PING6:
                answer = _summed(b"\x81\0", payload[4:], new_pseudo)
            else:
                option = b"\2\1" + self.mac + payload[32:] if has_option else payload[24:]
                answer = _summed(b"\x88\0", b"\x60\0\0\0" + self.ipv6 + option, new_pseudo)
        assert answer is not None
        return count, packet[:4] + struct.pack("!HBB", len(answer), header, new_hops) + new_by + by + answer

    # STAMP ----------------------------------------------------------------------------------------

    def _is_stamp(self, datagram: bytes, enable: HostEnable) -> bool:
        return bool(self.enable & enable) and int.from_bytes(datagram[2:4], "big") == self.stamp_port

    def _stamp_problem(
        self, datagram: bytes, pseudo: bytes, is_sound: bool, is_bad: bool, is_v6: bool
    ) -> HostCount | None:
        if int.from_bytes(datagram[4:6], "big") != len(datagram) or len(datagram) < 8 + 14:
            return HostCount.MALFORMED
        is_wrong = is_v6 if datagram[6:8] == b"\0\0" else checksum(pseudo + datagram) != 0
        if not is_sound or is_wrong:
            return HostCount.CHECKSUM
        if is_bad or datagram[:2] == b"\0\0":
            return HostCount.SOURCE
        return HostCount.AUTHENTICATED if datagram[12:22] == bytes(10) else None

    def _has_access(self, address: bytes) -> bool:
        if not self.enable & HostEnable.ACCESS:
            return True

        def bits(octets: bytes, count: int) -> int:
            return int.from_bytes(octets, "big") >> (8 * len(octets) - count)

        return any(len(one) == len(address) and bits(one, count) == bits(address, count) for one, count in self.access)

    def _stamp(self, datagram: bytes, ttl: int, traffic_class: int, t2: int, t3: int) -> bytes:
        """Return the datagram that answers, without its checksum."""
        payload = datagram[8:]
        sequence, sent, error = payload[:4], payload[4:12], payload[12:14]
        session = payload[14:16] if len(payload) >= 16 else b"\0\0"
        own = sequence
        if self.enable & HostEnable.STATEFUL:
            count = self.sessions.get(session[1], 0)
            self.sessions[session[1]] = count + 1
            self.received[session[1]] = self.received.get(session[1], 0) + 1
            own = struct.pack("!I", count & 0xFFFFFFFF)
        base = own + truncated(t3) + struct.pack("!H", self.error_estimate) + session
        base += truncated(t2) + sequence + sent + error + bytes(2) + bytes([ttl]) + bytes(3)
        extra = payload[44:]
        answer = base + (
            self._tlvs(extra, traffic_class, datagram[2:4] + datagram[:2], session[1])
            if self.enable & HostEnable.TLV
            else extra
        )
        return datagram[2:4] + datagram[:2] + struct.pack("!HH", 8 + len(answer), 0) + answer

    def _tlvs(self, octets: bytes, traffic_class: int, ports: bytes, session: int) -> bytes:
        """Return what follows the base, each TLV with its flags; RFC 8972, section 4.

        Direct measurement is known where sessions are counted, the first one, at a multiple of four octets; follow-up telemetry
        where they aren't, and then has nothing to say.
        """
        made, rest = b"", octets
        has_direct = not self.enable & HostEnable.STATEFUL
        while rest:
            size = 4 + int.from_bytes(rest[2:4], "big")
            if len(rest) < 4 or size > len(rest):
                return made + bytes([rest[0] & 0x7F | 0x40]) + rest[1:]
            kind, value = rest[1], rest[4:size]
            filled = {1: b"", 2: ports, 4: _class_of_service(value, traffic_class), 6: b""}
            least = {1: 0, 5: 12, 7: 16}
            if not self.enable & HostEnable.STATEFUL:
                filled[7] = bytes(12)
            elif not has_direct and kind == 5 and len(made) % 4 == 0:
                filled[5] = value[:4] + struct.pack("!II", self.received[session], self.sessions[session])
                has_direct = len(value) >= 12
            if self.information:
                filled[3] = self.information.to_bytes(4, "big")
            if kind not in filled:
                flags = 0x80
            elif len(value) < least.get(kind, 4):
                flags = 0x40
            else:
                flags, value = 0, filled[kind] + value[len(filled[kind]) :]
            made += bytes([flags, kind]) + rest[2:4] + value
            rest = rest[size:]
        return made


def _is_short(packet: bytes, length: int) -> bool:
    """Return whether a packet says that it is shorter than ``length``."""
    is_v4 = packet[0] >> 4 == 4
    says = int.from_bytes(packet[2:4], "big") if is_v4 else 40 + int.from_bytes(packet[4:6], "big")
    return says < length


@dataclass
class _Link:
    """Holds what the MAC addresses say."""

    is_ours: bool
    is_broadcast: bool
    is_solicited: bool
    is_bad_source: bool


def truncated(now_ns: int) -> bytes:
    """Return a time in the truncated format of PTPv2: 32 bits of seconds, 32 of nanoseconds (RFC 8186, section 2)."""
    seconds, nanoseconds = divmod(now_ns, SECOND_NS)
    return struct.pack("!II", seconds & 0xFFFFFFFF, nanoseconds)


def checksum(octets: bytes | bytearray) -> int:
    """Return the internet checksum; 0 where one is part of the octets and right."""
    padded = bytes(octets) + bytes(len(octets) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def _summed(kind: bytes, rest: bytes, pseudo: bytes, zero: int = 0) -> bytes:
    """Return an ICMP message of type and code ``kind`` with its checksum, ``zero`` for 0."""
    return kind + (checksum(pseudo + kind + bytes(2) + rest) or zero).to_bytes(2, "big") + rest


def _with_udp_sum(datagram: bytes, pseudo: bytes) -> bytes:
    """Return a datagram with its checksum: 0xffff for 0 (RFC 768)."""
    return datagram[:6] + (checksum(pseudo + datagram) or 0xFFFF).to_bytes(2, "big") + datagram[8:]


def _class_of_service(value: bytes, traffic_class: int) -> bytes:
    """Return the value of a class of service: what was asked for, what came; RP is 1 where the answer has another one."""
    if len(value) < 4:
        return value
    wanted, came, ecn = value[0] >> 2, traffic_class >> 2, traffic_class & 3
    return (wanted << 26 | came << 20 | ecn << 18 | (wanted != came) << 16).to_bytes(4, "big")
