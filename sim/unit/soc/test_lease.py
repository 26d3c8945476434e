# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The lease of a probe, against a ledger of claims that is written apart from the gateware."""

import random

import pytest
from litex.soc.interconnect.csr_bus import CSRBank, Interface
from migen import *

from liteprobe.cores.management.lease import WriteLease
from liteprobe.sim.drivers.tools.steps import pulse, wait_cycles

UNIT_BITS = 5
UNIT = 2**UNIT_BITS


class Bench(Module):
    """The lease behind a bus, as a SoC has it."""

    def __init__(self):
        self.submodules.dut = dut = WriteLease(2 * UNIT, UNIT_BITS)  # Two seconds are four units.
        registers = dut.get_csrs(sort=True)
        bank = CSRBank(registers, bus=Interface(data_width=32))
        self.bus = bank.bus
        self.address = {register.name: number for number, register in enumerate(bank.simple_csrs)}
        self.submodules += bank
        self.ended = 0

    def write(self, name, value):
        yield from self.bus.write(self.address[name], value)

    def owner(self):
        return (yield self.dut.owner.status)

    @passive
    def count(self):
        while True:
            self.ended += yield self.dut.ended
            yield


def run(process):
    bench = Bench()
    run_simulation(bench, [process(bench), bench.count()], clocks={"sys": 10})
    return bench


class Ledger:
    """Whose lease it is."""

    def __init__(self):
        self.token, self.number, self.ended = 0, 0x8000, 0

    def end(self):
        self.ended += bool(self.token)
        self.token = 0

    def next(self):
        self.number = 0x8000 | (self.number + 1) % 0x8000

    def act(self, name, token, number):
        if name == "release":
            if token and (token, number) == (self.token, self.number):
                self.end()
                self.next()
        elif token and number == self.number and (name == "steal" or not self.token):
            self.end()
            self.next()
            self.token = token

    @property
    def owner(self):
        return self.token << 16 | self.number


@pytest.mark.parametrize("seed", range(4))
def test_one_host_holds_the_lease_whatever_is_claimed_stolen_and_released_twice_or_late(seed):
    rand = random.Random(seed)
    ledger = Ledger()

    def process(bench):
        words = [0]
        for _ in range(300):
            # Claims of the present, of the past, and of what is held; now and then what nobody ever said.
            fresh = rand.randrange(1, 4) << 16 | ledger.number
            word = rand.choice([fresh, fresh, ledger.owner, rand.choice(words[-6:]), rand.getrandbits(32)])
            name = rand.choice(["claim", "claim", "release", "steal"])
            words.append(word)
            ledger.act(name, word >> 16, word & 0xFFFF)
            yield from bench.write(name, word)
            yield bench.dut.heard.eq(1)  # Nothing ends in silence here.
            yield
            yield bench.dut.heard.eq(0)
            assert (yield from bench.owner()) == ledger.owner, f"seed {seed}"
            assert (yield bench.dut.is_held) == bool(ledger.token)

    assert run(process).ended == ledger.ended > 20


def test_a_host_that_falls_silent_loses_the_lease_within_its_timeout_and_is_counted():
    def process(bench):
        for timeout in (1, 4, 9):
            yield from bench.write("timeout0", timeout)
            number = yield from bench.owner()
            yield from bench.write("claim", 7 << 16 | number)
            cycles = 0
            while (yield bench.dut.is_held) or cycles < 2:
                cycles += 1
                yield
            assert timeout * UNIT <= cycles <= (timeout + 1) * UNIT + 2
            assert (yield from bench.owner()) == number + 2

    assert run(process).ended == 3


@pytest.mark.parametrize("beat", ["claim", "heard"])
def test_a_host_that_is_heard_in_time_keeps_the_lease(beat):
    def process(bench):
        yield from bench.write("claim", 0x1234_8000)
        for _ in range(20):
            if beat == "claim":
                yield from bench.write("claim", 0x1234_8001)
            else:
                yield from pulse(bench.dut.heard)
            yield from wait_cycles(4 * UNIT - 4)
        assert (yield from bench.owner()) == 0x1234_8001
        yield from wait_cycles(5 * UNIT)
        assert (yield from bench.owner()) == 0x8002
        assert (yield bench.dut.expired.status) == 1

    assert run(process).ended == 1
