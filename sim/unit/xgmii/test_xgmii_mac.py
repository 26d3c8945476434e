# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The MAC of 10 Gb/s against a model of the line that is written apart, octet by octet."""

import random

import pytest

from liteprobe.sim.drivers.xgmii.mac import Sending, run, wrong_received, wrong_sent
from liteprobe.sim.models import xgmii
from liteprobe.sim.models.xgmii import LOCAL, REMOTE, LineWriter


def sendings(lengths, seed=1):
    chance = random.Random(seed)
    return [Sending(chance.randbytes(length)) for length in lengths]


# Transmit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [*range(60, 70), 1514, 9000])
def test_frames_of_a_length_fill_the_line_without_a_bubble(length):
    frames = sendings([length] * 40)
    done = run(frames)
    starts, _ = xgmii.frames_on(done.sent)
    assert [start - starts[0] for start in starts] == xgmii.back_to_back([length] * 40)
    assert wrong_sent(frames, done) == []
    assert done.counts["sent_count"] == 40


def test_frames_of_any_lengths_fill_it_too_and_short_ones_are_padded():
    chance = random.Random(2)
    lengths = [chance.choice([chance.randrange(1, 70), chance.randrange(60, 300)]) for _ in range(2000)]
    frames = sendings(lengths)
    done = run(frames)
    starts, _ = xgmii.frames_on(done.sent)
    assert [start - starts[0] for start in starts] == xgmii.back_to_back(lengths)
    assert wrong_sent(frames, done) == []


def test_frames_that_come_later_start_in_their_cycle_and_lane():
    chance = random.Random(3)
    cycle, frames = 0, []
    for _ in range(2000):
        octets = chance.randbytes(chance.randrange(1, 140))
        cycle += (len(octets) + 24) // 8 + chance.randrange(-3, 4)
        frames.append(Sending(octets, max(cycle, 0), chance.random() < 0.5, chance.random() < 0.1))
    done = run(frames)
    assert wrong_sent(frames, done) == []


def test_a_frame_without_a_word_in_time_is_cut_with_a_wrong_fcs_and_the_next_one_is_whole():
    chance = random.Random(4)
    frames = [Sending(chance.randbytes(chance.randrange(60, 200)), underrun=n % 2 * chance.randrange(1, 8)) for n in range(400)]
    done = run(frames)
    _, seen = xgmii.frames_on(done.sent)
    for frame, octets in zip(frames, seen, strict=True):
        if not frame.underrun:
            assert octets == xgmii.with_fcs(frame.octets)
            continue
        cut = frame.octets[: 8 * frame.underrun] + bytes(8)
        right = xgmii.zlib.crc32(cut)
        assert octets == cut + (right ^ 0xFFFFFFFF).to_bytes(4, "little")
    assert (done.counts["sent_count"], done.counts["underrun_count"]) == (400, 200)


# Receive ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", range(1, 14))
def test_frames_are_received_after_any_gap(gap):
    writer = LineWriter()
    writer.idle(16)
    frames = [random.Random(length).randbytes(length) for length in range(60, 140)]
    for frame in frames:
        writer.frame(xgmii.with_fcs(frame))
        writer.idle(gap - 1, 4)
    writer.idle(64, 8)
    line = writer.line()
    done = run(line=line)
    assert done.frames()[0] == frames
    assert wrong_received(line, done) == []


@pytest.mark.parametrize("seed", [5, 6])
def test_a_hostile_line_is_counted_as_the_model_does(seed):
    line = xgmii.hostile(4000, seed)
    assert wrong_received(line, run(line=line)) == []


# Link faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds, between, faults",
    [
        ([LOCAL] * 3, 0, []),
        ([LOCAL] * 4, 0, [LOCAL, 0]),
        ([LOCAL] * 4, 126, [LOCAL, 0]),
        ([LOCAL] * 4, 127, [LOCAL, 0]),
        ([LOCAL] * 8, 128, []),
        ([LOCAL, LOCAL, LOCAL, REMOTE] * 4, 0, []),
        ([REMOTE] * 5 + [LOCAL] * 3 + [REMOTE], 3, [REMOTE, 0]),
        ([REMOTE] * 4 + [LOCAL] * 4, 2, [REMOTE, LOCAL, 0]),
        ([3] * 9, 0, []),
    ],
)
@pytest.mark.parametrize("lead", [0, 4])
def test_four_ordered_sets_make_a_fault_that_128_columns_end(kinds, between, faults, lead):
    writer = LineWriter()
    writer.idle(16 + lead)
    for kind in kinds:
        writer.sequence(kind)
        writer.idle(4 * between)
    writer.idle(1024, 8)
    line = writer.line()
    done = run(line=line)
    assert [kind for _, kind in done.faults] == faults
    assert wrong_received(line, done) == []


@pytest.mark.parametrize("fault", [LOCAL, REMOTE])
def test_a_fault_stops_frames_and_a_local_one_is_answered(fault):
    writer = LineWriter()
    writer.idle(8 * 500)
    for _ in range(1000):
        writer.sequence(fault)
    writer.idle(8 * 500)
    frames = sendings(random.Random(7).choices(range(60, 300), k=100))
    done = run(frames, writer.line())
    model = xgmii.received(done.sent)
    whole = [frame for frame, is_bad, is_cut in zip(model.frames, model.fcs_errors, model.symbol_errors) if not (is_bad or is_cut)]
    assert [kind for _, kind in model.faults] == ([REMOTE, 0] if fault == LOCAL else [])
    assert done.counts["sent_count"] == len(whole) > 20
    assert done.counts["sent_count"] + done.counts["lost_count"] == 100
    first, last = (cycle for cycle, _ in done.faults)
    during = slice(8 * (first + 8), 8 * last)
    expected = bytes([0x9C, 0, 0, 2] if fault == LOCAL else [0x07] * 4)
    assert done.sent.octets[during].tobytes() == expected * ((during.stop - during.start) // 4)
    assert whole == [one.octets for one in frames if one.octets in set(whole)]


def test_under_a_hostile_line_each_frame_is_sent_whole_or_counted_as_lost():
    frames = sendings(random.Random(8).choices(range(60, 300), k=4000))
    done = run(frames, xgmii.hostile(5000, 9))
    model = xgmii.received(done.sent)
    whole = sum(not (is_bad or is_cut) for is_bad, is_cut in zip(model.fcs_errors, model.symbol_errors))
    assert done.counts["sent_count"] == whole
    assert done.counts["sent_count"] + done.counts["lost_count"] == 4000
    assert done.counts["lost_count"] > 100
