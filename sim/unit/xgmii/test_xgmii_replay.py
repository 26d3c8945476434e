# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Replay at 10 Gb/s from a memory: each start in its column, each octet; late memories and hosts are counted, never wrong."""

import random
import struct
from dataclasses import replace
from itertools import accumulate

import pytest

from liteprobe.cores.formats import NO_SEQUENCE
from liteprobe.sim.drivers.replay.traces import FrameMaker
from liteprobe.sim.drivers.xgmii.replay import (
    LATENCY, RING_WORDS, START_OCTETS, Memory, Program, ReplayRun, poisson, run, words_of, wrong,
)
from liteprobe.sim.models.traffic.replay import TraceFrame

WAIT, STAMP, END = 1 << 28, 2 << 28, 8 << 28
LONGEST = 9000


def program(frames, **fields) -> Program:
    """Return a program of frames in records of their own."""
    return Program(frames, words_of(frames, 1, fields.get("end_gap", 0), fields.pop("waits", 0)), **fields)


def right(programs, seed=0) -> list[ReplayRun]:
    """Run programs that neither host nor memory keep waiting, and hold them against arithmetic; return the runs."""
    done = run(programs, seed)
    assert [wrong(one, found) for one, found in zip(programs, done, strict=True)] == [[]] * len(programs)
    return done


