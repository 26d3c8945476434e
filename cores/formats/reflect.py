# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out the host of a test port: what it answers, what it counts, its memory, and the reflector of STAMP.

Registers ``port<n>_host_...``, memory ``port<n>_frames``: docs/design/hosts-and-reflector.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
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
    TAGGED = 1 << 9  # Only frames with the tag of the host's VLAN are for it; else untagged ones alone.
    INFORMATION = 1 << 10  # The TLV timestamp information is known.


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


# Memory ``port<n>_frames``, words of 32 bits; the first octet of a frame or a field is the highest of its word. -----------------

# Frames lie two octets later than their words begin, as what their headers have is whole words then: the first one has two octets.
SEND_WORD: Final = 0  # The frame that ``send`` sends.
HEARD_WORD: Final = 32  # The last ARP reply or neighbour advertisement that came for the port.
MAIL_WORDS: Final = 32
MAIL_PAD: Final = 2
MAIL_OCTETS: Final = 4 * MAIL_WORDS - MAIL_PAD  # Longest frame of either; of one heard that is longer, the rest is missing.
LEAST_MAIL_OCTETS: Final = 14
COUNT_WORD: Final = 64  # `HostCount`.
COUNT_WORDS: Final = 24
ACCESS_ENTRIES: Final = 4  # Of IPv4 and of IPv6, each.
ACCESS_WORD: Final = 88
ACCESS4_WORD: Final = ACCESS_WORD  # Mask and address of each.
ACCESS6_WORD: Final = 96  # Masks and addresses of each, word by word.
PAGE_WORD: Final = 128  # What the lines of a request are compared with, and what lines of an answer have: `Page` by `PAGE_LINES`.
PAGE_LINES: Final = 16
SESSION_WORD: Final = 256  # Answers of each STAMP session so far, by the low eight bits of its identifier.
RECEIVED_WORD: Final = 512  # Likewise its requests, those among them that got no answer for `RATE` or `FULL`.
SESSIONS: Final = 256
FRAMES_WORDS: Final = 1024


def mail_words(frame: bytes) -> list[int]:
    """Return the words of a frame of the mailbox."""
    octets = bytes(MAIL_PAD) + frame
    padded = octets + bytes(-len(octets) % 4)
    return [int.from_bytes(padded[at : at + 4]) for at in range(0, len(padded), 4)]


def mail_frame(words: Iterable[int]) -> bytes:
    """Return the frame in words of the mailbox, and what is left in them."""
    return b"".join(int(word).to_bytes(4) for word in words)[MAIL_PAD:]


class Page(IntEnum):
    """Says which part of a frame a line, one of the words that begin two octets before it, is of; its lines count from 0.

    An IP header or ARP begins in line `FIRST_LINE` of its page, a transport in line 0 of its own.
    """

    LINK = 0
    ARP = 1
    IPV4 = 2
    IPV6 = 3
    UDP = 4
    ICMP = 5  # And ICMPv6 but neighbour discovery.
    ND = 6
    OTHER = 7  # Its words in the memory are constants of answers.


FIRST_LINE: Final = 4
TAG_LINE: Final = 5  # Of page LINK: the VLAN's tag, from its identifier on.
INFORMATION_LINES: Final = (14, 15)  # Of page UDP: those in which TLVs have values.


def line_word(page: Page, line: int) -> int:
    """Return the word of the memory that goes with a line."""
    return PAGE_WORD + PAGE_LINES * page + line


class Own(IntEnum):
    """Says which word of the memory is a constant of answers, or what its host writes or the gateware keeps for them."""

    ZERO = line_word(Page.OTHER, 0)
    ARP_REPLY = line_word(Page.OTHER, 1)
    TTL_PING = line_word(Page.OTHER, 2)  # TTL and protocol of IPv4 in its high half; by one more
    TTL_STAMP = line_word(Page.OTHER, 3)  # of STAMP, whose shortest packet's length is in the low half.
    HOPS_PING = line_word(Page.OTHER, 4)  # Next header and hop limit of IPv6, in its low half; by one more
    HOPS_STAMP = line_word(Page.OTHER, 5)  # of STAMP, whose shortest length is in the high half; by two more
    HOPS_ND = line_word(Page.OTHER, 6)  # of ND.
    SHORT = line_word(Page.OTHER, 7)  # Length of the shortest STAMP in UDP, in the high half.
    ECHO4 = line_word(Page.OTHER, 8)  # Type of an echo reply; by one more
    ECHO6 = line_word(Page.OTHER, 9)  # of ICMPv6.
    ADVERTISEMENT = line_word(Page.OTHER, 10)
    ND_FLAGS = line_word(Page.OTHER, 11)
    OPTION = line_word(Page.OTHER, 12)  # Option of the target's MAC address, and the first half of that.
    ERROR = line_word(Page.OTHER, 13)  # Error estimate, in the high half; the low one is 0.
    SECOND = line_word(Page.OTHER, 14)  # T2.
    NANOSECOND = line_word(Page.OTHER, 15)
    # Of checksums.
    SUM_TTL_PING = line_word(Page.LINK, 6)
    SUM_TTL_STAMP = line_word(Page.LINK, 7)
    SUM_SHORT_HEADER = line_word(Page.LINK, 8)
    SUM_ECHO6 = line_word(Page.LINK, 9)
    SUM_STAMP6 = line_word(Page.LINK, 10)
    SUM_ND = line_word(Page.LINK, 11)
    SUM_OPTION = line_word(Page.LINK, 12)
    SUM_SHORT = line_word(Page.LINK, 13)
    UDP = line_word(Page.LINK, 14)  # Its number, in the low half.
    SEQUENCE = line_word(Page.LINK, 15)  # Of the session.


