# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lays out a monitor's unified header of a frame, words of the filter's tables, records, blocks and channels of a capture."""

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np


# The unified header of a frame, and the hash of its flow. ---------------------------------------------

UNIFIED_WORDS: Final = 32  # 32-bit words, octet 0 in bits 7..0.
UNIFIED_OCTETS: Final = 4 * UNIFIED_WORDS
#: What the parser took out of a frame. Fields that are copied from it stand as on the wire (">").
UNIFIED_DTYPE: Final = np.dtype(
    [
        ("stamp", "<u8"),
        ("length", "<u2"),
        ("snap_length", "<u2"),
        ("flags", "<u2"),
        ("rule", "u1"),
        ("way", "u1"),
        ("ethertype", "<u2"),
        ("protocol", "u1"),
        ("layers", "u1"),
        ("tag_kinds", "u1"),
        ("reserved", "u1"),
        ("extensions", "u1", 2),
        ("hash", "<u4"),
        ("sequence", ">u4"),
        ("tags", [("tci", ">u2"), ("type", ">u2")], 4),
        ("labels", ">u4", 4),
        ("source", "u1", 16),
        ("destination", "u1", 16),
        ("source_port", ">u2"),
        ("destination_port", ">u2"),
        ("ip", ">u4", 3),
        ("destination_mac", "u1", 6),
        ("source_mac", "u1", 6),
        ("detail", ">u2", 2),
    ]
)
#: Where each field is: word of the unified header, and octet in it.
UNIFIED_PLACES: Final = {name: divmod(int(field[1]), 4) for name, field in (UNIFIED_DTYPE.fields or {}).items()}

TAGS_MAX: Final = 4  # VLAN tags that are taken.
LABELS_MAX: Final = 4  # MPLS labels.
EXTENSIONS_MAX: Final = 2  # Extension headers of IPv6 that are walked through.
EXTENSION: Final = 0x80  # Beside the number of an extension header: number 0 (hop by hop) is one, too.


class IpProtocol(IntEnum):
    """Numbers of IP, next header or protocol, that the parser walks through or takes fields of."""

    HOP_BY_HOP = 0
    ICMP = 1
    TCP = 6
    UDP = 17
    ROUTING = 43
    FRAGMENT = 44
    AUTHENTICATION = 51
    ICMPV6 = 58
    DESTINATION_OPTIONS = 60
    SCTP = 132


#: Extension headers of IPv6 that the parser walks through.
EXTENSION_HEADERS: Final = (
    IpProtocol.HOP_BY_HOP,
    IpProtocol.ROUTING,
    IpProtocol.FRAGMENT,
    IpProtocol.AUTHENTICATION,
    IpProtocol.DESTINATION_OPTIONS,
)


class UnifiedFlag(IntFlag):
    """Bits of ``flags`` in a unified header; errors of the frame as in a record."""

    NONE = 0
    FCS_ERROR = 1 << 0
    LENGTH_ERROR = 1 << 1  # IP says more octets than the frame has, or fewer than its own header.
    RUNT = 1 << 2
    GIANT = 1 << 3
    TRUNCATED = 1 << 4  # The frame, or its IP packet, ends within a header.
    UNPARSED = 1 << 5  # The walk ended before the headers did: cut, malformed or beyond a limit.
    FRAGMENT = 1 << 6  # Of an IP packet in several: fragment offset or "more" are not 0.
    SYMBOL_ERROR = 1 << 7
    FIRST_FRAGMENT = 1 << 8  # And its offset is 0.
    TRANSPORT = 1 << 9  # Ports, or ICMP type and code, are there.
    TCP = 1 << 10  # ``detail`` and ``sequence`` are TCP's.
    PROBE = 1 << 11  # ``detail`` and ``sequence`` are a probe's.
    MATCHED = 1 << 12  # ``rule`` matched.
    SAMPLED = 1 << 13  # Others like it were left out.
    HEADER = 1 << 14  # In a record: all words of the unified header, not the first four alone.
    GAP = 1 << 15  # In a record: it stands for frames that were dropped here.


class Layer3(IntEnum):
    """Bits 0 and 1 of ``layers``; the tags are counted in bits 2 to 4, the labels in bits 5 to 7."""

    NONE = 0
    ARP = 1
    IPV4 = 2
    IPV6 = 3


#: ``tag_kinds``: two bits a tag, the outermost in bits 0 and 1; 0 is not a tag.
TAG_KINDS: Final = {0x8100: 1, 0x88A8: 2, 0x9100: 3}
LABEL_KINDS: Final = (0x8847, 0x8848)  # Ethertypes of MPLS.
NO_RULE: Final = 0xFF  # ``rule`` where nothing was asked, or what matches is dropped.
DESTINATION_RULES: Final = 32  # ``rule`` of the first destination row; source rows from 0 on.
TERM_RULES: Final = 64  # ``rule`` of the first term.

