# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The register of the processor's bus: two masters and slow slaves behind LiteX's interconnect, against a dict."""

import random

import pytest
from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone

from liteprobe.cores.bus import BusRegister

TIMEOUT = 16
SILENT = 0x80  # The first word of a slave that never answers: the interconnect does.


class Bench(LiteXModule):
    """Two masters, each by its register, a memory that takes its time, and a slave that is silent."""

    def __init__(self):
        self.masters = [wishbone.Interface(32, address_width=32, addressing="word") for _ in range(2)]
        self.slave = wishbone.Interface(32, address_width=32, addressing="word")
        silent = wishbone.Interface(32, address_width=32, addressing="word")
        registers = [BusRegister(master) for master in self.masters]
        self.submodules += registers
        self.comb += [master.connect(register.sink) for master, register in zip(self.masters, registers)]
        self.interconnect = wishbone.InterconnectShared(
            [register.source for register in registers],
            [(lambda adr: adr[7] == 0, self.slave), (lambda adr: adr[7] == 1, silent)],
            register=True,
            timeout_cycles=TIMEOUT,
        )


@pytest.mark.parametrize("seed", [4, 1141])
def test_each_access_of_two_masters_is_done_once_and_answered_right(seed):
    rng = random.Random(seed)
    dut = Bench()
    truth = {}
    done, served = [], []

    def master(number):
        bus = dut.masters[number]
        for _ in range(150):
            # Each has words of its own, so that their order doesn't matter.
            address = rng.choice([SILENT, *range(64 * number, 64 * number + 8)])
            is_write, word, lanes = rng.random() < 0.5, rng.getrandbits(32), rng.randrange(1, 16)
            for name, value in [("adr", address), ("we", is_write), ("dat_w", word), ("sel", lanes), ("cyc", 1), ("stb", 1)]:
                yield getattr(bus, name).eq(value)
            yield
            while not (yield bus.ack):
                yield
            if address == SILENT:
                assert is_write or (yield bus.dat_r) == 2**32 - 1
            elif not is_write:
                assert (yield bus.dat_r) == truth.get(address, 0)
            done.append((number, address, is_write))
            yield bus.cyc.eq(0)
            yield bus.stb.eq(0)
            for _ in range(rng.randrange(3)):  # None: the next one follows at once.
                yield

    @passive
    def slave():
        bus = dut.slave
        while True:
            if (yield bus.cyc) and (yield bus.stb):
                address, word, lanes = (yield bus.adr), (yield bus.dat_w), (yield bus.sel)
                is_write = yield bus.we
                for _ in range(rng.randrange(5)):
                    yield
                old = truth.get(address, 0)
                if is_write:
                    mask = sum(0xFF << 8 * lane for lane in range(4) if lanes >> lane & 1)
                    truth[address] = old & ~mask | word & mask
                served.append((address // 64, address, bool(is_write)))
                yield bus.dat_r.eq(old)
                yield bus.ack.eq(1)
                yield
                yield bus.ack.eq(0)
                yield bus.dat_r.eq(rng.getrandbits(32))  # Nobody holds it.
                yield
            yield

    run_simulation(dut, [master(0), master(1), slave()])
    assert len(done) == 300
    for number in range(2):
        answered = [one for one in done if one[0] == number and one[1] != SILENT]
        assert [one for one in served if one[0] == number] == answered
