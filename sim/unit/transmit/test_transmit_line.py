# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""WidthConverter, line and MAC together: words in, wire out; also when words come late."""

import random

import pytest
from migen import *

from liteprobe.cores.transmit.line import LINE_TICKS, LineGrant
from liteprobe.cores.transmit.mac import TransmitMAC, WidthConverter
from liteprobe.sim.models.traffic.trains import wire_octets
from liteprobe.sim.drivers.tools.steps import assign, wait_cycles, wait_until

class LineAndMAC(Module):
    def __init__(self, data_width):
        self.submodules.converter = WidthConverter(data_width)
        self.submodules.line   = LineGrant()
        self.submodules.mac    = TransmitMAC()
        self.comb += [
            self.converter.source.connect(self.line.probe),
            self.line.source.connect(self.mac.sink, omit={"ready"}),
        ]

def run_line(frames, data_width, holes=(), seed=0):
    """Send frames as soon as the line is free; return ([(tick, octets)], underruns).

    ``holes`` are (frame, word) at which words pause for 40 ticks.
    """
    dut   = LineAndMAC(data_width)
    count = data_width//8
    rng   = random.Random(seed)
    wire, underruns = [], []
    def words():
        sink = dut.converter.sink
        for number, frame in enumerate(frames):
            for place in range(0, len(frame), count):
                if (number, place//count) in holes:
                    yield sink.valid.eq(0)
                    yield from wait_cycles(40)
                word = frame[place:place + count]
                last = place + count >= len(frame)
                yield from assign(sink, valid=1, data=int.from_bytes(word, "little"), last=last,
                    last_be=1 << (len(word) - 1) if last else 0)
                yield
                yield from wait_until(sink.ready)
                if rng.random() < 0.1:
                    yield sink.valid.eq(0)
                    yield
        yield sink.valid.eq(0)
    @passive
    def start():
        number = 0
        while True:
            yield
            free = (yield dut.line.is_free) and not (yield dut.line.start)
            if free and (yield dut.converter.source.valid) and not (yield dut.line.is_discarding):
                yield dut.line.start.eq(1)
                yield dut.line.probe_hold.eq(max(60, len(frames[number])) + 24 - LINE_TICKS)
                number += 1
            else:
                yield dut.line.start.eq(0)
    def watch():
        tick, idle = 0, 0
        while idle < 150:
            yield
            tick += 1
            if (yield dut.line.underrun):
                underruns.append(tick)
            if (yield dut.mac.source.valid):
                if idle:
                    wire.append((tick, b""))
                wire[-1] = (wire[-1][0], wire[-1][1] + bytes([(yield dut.mac.source.data)]))
                idle = 0
            else:
                idle += 1
    run_simulation(dut, {"timebase": [words(), start(), watch()]}, clocks={"timebase": 8})
    return wire, len(underruns)

@pytest.mark.parametrize("data_width", [32, 64])
def test_every_tail_length_leaves_whole_and_short_frames_padded(data_width):
    rng    = random.Random(4)
    frames = [rng.randbytes(length) for length in [14, 33, *range(57, 78), 130]]
    wire, underruns = run_line(frames, data_width, seed=4)
    assert [octets for _, octets in wire] == [wire_octets(frame) for frame in frames]
    assert underruns == 0

@pytest.mark.parametrize("data_width", [32, 64])
def test_a_frame_whose_words_come_late_is_cut_with_a_wrong_fcs_and_the_next_is_whole(data_width):
    frames = [random.Random(n).randbytes(100) for n in range(4)]
    hole   = 24*8//data_width
    wire, underruns = run_line(frames, data_width, holes=[(1, hole)])
    assert underruns == 1
    assert [wire[n][1] for n in (0, 2, 3)] == [wire_octets(frames[n]) for n in (0, 2, 3)]
    good = wire_octets(wire[1][1][8:-4])
    assert wire[1][1][:-4] == good[:-4] and wire[1][1][-4:] == bytes(octet ^ 0xff for octet in good[-4:])
    assert wire[1][1][8:8 + 24] == frames[1][:24]
