# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Fits the boxes of an expression into the tables of the probe (terms, rows, sets).

Source: docs/design/monitor.md ("Filter").
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, summarize_address_range

import numpy as np
from numpy.typing import NDArray

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
    FILTER_ROW_HITS,
    FILTER_ROW_IPV4_BIT,
    FILTER_ROW_WORDS,
    FILTER_ROWS,
    FILTER_TERM_HITS,
    FILTER_TERM_WORDS,
    FILTER_TERMS,
    FILTER_VECTORS,
    FILTER_VLANS,
    TERM_RULES,
    FilterCondition,
    FilterControl,
)
from liteprobe.host.packets.filter.boxes import (
    ADDRESSES,
    EVERY,
    FIELDS,
    IPV6_FIRST,
    SIZES,
    Box,
    FilterDoesNotFit,
    Numbers,
)

Network = IPv4Network | IPv6Network
SIDES = ("source", "destination")
SHARED = ("source_port", "destination_port", "vlan", "source_mac", "destination_mac")
ALL_PROBE_PORTS = 3
PORT_WORDS = 0x800  # Of each set of ports.
VECTOR_WORDS = 0x200  # Of the prefixes of each table of addresses.
#: What is written of the memory, as first word and count; sets of ports and prefixes only where they are asked for.
TABLE_BLOCK = (FILTER_ROW_WORDS[0], FILTER_VLANS + 128 - FILTER_ROW_WORDS[0])
TERM_BLOCK = (FILTER_TERM_WORDS, FILTER_MACS[1][1] + 4 - FILTER_TERM_WORDS)
HIT_BLOCK = (FILTER_ROW_HITS[0], FILTER_TERM_HITS + FILTER_TERMS - FILTER_ROW_HITS[0])


@dataclass
class Tables:
    """Describes what the tables of the probe hold."""

    conditions: list[dict[str, FilterCondition]] = field(default_factory=list)  # Of each term, of each field.
    kinds: list[int] = field(default_factory=list)  # Of each term, by `Layer3`.
    #: Networks of source and destination, each with a bit for each term that asks for it.
    rows: tuple[dict[Network, int], dict[Network, int]] = field(default_factory=lambda: ({}, {}))
    shared: dict[str, Numbers] = field(default_factory=dict)  # Sets that all terms share.
    protocols: list[Numbers] = field(default_factory=list)  # Of each term.


def asked(name: str, numbers: Numbers) -> tuple[FilterCondition, Numbers]:
    """Return the condition, and the set without "none", that say what a field of a box may be."""
    none = SIZES[name] - 1
    if numbers.is_every:
        return FilterCondition.IGNORED, Numbers(none, ())
    condition = FilterCondition.NOT_IN if none in numbers else FilterCondition.IN
    chosen = ~numbers if condition is FilterCondition.NOT_IN else numbers
    return condition, Numbers(none, chosen.ranges)


def networks(numbers: Numbers) -> list[Network]:
    """Return the fewest networks that are a set of addresses, the longest prefixes first."""
    found: list[Network] = []
    four, six = ((0, IPV6_FIRST - 1),), ((IPV6_FIRST, ADDRESSES - 1),)
    for low, high in (numbers & Numbers(numbers.size, four)).ranges:
        found += summarize_address_range(IPv4Address(low), IPv4Address(high))
    for low, high in (numbers & Numbers(numbers.size, six)).ranges:
        found += summarize_address_range(IPv6Address(low - IPV6_FIRST), IPv6Address(high - IPV6_FIRST))
    return found


def shown(name: str, numbers: Numbers) -> str:
    """Return a set in words."""
    form = "{:012x}" if name.endswith("_mac") else "{}"
    parts = [form.format(low) + ("-" + form.format(high) if high > low else "") for low, high in numbers.ranges]
    return ", ".join([*parts[:4], "..."] if len(parts) > 4 else parts) or "none"


