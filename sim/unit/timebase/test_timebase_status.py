# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clock's status: what is published, when, and what silence does to it."""

import random

import pytest
from litex.soc.interconnect.csr_bus import CSRBank, Interface
from migen import *

from liteprobe.cores.timebase.status import WORDS, ClockStatusBlock
from liteprobe.sim.drivers.tools.steps import pulse

SYS_CLK_FREQ = 10_000  # 10 cycles a millisecond.
CYCLES = 10


class Bench(Module):
    """The status behind a bus, as a SoC has it."""

    def __init__(self):
        self.submodules.dut = dut = ClockStatusBlock(SYS_CLK_FREQ)
        registers = dut.get_csrs(sort=True)
        self.address = {register.name: number for number, register in enumerate(registers)}  # Of one word each.
        self.bus = Interface(data_width=32)
        self.submodules += CSRBank(registers, bus=self.bus)

    def write(self, name, value):
        """Write, and return in the first cycle in which the bus could go on."""
        yield from self.bus.write(self.address[name], value)
        yield
        yield

    def read(self, name):
        """Read: what is there in the cycle after the one that this is called in."""
        yield self.bus.adr.eq(self.address[name])
        yield from pulse(self.bus.re)
        yield
        return (yield self.bus.dat_r)

    def words(self):
        """Read all that is published."""
        found = {}
        for name, _, _ in WORDS:
            found[name] = yield from self.read(name)
        return found


def run(process):
    bench = Bench()
    run_simulation(bench, process(bench), clocks={"sys": 10})


def test_words_appear_all_at_once_with_the_update():
    values = {name: (0x9E3779B9 * (n + 1)) % 2**bits | 1 for n, (name, bits, _) in enumerate(WORDS)}

    def process(bench):
        assert (yield from bench.words()) == dict.fromkeys(values, 0)
        for name, value in values.items():
            yield from bench.write(name, value)
        assert (yield from bench.words()) == dict.fromkeys(values, 0)
        yield from bench.write("update", 1)
        assert (yield from bench.words()) == values
        assert (yield from bench.read("updates")) == 1
        yield from bench.write("rate", 5)
        assert (yield from bench.words()) == values
        yield from bench.write("update", 1)
        assert (yield from bench.words()) == {**values, "rate": 5}
        assert (yield from bench.read("updates")) == 2

    run(process)


def test_a_word_that_an_update_leaves_out_stays_as_it_was():
    rng = random.Random(7)
    bits = {name: size for name, size, _ in WORDS}

    def process(bench):
        shown = dict.fromkeys(bits, 0)
        for _ in range(30):
            written = {}
            for name in rng.choices([*bits], k=rng.randrange(6)):  # Some twice, some updates with none.
                written[name] = rng.randrange(2 ** bits[name])
                yield from bench.write(name, written[name])
            yield from bench.write("update", 1)
            shown |= written
            assert (yield from bench.words()) == shown

    run(process)


def test_words_are_0_after_a_reset_until_an_update():
    bench = ResetInserter()(Bench())

    def process():
        for name, _, _ in WORDS:
            yield from bench.write(name, 3)
        yield from bench.write("update", 1)
        assert set((yield from bench.words()).values()) == {3}
        yield from bench.write("offset", 9)  # Written, but not published.
        yield from pulse(bench.reset)
        values = {name: n % 4 + 1 for n, (name, _, _) in enumerate(WORDS)}
        for name, value in values.items():
            yield from bench.write(name, value)
        assert set((yield from bench.words()).values()) == {0}
        yield from bench.write("update", 1)
        assert (yield from bench.words()) == values

    run_simulation(bench, process(), clocks={"sys": 10})


@pytest.mark.parametrize("watchdog", [1, 3, 50])
def test_silence_makes_the_state_unknown_after_the_watchdog_and_nothing_else(watchdog):
    def process(bench):
        yield from bench.write("watchdog", watchdog)
        yield from bench.write("state", 3)
        yield from bench.write("offset", 77)
        for _ in range(7):  # Any phase of the milliseconds.
            yield
        yield from bench.write("update", 1)
        # Read without a pause: an answer is of the cycle before.
        yield bench.bus.adr.eq(bench.address["state"])
        yield bench.bus.re.eq(1)
        lived, was_alive, seen = 0, 0, []
        for _ in range((watchdog + 2) * CYCLES):
            yield
            seen.append(((yield bench.bus.dat_r), was_alive))
            was_alive = yield bench.dut._alive.status
            lived += was_alive
        assert all(state == 3 * alive for state, alive in seen[2:])
        assert {state for state, _ in seen[2:]} == {0, 3}
        assert watchdog * CYCLES - 2 <= lived <= watchdog * CYCLES
        yield bench.bus.re.eq(0)
        assert (yield from bench.read("offset")) == 77
        yield from bench.write("update", 1)
        assert (yield from bench.read("state")) == 3

    run(process)


def test_updates_in_time_keep_it_alive():
    def process(bench):
        yield from bench.write("watchdog", 2)
        yield from bench.write("state", 4)
        yield from bench.write("update", 1)
        yield
        for _ in range(10):
            for _ in range(CYCLES - 3):
                assert (yield from bench.read("state")) == 4  # Two cycles.
            yield from bench.write("update", 1)

    run(process)


def test_the_watchdog_is_three_seconds_at_reset_and_the_state_unknown():
    def process(bench):
        assert (yield bench.dut._watchdog.storage) == 3000
        assert ((yield from bench.read("state")), (yield from bench.read("alive"))) == (0, 0)

    run(process)
