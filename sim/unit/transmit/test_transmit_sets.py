# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The source of configuration sets against a model of their octets: every field, stalls, late words, ends and errors."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from liteprobe.cores.formats import BLOCK_TABLE_ENTRIES, SETS_AHEAD, SetError
from liteprobe.host.traffic.headers import Headers
from liteprobe.host.traffic.sets import FIELDS, Repeat, Sets
from liteprobe.host.traffic.stream import Fixed, Interval, Stream
from liteprobe.sim.drivers.replay import sets_port
from liteprobe.sim.drivers.replay.sets import BEFORE, NEVER, SetsProgram, checked, differences, random_program, run
from liteprobe.sim.drivers.replay.sets_maker import Made, template_of
from liteprobe.sim.models.traffic.sets import timed

CYCLES = 33 # Of sys, in which a frame of 60 octets has gone.
INTERVAL = 1000 # Ticks.
MARGIN = 30 # Ticks that the model doesn't know: parsing, a step of the clock.
PLAIN = Stream("plain", 1, Fixed(60), Interval(interval_ns=8*INTERVAL))
TAGGED = Stream("tagged", 2, Fixed(90), Interval(), headers=Headers(source_ip="2001:2::1", destination_ip="2001:2::2",
    vlan_tags=(5, 6)), probe=False)


def made_of(stream, items, interval=Fraction(INTERVAL), **settings):
    """Return sets for the gateware and for the model."""
    sets = Sets(stream, items, **settings)
    return Made(sets, b"".join(sets.octets()), template_of(sets), sets.table, interval)


def with_octets(made, octets):
    """Return the same with another stream, filled up to whole words."""
    return replace(made, octets=octets + bytes([0xff])*(-len(octets) % 4))


def program_of(made, arrivals=None, **around):
    """Return a program whose words are all there before the start, or at these ticks."""
    words = made.words
    ticks = np.full(len(words), BEFORE) if arrivals is None else np.asarray(arrivals, np.int64)
    return SetsProgram(made.sets.settings(), words, ticks, tuple(made.table.tolist()), **around)


def addresses(count, first=0x0a000000):
    return [{"address": first + n} for n in range(count)]


# Random programs ----------------------------------------------------------------------------------

def found_in(seeds, count, pace, entries=1 << 16, with_sdram=True):
    """Return what is wrong with random programs that follow one another, and how many frames came, repeated and waited for."""
    pairs = [random_program(seed, count, entries, pace) for seed in seeds]
    trials = [checked(made, program, done)
        for (made, program), done in zip(pairs, run([program for _, program in pairs], with_sdram), strict=True)]
    sums = {name: sum(one.done.counters[name] for one in trials) for name in ("frames", "repeats", "underruns")}
    return [(seed, one.found) for seed, one in zip(seeds, trials, strict=True) if one.found], sums


@pytest.mark.parametrize("pace", ["full", "any"])
def test_random_sets_are_frames_as_their_octets_say(pace):
    found, sums = found_in(range(30), 120, pace)
    assert (found, sums["frames"] > 30*120, sums["repeats"] > 0, sums["underruns"] > 0) == ([], True, True, True)


def test_a_table_in_block_ram_does_the_same():
    found, sums = found_in(range(100, 110), 100, "any", BLOCK_TABLE_ENTRIES, with_sdram=False)
    assert (found, sums["frames"] > 1000) == ([], True)


@pytest.mark.full
def test_a_hundred_thousand_frames_are_as_their_octets_say():
    frames = 0
    for first in range(1000, 1100, 10):
        found, sums = found_in(range(first, first + 10), 1100, "any")
        assert found == []
        frames += sums["frames"]
    assert frames >= 10**5


def test_a_program_that_is_stopped_at_any_tick_ends_with_the_frames_before_it_and_the_next_one_is_right():
    programs = []
    for seed in range(200, 224):
        made, program = random_program(seed, 60, pace="any")
        is_stopped = seed % 2 == 0
        programs.append((made, replace(program, stop_tick=37*(seed - 190)) if is_stopped else program, is_stopped))
    done = run([program for _, program, _ in programs])
    trials = [checked(made, program, one, is_whole=not is_stopped)
        for (made, program, is_stopped), one in zip(programs, done, strict=True)]
    assert [one.found for one in trials] == [[]]*24
    assert sum(one.counters["sets"] < 60 for one in done) >= 6


# When ---------------------------------------------------------------------------------------------