def share(tables: Tables, name: str, numbers: Numbers, text: str) -> None:
    """Put a set that all terms share into the tables."""
    what = name.replace("_", " ").replace("mac", "MAC").replace("vlan", "VLAN")
    before = tables.shared.setdefault(name, numbers)
    if before != numbers:
        reason = f"all its terms share one set of {what}s, and this asks for {shown(name, before)} and for {shown(name, numbers)}"
        raise FilterDoesNotFit(text, reason)
    if name.endswith("_mac") and len(numbers.ranges) > 1:
        raise FilterDoesNotFit(text, f"it holds one range of {what}s, and this asks for {shown(name, numbers)}")


def fit(boxes: tuple[Box, ...], text: str) -> Tables:
    """Return the tables that hold an expression.

    Raises FilterDoesNotFit when it needs more terms or rows than there are, or several of what there is one of.
    """
    tables = Tables()
    if len(boxes) > FILTER_TERMS:
        raise FilterDoesNotFit(text, f"it is {len(boxes)} cases, and there are {FILTER_TERMS} terms")
    # An expression that nothing can match: a term that never holds.
    for number, one in enumerate(boxes or (tuple(Numbers(whole.size, ()) for whole in EVERY),)):
        fields = dict(zip(FIELDS, one, strict=True))
        conditions = {}
        for name, numbers in fields.items():
            if name == "kind":
                continue
            conditions[name], chosen = asked(name, numbers) if boxes else (FilterCondition.IGNORED, Numbers(0, ()))
            if conditions[name] is FilterCondition.IGNORED:
                continue
            if name in SHARED:
                share(tables, name, chosen, text)
            elif name in SIDES:
                rows = tables.rows[SIDES.index(name)]
                for network in networks(chosen):
                    rows[network] = rows.get(network, 0) | 1 << number
        tables.conditions.append(conditions)
        tables.kinds.append(sum(1 << kind for kind in range(SIZES["kind"]) if kind in fields["kind"]))
        tables.protocols.append(asked("protocol", fields["protocol"])[1])
    for side, rows in zip(SIDES, tables.rows, strict=True):
        if len(rows) > FILTER_ROWS:
            raise FilterDoesNotFit(text, f"it is {len(rows)} {side} prefixes, and there are {FILTER_ROWS} rows")
    return tables


# Words ---------------------------------------------------------------------------------------------


