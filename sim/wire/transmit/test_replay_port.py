# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Traces from the words of the ring to the octets on the PHY: the real reader, source and port, compiled, against the model."""

import random
from dataclasses import replace

import pytest

from liteprobe.cores.formats import TRACE_FLAGS_BIT, TRACE_SNAP_BIT, TraceFlag
from liteprobe.sim.drivers.replay import port
from liteprobe.sim.drivers.replay.port import NEVER, RING_WORDS, Program
from liteprobe.sim.drivers.replay.traces import DATAGRAM, FrameMaker, record, stalled, trace
from liteprobe.sim.drivers.tools.wire import with_full
from liteprobe.sim.models.traffic.replay import AROUND, StampPlace, TraceFrame

FAST = 66  # Cycles from burst to burst of a memory that is faster than the line.


def flat(records):
    return [word for one in records for word in one]


def program(frames, chance, waits=0.0, **options):
    """Return a program of ``frames``."""
    return Program(frames, flat(trace(frames, chance, waits, options.get("end_gap"))), **options)


def looped(frames, chance, loops, **options):
    """Return a program of ``frames`` that come again."""
    one = program(frames, chance, loops=loops, **options)
    return replace(one, prime=len(one.words))


def result(one, **options):
    """Replay one program; return the comparison and what was found."""
    found = port.run([one], **options)[0]
    return port.compared(one, found), found


@pytest.mark.parametrize("seed", with_full(range(2), range(2, 40)))
def test_exponential_gaps_with_stamps_and_waits_leave_as_the_model_says(seed):
    chance = random.Random(seed)
    frames = FrameMaker(chance, 0.5).exponential(400, 0.8)
    sys_ps = port.SYS_PS + chance.randint(-2, 2)
    found, ran = result(program(frames, chance, 0.3, end_gap=chance.choice((None, 3000))), sys_ps=sys_ps, seed=seed)
    assert (found.off, found.frames) == (0, 400), found
    assert not ran.is_bad


