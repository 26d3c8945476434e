# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out the host of a test port: what it answers, what it counts, its memory, and the reflector of STAMP.

Registers ``port<n>_host_...``, memory ``port<n>_frames``: docs/design/hosts-and-reflector.md.
"""

from enum import IntEnum, IntFlag
from typing import Final


class HostEnable(IntFlag):
    """Bits of register ``port<n>_host_enable``: what the port answers."""

    NONE = 0
    ARP = 1 << 0  # Requests for ``ipv4``.
    PING4 = 1 << 1
    ND = 1 << 2  # Neighbour solicitations for ``ipv6``.
    PING6 = 1 << 3
    STAMP4 = 1 << 4
    STAMP6 = 1 << 5
    STATEFUL = 1 << 6  # STAMP answers are counted for each session, in the place of the sender's sequence number.
    ACCESS = 1 << 7  # STAMP is for senders of the access list alone.
    TLV = 1 << 8  # What follows the base of STAMP are TLVs (RFC 8972); else it is copied as it is.


class HostCount(IntEnum):
    """Says which word of the counters of a host counts what; each wraps at 2^32 and is never cleared: take differences.

    Every good frame for the host is counted in one of them: answered, handed to the host's program, or refused for one reason.
    """

    # Answered.
    ARP = 0
    PING4 = 1
    ND = 2
    PING6 = 3
    STAMP4 = 4
    STAMP6 = 5
    # Of the mailbox.
    SENT = 6  # Frames of the host's program that were handed to the line.
    HEARD = 7  # ARP replies and neighbour advertisements for this port.
    # Refused.
    NOT_OURS = 8  # ARP and ND for another address, packets for another one by our MAC address.
    UNSUPPORTED = 9  # Fragments, IPv4 options, IPv6 extension headers.
    NO_SERVICE = 10  # Packets for us that are nothing of what is enabled.
    MALFORMED = 11  # Lengths that don't fit, a STAMP request without its fields, ND with a hop limit below 255.
    CHECKSUM = 12  # Of IPv4, ICMP, ICMPv6 or UDP; UDP over IPv6 without one.
    SOURCE = 13  # From a broadcast, multicast or zero address, from UDP port 0, or from our own address.
    AUTHENTICATED = 14  # STAMP of the authenticated mode (no timestamp and no error estimate where the base has them).
    NO_ACCESS = 15  # The sender is not on the access list.
    RATE = 16  # More STAMP and ping in a millisecond than ``rate``.
    FULL = 17  # No space for the answer: the line is busy.
    OVERRUN = 18  # Good frames, for this host or another, that found no space when they came in.


ANSWERED: Final = (HostCount.ARP, HostCount.PING4, HostCount.ND, HostCount.PING6, HostCount.STAMP4, HostCount.STAMP6)
REFUSED: Final = tuple(HostCount)[HostCount.NOT_OURS :]


def count_register(count: HostCount) -> str:
    """Return the name of the counter's register after ``port<n>_``: ``host_arp``, ``host_not_ours``."""
    return f"host_count_{count.name.lower()}"


# Memory ``port<n>_frames``, words of 32 bits; a frame's first octet is the lowest of its word. ---------------------------------

SEND_WORD: Final = 0  # The frame that ``send`` sends.
HEARD_WORD: Final = 32  # The last ARP reply or neighbour advertisement that came for the port.
MAIL_WORDS: Final = 32
MAIL_OCTETS: Final = 4 * MAIL_WORDS  # Longest frame of either; of one heard that is longer, the rest is missing.
LEAST_MAIL_OCTETS: Final = 14
COUNT_WORD: Final = 64  # `HostCount`.
COUNT_WORDS: Final = 32
ACCESS_WORD: Final = 96  # `ACCESS_ENTRIES` entries.
ACCESS_ENTRIES: Final = 4
ACCESS_ENTRY_WORDS: Final = 8
SESSION_WORD: Final = 256  # Answers of each STAMP session so far, by the low eight bits of its identifier.
SESSIONS: Final = 256
FRAMES_WORDS: Final = 512


