# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes octets of the headers that streams have no fields for, with right lengths and checksums in every frame.

These headers are the first octets of a stream's payload. A checksum is worked out here where it is the same in all frames. Else
the two octets at the end of the frame make it right (a `Coverage`), or, of up to 64 values, a modifier sets it.

Source: RFC 1071; RFC 768, 792, 2784, 4443, 7348; Open Traffic Generator models 1.61, flow/packet-headers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from liteprobe.cores.formats import CHECKSUM_OCTETS, HEADER_OCTETS, LIST_ENTRIES_MAX
from liteprobe.host.otg.messages import Given
from liteprobe.host.otg.packet import FieldBits, FieldPattern, FlowPacket, LayerSum
from liteprobe.host.traffic.headers import CHECKSUM_CONSTANT, IPV4_LENGTH, Headers, ones_complement_sum
from liteprobe.host.traffic.lengths import Fixed, Length
from liteprobe.host.traffic.stream import Coverage, fill_octets

ONES = 0xFFFF
PROTOCOLS = {"udp": 17, "tcp": 6, "icmpv6": 58}  # That are in a pseudo-header.


def begin(flow: Given, packet: FlowPacket, headers: Headers, length: Length) -> None:
    """Put headers, with their first values and lengths, before the payload of a packet; what can't be is reported."""
    if packet.octets > HEADER_OCTETS:
        flow.error("packet", f"headers of {packet.octets} octets are too long: a probe changes {HEADER_OCTETS} at most")
        return
    for place, one in enumerate(packet.bits):
        if one.counts_from is None:
            continue
        if not isinstance(length, Fixed):
            flow.error(
                "size",
                f"sizes that differ need {one.path} in each frame, which a probe does not count: give a fixed size",
            )
            return
        packet.bits[place] = replace(one, takes=FieldPattern(one.path, (length.length - one.counts_from,)))
        if length.length < one.counts_from:
            flow.error("size", f"its headers are longer than a frame: give {packet.octets + 4} or more")
            return
    frame = bytearray(packet.octets)
    _write(frame, packet.bits, 0)
    packet.payload = bytes(frame[headers.payload_offset :]) + packet.payload


@dataclass(frozen=True)
class SettledPacket:
    """Holds the first octets of a payload, what changes in all headers, and what the end of the frame makes right."""

    payload: bytes
    bits: tuple[FieldBits, ...]
    coverage: Coverage | None


