# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The source of streams against an interpreter of its words: random programs, and what happens at their edges."""

from random import Random

import numpy as np
import pytest

from liteprobe.cores.formats import (
    BEGIN_TICKS, HEADER_WORDS_OF_STREAM, HORIZON, LN2, MODIFIER_WORDS, MODIFIERS, STREAM_FIELDS, STREAM_WORDS, STREAMS,
    exponential_table, next_random, packed_words,
)
from liteprobe.sim.drivers.traffic.interpreter import Contents, Program, exponential_gap
from liteprobe.sim.drivers.traffic.streams import (
    EMPTY, FINAL, LIMIT_CYCLES, PRIMED_CYCLES, TICKS_256, Kind, Memory, Script, Taste, address, armed, compare, differences,
    expected_frames, random_contents, random_trial, read_contents, run, words_of, write_contents,
)

CYCLES = 33 # Of sys, in which a frame of 60 octets has gone.
ALL = (1 << STREAMS) - 1
FAST_256 = 1 << 20 # Time is no matter.

PLAIN = {"header_words": 12, "with_probe": 1, "length_least": 60, "interval": 100, "burst_left": 1, "endless": 1,
    "length_random": 1, "interval_random": 1}


def contents_of(*streams):
    """Return memories with these streams, from number 0 on; a header says whose it is."""
    schedule = [word for values in streams for word in packed_words(STREAM_FIELDS, STREAM_WORDS, {**PLAIN, **values})]
    schedule += [0]*STREAM_WORDS*(STREAMS - len(streams))
    headers = [n << 8 | n//HEADER_WORDS_OF_STREAM for n in range(STREAMS*HEADER_WORDS_OF_STREAM)]
    return Contents(schedule, [0]*STREAMS*MODIFIERS*MODIFIER_WORDS, [0]*512, headers)


def sent(contents, mask, count, rate_256=FAST_256):
    """Return frames of a program from its start."""
    script = armed(contents, mask, rate_256)
    script.do(Kind.FRAMES, count, LIMIT_CYCLES)
    return run(script).frames


# Random programs ----------------------------------------------------------------------------------

@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(20))
def test_random_programs_are_as_their_words_say(seed):
    trial = random_trial(seed, 300)
    assert (trial.found, trial.frames > 0) == ([], True)


@pytest.mark.full
def test_random_programs_are_as_their_words_say_over_many_frames():
    frames = 0
    for seed in range(1000, 1080):
        trial = random_trial(seed, 1500, Taste(endless=True))
        assert (seed, trial.found, trial.frames) == (seed, [], 1500)
        frames += trial.frames
    assert frames >= 10**5


@pytest.mark.parametrize("seed", [1, 2])
def test_a_frame_takes_33_cycles_with_all_streams_and_modifiers(seed):
    contents = random_contents(Random(seed), Taste(endless=True, is_full=True))
    done = run_at_once(contents, ALL, 220)
    assert compare(done, Program(contents, ALL)) == []
    assert set(done.frames["stream"]) == set(range(STREAMS))
    spacing = np.diff(done.frames["taken"].astype(int))[20:]
    assert spacing.max() <= CYCLES


@pytest.mark.parametrize("seed", [1, 2])
def test_a_frame_takes_33_cycles_with_one_stream_and_four_modifiers(seed):
    contents = random_contents(Random(seed), Taste(endless=True, is_full=True))
    done = run_at_once(contents, 1, 220)
    assert compare(done, Program(contents, 1)) == []
    assert np.diff(done.frames["taken"].astype(int))[20:].max() <= CYCLES


def run_at_once(contents, mask, count):
    """Run frames that are all overdue; the builder takes 15 words a frame, and what else it takes besides."""
    script = armed(contents, mask, FAST_256)
    script.do(Kind.FRAMES, count, LIMIT_CYCLES)
    return run(script)


def test_the_memories_hold_the_state_of_the_next_frames_in_the_end():
    contents = random_contents(Random(5))
    for n in range(STREAMS):
        contents.schedule[STREAM_WORDS*n] &= ~(1 << STREAM_FIELDS["endless"].low)
        contents.schedule[STREAM_WORDS*n + STREAM_FIELDS["frames_left"].word] %= 40
    script = armed(contents, ALL, FAST_256)
    script.do(Kind.IDLE, 0, LIMIT_CYCLES)
    read_contents(script, contents)
    done, program = run(script), Program(contents, ALL)
    assert compare(done, program) == []
    assert done.reads.tolist() == words_of(program.contents(contents.lists))


# Due ticks ----------------------------------------------------------------------------------------

