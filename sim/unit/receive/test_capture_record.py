# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The record ring against its model, read over the bus as a host would."""

import random

import pytest
from migen import run_simulation

from liteprobe.cores.capture.record import RecordRing
from liteprobe.cores.formats import RecordFlag
from liteprobe.sim.models.receive.port import Record, RingModel
from liteprobe.sim.drivers.tools.steps import pulse, wait_cycles

FIELDS = ("sequence", "tx_stamp", "rx_stamp", "length", "flags")
DEPTH = 4


def record(number, rng):
    flags = RecordFlag(rng.randrange(512))
    return Record(number, rng.getrandbits(64), rng.getrandbits(64), rng.getrandbits(16), flags)


def keep(dut, kept, spacing=7):
    for name in FIELDS:
        yield getattr(dut, name).eq(int(getattr(kept, name)))
    yield from pulse(dut.keep)
    yield from wait_cycles(spacing - 1)


def state(dut):
    return (yield dut.written), (yield dut.lost)


@pytest.mark.parametrize("seed", range(3))
def test_ring_agrees_with_the_model_while_a_host_drains_it(seed):
    rng = random.Random(seed)
    dut, model = RecordRing(DEPTH), RingModel(DEPTH)

    def process():
        for number in range(40):
            kept = record(number, rng)
            yield from keep(dut, kept, 7 + rng.randrange(3))
            model.keep(kept)
            yield
            assert (yield from state(dut)) == (model.written, model.lost)
            if rng.randrange(3) == 0:
                model.read += rng.randrange(model.written - model.read + 1)
                yield dut.read.eq(model.read)
                yield
                yield
            address = rng.choice(list(model.memory))
            assert (yield from dut.bus.read(address)) == model.memory[address]
        for address, word in model.memory.items():
            assert (yield from dut.bus.read(address)) == word
        assert model.lost > 0

    run_simulation(dut, process())


def test_record_is_not_shown_before_its_last_word_is_written():
    dut = RecordRing(DEPTH)
    first = Record(0x11111111, 0x2222222233333333, 0x4444444455555555, 0x6666, RecordFlag(0x77))

    def process():
        yield from keep(dut, first, 1)
        # A cycle to decide, six words, and the count.
        for _ in range(7):
            assert (yield dut.written) == 0
            yield
        assert (yield dut.written) == 1
        words = []
        for address in range(6):
            words.append((yield from dut.bus.read(address)))
        assert words == [0x11111111, 0x33333333, 0x22222222, 0x55555555, 0x44444444, 0x00776666]

    run_simulation(dut, process())


def test_clear_in_the_middle_of_a_record_leaves_an_empty_ring():
    rng = random.Random(5)
    dut = RecordRing(DEPTH)

    def process():
        yield from keep(dut, record(0, rng), 3)
        yield from pulse(dut.clear)
        yield from wait_cycles(10)
        assert (yield from state(dut)) == (0, 0)
        second = record(1, rng)
        yield from keep(dut, second)
        yield
        assert (yield from state(dut)) == (1, 0)
        for address, word in enumerate(second.words()):
            assert (yield from dut.bus.read(address)) == word

    run_simulation(dut, process())


def test_host_that_claims_to_have_read_the_future_loses_records_but_overwrites_none():
    rng = random.Random(6)
    dut = RecordRing(DEPTH)

    def process():
        yield dut.read.eq(3)
        yield
        yield
        yield from keep(dut, record(0, rng))
        yield
        assert (yield from state(dut)) == (0, 1)

    run_simulation(dut, process())


def test_write_over_the_bus_is_answered_and_changes_nothing():
    rng = random.Random(7)
    dut = RecordRing(DEPTH)
    kept = record(0, rng)

    def process():
        yield from keep(dut, kept)
        yield from dut.bus.write(0, 0xDEADBEEF)
        yield
        assert (yield from dut.bus.read(0)) == kept.sequence

    run_simulation(dut, process())
