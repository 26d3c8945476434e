# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""MDIO, against frames that are read off its two wires by what IEEE 802.3, clause 22, says of them."""

import random

import pytest
from migen import *

from liteprobe.cores.formats import MDIO_ADDRESSES, mdio_command
from liteprobe.cores.management import mdio
from liteprobe.cores.management.mdio import Mdio

READ, WRITE = 0b10, 0b01
START = [(31, 0xA43), (24, 0x2118)]  # (register, value)
SILENT = 7  # No PHY has this address.


class Line:
    """Stands in for the pins' drivers, which Migen's simulator doesn't know."""

    def __init__(self):
        self.o, self.oe, self.i = Signal(), Signal(), Signal(reset=1)

    def get_tristate(self, pad):
        return []


class Bench:
    """The core with PHYs on its wires; one process is the host."""

    def __init__(self, monkeypatch, clk_freq, start=(START[0],)):
        self.line = Line()
        monkeypatch.setattr(mdio, "TSTriple", lambda: self.line)
        self.pads = Record([("mdc", 1), ("mdio", 1)])
        self.dut = Mdio(self.pads, clk_freq, list(start), ports=1, reset_s=20 / clk_freq, start_s=50 / clk_freq)
        self.registers = {}
        self.frames = []  # (code, PHY, register, data) as they passed.
        self.rises = []  # Cycles in which MDC rises.

    def run(self, host):
        run_simulation(self.dut, [host, self.phys()])

    @passive
    def phys(self):
        """Take each bit at a rising edge of MDC, and drive an answer after it, as a PHY does."""
        ones, bits, answer, was_high, cycle = 0, None, None, 0, 0
        while True:
            is_high = yield self.pads.mdc
            if is_high and not was_high:
                self.rises.append(cycle)
                oe = yield self.line.oe
                bit = (yield self.line.o) if oe else (yield self.line.i)
                if bits is None:
                    if not bit and ones >= 32:
                        bits = [0]
                    ones = ones + 1 if bit else 0
                else:
                    bits.append(bit)
                    code, phy, register, data = (
                        self.number(bits, *part) for part in ((2, 4), (4, 9), (9, 14), (16, 32))
                    )
                    if len(bits) == 14 and code == READ:
                        answer = [
                            0,
                            *(self.registers.get((phy, register), 0) >> bit & 1 for bit in reversed(range(16))),
                        ]
                        answer = None if phy == SILENT else answer
                    if len(bits) > 14 and code == READ:
                        assert not oe, "the core drives the line of a PHY that answers"
                    if len(bits) == 32:
                        self.frames.append((code, phy, register, data))
                        if code == WRITE:
                            self.registers[phy, register] = data
                        ones, bits, answer = 0, None, None
                drives = answer is not None and len(bits) >= 15
                yield self.line.i.eq(answer[len(bits) - 15] if drives else 1)
            was_high = is_high
            cycle += 1
            yield

    @staticmethod
    def number(bits, first, after):
        return int("".join(map(str, bits[first:after])) or "0", 2)

    def idle(self):
        """Wait until no access is under way."""
        yield
        yield
        for _ in range(100_000):
            if not (yield self.dut._answer.status) >> 17:
                return
            yield
        raise AssertionError("MDIO stays busy")

    def access(self, *command):
        """Write the command register as a host does, and return the answer."""
        yield self.dut._command.storage.eq(mdio_command(*command))
        yield self.dut._command.re.eq(1)
        yield
        yield self.dut._command.re.eq(0)
        yield from self.idle()
        return (yield self.dut._answer.status)


@pytest.mark.parametrize("clk_mhz", [20, 50, 62.5])
def test_mdc_is_as_fast_as_a_phy_must_take_and_no_faster(monkeypatch, clk_mhz):
    """Clause 22: 400 ns at least. Half a period is whole ticks."""
    bench = Bench(monkeypatch, clk_mhz * 1e6)
    bench.run(bench.access(0, 1))
    periods_ns = {1e3 / clk_mhz * (after - before) for before, after in zip(bench.rises, bench.rises[1:], strict=False)}
    assert 400 <= min(periods_ns) < 400 + 2e3 / clk_mhz


def test_each_address_gets_the_table_before_the_host_does(monkeypatch):
    bench = Bench(monkeypatch, 10e6, START)

    def host():
        assert (yield bench.dut._answer.status) >> 17
        yield from bench.idle()
        assert (yield bench.dut.phy_reset) == 0

    bench.run(host())
    assert bench.frames == [(WRITE, phy, *entry) for phy in range(MDIO_ADDRESSES) for entry in START]


def test_the_host_reads_what_it_wrote_and_sees_where_no_phy_answers(monkeypatch):
    bench, chance = Bench(monkeypatch, 10e6), random.Random(1)

    def host():
        yield from bench.idle()
        bench.frames.clear()
        kept = {}
        for _ in range(8):
            place, value = (chance.randrange(SILENT), chance.randrange(32)), chance.getrandbits(16)
            kept[place] = value
            yield from bench.access(*place, value)
            assert bench.frames.pop() == (WRITE, *place, value)
        for place, value in kept.items():
            assert (yield from bench.access(*place)) == value
            assert bench.frames.pop() == (READ, *place, value)
        assert (yield from bench.access(SILENT, 2)) >> 16 == 1
        assert bench.frames.pop() == (READ, SILENT, 2, 0xFFFF)
        assert not bench.frames

    bench.run(host())
