# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe with an emulator as its registers show it: settings, banks that switch, counters that grow with what a test offers.

The truth for tests of the host. Each direction has one queue that serves frames as they came, whatever their class, without
tokens, traces, background frames and RED; outcomes, delays and counters are those of docs/design/emulator.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from liteprobe.cores.formats import MIN_LENGTH, TransmitState, map_hash, slot_octets
from liteprobe.cores.formats.emulate import (
    BANK_WORDS,
    CLASSES,
    COUNTER_WORDS,
    DELAY_ENTRIES,
    FINE_BITS,
    HISTOGRAM_BINS,
    HISTOGRAM_WORD,
    LINK_FIELDS,
    LINK_WORD,
    PATTERN_WORDS,
    REORDER_LANE,
    RULE_BLOCK_WORDS,
    RULES,
    SETTING_WORDS,
    ClassCounter,
    ClassGauge,
    Feature,
)
from liteprobe.sim.models.emulator.direction import FCS_OCTETS, LEAST_TICKS, ClassDraws, Counts, Frame
from liteprobe.sim.models.emulator.settings import ClassSettings
from liteprobe.sim.models.probe.trains import BUILD_TICKS, PORT_STRIDE, PROGRAM, TX, ModelProbe, registers

SETTINGS_BASE, COUNTS_BASE, TRACE_BASE, RULES_BASE = 0x90000000, 0x98000000, 0xA0000000, 0xB0000000
SETTINGS_WORDS = 2 * BANK_WORDS + DELAY_ENTRIES + PATTERN_WORDS
TRACE_WORDS = 4096
WORD = 1 << 32
ALL = WORD - 1
STRIDE = PORT_STRIDE
WRITTEN = ("arm", "switch_at", "switch", "trace_entries", "rule_words", "forward_reserved")
REGISTERS = registers(
    "arm:1 switch_at:64 switch:1 trace_entries waiting features bank now:64 least_delay entries store_words longest damaged "
    "overflows management reserved rules rule_words forward_reserved"
)

#: Registers of port 0's transmitter where there is one direction: it starts nothing.
OF_WAY_BACK = ("state", "sent", "reserved", "damaged", "full", "management_sent", "management_dropped", "link_up")
OF_TRAINS = {*PROGRAM, "attached", "arm", "clear", "first_late", "disturbed"}  # No port of an emulator sends any.


@dataclass
class ClassState:
    """Holds the state of a class."""

    draws: ClassDraws
    waiting: list[tuple[int, int]] = field(default_factory=list)  # Until when (fine time), octets.


@dataclass
class DirectionState:
    """Holds the state of a direction while it runs."""

    start: int
    classes: list[ClassState]
    bank: int = 0
    is_to_switch: bool = False
    free: int = 0  # Fine time.
    lanes: dict[int, int] = field(default_factory=dict)
    counts: list[list[int]] = field(default_factory=lambda: Counts().of_class)