def bits(first: int, numbers: Numbers) -> dict[int, int]:
    """Return the words of a set of bits."""
    words: dict[int, int] = {}
    for low, high in numbers.ranges:
        for word in range(low // 32, high // 32 + 1):
            least, most = max(low - 32 * word, 0), min(high - 32 * word, 31)
            words[first + word] = words.get(first + word, 0) | (1 << most + 1) - (1 << least)
    return words


def halves(octets: list[bytes]) -> NDArray[np.uint8]:
    """Return both halves of octets, filled with zeros to 16 each: shape (len(octets), 32), the high half first."""
    whole = np.frombuffer(b"".join(one.ljust(16, b"\0") for one in octets), np.uint8).reshape(-1, 16)
    return np.stack([whole >> 4, whole & 15], axis=-1).reshape(-1, 32)


def vectors_of(rows: list[Network]) -> NDArray[np.uint32]:
    """Return the words that say which rows may match, by what half an octet of an address is.

    Shape (512,): 16 words for each half, in the order of the wire; bit r is that of row r. A half that is behind a prefix,
    or beyond an IPv4 address, matches whatever it is.
    """
    prefixes = halves([network.network_address.packed for network in rows])[:, :, None]
    masks = halves([network.netmask.packed for network in rows])[:, :, None]
    may_match = (np.arange(16, dtype=np.uint8) ^ prefixes) & masks == 0
    bit_of_row = np.uint32(1) << np.arange(len(rows), dtype=np.uint32)
    words: NDArray[np.uint32] = np.bitwise_or.reduce(may_match * bit_of_row[:, None, None])
    return words.ravel()


def table_words(side: int, rows: list[tuple[Network, int]]) -> dict[int, int]:
    """Return the words of a table of addresses: its rows are prefixes, and their terms."""
    words = {
        FILTER_ROW_WORDS[side] + row: terms | (network.version == 4) << FILTER_ROW_IPV4_BIT
        for row, (network, terms) in enumerate(rows)
    }
    if rows:
        vectors = vectors_of([network for network, _ in rows])
        words |= {FILTER_VECTORS[side] + place: int(word) for place, word in enumerate(vectors)}
    return words


def words_of(tables: Tables, marks: Sequence[tuple[int | None, int]]) -> dict[int, int]:
    """Return the words of tables, by address; 0 is left out. ``marks``: of each term the channel that it names, and its ports."""
    words: dict[int, int] = {}
    for number, (conditions, kinds) in enumerate(zip(tables.conditions, tables.kinds, strict=True)):
        channel, probe_ports = marks[number]
        word = 1 << FILTER_ENABLED_BIT | kinds << FILTER_KINDS_BIT | probe_ports << FILTER_PROBE_PORTS_BIT
        word |= sum(condition << FILTER_CONDITIONS[name] for name, condition in conditions.items())
        if channel is not None:
            word |= 1 << FILTER_NAMES_BIT | channel << FILTER_CHANNEL_BIT
        words[FILTER_TERM_WORDS + number] = word
    for side, rows in enumerate(tables.rows):
        words |= table_words(side, sorted_rows(rows))
    for term, protocols in enumerate(tables.protocols):
        for low, high in protocols.ranges:
            for protocol in range(low, high + 1):
                place = FILTER_PROTOCOLS + protocol // 4
                words[place] = words.get(place, 0) | 1 << 8 * (protocol % 4) + term
    for name, numbers in tables.shared.items():
        side = int(name.startswith("destination"))
        if name.endswith("_port"):
            words |= bits(FILTER_PORTS[side], numbers)
        elif name == "vlan":
            words |= bits(FILTER_VLANS, numbers)
        else:
            ((least, most),) = numbers.ranges or ((1, 0),)
            for first, limit in zip(FILTER_MACS[side], (least, most), strict=True):
                words |= {first + part: limit >> 16 * part & 0xFFFF for part in range(3)}
    return {address: word for address, word in words.items() if word}


def sorted_rows(rows: dict[Network, int]) -> list[tuple[Network, int]]:
    """Return rows with the longest prefixes first, else as they came: the first that matches is the closest."""
    return sorted(rows.items(), key=lambda row: -row[0].prefixlen)


# Filter --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filter:
    """Holds what the tables of a probe are for one expression or several."""

    text: str  # The expression.
    tables: Tables
    #: Of each term the channel that it names (None: none), and bit n: frames of port n may match.
    marks: Sequence[tuple[int | None, int]]
    drop: bool = False  # What matches is dropped; else what doesn't.

    def words(self) -> dict[int, int]:
        """Return the words of the filter's memory that are not 0, by address."""
        return words_of(self.tables, self.marks)

    def blocks(self) -> list[tuple[int, list[int]]]:
        """Return what is to be written into the filter's memory: address of the first word, and words.

        Counters are cleared. Sets of ports that no term asks for are left as they are, and so are prefixes where no row
        is used.
        """
        words = self.words()
        ranges = [TABLE_BLOCK, TERM_BLOCK, HIT_BLOCK]
        for first, name in zip(FILTER_PORTS, ("source_port", "destination_port"), strict=True):
            if name in self.tables.shared:
                ranges.append((first, PORT_WORDS))
        ranges += [(first, VECTOR_WORDS) for first, rows in zip(FILTER_VECTORS, self.tables.rows, strict=True) if rows]
        return [(first, [words.get(address, 0) for address in range(first, first + count)]) for first, count in ranges]

    def control(self) -> FilterControl:
        """Return what is written into the control register."""
        return FilterControl.ENABLE | (FilterControl.DROP if self.drop else FilterControl.NONE)

    def rules(self) -> dict[int, str]:
        """Return what each ``rule`` of a header means."""
        found: dict[int, str] = {}
        for first, side, rows in zip((0, DESTINATION_RULES), ("src", "dst"), self.tables.rows, strict=True):
            found |= {first + row: f"{side} net {network}" for row, (network, _) in enumerate(sorted_rows(rows))}
        count = len(self.tables.conditions)
        return found | {TERM_RULES + term: f"case {term + 1} of {count}" for term in range(count)}