@pytest.mark.parametrize("length", [60, 61, 64, 100, 128, 200, 256, 1514, 9000])
@pytest.mark.parametrize("stamps", [0, 1])
def test_frames_back_to_back_fill_the_line(length, stamps):
    chance = random.Random(length)
    frames = FrameMaker(chance, stamps).back_to_back([length] * (100_000 // length + 5))
    found, _ = result(program(frames, chance), seed=length)
    assert (found.off, found.late, found.utilisation) == (0, 0, 1), found


@pytest.mark.parametrize("snap", [0, 1, 34, 63, 64, 1000, 1513])
def test_octets_behind_the_snap_length_are_zero(snap):
    chance = random.Random(snap)
    frames = FrameMaker(chance, 0.5).back_to_back([1514] * 60, lambda _: snap)
    found, _ = result(program(frames, chance))
    assert (found.off, found.late, found.utilisation) == (0, 0, 1), found


def test_lengths_of_all_kinds_with_any_snap():
    chance = random.Random(5)
    lengths = [chance.choice((60, 61, 62, 63, 64, 65, 127, 1514, 9000)) for _ in range(200)]
    frames = FrameMaker(chance, 0.5).back_to_back(lengths, lambda length: chance.randint(0, length))
    assert result(program(frames, chance, 0.5))[0].off == 0


@pytest.mark.parametrize("frames", [[60] * 16, [60, 1514, 61, 256] * 3, [1514] * 5])
@pytest.mark.parametrize("end_gap", [None, 500])
def test_a_trace_that_loops_goes_on_without_a_pause(frames, end_gap):
    chance = random.Random(len(frames))
    made = FrameMaker(chance, 0.5).back_to_back(frames)
    made = [replace(made[0], gap=frames[-1] + AROUND), *made[1:]]
    found, _ = result(looped(made, chance, 40, end_gap=end_gap))
    assert (found.off, found.late, found.frames) == (0, 0, 40 * len(frames)), found
    assert end_gap is not None or found.utilisation == 1


def test_an_endless_loop_ends_by_stop_behind_the_present_frame():
    chance = random.Random(8)
    found, ran = result(looped(FrameMaker(chance, 0.5).exponential(7, 0.8), chance, 0, most=100))
    assert (found.off, found.frames) == (0, 101) and not ran.is_bad


@pytest.mark.parametrize("seed", with_full(range(4), range(4, 60)))
def test_words_that_come_late_make_late_frames_and_underruns(seed):
    chance = random.Random(seed)
    maker = FrameMaker(chance, 0.3)
    if seed % 3:
        frames = maker.exponential(500, chance.choice((0.6, 0.95)))
    else:
        frames = maker.back_to_back([chance.choice((60, 300, 1514))] * 700)
    one = program(frames, chance, 0.2 * (seed % 2), turn=FAST)
    every = int(DATAGRAM * 4 * chance.choice((0.4, 0.7, 1.3)))
    found, ran = result(replace(one, arrivals=stalled(len(one.words), chance, every, 5), prime=1000), seed=seed)
    assert found.off == 0, (found, ran)
    assert ran.late > 0 and ran.underruns > 0 and found.unsaid <= found.frames // 20


def test_words_that_are_waited_for_but_come_in_time_are_not_an_underrun():
    frames = [TraceFrame(gap, 200, bytes(200)) for gap in [0] + [20_000] * 20]
    one = program(frames, random.Random(3))
    size = len(one.words) // len(frames)
    arrivals = [(20_000 * number - 12_000 if number else 0, size) for number in range(len(frames))]
    found, ran = result(replace(one, arrivals=arrivals, prime=size))
    assert (found.off, found.late, found.underruns, ran.underruns) == (0, 0, 0, 0), found


def test_a_gap_that_is_longer_than_the_pacer_counts():
    frames = [TraceFrame(gap, 60 + n, bytes([n]) * (60 + n)) for n, gap in enumerate((0, 2_500_000, 100, 1 << 20, 8192, 8191))]
    found, _ = result(program(frames, random.Random(1)))
    assert (found.off, found.late) == (0, 0), found


def test_the_first_frame_may_be_due_much_later_than_the_start():
    frames = [TraceFrame(gap, 60, bytes(60)) for gap in (300_000, 84)]
    found, ran = result(program(frames, random.Random(1)))
    assert found.off == 0 and ran.ticks[0] - ran.start_tick > 300_000


def test_a_port_is_ready_when_so_many_words_are_there():
    chance = random.Random(2)
    frames = FrameMaker(chance).back_to_back([200] * 40)
    words = len(flat(trace(frames, random.Random(3))))
    for prime in (1, 1000, words):
        one = replace(program(frames, random.Random(3)), arrivals=[(0, 1)] * words, prime=prime)
        found, ran = result(one)
        assert found.off == 0 and ran.primed - max(prime, 53) in range(300), (prime, ran.primed)


def test_a_stop_ends_behind_the_present_frame_and_the_next_session_is_sound():
    chance = random.Random(4)
    maker = FrameMaker(chance)
    # Its octets read as records, too.
    alike = (60 | 60 << TRACE_SNAP_BIT).to_bytes(4, "little") * 15
    frames = [replace(frame, octets=alike) for frame in maker.back_to_back([60] * 300)]
    programs = [
        program(frames, chance, most=20),
        # What is left of the session is not a trace from its begin.
        Program([], [], opens=False, prime=0),
        program(maker.exponential(100, 0.9), chance),
    ]
    first, second, third = port.run(programs)
    assert port.compared(programs[0], first).off == 0 and len(first.ticks) == 21
    assert (len(second.ticks), second.frames_taken, second.is_bad) == (0, 0, 1)
    assert (port.compared(programs[2], third).off, third.is_bad) == (0, 0)


def test_a_host_that_is_gone_leaves_an_underrun_with_the_number_of_the_frame():
    chance = random.Random(6)
    frames = FrameMaker(chance).back_to_back([400] * 30)
    one = program(frames, chance)
    cut = len(flat(trace(frames[:20], chance))) + 50
    one = replace(one, words=one.words[:cut], frames=frames[:20], stop_tick=200_000)
    ran = port.run([one])[0]
    assert (ran.sent, ran.late, ran.underruns, ran.first_underrun, ran.is_starved, ran.is_bad) == (20, 0, 1, 20, 1, 0)


def test_programs_of_one_session_go_on_where_the_last_one_ended():
    chance = random.Random(9)
    maker = FrameMaker(chance, 0.4)
    programs = [replace(program(maker.exponential(60, 0.7), chance, 0.3), opens=n == 0, prime=0) for n in range(4)]
    for one, ran in zip(programs, port.run(programs), strict=True):
        found = port.compared(one, ran)
        assert (found.off, found.frames) == (0, 60), found


GOOD = TraceFrame(84, 100, bytes(100))
BAD = {
    "short": [0, 59 | 59 << TRACE_SNAP_BIT],
    "long": [0, 9001],
    "snap": [0, 100 | 101 << TRACE_SNAP_BIT],
    "unknown flag": [0, 100 | 1 << TRACE_FLAGS_BIT + 2],
    "wait with a stamp": [0, (TraceFlag.WAIT | TraceFlag.STAMP) << TRACE_FLAGS_BIT, 0x0020],
    "stamp beyond snap": record(replace(GOOD, octets=bytes(64), stamp=StampPlace(57, 8))),
    "stamp beyond all": record(replace(GOOD, octets=bytes(100), stamp=StampPlace(255, 8))),
    "stamp too early": record(replace(GOOD, stamp=StampPlace(14, 1))),
}


@pytest.mark.parametrize("name", BAD)
def test_a_record_that_no_frame_can_be_made_of_ends_the_program_with_its_number(name):
    chance = random.Random(name)
    frames = FrameMaker(chance).back_to_back([60] * 5)
    words = flat(trace(frames, chance, end_gap=84))[:-2]
    bad = Program(frames, words + BAD[name] + [0] * 40)
    after = program(FrameMaker(chance).back_to_back([70] * 9), chance)
    again = replace(after, opens=False, frames=[], words=[], prime=0)
    found = port.run([bad, again, after])
    assert port.compared(bad, found[0]).off == 0
    assert [(one.sent, one.frames_taken, one.is_bad) for one in found] == [(5, 5, 1), (0, 0, 1), (9, 9, 0)]


def test_the_least_and_the_greatest_that_a_record_may_ask_for():
    frames = [
        TraceFrame(0, 60, bytes(range(60)), StampPlace(15, 8)),
        TraceFrame(84, 9000, random.Random(1).randbytes(9000), StampPlace(255, 8)),
        TraceFrame(9024, 9000, random.Random(1).randbytes(64), StampPlace(56, 8)),
        TraceFrame(9024, 60, b""),
    ]
    found, _ = result(program(frames, random.Random(2)))
    assert (found.off, found.late, found.utilisation) == (0, 0, 1), found


def test_a_port_with_streams_replays_as_any():
    chance = random.Random(11)
    frames = FrameMaker(chance, 0.5).exponential(200, 0.9)
    assert result(program(frames, chance, 0.2), with_streams=True)[0].off == 0


def test_a_ring_goes_round_many_times():
    chance = random.Random(12)
    frames = FrameMaker(chance).back_to_back([60, 1514] * 100)
    one = program(frames, chance)
    assert len(one.words) > 4 * RING_WORDS
    assert result(one)[0].off == 0


def test_a_wrong_octet_start_or_counter_is_seen():
    chance = random.Random(13)
    one = program(FrameMaker(chance).back_to_back([60] * 20), chance)
    ran = port.run([one])[0]
    assert port.compared(one, ran).off == 0
    octets = [*ran.frames[:7], bytes([ran.frames[7][0] ^ 1]) + ran.frames[7][1:], *ran.frames[8:]]
    ticks = ran.ticks.copy()
    ticks[9] += 1
    short = replace(ran, frames=octets[:-1], ticks=ran.ticks[:-1], now_ns=ran.now_ns[:-1], lengths=ran.lengths[:-1])
    for wrong, name in (
        (replace(ran, frames=octets), "octets_off"),
        (replace(ran, ticks=ticks), "starts_off"),
        (replace(ran, late=1), "counters_off"),
        (replace(ran, underruns=3, first_underrun=2, is_starved=1), "counters_off"),
        (short, "missing"),
    ):
        assert getattr(port.compared(one, wrong), name) > 0, name
    assert ran.first_underrun == NEVER