@dataclass(frozen=True)
class FrameBody:
    """Describes a frame besides the changes of its headers."""

    headers: Headers
    payload: bytes
    fill: str
    length: Length
    is_stamped: bool

    @property
    def end(self) -> int:
        """First octet of the fill."""
        return -(-(self.headers.payload_offset + len(self.payload)) // 4) * 4


def settle(flow: Given, packet: FlowPacket, body: FrameBody) -> SettledPacket | None:
    """Make the checksums of these headers right; None where that can't be, which is reported."""
    return _Settling(flow, packet, body).result()


class _Settling:
    def __init__(self, flow: Given, packet: FlowPacket, body: FrameBody) -> None:
        self.flow, self.packet, self.body = flow, packet, body
        self.bits = list(packet.bits)
        least = body.length.least
        start = body.headers.stack(max(least, body.headers.payload_offset), 0) + body.payload
        whole = start.ljust(body.end, b"\0")
        self.base = bytearray((whole + fill_octets(body.fill, max(least - len(whole), 0)))[: max(least, len(start))])
        self.coverage: Coverage | None = None
        self.mended: LayerSum | None = None  # The one that the coverage is of.

    def result(self) -> SettledPacket | None:
        """Return the packet with its checksums."""
        before = len(self.flow.report.errors)
        for one in self.packet.sums:
            if one.kind == "ipv4":
                self._set(one, one.start, one.start + IPV4_LENGTH)
        for one in reversed(self.packet.sums):
            if one.kind != "ipv4":
                self._settle(one)
        if len(self.flow.report.errors) > before:
            return None
        offset = self.body.headers.payload_offset
        return SettledPacket(
            bytes(self.base[offset : offset + len(self.body.payload)]), tuple(self.bits), self.coverage
        )

    def _settle(self, one: LayerSum) -> None:
        """Make a checksum right that covers all to the end of the frame."""
        varies = self.mended is None and (self.body.is_stamped or not isinstance(self.body.length, Fixed))
        if one.is_optional and (varies or self._cycle(one)[0] > 1):
            return
        if self.mended is None and (varies or self._cycle(one)[0] > 1) and self._covered(one):
            return
        if varies:
            self.flow.error(
                "size",
                f"{self.body.length.least + 4} octets leave no space for two that make the checksum of {one.path} right: give a "
                "greater size",
            )
            return
        self._set(one, one.start, self.mended.start if self.mended else len(self.base))

    def _covered(self, one: LayerSum) -> bool:
        """Have the end of the frame make a checksum right, if it has space for that."""
        if self.body.length.least < self.body.end + CHECKSUM_OCTETS:
            return False
        is_own = self.body.headers.is_ipv6 and one.start == self.body.headers.transport_offset
        constant, first, end = 0, 0, 0
        if one.addresses and not is_own:
            constant = ones_complement_sum(self._pseudo(one, self.base)[one.addresses[1] - one.addresses[0] :])
            first, end = one.addresses
        self.coverage = Coverage(one.start, first, end - first, constant)
        self.mended = one
        self.base[one.place : one.place + 2] = CHECKSUM_CONSTANT.get(one.kind, 0).to_bytes(2)
        if self.body.fill != "zero" or self.packet.custom_octets:
            self.flow.report.warn(self.flow.at("payload"), "the last two octets of its frames make the checksum right")
        return True

    def _set(self, one: LayerSum, first: int, end: int) -> None:
        """Work out a checksum: for all frames, or for each of those until they come again."""
        frames, culprit = self._cycle(one) if one.kind != "ipv4" else self._cycle_of([(first, end)])
        if frames > LIST_ENTRIES_MAX:
            self.flow.report.error(
                culprit,
                f"the checksum of {one.path} changes with it, and a probe knows {LIST_ENTRIES_MAX} of its values, not {frames}: "
                f"give fields that come again after {LIST_ENTRIES_MAX} frames or less",
            )
            return
        values = []
        for number in range(frames):
            frame = bytearray(self.base)
            _write(frame, self.bits, number)
            frame[one.place : one.place + 2] = bytes(2)
            values.append(self._sum(one, frame, first, end))
        self.base[one.place : one.place + 2] = values[0].to_bytes(2)
        if len(set(values)) > 1:
            self.bits.append(FieldBits(culprit, 8 * one.place, 16, FieldPattern(culprit, tuple(values))))

    def _sum(self, one: LayerSum, frame: bytearray, first: int, end: int) -> int:
        """Return the checksum of a frame whose own one is 0."""
        parts = [self._pseudo(one, frame), bytes(frame[first:end])]
        if self.mended and one.kind != "ipv4":  # From there on the sum is what its pseudo-header lacks.
            parts.append((ONES - ones_complement_sum(self._pseudo(self.mended, frame))).to_bytes(2))
        lacks = ONES - ones_complement_sum(b"".join(parts))
        return lacks or (ONES if one.kind == "udp" else 0)

    def _pseudo(self, one: LayerSum, frame: bytearray) -> bytes:
        if not one.addresses:
            return b""
        first, end = one.addresses
        return bytes(frame[first:end]) + (len(self.base) - one.start).to_bytes(4) + PROTOCOLS[one.kind].to_bytes(4)

    def _cycle(self, one: LayerSum) -> tuple[int, str]:
        """Return after how many frames what a checksum covers comes again, and the path of a field that changes."""
        spans = [(one.start, self.mended.start if self.mended else len(self.base))]
        spans += [each.addresses for each in (one, self.mended) if each and each.addresses]
        return self._cycle_of(spans)

    def _cycle_of(self, spans: Sequence[tuple[int, int]]) -> tuple[int, str]:
        frames, culprit = 1, ""
        for bits in self.bits:
            if bits.takes is None or bits.takes.is_constant:
                continue
            if any(bits.at < 8 * end and bits.at + bits.width > 8 * first for first, end in spans):
                longest = not culprit or bits.takes.period > LIST_ENTRIES_MAX
                frames, culprit = math.lcm(frames, bits.takes.period), bits.path if longest else culprit
        return frames, culprit


def _write(frame: bytearray, bits: Sequence[FieldBits], number: int) -> None:
    """Put the values that fields have in a frame where they belong."""
    for one in bits:
        if one.takes is None:
            continue
        first, end = one.at // 8, (one.at + one.width + 7) // 8
        shift = 8 * end - one.at - one.width
        mask = (1 << one.width) - 1
        word = int.from_bytes(frame[first:end]) & ~(mask << shift)
        frame[first:end] = (word | (one.takes.value(number) & mask) << shift).to_bytes(end - first)
