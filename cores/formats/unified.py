# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The unified header of a frame, and the hash of its flow."""

from enum import IntEnum, IntFlag
from typing import Final

import numpy as np

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


class Protocol(IntEnum):
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
    Protocol.HOP_BY_HOP,
    Protocol.ROUTING,
    Protocol.FRAGMENT,
    Protocol.AUTHENTICATION,
    Protocol.DESTINATION_OPTIONS,
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
