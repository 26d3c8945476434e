# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The tally against plain sums: whatever comes, each snapshot is what was at one instant, and nothing is lost."""

import random

import pytest

from migen import Signal, run_simulation

from liteprobe.cores.measure.square import DelaySquare
from liteprobe.cores.measure.tally import Event, Tally
from liteprobe.sim.drivers.tools.steps import pulse, wait_cycles

LIMIT = 2**32 - 1
EDGES = [0, 1, -1, 2**16, -(2**16), 2**16 - 1, LIMIT, -LIMIT, LIMIT - 1, 2**31, -(2**31), -(2**16) - 1]
FAR = [2**32, -(2**32), 2**63 - 1, -(2**63), 2**32 + 5, -(2**32) - 5, -(2**48)]


def squares(delays):
    """Return the square of each delay, as the core has it five cycles after the start."""
    dut, found = DelaySquare(), []

    def drive():
        for delay in delays:
            yield dut.delay.eq(delay)
            for start in (0, 0, 0, 1, 2, 4, 0, 0):
                yield dut.start.eq(start)
                yield
            yield
            found.append((yield dut.square))

    run_simulation(dut, drive())
    return found


def test_squares_are_those_of_arithmetic_and_far_delays_are_clamped():
    rng = random.Random(5)
    near = [rng.choice([1, -1]) * rng.getrandbits(rng.randrange(1, 33)) for _ in range(300)]
    delays = [*EDGES, *FAR, *near]
    assert squares(delays) == [min(abs(delay), LIMIT) ** 2 for delay in delays]


# Tally ---------------------------------------------------------------------------------------------

EVENTS = {"ones": 1, "octets": 24, "fours": 4, "rare": 1} # Octets pass 2^32 within a run.
LIMITS = {"ones": 6, "octets": 28, "fours": 8, "rare": 3}
WORDS = {"ones": 2, "octets": 2, "fours": 1, "rare": 1}
ALL_WORDS = sum(WORDS.values())


class Bench(Tally):
    """A tally of each kind of event, on signals of their names."""

    def __init__(self):
        self.inputs = {name: Signal(width, name=f"in_{name}") for name, width in EVENTS.items()}
        Tally.__init__(self, [Event(name, self.inputs[name], LIMITS[name], WORDS[name]) for name in EVENTS])


class Run:
    """Drives a bench cycle by cycle beside plain sums; ``snapshots`` holds what the bus read, and what may be right."""

    def __init__(self, seed, clears=(), event_rate=0.3):
        self.rng = random.Random(seed)
        self.dut = Bench()
        self.sums = dict.fromkeys(EVENTS, 0)
        self.clears, self.event_rate = clears, event_rate
        self.instants = None # Sums after each cycle since the latch, while a snapshot is taken.
        self.stop = False
        self.longest = 0
        self.snapshots = []

    def wire(self, cycles):
        """Bring events."""
        dut, rng = self.dut, self.rng
        for cycle in range(cycles):
            addends = {name: rng.getrandbits(width) if rng.random() < self.event_rate else 0 for name, width in EVENTS.items()}
            addends["rare"] = int(cycle % 20 == 0)
            for name, addend in addends.items():
                yield dut.inputs[name].eq(addend)
            clear = cycle in self.clears
            yield dut.clear.eq(clear)
            yield
            for name, addend in addends.items():
                self.sums[name] = 0 if clear else (self.sums[name] + addend) % 2 ** (32 * WORDS[name])
            if self.instants is not None:
                self.instants.append(dict(self.sums))
        for signal in [*dut.inputs.values(), dut.clear]:
            yield signal.eq(0)
        self.stop = True

    def host(self):
        """Latch and read, over and over, until the wire is still; then once more."""
        dut, bus = self.dut, self.dut.bus
        is_last = False
        while not is_last:
            is_last = self.stop
            yield from wait_cycles(self.rng.randrange(60))
            # Inputs set now are seen in the next cycle, with which the wire's next instant ends.
            self.instants = [dict(self.sums)]
            yield from pulse(dut.latch)
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
                        instants, self.instants = [*self.instants, dict(self.sums)], None
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
        assert self.snapshots[-1][0] == self.sums


@pytest.mark.parametrize("seed", range(3))
def test_each_snapshot_is_of_one_instant_between_latch_and_answer(seed):
    run = Run(seed)
    run.check(1500)
    assert run.longest <= 3 * ALL_WORDS + 12


def test_clear_forgets_events_and_passes_wherever_it_falls():
    Run(7, clears=[*range(200, 1900, 37)]).check(2000)


def test_what_comes_in_every_cycle_is_counted_beyond_a_word():
    run = Run(3, event_rate=1) # All at once: what a pass takes is full.
    run.check(1500)
    assert run.sums["octets"] > 2**32
