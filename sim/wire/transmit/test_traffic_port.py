# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Streams from the words of the host to the octets on the PHY: the real source in a real port, compiled, against the model."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from liteprobe.host.traffic.stream import Fixed, Interval, Stream
from liteprobe.sim.drivers.frames.random_streams import StreamMaker
from liteprobe.sim.drivers.tools.wire import with_full
from liteprobe.sim.drivers.traffic import port

@pytest.mark.parametrize("seed", with_full(range(1000, 1004), range(1004, 1100)))
def test_random_programs_leave_as_the_model_says(seed):
    chance = random.Random(seed)
    streams = StreamMaker(seed, chance.choice((80, 200, 1514))).streams(chance.randint(1, 16), chance.choice((0.5, 0.95, 1)))
    found = port.compared(streams, port.run(streams, 500, port.SYS_PS + chance.randint(-2, 2)), is_cut=True)
    assert found.off == 0 and found.frames >= 500, found


@pytest.mark.parametrize("count", [1, 16])
def test_shortest_frames_with_four_modifiers_fill_the_line(count):
    one = Stream("0", 1, Fixed(60), Interval(share=Fraction(1, count)), modifiers=port.CHANGES, fill="prbs")
    streams = [replace(one, name=str(n), stream_id=n + 1, start_ns=n * 8 * 84, seed=n) for n in range(count)]
    found = port.compared(streams, port.run(streams, 1000), is_cut=True)
    assert (found.off, found.utilisation) == (0, 1)


def test_streams_that_end_leave_all_of_their_frames_and_no_more():
    streams = [Stream(str(n), n + 1, Fixed(60 + 7 * n), Interval(pps=40_000), count=20 + n, start_ns=900 * n) for n in range(5)]
    ran = port.run(streams)
    found = port.compared(streams, ran)
    assert (found.off, found.frames) == (0, sum(one.count for one in streams))
    assert [sent for sent, _, _ in ran.streams] == [20, 21, 22, 23, 24] + 11 * [0]


def test_a_wrong_octet_start_or_counter_is_seen():
    streams = [Stream("a", 1, Fixed(60), Interval(pps=100_000), count=20)]
    ran = port.run(streams)
    octets = [*ran.frames[:7], bytes([ran.frames[7][0] ^ 1]) + ran.frames[7][1:], *ran.frames[8:]]
    ticks = ran.ticks.copy()
    ticks[9] += 1
    for wrong, name in (
        (replace(ran, frames=octets), "octets_off"),
        (replace(ran, ticks=ticks), "starts_off"),
        (replace(ran, late=1), "counters_off"),
        (replace(ran, frames=octets[:-1], ticks=ran.ticks[:-1], now_ns=ran.now_ns[:-1], lengths=ran.lengths[:-1]), "missing"),
    ):
        assert getattr(port.compared(streams, wrong), name) > 0, name
