# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends keys of frames through the filter of two ports, and holds random rule sets and frames against its model."""

import random
import struct
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from migen import *

from litex.gen import *

from liteprobe.cores.formats import (
    DESTINATION_RULES, FILTER_CONDITIONS, FILTER_MACS, FILTER_PORTS, FILTER_PROTOCOLS, FILTER_ROWS, FILTER_ROW_HITS,
    FILTER_ROW_IPV4_BIT, FILTER_ROW_NAMES_BIT, FILTER_ROW_WORDS, FILTER_TERMS, FILTER_TERM_HITS, FILTER_TERM_WORDS,
    FILTER_VECTORS, FILTER_VLANS, FilterControl, Layer3, NO_RULE,
)
from liteprobe.cores.receive.filter.tables import FilterTables
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.receive.filter import Decision, FilterKey, FilterModel

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


# Bench ---------------------------------------------------------------------------------------------

PORTS = 2

# Filter Bench -------------------------------------------------------------------------------------

class FilterBench(PinnedBench):
    """Tables and matchers on pins: ``sys_clk``, ``sys_rst``, ``control``, ``bus_*``, and of each port ``key<n>`` and its like.

    An answer: ``passed`` (bit 0), ``matched`` (1), ``names_channel`` (2), ``channel`` (5..3), ``rule`` (15..8).
    """
    def __init__(self):
        PinnedBench.__init__(self)
        self.tables = tables = FilterTables(PORTS)
        bus = tables.bus
        self.comb += [
            Cat(tables.enable, tables.drop).eq(self.add_pin("control", 2)),
            Cat(bus.cyc, bus.stb).eq(Replicate(self.add_pin("bus_stb"), 2)),
        ]
        self.add_inputs(bus, ["adr", "dat_w", "we"], "bus_")
        self.add_outputs(bus, ["dat_r", "ack"], "bus_")
        for port, matcher in enumerate(tables.matchers):
            self.comb += [
                matcher.key.raw_bits().eq(self.add_pin(f"key{port}", len(matcher.key))),
                matcher.start.eq(self.add_pin(f"start{port}")),
                self.add_pin(f"done{port}").eq(matcher.done),
                self.add_pin(f"answer{port}", 16).eq(Cat(matcher.passed, matcher.matched, matcher.names_channel,
                    matcher.channel, Constant(0, 2), matcher.rule)),
            ]

BENCH = CompiledBench(FilterBench, Path(__file__).with_name("filter.cpp"))

# Runs ---------------------------------------------------------------------------------------------

WRITE = 1 << 31
CONTROL = 1 << 30  # In the place of an address: the control register, in no time.
LEAST_DISTANCE = 32  # Cycles between two starts of a port.
KEY_OCTETS = 4 * 13

#: What a `Decision` is compared by: passed, matched, rule, channel.
Answer = tuple[bool, bool, int, int | None]


def key_octets(key: FilterKey, rng: random.Random) -> bytes:
    """Return a key as the gateware takes it; what the frame hasn't is anything."""
    sides = key.addresses or (rng.randbytes(16), rng.randbytes(16))
    ports = key.ports or (rng.getrandbits(16), rng.getrandbits(16))
    macs = key.macs or (rng.getrandbits(48), rng.getrandbits(48))
    vlan = rng.getrandbits(12) if key.vlan is None else key.vlan
    protocol = rng.getrandbits(8) if key.protocol is None else key.protocol
    fields = [
        *((int.from_bytes(address + rng.randbytes(16 - len(address)), "little"), 128) for address in sides),
        (int(key.layer3), 2),
        (protocol, 8),
        (ports[0], 16),
        (ports[1], 16),
        (key.ports is not None, 1),
        (vlan, 12),
        (key.vlan is not None, 1),
        (macs[0], 48),
        (macs[1], 48),
        (key.macs is not None, 1),
    ]
    value, at = 0, 0
    for number, width in fields:
        value |= int(number) << at
        at += width
    return value.to_bytes(KEY_OCTETS, "little")


def answer_of(decision: Decision) -> Answer:
    """Return what the gateware is to say of a frame."""
    return decision.passed, decision.matched, decision.rule, decision.channel


@dataclass(frozen=True)
class PortRun:
    """Holds the result of a run: answers of each port, cycles from start to done, words that were read meanwhile."""

    answers: tuple[list[Answer], list[Answer]]
    latencies: set[int]
    read: list[int]


