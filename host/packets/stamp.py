# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packs and unpacks test packets of STAMP: of a sender and of a reflector, with their times, error estimates and TLVs.

Source: RFC 8762, 4.2.1 and 4.3.1 (packets), 4.6 (TWAMP Light); RFC 8972, 3 (session identifier), 4 (TLVs); RFC 4656, 4.1.2 (error
estimate); RFC 8186 (PTPv2's format).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats.reflect import (
    ERROR_PTP,
    ERROR_SYNCHRONIZED,
    STAMP_BASE,
    STAMP_LEAST,
    STAMP_TTL,
    StampTlv,
    TlvFlag,
)
from liteprobe.host.base.errors import DataError, UsageError, nearest
from liteprobe.host.base.validate import validated

__all__ = [
    "ANSWER_DTYPE",
    "NTP_EPOCH_S",
    "ErrorEstimate",
    "ReflectorPacket",
    "SenderPacket",
    "StampTlv",
    "Tlv",
    "TlvFlag",
    "nanoseconds",
    "ntp_time",
    "ptp_time",
    "requested",
    "tlv_places",
    "unpack_tlvs",
]

NTP_EPOCH_S: Final = 2_208_988_800  # From the epoch of NTP (1900) to that of POSIX and PTP (1970), in seconds.
SECONDS: Final = 1 << 32
SENDER: Final = struct.Struct(">IQHH28x")
ANSWER: Final = struct.Struct(">IQHHQIQHxxB3x")
TLV_HEAD: Final = struct.Struct(">BBH")
SEQUENCE_OFFSET, TIMESTAMP_OFFSET = 0, 4  # Of a sender's packet, in octets.
SENDER_TIMESTAMP_OFFSET: Final = 28  # Where an answer has it.
LEAST_ANSWER: Final = 38  # Octets up to the sender's error estimate: Nokia's TWAMP Light gives no more.

#: The base of an answer; T2 and T3 are each 32 bits of seconds and 32 of a fraction (NTP) or of nanoseconds (PTPv2).
ANSWER_DTYPE: Final = np.dtype([
    ("sequence", ">u4"), ("t3_seconds", ">u4"), ("t3_fraction", ">u4"), ("error", ">u2"), ("ssid", ">u2"),
    ("t2_seconds", ">u4"), ("t2_fraction", ">u4"), ("sender_sequence", ">u4"), ("sender_timestamp", ">u8"),
    ("sender_error", ">u2"), ("zero", ">u2"), ("sender_ttl", "u1"), ("zeros", "V3"),
])  # fmt: skip


# Times --------------------------------------------------------------------------------------------


def ntp_time(time_ns: int, tai_utc_s: int = 0) -> int:
    """Return a time (ns since 1970, TAI by so many seconds ahead of UTC) as the 64 bits of NTP, the nearest; eras wrap.

    >>> hex(ntp_time(500_000_000))
    '0x83aa7e8080000000'
    """
    shifted = time_ns + (NTP_EPOCH_S - tai_utc_s) * 10**9
    return (2 * shifted * SECONDS + 10**9) // (2 * 10**9) % SECONDS**2


def ptp_time(time_ns: int) -> int:
    """Return a time (ns since PTP's epoch) as the 64 bits of PTPv2's truncated format: seconds modulo 2^32, then nanoseconds."""
    seconds, rest = divmod(time_ns, 10**9)
    return seconds % SECONDS << 32 | rest