def access_words(entries: Iterable[tuple[bytes, int]]) -> list[int]:
    """Return the words of the access list, from `ACCESS_WORD` on.

    ``entries``: addresses of 4 or 16 octets, each with the bits of its prefix in which those who have access are like it;
    ValueError where they are more than `ACCESS_ENTRIES` of one kind.
    """
    places = {4: ACCESS4_WORD, 16: ACCESS6_WORD}
    found  = [place % 2 for place in range(PAGE_WORD)]  # No address is 1 where none of its bits counts.
    ends = {size: first + ACCESS_ENTRIES * size // 2 for size, first in places.items()}
    for address, prefix in entries:
        if (place := places[size := len(address)]) == ends[size]:
            raise ValueError(f"the access list has {ACCESS_ENTRIES} entries of a kind, not more: leave some out")
        mask = (1 << 8 * size) - (1 << 8 * size - prefix)
        for at in range(0, size, 4):
            part = mask.to_bytes(size)[at : at + 4]
            found[place] = int.from_bytes(part)
            found[place + 1] = int.from_bytes(part) & int.from_bytes(address[at : at + 4])
            place += 2
        places[size] = place
    return found[ACCESS_WORD:]


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


@dataclass(frozen=True)
class HostWords:
    """Says what a host on a test port is, in the words of its memory.

    Attributes
    ----------
    mac, ipv4, ipv6 : 6, 4 and 16 octets
    vlan : identifier of the VLAN
    error_estimate : as of `error_estimate()`
    information : value of the TLV timestamp information, 32 bits, its first octet highest
    """

    mac: bytes
    ipv4: bytes = bytes(4)
    ipv6: bytes = bytes(16)
    vlan: int = 0
    stamp_port: int = STAMP_PORT
    error_estimate: int = ERROR_UNKNOWN
    information: int = 0

    @property
    def words(self) -> list[int]:
        """The words, from `PAGE_WORD` on, constants among them."""
        mac, ipv4 = int.from_bytes(self.mac), int.from_bytes(self.ipv4)
        parts = [int.from_bytes(self.ipv6[at : at + 4]) for at in range(0, 16, 4)]
        own_sum = _sum(self.ipv6)
        lines = {
            Page.LINK: {0: mac >> 32, 1: mac & 0xFFFFFFFF, 2: mac >> 16, 3: (mac & 0xFFFF) << 16 | VLAN_TYPE},
            Page.ARP: {4: 0x00010800, 5: 0x06040001, 7: ipv4 >> 16, 8: (ipv4 & 0xFFFF) << 16, 10: ipv4},
            Page.IPV4: {7: ipv4, 8: ipv4},
            Page.IPV6: dict(enumerate([*parts, *parts], 6)),
            Page.UDP: {0: self.stamp_port, **dict.fromkeys(INFORMATION_LINES, self.information)},
            Page.ND: {**dict(enumerate(parts, 2)), 6: 0x01010000},
        }
        lines[Page.LINK][TAG_LINE] = self.vlan << 16
        own: dict[int, int] = {
            Own.OPTION: 0x02010000 | mac >> 32,
            Own.ERROR: self.error_estimate << 16,
            Own.SUM_ECHO6: own_sum << 16 | ICMPV6 + 0x8100,
            Own.SUM_STAMP6: own_sum << 16 | UDP,
            Own.SUM_ND: own_sum << 16 | ICMPV6 + 0x8800 + 0x6000,
            Own.SUM_OPTION: _sum(self.mac) << 16 | 0x0201,
        }
        known = {line_word(page, line): word for page, of in lines.items() for line, word in of.items()} | own | CONSTANTS
        return [known.get(place, 0) for place in range(PAGE_WORD, PAGE_WORD + PAGE_LINES * len(Page))]


SHORT_UDP: Final = 8 + STAMP_BASE  # Octets of UDP of the shortest answer of STAMP.
VLAN_TYPE, ICMP, UDP, ICMPV6 = 0x8100, 1, 17, 58
#: Words of the memory that nobody writes.
CONSTANTS: Final[dict[int, int]] = {
    Own.ZERO: 0,
    Own.ARP_REPLY: 2,
    Own.TTL_PING: (PING_TTL << 8 | ICMP) << 16,
    Own.TTL_STAMP: (STAMP_TTL << 8 | UDP) << 16 | 20 + SHORT_UDP,
    Own.HOPS_PING: ICMPV6 << 8 | PING_TTL,
    Own.HOPS_STAMP: SHORT_UDP << 16 | UDP << 8 | STAMP_TTL,
    Own.HOPS_ND: ICMPV6 << 8 | STAMP_TTL,
    Own.SHORT: SHORT_UDP << 16,
    Own.ECHO4: 0,
    Own.ECHO6: 0x8100 << 16,
    Own.ADVERTISEMENT: 0x8800 << 16,
    Own.ND_FLAGS: 0x6000 << 16,
    Own.SUM_TTL_PING: (0xFFFF ^ (PING_TTL << 8 | ICMP)) << 16,
    Own.SUM_TTL_STAMP: (0xFFFF ^ (STAMP_TTL << 8 | UDP)) << 16,
    Own.SUM_SHORT_HEADER: (0xFFFF ^ (STAMP_TTL << 8 | UDP)) << 16 | 0xFFFF ^ 20 + SHORT_UDP,
    Own.SUM_SHORT: SHORT_UDP << 16 | SHORT_UDP,
    Own.UDP: UDP,
}


def _sum(octets: bytes) -> int:
    """Return the one's complement sum of octets, an even number of them."""
    total = sum(int.from_bytes(octets[at : at + 2]) for at in range(0, len(octets), 2))
    return total and (total - 1) % 0xFFFF + 1


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