@dataclass
class FilterRun:
    """Orders for the bench, and where their answers are.

    ``cycles``, ``longest``: of the whole run, and of its slowest access of the bus.
    """

    rng: random.Random
    orders: bytearray = field(default_factory=bytearray)
    expected: list[tuple[int, int, int]] = field(default_factory=list)
    memory: dict[int, int] = field(default_factory=dict)
    cycles: int = 0
    longest: int = 0

    def control(self, *, enable: bool = True, drop: bool = False) -> None:
        """Write the control register."""
        bits = FilterControl.ENABLE * enable | FilterControl.DROP * drop
        self.orders += struct.pack("<2I", 1, bits)

    def idle(self, cycles: int) -> None:
        """Let cycles pass."""
        self.orders += struct.pack("<2I", 3, cycles)

    def access(self, accesses: Sequence[tuple[int, int]]) -> None:
        """Write, or read, words of the bus: addresses (with ``WRITE``) and data."""
        self.orders += struct.pack("<2I", 2, len(accesses)) + self._accesses(accesses)

    def _accesses(self, accesses: Sequence[tuple[int, int]]) -> bytes:
        self.expected.append((0, 0, sum(not address & (WRITE | CONTROL) for address, _ in accesses)))
        return b"".join(struct.pack("<2I", *access) for access in accesses)

    def load(self, words: Mapping[int, int]) -> None:
        """Write the words that differ from what is there, and clear the counters."""
        changed = {address: 0 for address in self.memory if address not in words} | {
            address: word for address, word in words.items() if self.memory.get(address) != word
        }
        self.memory = dict(words)
        self.access([(WRITE | address, word) for address, word in [*changed.items(), *((at, 0) for at in hit_words())]])

    def read(self, addresses: Iterable[int]) -> None:
        """Read words."""
        self.access([(address, 0) for address in addresses])

    def send(
        self,
        keys: tuple[Sequence[FilterKey], Sequence[FilterKey]],
        distances: Sequence[int] = (LEAST_DISTANCE,),
        accesses: Sequence[tuple[int, int]] = (),
    ) -> None:
        """Start keys at both ports, as far apart as ``distances`` say in turn; the first one anywhere in a lap."""
        self.orders += struct.pack("<4I", 4, len(keys[0]), len(keys[1]), len(accesses))
        for port_keys in keys:
            for number, key in enumerate(port_keys):
                distance = distances[number % len(distances)] if number else self.rng.randrange(32)
                self.orders += struct.pack("<I", distance) + key_octets(key, self.rng)
        packed = self._accesses(accesses)
        self.expected[-1] = (len(keys[0]), len(keys[1]), self.expected[-1][2])
        self.orders += packed

    def run(self) -> list[PortRun]:
        """Obey all orders; return what came of each that reads or sends."""
        done = BENCH.run({"orders": bytes(self.orders)})
        self.cycles, self.longest = done.numbers
        words = done.array("answers", np.uint32).tolist()
        assert len(words) == sum(map(sum, self.expected)), (len(words), self.expected[:9])
        runs, at = [], 0
        for first, second, reads in self.expected:
            parts = [words[at : at + first], words[at + first : at + first + second]]
            at += first + second
            answers = tuple([unpacked(word) for word in part] for part in parts)
            latencies = {word >> 16 for part in parts for word in part}
            runs.append(PortRun((answers[0], answers[1]), latencies, words[at : at + reads]))
            at += reads
        return [run for run in runs if run.read or any(run.answers)]


def unpacked(word: int) -> Answer:
    """Return the answer in a word of the bench."""
    return bool(word & 1), bool(word & 2), word >> 8 & 0xFF, word >> 3 & 7 if word & 4 else None


def hit_words() -> list[int]:
    """Return the addresses of all counters: source rows, destination rows, terms."""
    rows = [first + row for first in FILTER_ROW_HITS for row in range(FILTER_ROWS)]
    return [*rows, *(FILTER_TERM_HITS + term for term in range(FILTER_TERMS))]


assert FILTER_ROW_HITS[1] - FILTER_ROW_HITS[0] == DESTINATION_RULES


# Comparison ---------------------------------------------------------------------------------------

HOLD_CYCLES = 60  # Until no frame is under way that began before.


@dataclass
class Comparison:
    """Counts how much was compared, and what was otherwise than in the model."""

    packets: int = 0
    rule_sets: int = 0
    matched: int = 0
    disagreements: int = 0
    counters_off: int = 0
    rules: set[int] = field(default_factory=set)
    latencies: set[int] = field(default_factory=set)

    @property
    def rows_used(self) -> int:
        """Row slots that were the rule of a frame."""
        return len([rule for rule in self.rules if rule < 64])

    @property
    def terms_used(self) -> int:
        """Terms that were."""
        return len([rule for rule in self.rules if 64 <= rule < NO_RULE])


def compare(seed: int, rule_sets: int, packets: int) -> Comparison:
    """Send ``packets`` to each of two ports, at line rate, under each of the rule sets."""
    rng, run = random.Random(seed), FilterRun(random.Random(seed))
    cases: list[tuple[RandomRules, FilterModel, list[list[FilterKey]]]] = []
    for _ in range(rule_sets):
        rules = RandomRules(rng)
        model = FilterModel(rules.words, drop=rng.randrange(4) == 0)
        keys = [[rules.key(port) for _ in range(packets)] for port in range(2)]
        cases.append((rules, model, keys))
        run.control(enable=False)
        run.idle(HOLD_CYCLES)
        run.load(rules.words)
        run.control(drop=model.drop)
        run.send((keys[0], keys[1]))
        run.read(hit_words())
    found = iter(run.run())
    result = Comparison(rule_sets=rule_sets)
    for rules, model, keys in cases:
        sent, counters = next(found), next(found).read
        result.latencies |= sent.latencies
        for port_keys, answers in zip(keys, sent.answers, strict=True):
            for key, answer in zip(port_keys, answers, strict=True):
                decision = model.decide(key)
                model.count(decision)
                result.packets += 1
                result.matched += decision.matched
                result.rules.add(decision.rule)
                if answer_of(decision) != answer or decision.rows != rules.matching(key):
                    result.disagreements += 1
                    print(f"seed {seed}: {key}: {decision}, not {answer}", file=sys.stderr)
        wanted = [*model.row_hits[0], *model.row_hits[1], *model.term_hits]
        result.counters_off += sum(want != counter for want, counter in zip(wanted, counters, strict=True))
    return result
