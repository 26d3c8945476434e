# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames through meter and tally, as close as they can be, with fields that stand still no longer than they must."""

import random

import pytest
from litex.gen import LiteXModule
from migen import run_simulation

from liteprobe.cores.formats import RecordFlag
from liteprobe.cores.measure.frames import FrameMeter
from liteprobe.cores.measure.tally import Tally
from liteprobe.sim.models.delay import DelayModel
from liteprobe.sim.models.sequence import SequenceModel

FIELDS = {"sequence": 32, "tx_stamp": 64, "rx_stamp": 64, "length": 16, "stream_id": 16}
STILL_CYCLES = 14
GOOD_SPACING, BAD_SPACING = 18, 15
WANTED = 3


class Bench(LiteXModule):
    def __init__(self):
        self.meter = FrameMeter()
        self.tally = Tally(self.meter.events, self.meter.entries)
        self.comb += self.tally.start.eq(self.meter.start)


class Model:
    def __init__(self):
        self.delay, self.sequence = DelayModel(), SequenceModel()
        self.frames = self.octets = self.first = self.last = self.length_errors = self.foreign = 0

    def arrive(self, frame):
        if frame["faults"] & RecordFlag.FCS_ERROR:
            return
        if frame["faults"] & RecordFlag.LENGTH_ERROR:
            self.length_errors += 1
        elif frame["stream_id"] != WANTED:
            self.foreign += 1
        else:
            self.first = frame["rx_stamp"] if self.frames == 0 else self.first
            self.last = frame["rx_stamp"]
            self.frames += 1
            self.octets += frame["length"]
            self.delay.arrive(frame["rx_stamp"], frame["tx_stamp"])
            self.sequence.arrive(frame["sequence"])

    def sums(self):
        delay, sequence = self.delay, self.sequence
        return {
            "frames": self.frames, "octets": self.octets, "first_stamp": self.first, "last_stamp": self.last,
            "delay_min": delay.least % 2**64, "delay_max": delay.most % 2**64,
            "delay_sum": delay.total % 2**64, "delay_square_sum": delay.squares % 2**96,
            "lost": sequence.lost, "duplicated": sequence.duplicated, "reordered": sequence.reordered,
            "beyond_window": sequence.beyond_window, "expected": sequence.expected,
            "length_errors": self.length_errors, "foreign_streams": self.foreign,
        }  # fmt: skip


def random_frames(rng, count):
    frames, present = [], 0
    fcs, lengths = RecordFlag.FCS_ERROR, RecordFlag.LENGTH_ERROR
    for _ in range(count):
        present += rng.choice([0, 1, 1, 2, 5])
        rx_stamp = rng.getrandbits(64)
        frames.append({
            "sequence": max(0, present - rng.choice([0, 0, 0, 1, 3, 1023, 1500])) if present < 5000 else present,
            "rx_stamp": rx_stamp,
            "tx_stamp": (rx_stamp + rng.choice([rng.randrange(-2000, 9), rng.randrange(-2**33, 2**33)])) % 2**64,
            "length": rng.choice([60, 9018, rng.randrange(60, 9018)]),
            "stream_id": rng.choice([WANTED] * 6 + [4]),
            "faults": rng.choice([0] * 8 + [fcs, lengths, fcs | lengths]),
        })
    return frames


@pytest.mark.parametrize("seed", range(3))
def test_frames_as_close_as_can_be_add_up_to_the_model(seed):
    rng = random.Random(seed)
    dut, model = Bench(), Model()
    meter, tally = dut.meter, dut.tally
    shown = {}

    def generator():
        yield meter.wanted_id.eq(WANTED)
        for frame in random_frames(rng, 60):
            for name, value in frame.items():
                yield getattr(meter, name).eq(int(value))
            yield meter.frame.eq(1)
            yield
            yield meter.frame.eq(0)
            for _ in range(STILL_CYCLES):
                yield
            # The next frame's headers arrive.
            for name, width in FIELDS.items():
                yield getattr(meter, name).eq(rng.getrandbits(width))
            is_good = frame["stream_id"] == WANTED and not frame["faults"]
            for _ in range((GOOD_SPACING if is_good else BAD_SPACING) - STILL_CYCLES - 1):
                yield
            model.arrive(frame)
        for _ in range(40):
            yield
        yield tally.latch.eq(1)
        yield
        yield tally.latch.eq(0)
        yield tally.bus.cyc.eq(1)
        yield tally.bus.stb.eq(1)
        for name, (first, words) in tally.layout.items():
            shown[name] = 0
            for word in range(first, first + words):
                yield tally.bus.adr.eq(word)
                yield
                while not (yield tally.bus.ack):
                    yield
                shown[name] = shown[name] << 32 | (yield tally.bus.dat_r)

    run_simulation(dut, generator())
    assert shown == model.sums(), f"seed {seed}"
    assert min(model.frames, model.foreign, model.length_errors, model.sequence.duplicated, model.sequence.reordered) > 0