@pytest.mark.parametrize("length", [*range(60, 77), 1514, 8999, LONGEST])
def test_frames_back_to_back_fill_the_line_at_any_length(length):
    chance = random.Random(length)
    done = right([program(FrameMaker(chance).back_to_back([length] * max(50, 40_000 // length)))])
    assert done[0].late == 0


def test_lengths_and_snaps_in_any_order_fill_the_line():
    chance = random.Random(2)
    lengths = [chance.choice([60, 61, 1514, LONGEST, chance.randint(60, LONGEST)]) for _ in range(100)]
    frames = FrameMaker(chance).back_to_back(lengths, lambda length: chance.choice([0, 1, 8, length, chance.randint(0, length)]))
    assert right([program(frames)])[0].late == 0


@pytest.mark.parametrize("load", [0.5, 0.8, 0.99])
def test_exponential_gaps_are_kept_to_the_column(load):
    done = right([program(poisson(1500, load, 3), waits=0.2)])
    assert done[0].late == 0


def test_frames_that_are_due_within_the_one_before_are_late_and_counted():
    chance = random.Random(4)
    frames = FrameMaker(chance).exponential(800, 1.1)
    assert right([program(frames)])[0].late > 400


# A queue of programs, loops, stops ------------------------------------------------------------------


def test_programs_follow_one_another_in_the_ring_and_the_next_session_begins_anew():
    chance = random.Random(5)
    maker = FrameMaker(chance)
    programs = [
        program(maker.exponential(chance.randint(1, 60), 0.7), opens=number % 4 == 0, end_gap=chance.choice([0, 0, 5]))
        for number in range(40)
    ]
    # The first one of a session needn't hold all that is streamed in it.
    assert [one.is_bad for one in right(programs)] == [0] * 40


@pytest.mark.parametrize("loops", [2, 3, 7])
def test_a_trace_that_loops_starts_over_without_a_pause_at_an_odd_word_too(loops):
    chance = random.Random(loops)
    maker = FrameMaker(chance)
    programs = []
    for _ in range(12):
        frames = maker.back_to_back([chance.randint(60, 200) for _ in range(chance.randint(1, 30))])
        # The first frame comes a slot after the last one of the turn before.
        programs.append(program([replace(frames[0], gap=frames[-1].length + 24), *frames[1:]], loops=loops))
    assert {len(one.words) // 4 % 2 for one in programs} == {0, 1}
    assert {one.late for one in right(programs)} == {0}


def test_an_endless_loop_ends_with_a_stop_after_a_whole_frame():
    frames = FrameMaker(random.Random(6)).back_to_back([100, 61, 1000])
    frames = [replace(frames[0], gap=1024), *frames[1:]]
    programs = [program(frames, loops=0, stop_after=after) for after in (1, 20, 1000, 9999)]
    done = right(programs)
    assert [len(one.frames) for one in done[:2]] == [0, 0] and len(done[3].frames) > 150


def test_after_a_stop_nothing_is_sent_until_the_session_is_opened_anew():
    chance = random.Random(7)
    maker = FrameMaker(chance)
    for _ in range(3):
        frames = maker.exponential(200, 0.9)
        stopped = program(frames, stop_frames=chance.randint(1, 150))
        after = program(maker.exponential(5, 0.5), opens=False)
        again = program(maker.exponential(50, 0.5))
        first, second, third = run([stopped, after, again])
        assert wrong(stopped, first) == [] and first.sent < 160
        assert (second.frames, second.sent, second.is_bad) == ([], 0, 1)
        assert wrong(again, third) == [] and not third.is_bad


def test_a_time_of_days_is_known_to_the_octet():
    waits = [0xFFFFFFFF] * 4 + [17]
    words = b"".join(struct.pack("<II", gap, WAIT) for gap in waits) + words_of([TraceFrame(5, 60, b"x" * 60)])
    done = run([Program([], words, stop_after=1000)])
    assert (done[0].first_due, done[0].frames) == (sum(waits) + 5, [])


# Bad records -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [
    59, 0, 9001, 0x3FFF, 60 | 61 << 14, 60 | 60 << 14 | 4 << 28, 60 | 60 << 14 | STAMP, WAIT | STAMP, WAIT | 4 << 28, 0xFFFFFFFF,
])
def test_a_record_that_no_frame_can_be_made_of_ends_the_program_after_the_frames_before_it(shape):
    frames = FrameMaker(random.Random(8)).exponential(9, 0.5)
    good = words_of(frames)
    # Without the mark of its end: another record follows.
    ends = len(good) - -(-frames[-1].length // 4) * 4 - 4
    head = struct.pack("<I", struct.unpack_from("<I", good, ends)[0] & ~END)
    bad = Program(frames, good[:ends] + head + good[ends + 4 :] + struct.pack("<II", 5, shape) + bytes(2048))
    after = program(frames, opens=False)
    again = program(frames)
    first, second, third = run([bad, after, again])
    assert wrong(bad, first) == [] and first.is_bad
    assert (second.frames, second.is_bad) == ([], 1)
    assert wrong(again, third) == [] and not third.is_bad


def test_octets_that_no_frame_has_are_never_sent_whatever_the_ring_holds():
    chance = random.Random(9)
    for _ in range(20):
        frames = FrameMaker(chance).exponential(3, 0.5)
        rest = b"".join(struct.pack("<I", chance.getrandbits(32)) for _ in range(3000))
        cut = Program(frames, words_of(frames)[:-8], stop_after=20_000)
        noise = Program([], rest, stop_after=20_000)
        first, second = run([cut, noise], chance.getrandbits(16))
        assert wrong(cut, first) == [] and len(first.frames) == 2
        # What noise says of lengths may be a frame; none is sent of fewer octets than it has.
        assert second.is_bad or len(second.frames) < 50


# Late memories and hosts -----------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [
    Memory(latency=1), Memory(latency=60), Memory(latency=12, turn=20), Memory(latency=12, stall_every=400, stall=200),
])
def test_a_memory_that_keeps_up_at_the_mean_makes_no_frame_late(memory):
    done = right([program(poisson(800, 0.8, 10), memory=memory)])
    assert done[0].late == 0


@pytest.mark.parametrize("memory", [
    Memory(turn=128), Memory(latency=200), Memory(stall_every=1000, stall=4000), Memory(turn=60, stall_every=300, stall=1500),
])
def test_a_memory_that_is_late_makes_late_frames_which_are_whole_and_counted(memory):
    one = program(poisson(800, 0.9, 11), memory=memory)
    done = run([one])
    assert wrong(one, done[0], is_fed=False) == []
    assert done[0].late > 50 and done[0].underruns > 0


def test_a_host_that_stalls_makes_underruns_and_the_schedule_is_taken_up_again():
    chance = random.Random(12)
    for seed in range(5):
        frames = poisson(600, 0.5, seed)
        words = words_of(frames)
        sizes = [min(365, len(words) // 4 - first) for first in range(0, len(words) // 4, 365)]
        stalls = set(chance.sample(range(40, len(sizes)), 3))
        cycle, arrivals = 0, []
        for number, size in enumerate(sizes):
            cycle += 0 if number < 40 else 200 + (chance.randint(20_000, 50_000) if number in stalls else 0)
            arrivals.append((cycle, size))
        one = Program(frames, words, arrivals=arrivals)
        done = run([one], seed)[0]
        assert wrong(one, done, is_fed=False) == []
        # Frames whose words came in time for them, and whose line was free, are where they must be.
        ends = list(accumulate(2 + -(-frame.length // 4) for frame in frames))
        due = list(accumulate(frame.gap for frame in frames))
        free, expected_dry = 0, []
        for n, place in enumerate(done.places):
            came, wish = done.came[ends[n] - 1], done.start + START_OCTETS + due[n] // 4 * 4
            if came + LATENCY <= max(wish, free):
                assert place <= max(wish, free)
            else:
                assert place <= max(came + LATENCY, free)
            expected_dry += [n] * (came > wish + 100 and came > free)
            free = place + frames[n].length + 24
        assert expected_dry and done.first_underrun == expected_dry[0] and done.underruns >= len(expected_dry)


def test_a_trace_of_many_rings_is_read_behind_what_is_written():
    one = program(poisson(700, 0.6, 13))
    assert len(one.words) > 4 * 3 * RING_WORDS
    done = right([one, program([TraceFrame(0, 60, bytes(60))])])
    assert [found.first_underrun for found in done] == [NO_SEQUENCE] * 2