def test_frames_are_due_at_the_interval_of_the_schedule_with_its_fraction():
    made = made_of(replace(PLAIN, interval=Interval(pps=300_000)), addresses(50),
        Fraction(round(Fraction(125_000_000, 300_000)*2**32), 2**32))
    done = run([program_of(made)])[0]
    assert done.frames["due"][:-1].tolist() == [n*125_000_000//300_000 for n in range(50)]


def test_back_to_back_each_frame_is_due_when_the_one_before_has_ended():
    lengths = [60, 1514, 9000, 61, 60]
    made = made_of(replace(PLAIN, interval=Interval()), [{"length": length} for length in lengths], None)
    done = run([program_of(made)])[0]
    assert done.frames["due"][:-1].tolist() == [sum(lengths[:n]) + 24*n for n in range(5)]


@pytest.mark.parametrize("in_run", [False, True])
def test_a_frame_of_a_set_of_25_octets_takes_33_cycles_at_most(in_run):
    values = [(n << 64, n, n + 1, 90, n) for n in range(60)]
    made = made_of(TAGGED, [dict(zip(FIELDS, one, strict=True)) for one in values], None, entry="mac.source", table=range(60))
    assert len(made.octets) == 4 + 60*24 + 4
    if not in_run:
        sets = [b"\x3e" + b"".join(n.to_bytes(octets) for n, octets in zip(one, (16, 2, 2, 2, 2), strict=True)) for one in values]
        made = with_octets(made, b"".join(sets) + b"\xc0")
        assert len(made.octets) == 60*25 + 4
    program = program_of(made, rate_256=1 << 20)
    done = run([program])[0]
    assert checked(made, program, done).found == []
    assert np.diff(done.frames["taken"].astype(int))[SETS_AHEAD:-1].max() <= CYCLES


def test_a_table_that_answers_late_now_and_then_does_not_stop_the_line():
    made = made_of(replace(PLAIN, interval=Interval()), [{"index": 7*n % 500} for n in range(400)], None,
        entry="ipv4.destination", table=range(500))
    program = program_of(made, table_latency=(12, 2, 300), builder=(0, 0, 0))
    done = run([program])[0]
    assert checked(made, program, done).found == []
    assert (done.counters["underruns"], done.counters["starved"]) == (0, 0)
    assert np.all(done.decisions["elapsed"] <= done.frames["due"][:-1])


def test_a_program_begins_when_so_many_words_are_there_or_its_end():
    made = made_of(PLAIN, addresses(100))
    words = len(made.words)
    late = np.where(np.arange(words) < 60, BEFORE, 10**6)
    for prime, primed in ((60, True), (61, False)):
        done = run([program_of(made, late, prime=prime, limit=5000)])[0]
        assert (done.counters["sets"] > 0) == primed
    short = made_of(PLAIN, addresses(5))
    assert run([program_of(short, prime=1000)])[0].counters["sets"] == 5


def test_the_schedule_may_end_the_program_before_its_sets_do():
    made = made_of(PLAIN, addresses(40))
    done = run([program_of(made, count=7)])[0]
    assert (done.counters["sets"], len(done.frames), done.counters["is_over"]) == (7, 8, 1)


# Dry ----------------------------------------------------------------------------------------------

def dry_program(sets_at, allowed, said=None, count=40):
    """Return sets that are there at these ticks, some with a SET_REPEAT 100 ticks before, and what the model says."""
    octets, arrivals, items = b"", [], []
    for number, tick in enumerate(sets_at):
        here = [Repeat(said[number])] if said and number in said else []
        items += [*here, {"address": 0x0a000000 + number}]
        parts = [one.octets() for one in here] + [b"\x01" + items[-1]["address"].to_bytes(4)]
        # Each begins with a word.
        padded = [part + bytes([0xff])*(-len(part) % 4) for part in parts]
        arrivals += [tick - 100]*len(here) + [tick]*2
        octets += b"".join(padded)
    made = with_octets(made_of(PLAIN, items, repeats=allowed), octets + b"\xc0")
    arrivals.append(arrivals[-1])
    expected = timed(made.octets, made.template, [], made.interval, allowed, np.repeat(arrivals, 4), count)
    return made, program_of(made, arrivals, count=count), expected


def differences_of(program, expected):
    """Return how a run differs from what is expected."""
    done = run([program])[0]
    found = differences(done, expected)
    counters = {"underruns": expected.underruns,
        "first_underrun": NEVER if expected.first_underrun is None else expected.first_underrun}
    return found + [f"{name} {done.counters[name]}, not {value}" for name, value in counters.items()
        if done.counters[name] != value]


@pytest.mark.parametrize("allowed", [0, 1, 3, 65535])
def test_the_last_frame_is_repeated_when_no_set_is_there_in_time(allowed):
    # The third set comes when six more frames were due.
    _, program, expected = dry_program([BEFORE, BEFORE, 7*INTERVAL + 400], allowed)
    assert differences_of(program, expected) == []
    repeats = {0: 0, 1: 1, 3: 3, 65535: 6}[allowed]
    assert [frame.is_repeat for frame in expected.frames] == [False, False, *[True]*repeats, False]
    assert expected.underruns == (1 if repeats < 6 else 0)


def test_a_repeat_in_the_stream_changes_how_many_there_may_be():
    _, program, expected = dry_program([BEFORE, 3*INTERVAL + 400, 9*INTERVAL + 400, 20*INTERVAL + 400], 65535, {1: 2, 3: 0})
    assert differences_of(program, expected) == []
    assert [frame.is_repeat for frame in expected.frames] == [False, True, True, True, False, True, True, False, True, True, False]


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(16))
def test_sets_that_come_at_random_times_are_sent_repeated_and_waited_for_as_by_the_model(seed):
    random = np.random.default_rng(seed)
    margin = 0
    while margin < MARGIN:
        gaps = random.exponential(INTERVAL*random.choice([0.3, 1, 4]), 40)
        ticks = [BEFORE]*3 + np.cumsum(np.maximum(gaps, 200)).astype(int).tolist()
        said = {int(n): int(random.choice([0, 1, 2, 65535])) for n in random.choice(np.arange(1, 40), 5, replace=False)}
        _, program, expected = dry_program(ticks, int(random.choice([0, 1, 2, 65535])), said, count=120)
        margin = expected.margin
    assert differences_of(program, expected) == []


