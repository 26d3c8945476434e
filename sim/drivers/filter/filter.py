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
    DESTINATION_RULES, FILTER_ROW_HITS, FILTER_ROWS, FILTER_TERM_HITS, FILTER_TERMS, NO_RULE, FilterControl,
)
from liteprobe.cores.receive.filter.tables import FilterTables
from liteprobe.sim.drivers.filter.rules import RandomRules
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.receive.filter import Decision, FilterKey, FilterModel

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

    Attributes
    ----------
    cycles, longest : of the whole run, and of its slowest access of the bus.
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