class AccessKind(IntEnum):
    """Word 4 of an entry of the access list, bits 15..8: what it is of. Unused entries are skipped."""

    UNUSED = 0
    IPV4 = 4  # Word 0 is the address.
    IPV6 = 6  # Words 0 to 3 are the address, the first octets first.


def access_entry(address: bytes, prefix: int) -> list[int]:
    """Return the words of an entry of the access list: source addresses alike in their first ``prefix`` bits have access.

    ``address``: 4 or 16 octets. Each word has the octets of the address as a number, the first one highest.
    """
    kind = AccessKind.IPV4 if len(address) == 4 else AccessKind.IPV6
    words = [int.from_bytes(address[at : at + 4], "big") for at in range(0, len(address), 4)]
    return [*words, *[0] * (4 - len(words)), int(kind) << 8 | prefix, 0, 0, 0]


VLAN_TAGGED: Final = (
    1 << 12
)  # Of register ``vlan``: the port's host is in the VLAN of the low 12 bits; else it is untagged.

# STAMP. ------------------------------------------------------------------------------------------------------------------------

STAMP_PORT: Final = 862  # UDP; RFC 8762, section 4.1.
STAMP_BASE: Final = 44  # Octets of an unauthenticated test packet; RFC 8762, 4.2.1 and 4.3.1.
STAMP_LEAST: Final = 14  # Octets of the shortest request: sequence number, timestamp, error estimate (TWAMP Light).
STAMP_TTL: Final = 255  # Of an answer.
PING_TTL: Final = 64


class StampOffset(IntEnum):
    """Octets before each field of the answer of a reflector, in the payload of UDP; RFC 8762, 4.3.1, and RFC 8972, section 3."""

    SEQUENCE = 0
    TIMESTAMP = 4  # T3: seconds since the PTP epoch, then nanoseconds, 32 bits each.
    ERROR = 12
    SSID = 14
    RECEIVED = 16  # T2.
    SENDER_SEQUENCE = 24
    SENDER_TIMESTAMP = 28
    SENDER_ERROR = 36
    SENDER_TTL = 40


#: Error estimate (RFC 4656, 4.1.2; RFC 8186): S, Z (PTPv2's format), scale in bits 13..8, multiplier in 7..0.
ERROR_SYNCHRONIZED: Final = 1 << 15
ERROR_PTP: Final = 1 << 14
ERROR_UNKNOWN: Final = ERROR_PTP | 0x3FFF


def error_estimate(bound_ns: float | None, is_synchronized: bool) -> int:
    """Return the error estimate that is not below a bound: multiplier * 2^(scale - 32) seconds; None: unknown, the largest."""
    if bound_ns is None:
        return ERROR_UNKNOWN | ERROR_SYNCHRONIZED * is_synchronized
    units, scale = max(1, -int(-bound_ns * 2**32 // 10**9)), 0
    while units > 255:
        units, scale = -(-units // 2), scale + 1
    if scale > 63:
        return ERROR_UNKNOWN | ERROR_SYNCHRONIZED * is_synchronized
    return ERROR_SYNCHRONIZED * is_synchronized | ERROR_PTP | scale << 8 | units


class StampTlv(IntEnum):
    """Types of TLVs; RFC 8972, 5.1."""

    EXTRA_PADDING = 1
    LOCATION = 2
    TIMESTAMP_INFORMATION = 3
    CLASS_OF_SERVICE = 4
    DIRECT_MEASUREMENT = 5
    ACCESS_REPORT = 6
    FOLLOW_UP_TELEMETRY = 7
    HMAC = 8


class TlvFlag(IntFlag):
    """First octet of a TLV; RFC 8972, section 4."""

    UNRECOGNIZED = 0x80
    MALFORMED = 0x40
    INTEGRITY = 0x20