def nanoseconds(
    seconds: NDArray[np.unsignedinteger], fraction: NDArray[np.unsignedinteger], is_ptp: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return times of either format as ns since the epoch of their own format, to the nearest ns, shape (packets,).

    ``is_ptp`` says of each whether it is of PTPv2's format; seconds are those of the present 136 years, whatever they are.
    """
    wide = fraction.astype(np.uint64)
    part = np.where(is_ptp, wide, (wide * np.uint64(10**9) + np.uint64(1 << 31)) >> np.uint64(32))
    return seconds.astype(np.int64) * 10**9 + part.astype(np.int64)


# Error estimate -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ErrorEstimate:
    """Says how good the clock is that a timestamp is of, and in which format the timestamp is."""

    is_synchronized: bool = False  # With UTC, by a source outside.
    is_ptp: bool = False  # PTPv2's truncated format; else NTP's.
    scale: int = 0  # 0 to 63.
    multiplier: int = 1  # 1 to 255; 0 is not allowed.

    @classmethod
    def of(cls, word: int) -> "ErrorEstimate":
        """Return that of the 16 bits of a packet."""
        return cls(bool(word & ERROR_SYNCHRONIZED), bool(word & ERROR_PTP), word >> 8 & 0x3F, word & 0xFF)

    @property
    def word(self) -> int:
        """The 16 bits of a packet."""
        flags = ERROR_SYNCHRONIZED * self.is_synchronized | ERROR_PTP * self.is_ptp
        return flags | self.scale << 8 | self.multiplier

    @property
    def bound_ns(self) -> float | None:
        """The error at the most (ns): multiplier * 2^(scale - 32) seconds; None: the multiplier is 0, which says nothing."""
        if not self.multiplier:
            return None
        return float(Fraction(self.multiplier * 10**9 << self.scale, SECONDS))


# TLVs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tlv:
    """A type, a length and a value behind the base of a packet."""

    type: int  # One of `StampTlv`, or another.
    value: bytes = b""
    flags: int = TlvFlag.UNRECOGNIZED  # As a sender sets them; a reflector clears what it knows.

    def pack(self) -> bytes:
        """Return its octets."""
        return TLV_HEAD.pack(self.flags, self.type, len(self.value)) + self.value

    @property
    def name(self) -> str:
        """Its type as ``--tlv`` has it, or its number."""
        try:
            return StampTlv(self.type).name.lower().replace("_", "-")
        except ValueError:
            return str(self.type)


def unpack_tlvs(octets: bytes) -> tuple[list[Tlv], bytes]:
    """Return the whole TLVs that ``octets`` begin with, and what is left where one is cut: nothing, in a good packet."""
    found, at = [], 0
    while at + TLV_HEAD.size <= len(octets):
        flags, kind, length = TLV_HEAD.unpack_from(octets, at)
        end = at + TLV_HEAD.size + length
        if end > len(octets):
            break
        found.append(Tlv(kind, octets[at + TLV_HEAD.size : end], flags))
        at = end
    return found, octets[at:]


#: The value that a sender asks with; a reflector fills in what it knows where there are zeros.
ASKED: Final = {
    "location": bytes(4),
    "timestamp-information": bytes(4),
    "class-of-service": bytes(4),
    "direct-measurement": bytes(12),
    "access-report": bytes([1 << 4, 1, 0, 0]),  # A 3GPP access, which is available.
    "follow-up-telemetry": bytes(16),
}


@validated
def requested(name: str, dscp: int = 0) -> Tlv:
    """Return the TLV with which a sender asks for what ``name`` says; one of ``ASKED``.

    ``dscp``: that the sender's packets have, which class of service asks the answers to have, too. Raises UsageError where
    there is no such TLV, or none that can be asked for.
    """
    if name not in ASKED:
        raise UsageError(f"there is no TLV '{name}' to ask for: {nearest(name, tuple(ASKED))}")
    value = ASKED[name]
    if name == "class-of-service":
        value = struct.pack(">I", dscp << 26)
    return Tlv(StampTlv[name.upper().replace("-", "_")], value)


# Packets ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SenderPacket:
    """A test packet of a session-sender, unauthenticated.

    >>> packet = SenderPacket(7, ptp_time(1_500_000_000), ErrorEstimate(is_ptp=True), ssid=9)
    >>> packet.pack()[:16].hex(), SenderPacket.unpack(packet.pack()) == packet
    ('00000007000000011dcd650040010009', True)
    """

    sequence: int
    timestamp: int  # T1, 64 bits.
    error: ErrorEstimate = ErrorEstimate()
    ssid: int = 0
    tlvs: tuple[Tlv, ...] = ()
    rest: bytes = field(default=b"")  # Octets after the last whole TLV: none, in a good packet.

    def pack(self) -> bytes:
        """Return its octets, the payload of UDP."""
        base = SENDER.pack(self.sequence, self.timestamp, self.error.word, self.ssid)
        return base + b"".join(one.pack() for one in self.tlvs) + self.rest

    @classmethod
    def unpack(cls, octets: bytes) -> "SenderPacket":
        """Return the packet of a payload; one of TWAMP Light may be shorter than the base. DataError where it is no packet."""
        if len(octets) < STAMP_LEAST:
            raise DataError(f"{len(octets)} octets are no test packet: it has {STAMP_LEAST} at least")
        sequence, timestamp, error, ssid = SENDER.unpack(octets[:STAMP_BASE].ljust(STAMP_BASE, b"\0"))
        tlvs, rest = unpack_tlvs(octets[STAMP_BASE:])
        return cls(sequence, timestamp, ErrorEstimate.of(error), ssid, tuple(tlvs), rest)


@dataclass(frozen=True)
class ReflectorPacket:
    """The answer of a session-reflector, unauthenticated."""

    sequence: int  # Its own count where it is stateful, else the sender's.
    timestamp: int  # T3, 64 bits.
    error: ErrorEstimate
    ssid: int
    received: int  # T2, 64 bits.
    sender_sequence: int
    sender_timestamp: int  # T1, as it came.
    sender_error: ErrorEstimate
    sender_ttl: int = STAMP_TTL
    tlvs: tuple[Tlv, ...] = ()
    rest: bytes = b""

    def pack(self) -> bytes:
        """Return its octets, the payload of UDP."""
        base = ANSWER.pack(
            self.sequence, self.timestamp, self.error.word, self.ssid, self.received,
            self.sender_sequence, self.sender_timestamp, self.sender_error.word, self.sender_ttl,
        )  # fmt: skip
        return base + b"".join(one.pack() for one in self.tlvs) + self.rest

    @classmethod
    def unpack(cls, octets: bytes) -> "ReflectorPacket":
        """Return the answer of a payload; one of TWAMP Light may end with the sender's fields. DataError where it is none."""
        if len(octets) < LEAST_ANSWER:
            raise DataError(f"{len(octets)} octets are no answer of a reflector: it has {LEAST_ANSWER} at least")
        base = octets[:STAMP_BASE].ljust(STAMP_BASE, b"\0")
        sequence, sent, error, ssid, received, number, first, sender_error, ttl = ANSWER.unpack(base)
        tlvs, rest = unpack_tlvs(octets[STAMP_BASE:])
        made = cls(
            sequence, sent, ErrorEstimate.of(error), ssid, received, number, first, ErrorEstimate.of(sender_error), ttl
        )
        return replace(made, tlvs=tuple(tlvs), rest=rest)


def tlv_places(tlvs: Sequence[Tlv]) -> list[int]:
    """Return the octet of the payload that each TLV of a packet begins at."""
    places, at = [], STAMP_BASE
    for one in tlvs:
        places.append(at)
        at += len(one.pack())
    return places
