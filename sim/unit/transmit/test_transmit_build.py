# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Schedule, announcer and build: words against the model of a probe frame, what the pacer is told against the schedule."""

import random
from fractions import Fraction

import pytest

from migen import *

from liteprobe.cores.formats import Fill, slot_octets
from liteprobe.cores.octets import bytes_of_last_be, last_be_of_length, words_of_length
from liteprobe.cores.transmit.announce import Announcer
from liteprobe.cores.transmit.build import FrameBuild
from liteprobe.cores.transmit.line import LINE_TICKS
from liteprobe.cores.transmit.sources.train import TrainSchedule
from liteprobe.sim.drivers.tools.steps import assign, pulse, wait_until
from liteprobe.sim.drivers.transmit.shown import StillNumbers
from liteprobe.sim.models.traffic.trains import ProbeFrame, fill_octets, starts

class Tail(Module):
    def __init__(self, data_width):
        self.length  = Signal(14)
        self.last_be = Signal(data_width//8)
        self.words   = Signal(14)
        self.bytes   = Signal(8)
        self.comb += [
            self.last_be.eq(last_be_of_length(self.length, data_width)),
            self.words.eq(words_of_length(self.length, data_width)),
            self.bytes.eq(bytes_of_last_be(self.last_be)),
        ]

@pytest.mark.parametrize("data_width", [32, 64])
def test_tails_are_arithmetic_there_and_back(data_width):
    lengths = [*range(1, 34), *range(59, 78), 1514, 1518, *range(8990, 9001)]
    dut     = Tail(data_width)
    seen    = []
    def process():
        for length in lengths:
            yield dut.length.eq(length)
            yield
            yield
            seen.append(((yield dut.last_be), (yield dut.words), (yield dut.bytes)))
    run_simulation(dut, process())
    count    = data_width//8
    expected = []
    for length in lengths:
        tail = (length - 1)%count
        expected.append((1 << tail, -(-length//count), tail + 1))
    assert seen == expected

def test_a_word_without_mark_has_no_bytes():
    last_be = Signal(4)
    count   = Signal(8)
    dut     = Module()
    dut.comb += count.eq(bytes_of_last_be(last_be))
    seen = []
    def process():
        for value in [8, 0, 1]:
            yield last_be.eq(value)
            yield
            yield
            seen.append((yield count))
    run_simulation(dut, process())
    assert seen == [4, 0, 1]


# Build ---------------------------------------------------------------------------------------------

CLOCKS = {"sys": 20, "timebase": 8}
INTERVAL, GAP = Fraction(1000) + Fraction(0x5555_5555, 2**32), 777

class ScheduleAndBuild(Module):
    def __init__(self, data_width):
        self.submodules.schedule = TrainSchedule()
        self.submodules.numbers  = StillNumbers(self.schedule)
        self.submodules.announce = Announcer()
        self.submodules.build    = FrameBuild(data_width)
        self.comb += [
            self.schedule.source.connect(self.announce.sink),
            self.announce.build.connect(self.build.sink),
        ]

def header_words(frame):
    header = frame.header() + bytes(128 - len(frame.header()))
    return [int.from_bytes(header[n:n + 4], "little") for n in range(0, 128, 4)]

def run_build(frame, data_width, count=2, repeats=1, stall=0.0, seed=0, stop_at=None):
    """Return (frames as octets, what the pacer is told of each) of one program."""
    dut    = ScheduleAndBuild(data_width)
    rng    = random.Random(seed)
    source = dut.build.source
    frames, told = [], []
    dut.build.header.init = header_words(frame)
    def process():
        yield from assign(dut.schedule, length=frame.length, payload_offset=frame.payload_offset, fill=frame.fill)
        yield from assign(dut.numbers, interval_ticks=int(INTERVAL), gap_ticks=GAP, interval_fraction=int(INTERVAL % 1 * 2**32),
            count=count, repeats=repeats)
        yield from pulse(dut.schedule.check)
        yield from wait_until(dut.schedule.checked)
        yield from pulse(dut.schedule.start)
        octets, cycles = b"", 0
        while not told or not told[-1][2] or len(frames) < len(told) - told[-1][3]:
            ready = rng.random() >= stall
            yield source.ready.eq(ready)
            if told:
                yield dut.announce.elapsed.eq(told[-1][1])
            if stop_at is not None and cycles >= stop_at:
                yield dut.schedule.stop.eq(1)
            yield
            cycles += 1
            assert cycles < 20000, "the program never ended"
            if ready and (yield source.valid):
                word    = (yield source.data).to_bytes(data_width//8, "little")
                last_be = (yield source.last_be)
                if (yield source.last):
                    assert last_be in [1 << n for n in range(data_width//8)]
                    frames.append(octets + word[:last_be.bit_length()])
                    octets = b""
                else:
                    assert last_be == 0
                    octets += word
        for _ in range(20):
            yield
            assert not (yield source.valid), "a word after the final frame"
    @passive
    def listen():
        paced = dut.announce.source
        while True:
            # A pacer that waits for a frame's octets before it takes what it was told, or takes it at once.
            is_ready = rng.random() < 0.3 or len(told) <= len(frames) - 1
            yield paced.ready.eq(is_ready)
            yield
            if is_ready and (yield paced.valid):
                told.append(((yield paced.hold), (yield paced.due), (yield paced.final), (yield paced.empty)))
    run_simulation(dut, {"sys": process(), "timebase": listen()}, clocks=CLOCKS)
    return frames, told

def without_complement(frame, sequence):
    """Return the frame as built: stamp still 0, the complement not written."""
    octets = frame.octets(sequence, 0)
    if frame.ipv6:
        plain  = ProbeFrame(frame.length, fill=frame.fill).octets(0, 0)[60:]
        plain += ProbeFrame(frame.length + 64, fill=frame.fill).octets(0, 0)[60 + len(plain):]
        octets = octets[:-2] + plain[len(octets) - frame.payload_offset - 20:][:2]
    return octets

@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("fill", list(Fill))
@pytest.mark.parametrize("length", [*range(60, 77), 127, 128, 129, 350])
def test_every_tail_length_is_built_to_the_octet(length, fill, data_width):
    frame = ProbeFrame(length, fill=fill)
    frames, _ = run_build(frame, data_width)
    assert frames == [frame.octets(sequence, 0) for sequence in range(2)]

@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("vlan_tags", [(), (0x2064,), (0x6001, 0x0fff)])
@pytest.mark.parametrize("ipv6", [False, True])
def test_every_header_layout_is_built(ipv6, vlan_tags, data_width):
    frame = ProbeFrame(123, ipv6=ipv6, vlan_tags=vlan_tags, fill=Fill.COUNTING, stream_id=0xbeef)
    frames, _ = run_build(frame, data_width)
    assert frames == [without_complement(frame, sequence) for sequence in range(2)]

@pytest.mark.parametrize("data_width", [32, 64])
@pytest.mark.parametrize("stall", [0.3, 0.8])
def test_stalls_change_nothing(stall, data_width):
    seed = 7
    print("seed", seed)
    for length in [61, 64, 70]:
        frame = ProbeFrame(length, fill=Fill.PRBS)
        frames, _ = run_build(frame, data_width, count=5, stall=stall, seed=seed)
        assert frames == [frame.octets(sequence, 0) for sequence in range(5)]

@pytest.mark.parametrize("data_width", [32, 64])
def test_a_word_leaves_each_cycle_but_five_between_frames_at_most(data_width):
    """So 60 octets take 20 cycles of 20 ns at 32 bits: 400 ns of their 672 on the wire. The schedule takes 11 a frame."""
    words  = -(-60*8//data_width)
    dut    = ScheduleAndBuild(data_width)
    cycles = []
    def process():
        yield dut.schedule.length.eq(60)
        yield dut.announce.source.ready.eq(1)
        yield from assign(dut.schedule, payload_offset=42)
        yield from assign(dut.numbers, count=20, repeats=1)
        yield from pulse(dut.schedule.check)
        yield from wait_until(dut.schedule.checked)
        yield dut.schedule.start.eq(1)
        yield dut.build.source.ready.eq(1)
        for cycle in range(40*words):
            yield
            if (yield dut.build.source.valid) and (yield dut.build.source.last):
                cycles.append(cycle)
            yield dut.schedule.start.eq(0)
    run_simulation(dut, process(), clocks=CLOCKS)
    assert {b - a for a, b in zip(cycles, cycles[1:])} == {words + 5} and len(cycles) == 20

@pytest.mark.parametrize("count, repeats", [(1, 1), (1, 4), (4, 1), (3, 3)])
def test_the_pacer_is_told_when_each_frame_leaves_and_which_is_the_last(count, repeats):
    frame = ProbeFrame(60)
    frames, told = run_build(frame, 32, count, repeats, stall=0.2)
    total = count*repeats
    assert frames == [frame.octets(sequence, 0) for sequence in range(total)]
    expected = starts(count, repeats, INTERVAL, GAP)
    hold = slot_octets(60) - LINE_TICKS
    assert told == [(hold, expected[k], int(k == total - 1), 0) for k in range(total)]

@pytest.mark.parametrize("stop_at", [0, 1, 15, 16, 17, 40])
def test_a_stopped_program_ends_in_an_empty_final_frame(stop_at):
    frame = ProbeFrame(60)
    frames, told = run_build(frame, 32, count=100, stop_at=stop_at)
    assert frames == [frame.octets(sequence, 0) for sequence in range(len(frames))]
    assert [one[2:] for one in told] == [(0, 0)]*len(frames) + [(1, 1)]
    assert len(frames) in (stop_at//16, stop_at//16 + 1, stop_at//16 + 2)

# Headers of streams -------------------------------------------------------------------------------

def word_of(stream, version, word):
    """Return a word of a header: each stream's differ, and those of each frame."""
    return stream << 24 | version << 8 | word

def run_chased(frames, stall, seed):
    """Return the octets of each of ``frames``: (stream, words of its header, length, with_probe, fill).

    As each frame is shown to the builder its header is that of its number; behind the builder, and before it as far as it is of
    another stream, all words are spoilt at once.
    """
    dut    = FrameBuild(with_streams=True)
    rng    = random.Random(seed)
    memory = {}
    built  = []
    @passive
    def headers():
        while True:
            yield
            if (yield dut.header_re):
                yield dut.header_dat.eq(memory[(yield dut.header_adr)])
            builds, stream, word = (yield dut.builds), (yield dut.build_stream), (yield dut.build_word)
            for place in memory:
                # This cycle's word is read.
                if not (builds and place//32 == stream and place % 32 >= word):
                    memory[place] = 0xdeadbeef
    def show():
        for number, (stream, words, length, with_probe, fill) in enumerate(frames):
            yield from assign(dut.sink, stream=stream, header_words=words, length=length, with_probe=with_probe,
                fill=fill, sequence=number, valid=1)
            yield
            # Now it is shown; ``headers`` looks at this cycle next.
            memory.update({32*stream + word: word_of(stream, number, word) for word in range(32)})
            yield from wait_until(dut.sink.ready)
            yield dut.sink.valid.eq(0)
            yield
    def take():
        octets = b""
        while len(built) < len(frames):
            ready = rng.random() >= stall
            yield dut.source.ready.eq(ready)
            yield
            if ready and (yield dut.source.valid):
                octets += (yield dut.source.data).to_bytes(4, "little")
                if (yield dut.source.last):
                    built.append(octets[:len(octets) - 4 + (yield dut.source.last_be).bit_length()])
                    octets = b""
    memory.update(dict.fromkeys(range(512), 0))
    run_simulation(dut, [show(), take(), headers()])
    return built

@pytest.mark.parametrize("stall", [0, 0.4])
def test_a_header_that_is_edited_behind_the_builder_is_read_as_it_was(stall):
    seed = 11
    print("seed", seed)
    rng    = random.Random(seed)
    frames = []
    for _ in range(40):
        words = rng.randrange(1, 33)
        length = max(60, 4*words + 18) + rng.randrange(30)
        frames.append((rng.randrange(3), words, length, rng.random() < 0.5, rng.choice(list(Fill))))
    built = run_chased(frames, stall, seed)
    for number, ((stream, words, length, with_probe, fill), octets) in enumerate(zip(frames, built, strict=True)):
        expected = b"".join(word_of(stream, number, word).to_bytes(4, "little") for word in range(words))
        if with_probe:
            expected += number.to_bytes(4, "big") + bytes(8)
        assert octets == expected + fill_octets(fill, length - len(expected))
