# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Memories of the emulator: lists of entries against queues of Python, and traces, whose opportunities come in a circle."""

import random
from collections import deque
from random import Random

import pytest

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.memories import EntryLists
from liteprobe.cores.emulate.store import BlockTrace, SdramTrace
from liteprobe.cores.memory.ports import BurstPorts
from liteprobe.sim.drivers.memory.block_memory import BlockMemory
from liteprobe.sim.drivers.tools.steps import assign, wait_cycles, wait_until

ENTRIES, LISTS, STEPS, BITS = 8, 3, 600, 12

def test_each_list_is_first_in_first_out_and_all_entries_are_used_again() -> None:
    dut, chance = EntryLists([("value", BITS)], ENTRIES, LISTS), Random(1)
    lists: list[deque[int]] = [deque() for _ in range(LISTS)]
    seen, fullest = [], 0
    def drive():
        nonlocal fullest
        for _ in range(STEPS):
            number = chance.randrange(LISTS)
            mine   = lists[number]
            yield dut.number.eq(number)
            yield
            yield
            yield
            seen.append(((yield dut.is_there), [n for n, one in enumerate(lists) if one]))
            if mine:
                seen.append(((yield dut.head.value), mine[0]))
            count = sum(map(len, lists))
            fullest = max(fullest, count)
            # It fills up, and is emptied.
            puts = count < ENTRIES and chance.random() < 0.6
            if puts:
                mine.append(chance.getrandbits(BITS))
                yield dut.entry.value.eq(mine[-1])
                yield dut.put.eq(1)
            elif mine:
                mine.popleft()
                yield dut.drop.eq(1)
            yield
            yield dut.put.eq(0)
            yield dut.drop.eq(0)
    run_simulation(dut, drive())
    assert fullest == ENTRIES
    for came, expected in seen:
        if isinstance(expected, list):
            assert [n for n in range(LISTS) if came >> n & 1] == expected
        else:
            assert came == expected


# Traces --------------------------------------------------------------------------------------------

DEPTH, PLACE, CYCLES = 16, 128, 3000

class InSdram(LiteXModule):
    """A `SdramTrace` beside another reader, which makes it wait."""
    def __init__(self):
        self.memory = memory = BlockMemory(512)
        self.ports  = ports  = BurstPorts(memory.burst, 2)
        self.trace  = SdramTrace(ports.ports[0], PLACE, DEPTH)
        self.other  = ports.ports[1]

    def write(self, words):
        port = self.other
        yield port.request.write.eq(1)
        for index, word in enumerate(words):
            yield port.request.address.eq(PLACE + index)
            yield port.write_data.eq(word)
            yield port.request.valid.eq(1)
            yield
            while not (yield port.takes):
                yield port.request.valid.eq(port.request.valid & ~port.request.ready)
                yield
            yield
        yield port.request.valid.eq(0)
        yield port.request.write.eq(0)

    @passive
    def disturb(self, rand):
        port = self.other
        while True:
            yield port.request.rest.eq(rand.randrange(64))
            yield port.request.valid.eq(rand.random() < 0.5)
            yield

class InBlock(LiteXModule):
    """A `BlockTrace`."""
    def __init__(self):
        self.trace = BlockTrace(DEPTH)

    def write(self, words):
        bus = self.trace.bus
        for index, word in enumerate(words):
            yield bus.adr.eq(index)
            yield bus.dat_w.eq(word)
            yield from self.access(1)
            yield from self.access(0)
            assert (yield bus.dat_r) == word

    def access(self, is_write):
        bus = self.trace.bus
        for signal, value in ((bus.we, is_write), (bus.cyc, 1), (bus.stb, 1)):
            yield signal.eq(value)
        yield
        yield from wait_until(bus.ack)
        yield bus.cyc.eq(0)
        yield

    @passive
    def disturb(self, rand):
        bus = self.trace.bus
        while True:
            yield from assign(bus, adr=rand.randrange(2*DEPTH), we=0, cyc=rand.randrange(2))
            yield

@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [0, 1, 2, 11, DEPTH])
@pytest.mark.parametrize("kind", [InBlock, InSdram])
def test_opportunities_come_in_a_circle_and_from_the_first_one_after_each_start(kind, count, seed):
    rand  = random.Random(f"{kind.__name__} {count} {seed}")
    dut   = kind()
    trace = dut.trace
    words = [rand.getrandbits(32) for _ in range(2*DEPTH)]
    taken, starts = [], []
    def user():
        yield from dut.write(words)
        yield trace.start.eq(1)
        yield trace.count.eq(count)
        at, pace = 0, 0.5
        for cycle in range(CYCLES):
            yield
            if (yield trace.start):
                starts.append(len(taken))
                at = 0
            elif (yield trace.source.valid) and (yield trace.source.ready):
                index = at % count
                assert ((yield trace.source.ticks), (yield trace.source.octets)) == tuple(words[2*index:2*index + 2])
                taken.append(index)
                at += 1
            pace = rand.choice([0.02, 0.5, 1]) if cycle % 100 == 0 else pace
            yield trace.source.ready.eq(rand.random() < pace)
            yield trace.start.eq(rand.random() < 0.005)
    def disturb():
        yield from wait_cycles(2000)
        yield from dut.disturb(rand)
    run_simulation(dut, [user(), passive(disturb)()])
    assert len(starts) > 5
    assert not taken if not count else len(set(taken)) == count and len(taken) > 20
