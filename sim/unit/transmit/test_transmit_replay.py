# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Descriptors of a trace: due ticks beyond what a simulation of the wire reaches, and the order of what is asked for."""

import random

import pytest
from migen import passive, run_simulation

from liteprobe.cores.formats import TRACE_FLAGS_BIT, TraceFlag
from liteprobe.cores.transmit.sources.replay import ReplaySource
from liteprobe.sim.drivers.replay.traces import LONGEST_GAP, record
from liteprobe.sim.models.traffic.replay import StampPlace, TraceFrame
from liteprobe.sim.drivers.tools.steps import pulse, wait_cycles, wait_until

FIELDS = ("due", "length", "snap", "fetch", "final", "empty", "stamp_enable")
STAMP  = ("stamp_offset", "stamp_octets", "stamp_shift", "stamp_nibble", "stamp_mend")


def seen(dut):
    """Read the descriptor."""
    found = {}
    for name in FIELDS + STAMP:
        found[name] = yield getattr(dut.source, name)
    return found


@passive
def feed(dut, words, loops, chance):
    """Begin a session and a program, and give its words with pauses; all that are left are in the buffer."""
    for name, value in (("open", 1), ("loops", loops), ("prime", len(words)), ("written", len(words)), ("level", 1024)):
        yield getattr(dut, name).eq(value)
    yield
    yield dut.open.eq(0)
    yield from pulse(dut.arm)
    while True:
        for number, word in enumerate(words):
            yield from wait_cycles(chance.randrange(3))
            yield dut.words.valid.eq(1)
            yield dut.words.data.eq(word)
            yield dut.fetched.eq(number)
            yield
            yield from wait_until(dut.words.ready)
            yield dut.words.valid.eq(0)


def fetched(dut, snap, chance):
    """Take the octets of a frame, with pauses."""
    octets = []
    while 4*len(octets) < snap:
        yield dut.fetch.ready.eq(chance.randrange(2))
        yield
        if (yield dut.fetch.ready) and (yield dut.fetch.valid):
            octets.append((yield dut.fetch.data))
    yield dut.fetch.ready.eq(0)
    return octets


def descriptors(words, loops=1, seed=1, stop_at=None):
    """Return the descriptors of a trace, each with the words that were fetched, and at last the frames that were counted."""
    chance = random.Random(seed)
    dut    = ReplaySource()
    found  = []

    def take():
        one = {"final": 0}
        while not one["final"]:
            yield from wait_until(dut.source.valid)
            one    = yield from seen(dut)
            octets = yield from fetched(dut, 0 if one["empty"] else one["snap"], chance)
            if stop_at is not None and len(found) >= stop_at:
                yield dut.stop.eq(1)
            yield from wait_cycles(chance.randrange(5))
            assert (yield from seen(dut)) == one
            yield from pulse(dut.source.ready)
            yield
            found.append((one, octets))
        assert not (yield dut.is_active) and not (yield dut.is_bad)
        found.append((yield dut.frames))

    run_simulation(dut, [feed(dut, words, loops, chance), take()])
    return found


def words_of(frames, end_gap=None):
    records = [record(frame, end_gap is None and n == len(frames) - 1) for n, frame in enumerate(frames)]
    if end_gap is not None:
        records.append([end_gap, (TraceFlag.WAIT | TraceFlag.END) << TRACE_FLAGS_BIT])
    return [word for one in records for word in one]


def test_due_ticks_are_sums_of_gaps_beyond_32_bits():
    gaps   = [0, 1, LONGEST_GAP, 2**33 + 5, 84, 2**34]
    frames = [TraceFrame(gap, 60 + n, bytes(range(n, n + 60))) for n, gap in enumerate(gaps)]
    *found, count = descriptors(words_of(frames))
    assert [one["due"] for one, _ in found] == [sum(gaps[:n + 1]) for n in range(len(gaps))]
    assert [(one["length"], one["snap"], one["fetch"], one["stamp_enable"]) for one, _ in found] == [
        (60 + n, 60, 1, 0) for n in range(len(gaps))]
    assert [one["final"] for one, _ in found] == [0]*5 + [1] and not any(one["empty"] for one, _ in found)
    assert count == len(gaps)


def test_octets_that_are_fetched_are_those_of_the_record():
    frames = [TraceFrame(84, 100, random.Random(n).randbytes(n)) for n in (0, 1, 3, 4, 5, 99, 100)]
    for frame, (_, octets) in zip(frames, descriptors(words_of(frames)), strict=False):
        whole = b"".join(word.to_bytes(4, "little") for word in octets)
        assert whole[:len(frame.octets)] == frame.octets and len(whole) == -(-len(frame.octets)//4)*4


@pytest.mark.parametrize("loops", [2, 5])
@pytest.mark.parametrize("end_gap", [None, 2**32 - 1])
def test_the_due_time_goes_on_over_loops(loops, end_gap):
    frames = [TraceFrame(gap, 60, bytes(8)) for gap in (10, 2**32 - 1, 30)]
    *found, count = descriptors(words_of(frames, end_gap), loops)
    due, expected = 0, []
    for _ in range(loops):
        for frame in frames:
            due += frame.gap
            expected.append(due)
        due += end_gap or 0
    *ends, last = [(one["final"], one["empty"]) for one, _ in found]
    assert [one["due"] for one, _ in found if not one["empty"]] == expected
    assert last == (1, end_gap is not None) and set(ends) == {(0, 0)} and count == len(expected)


def test_a_stamp_is_that_of_its_record_only():
    place  = StampPlace(200, 7, 13, True)
    frames = [TraceFrame(9, 300, bytes(300)), TraceFrame(9, 300, bytes(300), place), TraceFrame(9, 300, bytes(300))]
    *found, _ = descriptors(words_of(frames))
    assert [one["stamp_enable"] for one, _ in found] == [0, 1, 0]
    assert [found[1][0][name] for name in STAMP] == [200, 6, 13, 1, 0]


def test_a_stop_leaves_one_empty_descriptor_behind_the_present_one():
    frames = [TraceFrame(84, 60, bytes(60))]*20
    *found, count = descriptors(words_of(frames), stop_at=3)
    assert [(one["final"], one["empty"]) for one, _ in found] == [(0, 0)]*4 + [(1, 1)] and count == 4