#: Toeplitz key of the flow hash (Microsoft's, of the verification suite).
FLOW_KEY: Final = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")


# Words of the filter's tables. ------------------------------------------------------------------------

FILTER_WORDS: Final = 0x2000
FILTER_ROWS: Final = 32  # Of each of the two tables of addresses: source and destination.
FILTER_TERMS: Final = 8
#: Sets of 65536 ports, source and destination: port n is bit n mod 32 of word n / 32.
FILTER_PORTS: Final = (0x0000, 0x0800)
#: Rows of addresses, source and destination: terms (7..0; 0: unused), channel (10..8), whether it names that channel (11),
#: whether its prefix is IPv4 (12).
FILTER_ROW_WORDS: Final = (0x1100, 0x1120)
FILTER_ROW_NAMES_BIT: Final = 11
FILTER_ROW_IPV4_BIT: Final = 12
#: Their prefixes, source and destination: 16 words for each half of an octet, in the order of the wire, by its value. Bit r: an
#: address that has this value there may match row r. All do after the prefix.
FILTER_VECTORS: Final = (0x1400, 0x1600)
#: Protocol n is octet n mod 4 of word n / 4; bit t: it is in the set of term t.
FILTER_PROTOCOLS: Final = 0x1140
#: VLAN id n is bit n mod 32 of word n / 32.
FILTER_VLANS: Final = 0x1180
#: Counters: of rows of each table, of terms.
FILTER_ROW_HITS: Final = (0x1800, 0x1820)
FILTER_TERM_HITS: Final = 0x1840
FILTER_TERM_WORDS: Final = 0x1848
#: Limits of MACs, source and destination, least and most: four words each, 16 bits in each of three, the lowest first.
FILTER_MACS: Final = ((0x1850, 0x1854), (0x1858, 0x185C))


class FilterCondition(IntEnum):
    """Names what a term asks of a set."""

    IGNORED = 0
    IN = 1
    NOT_IN = 2


#: The lowest bit of each condition in the word of a term, in the order of their bits.
FILTER_CONDITIONS: Final = {
    "source": 0,
    "destination": 2,
    "protocol": 4,
    "source_port": 6,
    "destination_port": 8,
    "vlan": 10,
    "source_mac": 12,
    "destination_mac": 14,
}
FILTER_KINDS_BIT: Final = 16  # Four bits, by `Layer3`.
FILTER_PROBE_PORTS_BIT: Final = 20  # Two bits.
FILTER_NAMES_BIT: Final = 22
FILTER_CHANNEL_BIT: Final = 23  # Three bits.
FILTER_ENABLED_BIT: Final = 26


class FilterControl(IntFlag):
    """Bits of ``filter_control``."""

    NONE = 0
    ENABLE = 1 << 0  # Else every frame passes, and nothing is counted.
    DROP = 1 << 1  # What matches is dropped; else what doesn't.


# Capture: what leaves the board, see docs/design/monitor.md.

RECORD_HEAD_WORDS: Final = 4  # Of the unified header, that every record has.
CHANNELS: Final = 8
BLOCK_WORDS: Final = 368  # With its header; one block fits a UDP datagram.
BLOCK_HEADER_WORDS: Final = 4
BLOCK_MAGIC: Final = 0x4C50  # "LP"
BLOCK_VERSION: Final = 1
NO_RECORD: Final = 0xFFFF  # ``first`` of a block in which no record begins.
#: The header of a block. ``kind``: channel in bits 11..8, version in bits 15..12.
BLOCK_DTYPE: Final = np.dtype(
    [("number", "<u4"), ("words", "<u2"), ("first", "<u2"), ("dropped", "<u4"), ("kind", "<u2"), ("magic", "<u2")]
)

TRIGGER_WANTED: Final = 1 << 0  # Of the register ``trigger`` of the capture.
TRIGGER_BEFORE_BIT: Final = 1  # Two bits: quarters of the blocks, less one.
TRIGGER_CHANNELS_BIT: Final = 8


class TriggerState(IntFlag):
    """Of the register ``trigger_state``."""

    NONE = 0
    WAITS = 1 << 0
    FIRED = 1 << 1


CHANNEL_WORDS: Final = 16  # Of the bus memory ``capture_channels``, a channel.


class ChannelWord(IntEnum):
    """Words of a channel in ``capture_channels``; those after ``TAKEN`` are the gateware's own."""

    BASE = 0
    BLOCKS = 1
    READ = 2
    SENT = 3
    WRITTEN = 4
    DROPPED = 5
    TAKEN = 6
    NUMBER = 7  # Blocks closed, whether they are in the memory yet or not.
    POSITION = 8  # In the open block.
    REPORTED = 9  # Drops that gap records have reported.
    STAMP_LOW = 10  # Of the first drop that none has reported.
    STAMP_HIGH = 11
    OPENED = 12  # When the first word came into the open block (us).
