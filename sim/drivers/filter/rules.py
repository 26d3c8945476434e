# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Random rules of the filter, and frames that often match them."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from liteprobe.cores.formats import (
    FILTER_CONDITIONS, FILTER_MACS, FILTER_PORTS, FILTER_PROTOCOLS, FILTER_ROW_IPV4_BIT, FILTER_ROW_NAMES_BIT,
    FILTER_ROW_WORDS, FILTER_ROWS, FILTER_TERM_WORDS, FILTER_TERMS, FILTER_VECTORS, FILTER_VLANS, Layer3,
)
from liteprobe.sim.models.receive.filter import FilterKey

ADDRESS_OCTETS = {Layer3.ARP: 4, Layer3.IPV4: 4, Layer3.IPV6: 16}


@dataclass(frozen=True)
class Row:
    """A row of a table of addresses; a prefix of four octets is IPv4."""

    prefix: bytes
    length: int
    terms: int
    channel: int | None = None

    def matches(self, address: bytes) -> bool:
        """Tell whether an address has this prefix (RFC 4632, 3.1; RFC 4291, 2.3)."""
        if not self.terms or len(address) != len(self.prefix):
            return False
        rest = 8 * len(address) - self.length
        return int.from_bytes(address) >> rest == int.from_bytes(self.prefix) >> rest

    def may_match(self, place: int, half: int) -> bool:
        """Tell whether an address with this half of an octet, ``place`` halves from its first, may match."""
        beyond = 4 - min(max(self.length - 4 * place, 0), 4)
        return beyond == 4 or half >> beyond == int(self.prefix.hex()[place], 16) >> beyond


def row_words(side: int, rows: Mapping[int, Row]) -> dict[int, int]:
    """Return the words of a table of addresses: its rows by number."""
    words = {
        FILTER_VECTORS[side] + 16 * place + half: sum(row.may_match(place, half) << at for at, row in rows.items())
        for place in range(32)
        for half in range(16)
    }
    for number, row in rows.items():
        named = 0 if row.channel is None else 1 << FILTER_ROW_NAMES_BIT | row.channel << FILTER_TERMS
        kind = (len(row.prefix) == 4) << FILTER_ROW_IPV4_BIT
        words[FILTER_ROW_WORDS[side] + number] = row.terms | named | kind
    return words


def mac_words(side: int, least: int, most: int) -> dict[int, int]:
    """Return the words of a range of MACs."""
    return {
        FILTER_MACS[side][end] + part: mac >> 16 * part & 0xFFFF
        for end, mac in enumerate((least, most))
        for part in range(3)
    }


