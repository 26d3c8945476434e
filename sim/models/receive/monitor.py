# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for a port that monitors: what becomes of each frame, up to its record.

Source: docs/design/monitor.md, docs/design/unified-header.md; Microsoft, "RSS hashing functions" and "Verifying the RSS hash
calculation" (flow hash: key and vectors); RFC 5475, 6.2; RFC 3720, B.4 (sampling, CRC-32C).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import xor

from liteprobe.cores.formats import CHANNELS, DAMAGE, FLOW_KEY, Layer3, UnifiedFlag
from liteprobe.sim.models.receive.unified import WITH_PORTS, UnifiedHeader, unified_header

# Flow hash ----------------------------------------------------------------------------------------


@cache
def windows(place: int, octet: int, key: bytes) -> int:
    """Return the XOR of those 32-bit windows of the key that begin where ``octet``, at a place of the data, has a 1."""
    bits = int.from_bytes(key) >> 8 * (len(key) - place - 5)
    return reduce(xor, (bits >> bit + 1 & 0xFFFFFFFF for bit in range(8) if octet >> bit & 1), 0)


def toeplitz(data: bytes, key: bytes = FLOW_KEY) -> int:
    """Return the XOR of those 32-bit windows of the key that begin where ``data`` has a 1."""
    return reduce(xor, (windows(place, octet, key) for place, octet in enumerate(data)), 0)


def flow_octets(header: UnifiedHeader) -> bytes:
    """Return what the hash of a frame is taken of: addresses, then ports, of the lower endpoint first.

    Ports of TCP, UDP and SCTP; fragments have none, the first one neither, so that a packet stays together.
    """
    if header.layer3 is Layer3.NONE:
        return b""
    ends = [(header.source, header.ports[:2]), (header.destination, header.ports[2:])]
    has_ports = UnifiedFlag.TRANSPORT in header.flags and header.protocol in WITH_PORTS
    if not has_ports or UnifiedFlag.FRAGMENT in header.flags:
        return b"".join(sorted(address for address, _ in ends))
    (low, low_port), (high, high_port) = sorted(ends)
    return low + high + low_port + high_port


def flow_hash(header: UnifiedHeader) -> int:
    """Return the hash of a frame's flow; 0 where it has no layer 3."""
    return toeplitz(flow_octets(header))


# Sampling -----------------------------------------------------------------------------------------


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


# Monitor ------------------------------------------------------------------------------------------


TABLE_ENTRIES = 128


@dataclass(frozen=True)
class Answer:
    """Holds a filter's answer on a frame; ``channel`` is None where nothing names one."""

    matched: bool
    passed: bool
    rule: int
    channel: int | None


@dataclass(frozen=True)
class Settings:
    """Of a port, by the names of the gateware."""

    snap_length: int = 0xFFFF
    keep_headers: bool = False
    keep_damaged: bool = False
    keep_own: bool = False
    enable: bool = True
    sample_shift: int = 0
    sample_by_hash: bool = False
    sample_seed: int = 0
    table: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """Holds the outcome of a frame, where there is space for all."""

    header: UnifiedHeader
    answer: Answer
    is_damaged: bool
    is_own: bool
    is_kept: bool
    octets: bytes
    """What is kept of the frame, filled to whole words."""


@dataclass
class MonitorModel:
    """A port: give it each frame that is classified, in order.

    Parameters
    ----------
    port : its number.
    answer : the filter.
    settings : of the port.
    mac : of the probe, six octets; None: the port knows none.
    with_hash : it hashes frames; else hashes are 0, and all goes to channel 0 but what a rule sends elsewhere.
    """

    port: int
    answer: Callable[[UnifiedHeader], Answer]
    settings: Settings
    mac: bytes | None = None
    with_hash: bool = True

    def __post_init__(self) -> None:
        """Start a count of samples."""
        self.sampler = SamplerModel(self.settings.sample_shift, self.settings.sample_by_hash and self.with_hash)

    def frame(self, octets: bytes, stamp: int, verdict: UnifiedFlag = UnifiedFlag.NONE) -> Outcome:
        """Return what becomes of a frame (without FCS)."""
        settings = self.settings
        header = unified_header(octets, self.port, stamp, verdict)
        header.hash = flow_hash(header) if self.with_hash else 0
        answer = self.answer(header)
        is_damaged = bool(header.flags & int(DAMAGE)) and not settings.keep_damaged
        is_own = len(octets) >= 14 and octets[:6] == self.mac and not settings.keep_own
        is_kept = answer.passed and not is_damaged and not is_own and settings.enable
        if is_kept:
            is_kept = self.sampler.is_chosen(packet_hash(header, header.hash, settings.sample_seed))
        header.snap_length = min(len(octets), settings.snap_length)
        header.rule = answer.rule
        entry = header.hash % TABLE_ENTRIES
        table = settings.table if self.with_hash else {}
        header.channel = table.get(entry, entry % CHANNELS) if answer.channel is None else answer.channel
        for flag, is_set in [
            (UnifiedFlag.MATCHED, answer.matched),
            (UnifiedFlag.SAMPLED, settings.sample_shift > 0),
            (UnifiedFlag.HEADER, settings.keep_headers),
        ]:
            header.flags |= flag if is_set else UnifiedFlag.NONE
        kept = octets[: header.snap_length]
        return Outcome(
            header,
            answer,
            is_damaged and answer.passed and settings.enable,
            is_own and not is_damaged and answer.passed and settings.enable,
            is_kept,
            kept + bytes(-len(kept) % 4),
        )