# Ends and errors ----------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "bad"), [
    ("CONTROL", b"\x41"), ("CONTROL", b"\x81"), ("CONTROL", b"\xfe"), ("FIELD", b"\x04\x00\x05"), ("FIELD", b"\x02" + bytes(16)),
    ("CONTROL", b"\xa0\x00\x01\x00"), ("LENGTH", b"\xa0\x00\x01\x10\x00\x3b"),
    ("LENGTH", b"\x10\x00\x3b"), ("LENGTH", b"\x11\x01\x02\x03\x04\x23\x29"), ("LENGTH", b"\x10\xff\xff"),
])
@pytest.mark.parametrize("shift", [0, 1, 2, 3])
def test_a_bad_set_ends_the_program_behind_the_sets_before_it(name, bad, shift):
    made = made_of(PLAIN, [{"address": 5, "length": 60}, *addresses(20)], fields=("address", "length"))
    good = made.octets[:-4]
    made = with_octets(made, bytes([0xff])*shift + good + bad + b"\x01\x02\x03\x04\x05"*5)
    program = program_of(made)
    done = run([program])[0]
    assert checked(made, program, done).found == []
    assert (done.counters["error"], done.counters["sets"]) == (SetError[name], 21)


def test_a_bad_set_in_a_run_ends_the_program_behind_the_sets_before_it():
    lengths = b"".join(length.to_bytes(2) for length in (60, 61, 59, 60, 60, 60))
    made = with_octets(made_of(PLAIN, [{"length": 60}]), b"\xa0\x00\x05\x10" + lengths + b"\xc0")
    done = run([program_of(made)])[0]
    assert checked(made, program_of(made), done).found == []
    assert (done.counters["error"], done.counters["sets"]) == (SetError.LENGTH, 2)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 300])
def test_sets_of_a_run_are_as_those_that_say_their_control_octet(count):
    sets = b"".join(n.to_bytes(4) for n in range(count + 1))
    octets = b"\xa0" + count.to_bytes(2) + b"\xff\xff\x01" + sets + b"\x01\x00\x00\xff\xff\xc0"
    made = with_octets(made_of(PLAIN, addresses(1)), octets)
    done = run([program_of(made)])[0]
    assert checked(made, program_of(made), done).found == []
    assert done.counters["sets"] == count + 2


def test_a_first_set_that_lacks_a_field_is_an_error():
    made = made_of(PLAIN, addresses(3), fields=("address", "length"))
    made = with_octets(made, b"\x01\x0a\x00\x00\x01\xc0")
    assert run([program_of(made)])[0].counters["error"] == SetError.INCOMPLETE


def test_an_index_beyond_the_table_in_block_ram_is_an_error():
    made = made_of(PLAIN, [{"index": n} for n in range(4)], entry="ipv4.source", table=range(512))
    octets = made.octets[:-4] + b"\x20\x02\x00" + b"\xc0"
    made = with_octets(made, octets)
    done = run([program_of(made)], with_sdram=False)[0]
    assert (done.counters["error"], done.counters["sets"]) == (SetError.INDEX, 4)


@pytest.mark.parametrize("count", range(6))
def test_the_end_may_be_at_any_octet_and_nothing_behind_its_word_is_taken(count):
    made = made_of(PLAIN, addresses(count), fields=("address",))
    words = np.concatenate([made.words, np.full(9, 0x01010101, np.uint32)])
    program = replace(program_of(made), words=words, arrivals=np.full(len(words), BEFORE))
    done = run([program])[0]
    assert checked(made, program, done).found == []
    assert (done.counters["sets"], done.counters["words"]) == (count, len(made.words))


def test_a_set_without_fields_is_the_frame_before_in_its_own_turn():
    made = made_of(PLAIN, [{"address": 9}, {}, {}, {"address": 10}], fields=("address",))
    program = program_of(made)
    done = run([program])[0]
    assert checked(made, program, done).found == []
    assert (done.counters["sets"], done.counters["repeats"]) == (4, 0)


# At the pins --------------------------------------------------------------------------------------

@pytest.mark.parametrize("with_streams", [False, True])
def test_every_octet_and_start_at_the_pins_is_that_of_the_model(with_streams):
    frames, used = 0, 0
    for seed in range(12):
        made, program = random_program(seed, 100, pace="full")
        program = replace(program, stall_256=0, table_latency=(8, 2, 300), prime=len(program.words))
        found = sets_port.compared(made, sets_port.run(program, with_streams=with_streams))
        assert (seed, found.off) == (seed, 0)
        frames, used = frames + found.frames, max(used, found.utilisation)
    assert (frames, used) == (1200, 1)
