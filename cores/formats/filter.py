# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Words of the filter's tables."""

from enum import IntEnum, IntFlag
from typing import Final

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
#: address that has this value there may match row r. All do behind the prefix.
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
    """What a term asks of a set."""

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