class EmulatorProbe(ModelProbe):
    """A probe whose two ports are joined by what its settings say.

    Parameters
    ----------
    store_words, entries, longest, least_delay : of each direction, as registers show them.
    with_trace : whether it has memory for bandwidth traces.
    directions : 2, or 1: from port 0 to port 1; frames of port 1 then go back as they came (`offer_back`).

    ``switches``: direction, bank and tick since the start of each switch that took place.
    """

    def __init__(
        self,
        store_words: int = 1 << 20,
        entries: int = 8192,
        longest: int = 1536,
        least_delay: int = 3000,
        with_trace: bool = True,
        directions: int = 2,
    ) -> None:
        super().__init__()
        for port in range(2):
            self.remove([f"port{port}_header", *(f"port{port}_tx_{name}" for name in OF_TRAINS)])
        if directions == 1:
            gone = TX.keys() - OF_TRAINS - {*OF_WAY_BACK}
            self.remove([f"port0_tx_{name}" for name in TX if name in gone])
        built = {"store_words": store_words, "entries": entries, "longest": longest, "least_delay": least_delay}
        built |= {"waiting": 512, "rules": RULES, "features": int(~Feature.NONE)}
        areas = {"settings": (SETTINGS_BASE, SETTINGS_WORDS), "counts": (COUNTS_BASE, CLASSES * COUNTER_WORDS)}
        areas["rules"] = (RULES_BASE, RULE_BLOCK_WORDS)
        areas |= {"trace": (TRACE_BASE, TRACE_WORDS)} if with_trace else {}
        for n in range(directions):
            self.extend(f"direction{n}", REGISTERS, WRITTEN)
            self.values |= {f"direction{n}_{name}": value for name, value in built.items()}
            self.extend_memories(n, areas, "direction")
        if directions == 1:
            self.extend("port0_tx", registers("damaged full reserved"), ())
        self.values["probe_map_hash"] = map_hash(self.map)
        self.running: list[DirectionState | None] = [None, None]
        self.shown: list[list[list[int]]] = [Counts().of_class for _ in range(2)]
        self.switches: list[tuple[int, int, int]] = []
        self._back_free = 0  # Tick from which on the line of port 0 is free.
        self._flows: list[tuple[int, int, int, int, int]] = []

    def offer(self, direction: int, number: int, length: int, interval: int, first: int = 0) -> None:
        """Let a frame of a class come every ``interval`` ticks, from ``first`` ticks after each start on."""
        self._flows.append((direction, number, length, interval, first))

    def offer_back(self, frames: Sequence[tuple[int, bool]], interval: int) -> None:
        """Let a frame begin at port 1 of a probe of one direction every ``interval`` ticks, from now on.

        Each is counted once it is whole, as ``damaged``, or as ``sent`` when it leaves. ``full`` stays 0: for that the line
        has to be taken by management in band, or to be slower than that of port 1, and this model has neither.

        Parameters
        ----------
        frames : of each its octets without FCS, and whether its FCS is wrong; they repeat.
        interval : at least the longest slot.
        """
        if interval < max(slot_octets(length) for length, _ in frames):
            raise ValueError(f"{interval} ticks don't hold the slot of each frame")

        def begin(number: int) -> None:
            length, is_bad = frames[number % len(frames)]
            is_sent = not is_bad and MIN_LENGTH <= length <= self.values["direction0_longest"]
            tick = self.tick + length + FCS_OCTETS
            if is_sent:
                tick = max(tick + LEAST_TICKS, self._back_free)
                self._back_free = tick + slot_octets(length)
            self._at(tick, lambda: self._count(f"port0_tx_{'sent' if is_sent else 'damaged'}"))
            self._at(self.tick + interval, lambda: begin(number + 1))

        begin(0)

    def read(self, address: int) -> int:
        """Return the word at ``address``; a read of ``bank`` latches ``now``."""
        for n in range(2):
            place = (address - COUNTS_BASE - STRIDE * n) // 4
            if 0 <= place < CLASSES * COUNTER_WORDS:
                return self._count_word(n, *divmod(place, COUNTER_WORDS))
        name = self._words.get(address, ("", 0))[0]
        if name.startswith("direction") and name.endswith("_switch_at"):
            return 0
        if name.startswith("direction") and name.endswith("_bank"):
            n = int(name[9])
            one = self.running[n]
            bank = one.bank | one.is_to_switch << 1 if one else 0
            self.values |= {name: bank, f"direction{n}_now": self.tick - one.start if one else 0}
        return super().read(address)

    # # #

    def _act(self, name: str, word: int) -> None:
        if not name.startswith("direction"):
            super()._act(name, word)
            return
        n, strobe = int(name[9]), name.partition("_")[2]
        if strobe == "arm":
            self._arm_direction(n)
        elif strobe == "switch":
            one, at = self.running[n], self.values[f"direction{n}_switch_at"]
            if one and not one.is_to_switch:
                one.is_to_switch = True
                self._at(max(one.start + at, self.tick), lambda: self._switch(n, one))

    def _count(self, name: str) -> None:
        self.values[name] = (self.values[name] + 1) % WORD

    def _switch(self, n: int, one: DirectionState) -> None:
        if self.running[n] is one:
            one.bank, one.is_to_switch = one.bank ^ 1, False
            self.switches.append((n, one.bank, self.tick - one.start))

    def _arm_direction(self, n: int) -> None:
        port = 1 - n
        self._tx(port, state=TransmitState.ARMED, sent=0)
        self._at(self.tick + BUILD_TICKS, lambda: self._tx(port, state=TransmitState.READY))

    def _start(self, ports: list[int]) -> None:
        if any(self.values[f"port{port}_tx_state"] != TransmitState.READY for port in ports):
            return
        for port in ports:
            n = 1 - port
            delays, patterns = self._table(n, 0, DELAY_ENTRIES), self._table(n, DELAY_ENTRIES, PATTERN_WORDS)
            classes = [ClassDraws(self._class(n, 0, number), delays, patterns) for number in range(CLASSES)]
            one = DirectionState(self.tick + 1, [ClassState(draws) for draws in classes])
            self.running[n], self.shown[n] = one, one.counts
            self._tx(port, state=TransmitState.RUNNING)
            for flow in self._flows:
                if flow[0] == n:
                    self._arrive_at(one, flow, one.start + flow[4])

    def _tx_stop(self, port: int) -> None:
        super()._tx_stop(port)
        self.running[1 - port] = None

    # Settings ---------------------------------------------------------------------------------

    def _settings_word(self, n: int, word: int) -> int:
        return self._memory.get(SETTINGS_BASE + STRIDE * n + 4 * word, 0)

    def _table(self, n: int, start: int, count: int) -> list[int]:
        """Return words behind the banks."""
        return [self._settings_word(n, 2 * BANK_WORDS + start + word) for word in range(count)]

    def _class(self, n: int, bank: int, number: int) -> ClassSettings:
        first = BANK_WORDS * bank + SETTING_WORDS * number
        return ClassSettings.of([self._settings_word(n, first + word) for word in range(SETTING_WORDS)])

    def _link(self, n: int, bank: int, name: str) -> int:
        one = LINK_FIELDS[name]
        return self._settings_word(n, BANK_WORDS * bank + LINK_WORD + one.word) >> one.low & (1 << one.bits) - 1

    # Frames -----------------------------------------------------------------------------------

    def _arrive_at(self, one: DirectionState, flow: tuple[int, int, int, int, int], tick: int) -> None:
        def act() -> None:
            if self.running[flow[0]] is one:
                self._frame(one, *flow[:3])
                self._arrive_at(one, flow, tick + flow[3])

        self._at(tick, act)

    def _frame(self, one: DirectionState, n: int, number: int, length: int) -> None:
        now, kept, counts = self.tick - one.start, one.classes[number], one.counts[number]

        own = self._class(n, one.bank, number)
        frame = Frame(kept.draws.count, now, length, number)
        kept.draws.draw(frame, own)
        add(counts, ClassCounter.ARRIVED)
        add(counts, ClassCounter.ARRIVED_OCTETS, length)
        kept.waiting = [
            entry for entry in kept.waiting if entry[0] >= now << FINE_BITS
        ]  # An arrival is before a service.
        waiting = kept.waiting
        if own.discards or (frame.is_lost and not frame.is_late):
            add(counts, ClassCounter.DISCARDED if own.discards else ClassCounter.LOST)
            return
        octets = sum(entry[1] for entry in waiting) + length
        if len(waiting) + 1 > own.limit_frames or octets > own.limit_octets:
            add(counts, ClassCounter.FULL)
            return
        begin = max(now << FINE_BITS, one.free)
        one.free = begin + (length + own.overhead) * self._link(n, one.bank, "octet")
        kept.waiting.append((begin, length))
        counts[ClassGauge.QUEUE_MOST] = max(counts[ClassGauge.QUEUE_MOST], len(waiting))
        if frame.is_lost:
            self._at(one.start + (one.free >> FINE_BITS), lambda: add(counts, ClassCounter.LOST))
            return
        lane = frame.lane
        due = one.lanes[lane] = max((one.free >> FINE_BITS) + frame.delay, one.lanes.get(lane, 0))
        marks = {ClassCounter.DUPLICATED: frame.is_twice, ClassCounter.HELD_BACK: lane == REORDER_LANE}
        marks[ClassCounter.CORRUPTED] = frame.is_corrupt
        self._at(one.start + due, lambda: self._depart(counts, length, due - now, marks))

    def _depart(self, counts: list[int], length: int, delay: int, marks: dict[ClassCounter, bool]) -> None:
        times = 1 + marks[ClassCounter.DUPLICATED]
        add(counts, ClassCounter.SENT, times)
        add(counts, ClassCounter.SENT_OCTETS, times * length)
        for counter, is_set in marks.items():
            add(counts, counter, int(is_set))
        add(counts, HISTOGRAM_WORD + min(delay.bit_length(), HISTOGRAM_BINS - 1))
        counts[ClassGauge.DELAY_LEAST] = min(counts[ClassGauge.DELAY_LEAST], delay)
        counts[ClassGauge.DELAY_MOST] = max(counts[ClassGauge.DELAY_MOST], delay)

    def _count_word(self, n: int, number: int, word: int) -> int:
        one = self.running[n]
        waiting = []
        if one and word in (ClassGauge.QUEUE_FRAMES, ClassGauge.QUEUE_OCTETS):
            now = self.tick - one.start << FINE_BITS
            waiting = [entry[1] for entry in one.classes[number].waiting if entry[0] > now]
        if word == ClassGauge.QUEUE_FRAMES:
            return len(waiting)
        return sum(waiting) if word == ClassGauge.QUEUE_OCTETS else self.shown[n][number][word]


def add(counts: list[int], word: int, amount: int = 1) -> None:
    """Count, modulo 2^32."""
    counts[word] = (counts[word] + amount) % WORD
