# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The serial line of the receiver: octets against the levels of the line, bit by bit, at rates that are a little off."""

import random

import pytest
from migen import *

from liteprobe.cores.timebase.serial import SerialLine

CLK, BAUD = 50e6, 1e6
CYCLES = 50  # Of a bit.


class Pads(Module):
    """Both lines; the receiver's is silent."""

    def __init__(self):
        self.tx = Signal()
        self.rx = Signal(reset=1)


def levels(octets, cycles, gaps):
    """Return the line cycle by cycle as a receiver sends octets, each after a gap of so many cycles."""
    line, at = [], 0.0
    for octet, gap in zip(octets, gaps, strict=True):
        at += gap
        line += [1] * (round(at) - len(line))
        for bit in [0, *(octet >> n & 1 for n in range(8)), 1]:
            at += cycles
            line += [bit] * (round(at) - len(line))
    return line


def heard(line):
    """Return the octets that the core receives of a line."""
    pads, found = Pads(), []
    dut = SerialLine(pads, CLK, BAUD)

    def process():
        for level in [*line, *[1] * 200]:
            yield pads.rx.eq(level)
            if (yield dut.source.valid):
                found.append((yield dut.source.data))
            yield

    run_simulation(dut, process())
    return found


@pytest.mark.parametrize("off", [-0.03, 0, 0.03])
def test_octets_of_a_receiver_whose_rate_is_off_come_in_order(off):
    rng = random.Random(str(off))
    octets = [0, 255, 0x55, 0xAA, *(rng.randrange(256) for _ in range(40))]
    gaps = [100, *(rng.choice([0, 0, 1, 7, 333]) for _ in octets[1:])]
    assert heard(levels(octets, CYCLES * (1 + off), gaps)) == octets


def test_an_octet_without_a_stop_bit_is_left_out_and_the_next_one_comes():
    line = levels([0x31], CYCLES, [90])
    broken = line[:-CYCLES] + [0] * CYCLES + [1] * 600
    assert heard(broken + levels([0x32, 0x33], CYCLES, [0, 0])) == [0x32, 0x33]


def test_a_line_that_is_low_for_good_gives_nothing():
    assert heard([1] * 50 + [0] * 5000 + [1] * 600 + levels([0x41], CYCLES, [0])) == [0x41]


@pytest.mark.parametrize("seed", [5, 1127])
def test_the_line_has_the_bits_of_each_octet_for_as_long_as_the_rate_says(seed):
    rng = random.Random(seed)
    octets = [rng.randrange(256) for _ in range(12)]
    pads, line, taken = Pads(), [], []
    dut = SerialLine(pads, CLK, BAUD)

    def process():
        for octet in octets:
            for _ in range(rng.choice([0, 0, 3, 120])):
                yield
            yield dut.sink.valid.eq(1)
            yield dut.sink.data.eq(octet)
            yield
            while not (yield dut.sink.ready):
                yield
            taken.append(len(line))
            yield dut.sink.valid.eq(0)
            yield
        for _ in range(100):
            yield

    @passive
    def watch():
        while True:
            line.append((yield pads.tx))
            yield

    run_simulation(dut, [process(), watch()])
    found, ends, at = [], [], 0
    while 0 in line[at:]:
        at = line.index(0, at)
        frame = line[at : at + 10 * CYCLES]
        bits = [frame[n * CYCLES : (n + 1) * CYCLES] for n in range(10)]
        assert all(len(set(bit)) == 1 for bit in bits)
        assert (bits[0][0], bits[9][0]) == (0, 1)
        found.append(sum(bit[0] << n for n, bit in enumerate(bits[1:9])))
        at += 10 * CYCLES
        ends.append(at)
    assert found == octets
    assert all(abs(one - end) <= 2 for one, end in zip(taken, ends, strict=True))
