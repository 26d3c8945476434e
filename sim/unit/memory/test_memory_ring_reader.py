# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The reader of a ring by itself, with a memory that takes requests when it likes and gives words with pauses."""

import random

import pytest
from migen import passive, run_simulation

from liteprobe.cores.memory.ring_reader import BUFFER_WORDS, RingReader
from liteprobe.cores.memory.sdram import BurstPort
from liteprobe.sim.drivers.tools.steps import pulse, wait_cycles, wait_until

ADDRESS, WORDS = 0x140, 256


@passive
def memory(port, content, bursts, chance):
    """Serve requests, one after the other; keep the words that each asked for."""
    request = port.request
    while True:
        yield from wait_cycles(chance.randrange(9))
        yield request.ready.eq(1)
        yield
        yield from wait_until(request.valid)
        address, rest = (yield request.address), (yield request.rest)
        bursts.append((address - ADDRESS, rest + 1))
        yield request.ready.eq(0)
        for word in range(address - ADDRESS, address - ADDRESS + rest + 1):
            while not chance.randrange(4):
                yield
            yield port.gives.eq(1)
            yield port.read_data.eq(content[word])
            yield
            yield port.gives.eq(0)


def reader(seed):
    chance  = random.Random(seed)
    port    = BurstPort()
    dut     = RingReader(port, ADDRESS, WORDS)
    content = [chance.getrandbits(32) for _ in range(WORDS)]
    bursts  = []
    return dut, content, bursts, chance, memory(port, content, bursts, chance)


def taken(dut, count, chance, patience=5000):
    """Take so many words, with pauses; fewer if no more come."""
    found = []
    for _ in range(patience):
        yield dut.source.ready.eq(chance.randrange(3) != 0)
        yield
        if (yield dut.source.ready) and (yield dut.source.valid):
            found.append((yield dut.source.data))
            if len(found) == count:
                break
    yield dut.source.ready.eq(0)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_words_come_in_order_around_the_ring_as_far_as_they_are_written(seed):
    dut, content, bursts, chance, serve = reader(seed)

    def run():
        given = written = 0
        while given < 1500:
            written = min(written + chance.randrange(200), given + WORDS)
            yield dut.written.eq(written)
            found = yield from taken(dut, written - given, chance)
            assert found == [content[n % WORDS] for n in range(given, written)]
            given = written
            assert (yield dut.fetched) in (given - 1, given)
        assert (yield from taken(dut, 1, chance, 300)) == []

    run_simulation(dut, [serve, run()])
    assert all(first//64 == (first + count - 1)//64 for first, count in bursts) and max(count for _, count in bursts) == 64


@pytest.mark.parametrize("seed", range(5))
def test_a_restart_leaves_nothing_of_the_last_session(seed):
    dut, content, _, chance, serve = reader(seed)

    def run():
        for _ in range(5):
            yield dut.written.eq(200)
            yield from taken(dut, chance.randrange(150), chance)
            # Whoever takes words goes on meanwhile.
            yield dut.source.ready.eq(1)
            yield from pulse(dut.restart)
            yield dut.written.eq(0)
            yield
            while not (yield dut.ready):
                yield
                assert not (yield dut.source.valid)
            assert ((yield dut.fetched), (yield dut.level)) == (0, 0)
            yield dut.source.ready.eq(0)
            yield dut.written.eq(70)
            assert (yield from taken(dut, 70, chance)) == content[:70]

    run_simulation(dut, [serve, run()])


@pytest.mark.parametrize("written", [1, 63, 64, 65, 200])
def test_a_ring_that_wraps_gives_all_of_it_again_and_again(written):
    dut, content, _, chance, serve = reader(written)

    def run():
        yield dut.written.eq(written)
        yield dut.wraps.eq(1)
        found = yield from taken(dut, 5*written + 3, chance, 20000)
        assert found == (content[:written]*9)[:5*written + 3]

    run_simulation(dut, [serve, run()])


def test_it_never_holds_more_than_its_buffer():
    dut, _, bursts, _, serve = reader(1)

    def run():
        yield dut.wraps.eq(1)
        yield dut.written.eq(200)
        yield from wait_cycles(4000)
        assert BUFFER_WORDS - 64 < (yield dut.level) <= BUFFER_WORDS
        assert sum(count for _, count in bursts) == (yield dut.level)

    run_simulation(dut, [serve, run()])