@dataclass
class RandomRules:
    """Words of a rule set, and what its frames are made of."""

    rng: random.Random

    def __post_init__(self) -> None:
        rng = self.rng
        self.words: dict[int, int] = {}
        self.prefixes: tuple[list[bytes], list[bytes]] = ([], [])
        self.rows: list[dict[int, Row]] = []
        self.ports = [[rng.getrandbits(16) for _ in range(6)] for _ in range(2)]
        self.vlans = [rng.getrandbits(12) for _ in range(4)]
        self.protocols = [6, 17, 132, 1, rng.getrandbits(8)]
        for side in range(2):
            self.add_rows(side)
            self.add_macs(side)
            for port in self.ports[side][: rng.randrange(6)]:
                self.add_bit(FILTER_PORTS[side], port)
        for vlan in self.vlans[: rng.randrange(4)]:
            self.add_bit(FILTER_VLANS, vlan)
        for protocol in self.protocols:
            place = FILTER_PROTOCOLS + protocol // 4
            self.words[place] = self.words.get(place, 0) | rng.getrandbits(8) << 8 * (protocol % 4)
        # At times none at all.
        enabled = rng.choice([0, 1, 2, 8, 8, 8, 8, 8])
        for term in rng.sample(range(FILTER_TERMS), enabled):
            self.words[FILTER_TERM_WORDS + term] = self.term_word()

    def add_bit(self, first: int, number: int) -> None:
        """Put a number into a set."""
        self.words[first + number // 32] = self.words.get(first + number // 32, 0) | 1 << number % 32

    def add_rows(self, side: int) -> None:
        """Add rows: half of them continue another one's prefix, so that several match."""
        rng = self.rng
        rows = {}
        for number in range(FILTER_ROWS):
            octets = rng.choice([4, 16])
            prefix, length = rng.randbytes(octets), rng.randrange(8 * octets + 1)
            before = [known for known in self.prefixes[side] if len(known) == octets]
            if before and rng.randrange(2):
                prefix = rng.choice(before)
            if not rng.randrange(3):
                length = rng.choice([0, 8, 24, 32, 8 * octets])
            self.prefixes[side].append(prefix)
            terms = rng.choice([0, 1 << rng.randrange(8), rng.getrandbits(8), rng.getrandbits(8), 255])
            channel = rng.choice([None, None, None, rng.randrange(8)])
            rows[number] = Row(prefix, min(length, 8 * octets), terms, channel)
        self.rows.append(rows)
        self.words |= row_words(side, rows)

    def add_macs(self, side: int) -> None:
        """Add the limits of MACs; near one another, so that each part of a MAC decides at times."""
        rng = self.rng
        least = rng.getrandbits(48)
        most = min(least + (1 << rng.randrange(48)), (1 << 48) - 1) if rng.randrange(8) else rng.getrandbits(48)
        self.words |= mac_words(side, least, most)
        self.macs = [*getattr(self, "macs", []), [least, most]]

    def term_word(self) -> int:
        """Return the word of a term with few conditions, else it would hardly ever hold."""
        rng = self.rng
        word = 1 << 26 | rng.getrandbits(4) << 22 | rng.choice([1, 2, 3, 3]) << 20
        word |= rng.choice([15, 15, rng.getrandbits(4)]) << 16
        for bit in FILTER_CONDITIONS.values():
            word |= rng.choice([0, 0, 0, 1, 2]) << bit
        return word

    def matching(self, key: FilterKey) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of the source and of the destination rows whose prefix a frame's addresses have."""
        addresses = key.addresses or (b"", b"")
        return tuple(
            tuple(number for number, row in rows.items() if row.matches(address))
            for rows, address in zip(self.rows, addresses, strict=True)
        )

    def near(self, values: list[int], bits: int) -> int:
        """Return one of the values, or one beside it, or any."""
        rng = self.rng
        change = rng.choice([0, 0, 0, 1, -1, 1 << 16, -(1 << 16), 1 << 32, -(1 << 32), rng.getrandbits(bits)])
        return (rng.choice(values) + change) & (1 << bits) - 1

    def address(self, side: int, octets: int) -> bytes:
        """Return an address that is near a prefix: all its octets, or a bit of them changed, or many."""
        rng = self.rng
        known = [prefix for prefix in self.prefixes[side] if len(prefix) == octets]
        address = int.from_bytes(rng.choice(known) if known else rng.randbytes(octets))
        kind = rng.randrange(4)
        if kind == 0:
            address ^= 1 << rng.randrange(8 * octets)
        elif kind == 1:
            address ^= rng.getrandbits(rng.randrange(1, 8 * octets + 1))
        return address.to_bytes(octets)

    def key(self, probe_port: int) -> FilterKey:
        """Return what a frame is."""
        rng = self.rng
        layer3 = rng.choice(list(Layer3))
        addresses = None
        if layer3 is not Layer3.NONE:
            octets = ADDRESS_OCTETS[layer3]
            addresses = (self.address(0, octets), self.address(1, octets))
        is_ip = layer3 in (Layer3.IPV4, Layer3.IPV6)
        ports = (self.near(self.ports[0], 16), self.near(self.ports[1], 16))
        macs = (self.near(self.macs[0], 48), self.near(self.macs[1], 48))
        return FilterKey(
            layer3=layer3,
            addresses=addresses,
            protocol=self.near(self.protocols, 8) if is_ip else None,
            ports=ports if is_ip and rng.randrange(4) else None,
            vlan=self.near(self.vlans, 12) if rng.randrange(2) else None,
            macs=macs if rng.randrange(8) else None,
            probe_port=probe_port,
        )
