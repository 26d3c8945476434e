# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for the filter: from the words of its memory and what a frame is to what becomes of the frame.

Source: docs/design/monitor.md ("Filter").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from liteprobe.cores.formats import (
    DESTINATION_RULES,
    FILTER_CHANNEL_BIT,
    FILTER_CONDITIONS,
    FILTER_ENABLED_BIT,
    FILTER_KINDS_BIT,
    FILTER_MACS,
    FILTER_NAMES_BIT,
    FILTER_PORTS,
    FILTER_PROBE_PORTS_BIT,
    FILTER_PROTOCOLS,
    FILTER_ROW_IPV4_BIT,
    FILTER_ROW_NAMES_BIT,
    FILTER_ROW_WORDS,
    FILTER_ROWS,
    FILTER_TERM_WORDS,
    FILTER_TERMS,
    FILTER_VECTORS,
    FILTER_VLANS,
    NO_RULE,
    TERM_RULES,
    FilterCondition,
    Layer3,
    UnifiedFlag,
)
from liteprobe.sim.models.receive.unified import WITH_PORTS, UnifiedHeader

SIDES = ("source", "destination")


@dataclass(frozen=True)
class FilterKey:
    """Holds what the filter asks of a frame; ``None`` for what it hasn't. Both of a pair are there, or neither is."""

    layer3: Layer3 = Layer3.NONE
    addresses: tuple[bytes, bytes] | None = None  # Source, destination: 4 or 16 octets.
    protocol: int | None = None
    ports: tuple[int, int] | None = None
    vlan: int | None = None
    macs: tuple[int, int] | None = None
    probe_port: int = 0


def key_of(header: UnifiedHeader) -> FilterKey:
    """Return the key of a frame."""
    has_addresses = header.layer3 is not Layer3.NONE
    has_ports = UnifiedFlag.TRANSPORT in header.flags and header.protocol in WITH_PORTS
    destination, source = int.from_bytes(header.macs[:6]), int.from_bytes(header.macs[6:])
    return FilterKey(
        layer3=header.layer3,
        addresses=(header.source, header.destination) if has_addresses else None,
        protocol=header.protocol if header.layer3 in (Layer3.IPV4, Layer3.IPV6) else None,
        ports=(int.from_bytes(header.ports[:2]), int.from_bytes(header.ports[2:])) if has_ports else None,
        vlan=int.from_bytes(header.tags[0][:2]) & 0xFFF if header.tags else None,
        macs=(source, destination) if header.macs else None,
        probe_port=header.port,
    )


@dataclass(frozen=True)
class Row:
    """A row of a table of addresses, but for its prefix."""

    is_ipv4: bool
    terms: int
    channel: int | None


@dataclass(frozen=True)
class Decision:
    """Decides on a frame; ``channel`` is None where the filter names none."""

    passed: bool
    matched: bool
    rule: int
    channel: int | None
    rows: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    term: int | None = None


