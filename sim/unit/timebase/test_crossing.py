# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Crossings between clocks of many ratios and phases."""

import random

import pytest
from migen import *

from liteprobe.cores.crossing import HandshakeCrossing, HeldCrossing, LevelCrossing, PulseCrossing, StreamCrossing, WordCrossing
from liteprobe.sim.drivers.tools.steps import assign, pulse, wait_cycles, wait_until

CLOCKS = [((20, 0), (8, 3)), ((8, 1), (20, 0)), ((8, 0), (8, 3)), ((16, 5), (8, 0)), ((7, 0), (8, 0))]

def run(dut, generators, periods):
    clocks = {"from": periods[0], "to": periods[1]}
    run_simulation(dut, generators, clocks=clocks)

@pytest.mark.parametrize("periods", CLOCKS)
def test_each_pulse_comes_out_once(periods):
    dut   = PulseCrossing("from", "to")
    seen  = []
    gap   = 4*periods[1][0]//periods[0][0] + 2
    def send():
        for _ in range(20):
            yield from pulse(dut.i)
            yield from wait_cycles(gap)
        yield from wait_cycles(2*gap)
    @passive
    def watch():
        while True:
            seen.append((yield dut.o))
            yield
    run(dut, {"from": send(), "to": watch()}, periods)
    assert sum(seen) == 20

@pytest.mark.parametrize("periods", CLOCKS)
def test_what_is_asked_for_is_done_once_and_told_after(periods):
    dut  = HandshakeCrossing("from", "to")
    rand = random.Random(1)
    log  = []
    def ask():
        for number in range(20):
            log.append(("ask", number))
            yield from pulse(dut.ask)
            yield
            while not (yield dut.done):
                assert (yield dut.busy)
                yield
            log.append(("done", number))
            for _ in range(rand.choice([0, 1, 5])):
                yield
                assert not (yield dut.busy)
    @passive
    def answer():
        number = 0
        while True:
            if (yield dut.asked):
                for _ in range(rand.choice([0, 1, 7])):
                    yield
                    assert (yield dut.asked)
                yield dut.answer.eq(1)
                yield
                log.append(("answer", number))
                number += 1
                yield dut.answer.eq(0)
            yield
    run(dut, {"from": ask(), "to": answer()}, periods)
    assert log == [(what, number) for number in range(20) for what in ("ask", "answer", "done")]

@pytest.mark.parametrize("periods", CLOCKS)
def test_held_words_are_whole_when_told_and_until_the_next(periods):
    dut  = HeldCrossing(16, "from", "to")
    sent = [0xffff, 0, 0xaaaa, 0x5555, 0x1234]
    seen = []
    gap  = 5*periods[1][0]//periods[0][0] + 5
    def send():
        for word in sent:
            yield dut.i.eq(word)
            yield from pulse(dut.take)
            yield dut.i.eq(~word & 0xffff)
            yield from wait_cycles(gap)
    @passive
    def watch():
        while True:
            if (yield dut.taken):
                seen.append((yield dut.o))
            yield
    run(dut, {"from": send(), "to": watch()}, periods)
    assert seen == sent

@pytest.mark.parametrize("periods", CLOCKS)
def test_a_followed_word_shows_nothing_that_never_was(periods):
    dut  = WordCrossing(8, "from", "to")
    rng  = random.Random(3)
    sent = {0}
    seen = []
    def send():
        for _ in range(150):
            word = rng.choice([0x00, 0xff, 0x0f, 0xf0])
            sent.add(word)
            yield dut.i.eq(word)
            yield
        yield dut.i.eq(0x77)
        yield from wait_cycles(400)
    @passive
    def watch():
        while True:
            seen.append((yield dut.o))
            yield
    run(dut, {"from": send(), "to": watch()}, periods)
    assert set(seen) <= sent | {0x77} and seen[-1] == 0x77 and len(set(seen)) > 2

@pytest.mark.parametrize("periods", CLOCKS)
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_a_stream_keeps_every_transfer_in_order(periods, stall):
    dut  = StreamCrossing([("data", 16)], "from", "to", depth=8)
    rng  = random.Random(5)
    sent = [rng.randrange(2**16) for _ in range(120)]
    seen = []
    def send():
        for number, word in enumerate(sent):
            yield from assign(dut.sink, valid=1, data=word, last=number%7 == 6)
            yield
            yield from wait_until(dut.sink.ready)
            if rng.random() < stall:
                yield dut.sink.valid.eq(0)
                yield
        yield dut.sink.valid.eq(0)
        yield from wait_cycles(80)
    @passive
    def receive():
        while True:
            ready = rng.random() >= stall
            yield dut.source.ready.eq(ready)
            yield
            if ready and (yield dut.source.valid):
                seen.append(((yield dut.source.data), (yield dut.source.last)))
    run(dut, {"from": send(), "to": receive()}, periods)
    assert seen == [(word, int(number%7 == 6)) for number, word in enumerate(sent)]

def test_a_level_follows_in_three_cycles():
    dut  = LevelCrossing("to")
    seen = []
    def process():
        for level in [0]*5 + [1]*5 + [0]*5:
            yield dut.i.eq(level)
            yield
            seen.append((yield dut.o))
    run_simulation(dut, {"to": process()}, clocks={"to": 8})
    assert seen == [0]*7 + [1]*5 + [0]*3
