# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The frame store at 32 and 64 bits: whole good frames, in order, or none of them."""

import random

import pytest
from migen import passive, run_simulation

from liteprobe.cores.receive.management import FrameStore
from liteprobe.sim.drivers.tools.steps import assign, wait_cycles

GOOD = {"fcs_error": 0, "symbol_error": 0, "overflow": 0}


def words_of(frame, lanes):
    words = [frame[k : k + lanes] for k in range(0, len(frame), lanes)] or [b""]
    return [(int.from_bytes(word, "little"), 1 << len(word) >> 1, k == len(words) - 1) for k, word in enumerate(words)]


def store(frames, data_width, octets=256, idle=lambda: 0, stall=lambda: 0, refused=()):
    """Run the store over (frame, verdict); return the frames that leave, and how many were stored and dropped."""
    dut = FrameStore(data_width, octets)
    left, counts = [], {"stored": 0, "dropped": 0}
    is_over = []

    def drive():
        for number, (frame, verdict) in enumerate(frames):
            for data, last_be, last in words_of(frame, data_width // 8):
                for _ in range(idle()):
                    yield dut.sink.valid.eq(0)
                    yield
                yield from assign(dut.sink, valid=1, data=data, last_be=last_be if last else 0, last=last)
                yield dut.refuse.eq(last and number in refused)
                for name, value in verdict.items():
                    yield getattr(dut.sink, name).eq(value if last else 0)
                yield
        yield dut.sink.valid.eq(0)
        is_over.append(True)
        yield from wait_cycles(3 * octets)

    @passive
    def count():
        while True:
            yield
            for name in counts:
                counts[name] += yield getattr(dut, name)

    @passive
    def read():
        frame = b""
        while True:
            yield dut.source.ready.eq(bool(is_over) or not stall())
            yield
            if (yield dut.source.valid) and (yield dut.source.ready):
                word = (yield dut.source.data).to_bytes(4, "little")
                if (yield dut.source.last):
                    left.append(frame + word[: (yield dut.source.last_be).bit_length()])
                    frame = b""
                else:
                    frame += word

    run_simulation(dut, [drive(), count(), read()])
    return left, counts["stored"], counts["dropped"]


@pytest.mark.parametrize("data_width", [32, 64])
def test_frames_of_every_tail_pass_unchanged(data_width):
    frames = [bytes(range(number, number + 60 + number)) for number in range(9)]
    assert store([(frame, GOOD) for frame in frames], data_width, octets=1024) == (frames, 9, 0)


@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("fault", GOOD)
def test_bad_frame_leaves_no_trace(data_width, fault):
    frames = [bytes([number] * 64) for number in range(5)]
    verdicts = [GOOD | ({fault: 1} if number in (0, 2) else {}) for number in range(5)]
    assert store(list(zip(frames, verdicts, strict=True)), data_width, 1024) == ([frames[1], frames[3], frames[4]], 3, 0)


@pytest.mark.parametrize("data_width", [32, 64])
def test_refused_frames_and_runts_are_left_out_uncounted(data_width):
    frames = [(bytes([length] * length), GOOD) for length in (60, 59, 61, 0, 3, 60, 57, 62)]
    left, stored, dropped = store(frames, data_width, 1024, refused=[5])
    assert [len(frame) for frame in left] == [60, 61, 62]
    assert (stored, dropped) == (3, 0)


@pytest.mark.parametrize("data_width", [32, 64])
def test_frame_without_room_is_dropped_whole_and_the_next_that_fits_is_kept(data_width):
    frames = [bytes([number] * length) for number, length in enumerate([100, 100, 300, 80, 200, 90])]
    left, stored, dropped = store([(frame, GOOD) for frame in frames], data_width, stall=lambda: 1)
    assert left == [frames[0], frames[1]]
    assert (stored, dropped) == (2, 4)
    frames = [bytes(300), bytes([1] * 64)]
    assert store([(frame, GOOD) for frame in frames], data_width) == ([frames[1]], 1, 1)


@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("seed", range(2))
def test_idle_cycles_and_stalls_change_nothing(data_width, seed):
    rng = random.Random(seed)
    frames = [rng.randbytes(rng.randrange(60, 90)) for _ in range(8)]
    verdicts = [GOOD | {"fcs_error": int(rng.random() < 0.3)} for _ in frames]
    good = [frame for frame, verdict in zip(frames, verdicts, strict=True) if not verdict["fcs_error"]]
    left, stored, dropped = store(
        list(zip(frames, verdicts, strict=True)),
        data_width,
        octets=1024,
        idle=lambda: rng.randrange(3),
        stall=lambda: rng.randrange(3),
    )
    assert (left, stored, dropped) == (good, len(good), 0), f"seed {seed}"