@dataclass
class FilterModel:
    """The filter as the words of its memory say; words that are not there are 0."""

    words: Mapping[int, int] = field(default_factory=dict)
    enable: bool = True
    drop: bool = False

    def __post_init__(self) -> None:
        self.tables = [[self.row(side, number) for number in range(FILTER_ROWS)] for side in range(2)]
        self.used = [[(number, row) for number, row in enumerate(table) if row.terms] for table in self.tables]
        self.row_hits = [[0] * FILTER_ROWS, [0] * FILTER_ROWS]
        self.term_hits = [0] * FILTER_TERMS

    def word(self, address: int) -> int:
        """Return a word."""
        return self.words.get(address, 0)

    def row(self, side: int, number: int) -> Row:
        """Return a row of the table of source (0) or destination (1) addresses."""
        word = self.word(FILTER_ROW_WORDS[side] + number)
        return Row(
            is_ipv4=bool(word >> FILTER_ROW_IPV4_BIT & 1),
            terms=word & (1 << FILTER_TERMS) - 1,
            channel=word >> FILTER_TERMS & 7 if word >> FILTER_ROW_NAMES_BIT & 1 else None,
        )

    def matching(self, side: int, address: bytes) -> tuple[int, ...]:
        """Return the numbers of the rows that an address matches."""
        vector = (1 << FILTER_ROWS) - 1
        for place, half in enumerate(address.ljust(16, b"\0").hex()):
            vector &= self.word(FILTER_VECTORS[side] + 16 * place + int(half, 16))
        is_ipv4 = len(address) == 4
        return tuple(number for number, row in self.used[side] if vector >> number & 1 and row.is_ipv4 == is_ipv4)

    def in_set(self, first: int, number: int) -> bool:
        """Tell whether a number is in the set of bits from word ``first`` on."""
        return bool(self.word(first + number // 32) >> number % 32 & 1)

    def in_range(self, side: int, mac: int) -> bool:
        """Tell whether a MAC is within its limits."""
        least, most = (sum(self.word(first + part) << 16 * part for part in range(3)) for first in FILTER_MACS[side])
        return least <= mac <= most

    def holds(self, term: int, key: FilterKey, rows: tuple[tuple[int, ...], ...]) -> bool:
        """Tell whether a term holds, where these rows match."""
        word = self.word(FILTER_TERM_WORDS + term)
        if not word >> FILTER_ENABLED_BIT & 1:
            return False
        if not word >> FILTER_KINDS_BIT + key.layer3 & 1 or not word >> FILTER_PROBE_PORTS_BIT + key.probe_port & 1:
            return False
        sets = {
            "protocol": key.protocol is not None
            and bool(self.word(FILTER_PROTOCOLS + key.protocol // 4) >> 8 * (key.protocol % 4) + term & 1),
            "vlan": key.vlan is not None and self.in_set(FILTER_VLANS, key.vlan),
        }
        for side, name in enumerate(SIDES):
            sets[name] = any(self.tables[side][row].terms >> term & 1 for row in rows[side])
            sets[f"{name}_port"] = key.ports is not None and self.in_set(FILTER_PORTS[side], key.ports[side])
            sets[f"{name}_mac"] = key.macs is not None and self.in_range(side, key.macs[side])
        asked = {name: word >> bit & 3 for name, bit in FILTER_CONDITIONS.items()}
        return all(
            asked[name] == FilterCondition.IGNORED or (asked[name] == FilterCondition.IN) == is_in
            for name, is_in in sets.items()
        )

    def decide(self, key: FilterKey) -> Decision:
        """Return what becomes of a frame."""
        if not self.enable:
            return Decision(passed=True, matched=True, rule=NO_RULE, channel=None)
        source, destination = (self.matching(side, key.addresses[side]) if key.addresses else () for side in range(2))
        rows = (source, destination)
        asked = any(self.word(FILTER_TERM_WORDS + term) >> FILTER_ENABLED_BIT & 1 for term in range(FILTER_TERMS))
        term = next((term for term in range(FILTER_TERMS) if self.holds(term, key, rows)), None)
        rule, matched = NO_RULE, not asked or term is not None
        if term is not None and not self.drop:
            rule = (*source, *(DESTINATION_RULES + row for row in destination), TERM_RULES + term)[0]
        channels = [self.tables[side][row].channel for side in range(2) for row in rows[side]]
        if term is not None:
            word = self.word(FILTER_TERM_WORDS + term)
            channels.append(word >> FILTER_CHANNEL_BIT & 7 if word >> FILTER_NAMES_BIT & 1 else None)
        named = [channel for channel in channels if channel is not None]
        return Decision(matched != self.drop, matched, rule, named[0] if named else None, rows, term)

    def count(self, decision: Decision) -> None:
        """Count what a frame has hit."""
        for side, rows in enumerate(decision.rows):
            for row in rows:
                self.row_hits[side][row] += 1
        if decision.term is not None:
            self.term_hits[decision.term] += 1
