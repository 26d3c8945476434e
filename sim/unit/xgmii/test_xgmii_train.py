# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Trains of 10 Gb/s: each start in its column, each octet, and the time of each SFD."""

import random
from dataclasses import replace

import numpy as np
import pytest

from liteprobe.cores.formats import Fill, UnifiedFlag
from liteprobe.sim.drivers.xgmii import schedule
from liteprobe.sim.drivers.xgmii.train import INCREMENT, Loop, Program, run, wrong, wrong_records
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.traffic.trains import ProbeFrame
from liteprobe.sim.models.xgmii import Line


@pytest.mark.parametrize("length", [*range(60, 69), 128, 1514, 9000])
def test_trains_fill_the_line_at_any_length(length):
    programs = [Program(100, 2, length=length)]
    frame = ProbeFrame(length)
    assert wrong(programs, frame, run(programs, frame)) == []


@pytest.mark.parametrize("frame", [ProbeFrame(66, fill=Fill.COUNTING), ProbeFrame(1000, vlan_tags=(1, 2), fill=Fill.COUNTING)])
def test_intervals_with_a_fraction_and_gaps_stay_on_the_absolute_schedule(frame):
    chance = random.Random(1)
    slot = frame.length + 24
    words = (frame.payload_offset + 6) // 4
    programs = [
        Program(
            chance.randrange(1, 50), chance.randrange(1, 5), slot + chance.randrange(40), chance.getrandbits(32),
            chance.randrange(99), frame.length, words, frame.fill, wait=chance.randrange(9),
        )
        for _ in range(30)
    ]
    assert wrong(programs, frame, run(programs, frame)) == []


@pytest.mark.parametrize("ppm", [-100, 0, 100])
def test_stamps_are_the_time_of_the_sfd_at_the_pins(ppm):
    frame = ProbeFrame(60)
    programs = [Program(500, interval=84 + 3, fraction=0x55555555)]
    done = run(programs, frame, Loop(time=2**63 - 2000, increment=round(INCREMENT * (1 + ppm * 1e-6))))
    assert wrong(programs, frame, done) == []


def test_a_program_faster_than_the_line_is_late_and_counted():
    frame = ProbeFrame(60)
    program = Program(50, interval=80)
    done = run([program], frame)
    assert done.counts == [(50, 49)]
    assert [place - done.starts[0] for place in done.starts] == [84 * n // 4 * 4 for n in range(50)]


def test_a_late_train_catches_up_with_its_schedule():
    frame = ProbeFrame(60)
    program = Program(10, 2, interval=80, gap=100)
    done = run([program], frame)
    assert done.counts == [(20, 18)]
    assert done.starts[10] - done.starts[0] == 10 * 80 + 100


def test_a_stop_ends_after_the_present_frame_and_the_next_program_runs_whole():
    frame = ProbeFrame(100)
    programs = [Program(1000, length=100, stop_after=stop) for stop in [1, 5, *range(200, 240)]]
    programs = [one for stopped in programs for one in (stopped, replace(stopped, count=5, stop_after=0))]
    done = run(programs, frame)
    assert wrong(programs, frame, done) == []
    assert [count for count, _ in done.counts[1::2]] == [5] * 42
    assert all(10 < count < 17 for count, _ in done.counts[4::2])


def test_a_timed_program_has_its_first_sfd_at_its_time_to_half_a_cycle():
    frame = ProbeFrame(60)
    chance = random.Random(11)
    programs = [Program(3, wait=chance.randrange(9), ahead=chance.randrange(600, 3000)) for _ in range(300)]
    done = run(programs, frame)
    assert wrong(programs, frame, done) == []
    off = [(time - (asked << 32)) / 2**32 for time, asked in zip(done.times[::3], done.asked, strict=True)]
    assert -3.21 < min(off) < -2 and 2 < max(off) < 3.21


def test_a_program_whose_time_has_passed_starts_at_once_and_one_that_waits_can_be_stopped():
    frame = ProbeFrame(60)
    programs = [Program(3, ahead=1), Program(3, ahead=2**31, stop_after=100), Program(2, ahead=5000)]
    done = run(programs, frame)
    assert [count for count, _ in done.counts] == [3, 0, 2]
    assert wrong(programs, frame, done) == []


# Records ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [60, 61, 65, 67, 1514])
@pytest.mark.parametrize("delay", [1, 40])
def test_each_frame_that_comes_back_has_a_record_with_both_times(length, delay):
    frame = ProbeFrame(length, stream_id=0x1234)
    programs = [Program(200, length=length), Program(50, 4, length + 27, 0x33333333, 5, length)]
    done = run(programs, frame, Loop(delay))
    assert wrong(programs, frame, done) == []
    assert wrong_records(frame, done, 0) == []
    if delay == 1:  # In the same cycle: both stamps are of one time, of which 4 ps more or less may be cut off.
        assert set(done.records["arrival"].astype(int) - done.records["sent"].astype(int)) <= {-1, 0, 1}


@pytest.mark.parametrize("ppm", [-100, -7, 7, 100])
def test_a_receiver_with_another_clock_stamps_within_a_cycle(ppm):
    frame = ProbeFrame(60)
    programs = [Program(3000, interval=84 + 9, fraction=0x77777777)]
    done = run(programs, frame, Loop(50, round(6_400_000 * (1 + ppm * 1e-6))))
    assert wrong(programs, frame, done) == []
    assert wrong_records(frame, done, 6.4) == []


def test_a_hostile_line_leaves_no_record_with_the_stamp_of_another_frame():
    line = xgmii.hostile(3000, 10)
    model = xgmii.received(Line.read(line.words()))
    frame = ProbeFrame(60)
    done = run([Program(500, wait=len(line.words()) + 500)], frame, before=line)
    count = len(model.frames)
    assert (len(done.records), done.lost) == (count + 500, 0)
    hostile, own = done.records[:count], done.records[count:]
    assert [min(len(one), 65535) for one in model.frames] == hostile["length"].tolist()
    assert (hostile["flags"] & int(UnifiedFlag.FCS_ERROR)).astype(bool).tolist() == model.fcs_errors
    assert not hostile["is_probe"].any()
    # Of 0.8 ns; an SFD in lane 3 stands in the first column of its cycle.
    times = np.array([0.8 * (place - 3) for place in model.sfds])
    whole = np.array([len(one) >= 60 for one in model.frames])
    assert (hostile["arrival"] != 0).tolist() == whole.tolist()
    delays = (hostile["arrival"].astype(np.int64) - 10**18)[whole] - times[whole]
    assert delays.max() - delays.min() < 1.01
    owd = own["arrival"].astype(np.int64) - own["sent"].astype(np.int64)
    assert owd.max() - owd.min() <= 1
    assert own["sequence"].tolist() == list(range(500))


# Any schedule -------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.5, 0.8, 0.99])
def test_frames_of_any_lengths_start_in_the_column_of_their_time(load):
    frames = schedule.poisson(2000, load, 12)
    assert schedule.off_schedule(frames, schedule.run(frames)) == 0


def test_a_frame_that_is_due_within_the_one_before_is_late_and_moves_none_after_it():
    frames = np.array([(0, 200), (100, 60), (1000, 60), (1084, 60)], schedule.FRAME)
    done = schedule.run(frames)
    assert (done.starts.tolist(), done.sent, done.late) == ([0, 224, 1000, 1084], 4, 1)
