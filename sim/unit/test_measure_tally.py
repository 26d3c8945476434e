# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The tally against plain sums: whatever comes, each snapshot is what was at one instant, and nothing is lost."""

import random

import pytest
from migen import Signal, run_simulation

from liteprobe.cores.measure.tally import Entry, Event, Tally

WIDTHS = {"short": 32, "sum": 64, "long": 96, "last": 64, "least": 64, "first": 64}
ENTRIES = ("first", "least", "sum", "last", "long", "short")
EVENTS = {"ones": 1, "octets": 24, "fours": 4, "rare": 1} # Octets pass 2^32 within a run.
LIMITS = {"ones": 8, "octets": 32, "fours": 10, "rare": 5}
WORDS = {"ones": 2, "octets": 2, "fours": 1, "rare": 1}
EVENT_WORDS = sum(WORDS.values())
FRAME_CYCLES = 34


class Bench(Tally):
    """A tally of each kind of entry and event, on signals of their names."""

    def __init__(self):
        self.inputs = {name: Signal(width, name=f"in_{name}") for name, width in (WIDTHS | EVENTS).items()}
        self.better = Signal()
        self.new = Signal()
        replaces = {"last": Signal(reset=1), "least": self.better, "first": self.new}
        Tally.__init__(
            self,
            [Event(name, self.inputs[name], LIMITS[name], WORDS[name]) for name in EVENTS],
            [Entry(name, self.inputs[name], replaces.get(name)) for name in ENTRIES],
        )


class Model:
    """Plain sums."""

    def __init__(self):
        self.sums = dict.fromkeys([*EVENTS, *ENTRIES], 0)
        self.frames = 0

    def events(self, addends):
        for name, addend in addends.items():
            self.sums[name] = (self.sums[name] + addend) % 2 ** (32 * WORDS[name])

    def frame(self, values, is_better):
        for name in ("sum", "long", "short"):
            self.sums[name] = (self.sums[name] + values[name]) % 2 ** WIDTHS[name]
        self.sums["last"] = values["last"]
        if is_better:
            self.sums["least"] = values["least"]
        if self.frames == 0:
            self.sums["first"] = values["first"]
        self.frames += 1


class Run:
    """Drives a bench cycle by cycle beside the model; ``snapshots`` holds what the bus read, and what may be right."""

    def __init__(self, seed, clears=(), spacing=FRAME_CYCLES):
        self.rng = random.Random(seed)
        self.dut = Bench()
        self.model = Model()
        self.clears, self.spacing = clears, spacing
        self.cycle = 0
        self.instants = None # Sums after each cycle since the latch, while a snapshot is taken.
        self.stop = False
        self.event_rate = 0.3
        self.longest = 0
        self.snapshots = []

    def wire(self, cycles):
        """Bring frames and events."""
        dut, rng, next_frame = self.dut, self.rng, 5
        for cycle in range(cycles):
            addends = {name: rng.getrandbits(width) if rng.random() < self.event_rate else 0 for name, width in EVENTS.items()}
            addends["rare"] = int(cycle % 20 == 0)
            for name, addend in addends.items():
                yield dut.inputs[name].eq(addend)
            starts = cycle == next_frame
            if starts:
                values = {name: rng.choice([rng.getrandbits(width), 2**width - 1]) for name, width in WIDTHS.items()}
                is_better = rng.randrange(2)
                for name, value in values.items():
                    yield dut.inputs[name].eq(value)
                yield dut.better.eq(is_better)
                yield dut.new.eq(self.model.frames == 0)
                next_frame += self.spacing
            clear = cycle in self.clears
            yield dut.start.eq(starts and not clear)
            yield dut.clear.eq(clear)
            yield
            if clear:
                self.model = Model()
            else:
                self.model.events(addends)
                if starts:
                    self.model.frame(values, is_better)
            if self.instants is not None:
                self.instants.append(dict(self.model.sums))
        for signal in [*dut.inputs.values(), dut.start, dut.clear]:
            yield signal.eq(0)
        self.stop = True

    def host(self):
        """Latch and read, over and over, until the wire is still; then once more."""
        dut, bus = self.dut, self.dut.bus
        is_last = False
        while not is_last:
            is_last = self.stop
            for _ in range(self.rng.randrange(60)):
                yield
            # Inputs set now are seen in the next cycle, with which the wire's next instant ends.
            self.instants = [dict(self.model.sums)]
            yield dut.latch.eq(1)
            yield
            yield dut.latch.eq(0)
            yield bus.cyc.eq(1)
            yield bus.stb.eq(1)
            shown, instants, waited = {}, None, 0
            for name, (first, words) in dut.layout.items():
                shown[name] = 0
                for word in range(first, first + words):
                    yield bus.adr.eq(word)
                    yield
                    while not (yield bus.ack):
                        waited += 1
                        yield
                    if instants is None:
                        instants, self.instants = [*self.instants, dict(self.model.sums)], None
                        self.longest = max(self.longest, waited)
                    shown[name] = shown[name] << 32 | (yield bus.dat_r)
            yield bus.cyc.eq(0)
            yield bus.stb.eq(0)
            yield
            self.snapshots.append((shown, instants))

    def check(self, cycles):
        run_simulation(self.dut, [self.wire(cycles), self.host()])
        assert len(self.snapshots) > 3
        for shown, instants in self.snapshots:
            assert shown in instants, (shown, instants[0], instants[-1])
        assert self.snapshots[-1][0] == self.model.sums


@pytest.mark.parametrize("seed", range(2))
def test_each_snapshot_is_of_one_instant_between_latch_and_answer(seed):
    run = Run(seed)
    run.check(1500)
    assert run.model.frames == 44


def test_clear_forgets_frames_events_and_passes_wherever_it_falls():
    run = Run(7, clears=[*range(200, 1900, 37)])
    run.check(2000)


def test_frames_as_close_as_can_be_hold_up_a_snapshot_within_the_bound():
    spacing = Bench().cycles + 5
    run = Run(3, spacing=spacing)
    run.event_rate = 1 # Each cycle, all counts at once: what a pass takes is full.
    run.check(1500)
    frames = run.dut.cycles / 3 + 2 * EVENT_WORDS / 5 + 3
    assert spacing < run.longest <= frames * spacing
    assert run.model.sums["octets"] > 2**32


def test_without_frames_a_pass_takes_a_cycle_a_word():
    run = Run(4, spacing=10**6)
    run.check(400)
    words = run.dut.cycles + EVENT_WORDS
    assert words <= run.longest <= words + 2 * EVENT_WORDS + 12