def test_of_streams_that_are_due_at_once_the_lowest_number_is_first():
    frames = sent(contents_of(*[{"interval": 100}]*STREAMS), ALL, 64)
    assert frames["stream"].tolist() == [*range(STREAMS)]*4
    assert frames["due"].tolist() == [100*(n//STREAMS) for n in range(64)]


def test_fractions_of_intervals_add_up_exactly():
    third = 2**32//3
    frames = sent(contents_of({"interval": 84, "interval_fraction": third}), 1, 400)
    assert frames["due"].tolist() == [n*(84*2**32 + third) >> 32 for n in range(400)]


def test_a_burst_without_an_inner_interval_is_back_to_back():
    frames = sent(contents_of({"interval": 1000, "burst_frames": 3, "burst_left": 3, "length_least": 100}), 1, 7)
    assert frames["due"].tolist() == [0, 124, 248, 1000, 1124, 1248, 2000]


@pytest.mark.parametrize(("mean", "count"), [(32*1000 + 7, 2000), (2**32 - 1, 500)])
def test_exponential_intervals_are_those_of_the_formula(mean, count):
    frames = sent(contents_of({"interval": mean, "exponential": 1, "interval_random": 12345}), 1, count, 2**32 - 1)
    state, due, expected = 12345, 0, []
    for _ in range(count):
        expected.append(due >> 32)
        state = next_random(state)
        due += exponential_gap(mean, state)
    assert frames["due"].tolist() == expected
    assert np.diff(frames["due"]).mean() == pytest.approx(mean/32, rel=0.1)


def test_the_table_of_logarithms_has_its_ends():
    table = exponential_table()
    # By another program, with 40 digits: -ln(512.5/1024)*2^27 = 92901631.70, -ln(1023.5/1024)*2^27 = 65552.005, and 93032639.74.
    assert (table[0], table[-1], LN2) == (92_901_632, 65_552, 93_032_640)


@pytest.mark.parametrize("edge", [2**32, 2**48, 2**62])
def test_due_ticks_go_on_over_an_edge(edge):
    script = Script()
    write_contents(script, contents_of({"phase": 5}, {"phase": 17, "interval": 3000}))
    script.do(Kind.HOLD, 1)
    script.do(Kind.ARM, 0)
    script.do(Kind.PRIMED, PRIMED_CYCLES)
    script.do(Kind.CLOCK, 0, edge - 5000)
    script.do(Kind.BEGIN, 3)
    script.do(Kind.CYCLES, 0, 500)
    script.do(Kind.CLOCK, TICKS_256, edge - 5000)
    script.do(Kind.FRAMES, 300, LIMIT_CYCLES)
    frames, base = run(script).frames, edge - 5000 + BEGIN_TICKS
    for stream, phase, interval in [(0, 5, 100), (1, 17, 3000)]:
        dues = frames["due"][frames["stream"] == stream]
        assert dues.tolist() == [base + phase + interval*n for n in range(len(dues))]
    assert frames["due"].max() > edge + 10000


def test_a_frame_is_let_out_when_it_is_due_within_the_horizon():
    frames = sent(contents_of({"interval": 30000, "phase": 40000}), 1, 20, TICKS_256)
    ahead = frames["due"] - frames["elapsed"]
    assert ahead.max() < HORIZON
    assert ahead.min() > HORIZON - 250 # Looks, and the work for the frame: 100 cycles.


@pytest.mark.parametrize(("ahead", "count"), [(HORIZON, 0), (HORIZON - 1, 1)])
def test_the_horizon_is_exact(ahead, count):
    script = armed(contents_of({"phase": 50000}), 1, 0)
    script.do(Kind.CLOCK, 0, 50000 - ahead)
    script.do(Kind.CYCLES, 0, 500)
    assert len(run(script).frames) == count


# Begin and end ------------------------------------------------------------------------------------

def test_a_program_ends_behind_its_last_frame():
    frames = sent(contents_of({"endless": 0, "frames_left": 3}, {"endless": 0, "frames_left": 2, "phase": 7}), 3, 99)
    assert frames["stream"].tolist()[:-1] == [0, 1, 0, 1, 0]
    assert frames["flags"].tolist() == [0]*5 + [FINAL | EMPTY]


def test_a_stream_without_frames_is_not_begun():
    frames = sent(contents_of({"endless": 0}, {"endless": 0, "frames_left": 1}), 3, 99)
    assert frames["stream"].tolist()[:-1] == [1]
    assert frames["flags"].tolist() == [0, FINAL | EMPTY]


def test_an_empty_program_ends_at_once_or_is_held():
    assert sent(contents_of(), 0, 9)["flags"].tolist() == [FINAL | EMPTY]
    script = Script()
    script.do(Kind.HOLD, 1)
    script.do(Kind.ARM, 0)
    script.do(Kind.FRAMES, 9, 5000)
    script.do(Kind.HOLD, 0)
    script.do(Kind.FRAMES, 9, 100)
    assert (run(script).frames["shown"] > 5000).tolist() == [True]


def test_stop_ends_a_program_behind_what_is_on_its_way():
    script = armed(contents_of({}, {"phase": 40}), 3)
    script.do(Kind.FRAMES, 50, LIMIT_CYCLES)
    script.do(Kind.STOP, 1)
    script.do(Kind.IDLE, 0, 1000)
    script.do(Kind.STOP, 0)
    script.do(Kind.CYCLES, 0, 100)
    script.do(Kind.ARM, 2) # It goes on with the state that it has.
    script.do(Kind.FRAMES, 1, 1000)
    frames = run(script).frames
    last = frames["flags"].tolist().index(FINAL | EMPTY)
    assert 50 <= last <= 54
    assert frames["sequence"][frames["stream"] == 1].tolist()[-2:] == [last//2 - 1, last//2]


def test_arm_is_ignored_in_a_program():
    script = armed(contents_of({"interval": 3000}, {}), 1)
    script.do(Kind.ARM, 2)
    script.do(Kind.FRAMES, 20, LIMIT_CYCLES)
    assert set(run(script).frames["stream"]) == {0}


@pytest.mark.parametrize("seed", range(4))
def test_streams_begin_and_end_while_others_run(seed):
    random = Random(seed)
    contents = random_contents(random, Taste(endless=True, least_interval=400))
    script, now = armed(contents, 1, 0), 0
    script.do(Kind.CLOCK, 0, now)
    script.do(Kind.HOLD, 1)
    active, begun, ended = {0}, {0: [0]}, {}
    for _ in range(40):
        number = random.randrange(1, STREAMS)
        script.do(Kind.CYCLES, 0, 200) # It is a stand-still: of what is begun we know when.
        if number in active:
            active.discard(number)
            script.do(Kind.END, 1 << number)
            ended.setdefault(number, []).append(now)
        else:
            active.add(number)
            phase = STREAM_WORDS*number + STREAM_FIELDS["phase"].word
            script.do(Kind.WRITE, address(Memory.SCHEDULE, phase), contents.schedule[phase])
            script.do(Kind.BEGIN, 1 << number)
            begun.setdefault(number, []).append(now + BEGIN_TICKS)
        script.do(Kind.CYCLES, 0, 200)
        script.do(Kind.CLOCK, TICKS_256, now)
        ticks = random.randrange(1000, 20000)//5*5
        script.do(Kind.CYCLES, 0, ticks*2//5)
        now += ticks
        script.do(Kind.CLOCK, 0, now)
    frames = run(script).frames
    assert len(frames) > 500
    for number, bases in begun.items():
        check_stream(contents, number, bases, ended.get(number, []), frames[frames["stream"] == number])


def check_stream(contents, number, bases, ends, frames):
    """Compare the frames of a stream that began at each of some ticks, and ended between them."""
    stream, first = contents.stream(number), stream_phase(contents, number)
    expected = []
    for base, until, end in zip(bases, [*bases[1:], None], [*ends, *[None]*(len(bases) - len(ends))]):
        stream.words["phase"] = first
        stream.start(base)
        while len(expected) < len(frames):
            got = frames[len(expected)]
            # What is due after the next begin, by its schedule of before, is of the next one.
            if until is not None and got["due"] != stream.due and got["due"] >= until:
                break
            expected.append(stream.next_frame())
            # Bursts go back in time; then what comes is soon.
            assert end is None or expected[-1].due < end + HORIZON
    assert differences(frames, expected) == []


def stream_phase(contents, number):
    """Return the phase of a stream."""
    return contents.schedule[STREAM_WORDS*number + STREAM_FIELDS["phase"].word]


def test_active_streams_are_shown_until_their_last_frame_is_on_its_way():
    contents = contents_of({"endless": 0, "frames_left": 5}, {})
    script = armed(contents, 3)
    script.do(Kind.FRAMES, 40, LIMIT_CYCLES)
    frames = run(script).frames
    assert np.count_nonzero(frames["stream"] == 0) == 5
    assert expected_frames(Program(contents, 3), 40)[-1].sequence == frames["sequence"][-1]
