# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes random frames of several streams through the meters of a port, and holds what the bus reads against the model."""

import random
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from migen import *

from litex.gen import *

from liteprobe.cores.formats import (
    BIN_SLOT_WORDS, STREAM_SLOT_WORDS, STREAM_SLOTS, STREAM_WINDOW, BinKind, RecordFlag, UnifiedFlag,
)
from liteprobe.cores.measure.histogram import Histograms
from liteprobe.cores.measure.measured import measured_layout
from liteprobe.cores.measure.streams import StreamMeter
from liteprobe.sim.drivers.tools.compiled import CompiledBench
from liteprobe.sim.drivers.tools.pins import PinnedBench
from liteprobe.sim.models.receive.meters import BinSettings, MeasuredFrame, PortMeterModel

# Meters Bench -------------------------------------------------------------------------------------

class MetersBench(PinnedBench):
    """Meters on pins: fields of ``measured``, settings, ``latch``, ``clear``, and one bus: bit 16 of ``adr`` chooses bins.

    As `PortMeter` has them, but that with fields ``is_bare`` is a pin, too.
    """
    def __init__(self, count_bits, slots, window, with_fields):
        PinnedBench.__init__(self)
        self.meter      = meter      = StreamMeter(slots, window, with_fields)
        self.histograms = histograms = Histograms(count_bits, slots)
        self.comb += histograms.sample.eq(meter.sample), histograms.clear.eq(meter.clear)
        self.add_inputs(meter.measured, ["valid", *(name for name, _ in measured_layout)], "frame_")
        self.add_inputs(meter, ["latch", "clear", "stream_base", "measure_passed", "prbs"])
        for kind in ["length", "delay", "arrival"]:
            self.add_inputs(histograms, [f"{kind}_origin", f"{kind}_shift"])
        self.add_bus([meter.bus, histograms.bus])
        self.add_outputs(histograms, ["saturated"])

BENCH = CompiledBench(MetersBench, Path(__file__).with_name("streams.cpp"))

# Runs ---------------------------------------------------------------------------------------------

STEP = struct.Struct("<QQQIIHHHHII")
Kind = IntEnum("Kind", "FRAME LATCH CLEAR SET READ_STREAMS READ_BINS", start=0)  # Of steps.


@dataclass
class Script:
    """Lists steps and their cycles; several steps may share one."""

    octets: bytearray = field(default_factory=bytearray)
    reads: list[Kind] = field(default_factory=list)

    def frame(self, cycle: int, frame: MeasuredFrame) -> None:
        """Bring a frame."""
        stamps = (frame.stamp % (1 << 64), frame.tx_stamp % (1 << 64))
        bits = frame.is_probe | frame.passed << 1 | frame.is_bare << 2
        fields = (frame.length, frame.flags, frame.stream_id, bits, frame.bit_errors, 0)
        self.octets += STEP.pack(cycle, *stamps, Kind.FRAME, frame.sequence, *fields)

    def set(self, cycle: int, settings: BinSettings, stream_base: int, measure_passed: bool, prbs: int = 0) -> None:
        """Set origins, shifts, and what is measured."""
        origins, shifts = settings.origins, settings.shifts
        packed = sum(shifts[kind] << 5 * kind for kind in BinKind)
        fields = (origins[BinKind.LENGTH], packed, stream_base, measure_passed << 1, prbs, 0)
        self.octets += STEP.pack(cycle, origins[BinKind.DELAY] % (1 << 64), 0, Kind.SET, origins[BinKind.ARRIVAL], *fields)

    def do(self, cycle: int, kind: Kind) -> None:
        """Latch or clear, or begin to read when what was to be read before is read."""
        self.octets += STEP.pack(cycle, 0, 0, kind, 0, 0, 0, 0, 0, 0, 0)
        if kind in (Kind.READ_STREAMS, Kind.READ_BINS):
            self.reads.append(kind)


@dataclass(frozen=True)
class MeasureRun:
    """Holds what the bus read: snapshots (32 words a slot), bins (128 words a slot) and whether they were saturated."""

    snapshots: list[NDArray[np.uint32]]
    bins: list[NDArray[np.uint32]]
    saturated: list[bool]
    cycles: int


def run(
    script: Script,
    count_bits: int = 32,
    slots: int = STREAM_SLOTS,
    window: int = STREAM_WINDOW,
    with_fields: bool = False,
) -> MeasureRun:
    """Run a script on meters whose bins have ``count_bits``."""
    parameters = {"count_bits": count_bits, "slots": slots, "window": window, "with_fields": with_fields}
    done = BENCH.run({"script": bytes(script.octets)}, {"slots": slots}, **parameters)
    return sorted_reads(done.array("words", np.uint32), script.reads, done.numbers[0], slots)


def sorted_reads(words: NDArray[np.uint32], reads: Sequence[Kind], cycles: int, slots: int) -> MeasureRun:
    """Return what each read got of meters with ``slots``."""
    result, first = MeasureRun([], [], [], cycles), 0
    for kind in reads:
        count = slots * (STREAM_SLOT_WORDS if kind == Kind.READ_STREAMS else BIN_SLOT_WORDS)
        got, first = words[first : first + count], first + count
        if kind == Kind.READ_STREAMS:
            result.snapshots.append(got)
        else:
            result.bins.append(got)
            result.saturated.append(bool(words[first]))
            first += 1
    assert first == len(words), (first, len(words))
    return result


# Random frames ------------------------------------------------------------------------------------

LEAST_SPACING = 32
READ_CYCLES = 32 * 70
"""Cycles that a read of a slot of a snapshot takes at the most."""

CYCLE_NS = 20
DAMAGES = (RecordFlag.FCS_ERROR, RecordFlag.RUNT, RecordFlag.GIANT, RecordFlag.SYMBOL_ERROR)
OTHER_FLAGS = UnifiedFlag.TRUNCATED | UnifiedFlag.UNPARSED | UnifiedFlag.FRAGMENT | UnifiedFlag.TRANSPORT | UnifiedFlag.MATCHED
SHARE_OF_JUMPS = 0.002


@dataclass
class Stream:
    """A sender whose frames are lost, doubled, overtaken, and begin anew somewhere else."""

    rng: random.Random
    delay_ns: int
    spread_ns: int
    sequence: int = 0
    window: int = STREAM_WINDOW
    late: deque[int] = field(default_factory=deque)
    sent: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        """Remember somewhat more frames than the window covers."""
        self.late, self.sent = deque(maxlen=2 * self.window + 44), deque(maxlen=2 * self.window + 44)

    def next(self) -> int:
        """Return the sequence number of the next frame that arrives."""
        rng, draw = self.rng, self.rng.random()
        if draw < 0.05 and self.late:
            number = self.late[rng.randrange(len(self.late))]
            self.late.remove(number)
            return number
        if draw < 0.1 and self.sent:
            return rng.choice(self.sent)
        if draw < 0.1 + SHARE_OF_JUMPS:
            self.sequence = rng.choice([rng.getrandbits(32), (1 << 32) - 1 - rng.randrange(100), rng.randrange(100)])
        while rng.random() < 0.1:
            self.late.append(self.sequence)
            self.sequence = (self.sequence + 1) % (1 << 32)
        number, self.sequence = self.sequence, (self.sequence + 1) % (1 << 32)
        self.sent.append(number)
        return number

    def delay(self) -> int:
        """Return the delay of a frame (ns)."""
        far = self.rng.random()
        if far < 0.01:
            return self.rng.choice([1 << 32, (1 << 32) - 1, -1 << 32, 1 - (1 << 32), -1, 0, self.rng.getrandbits(63)])
        return self.delay_ns + int(self.rng.expovariate(1) * self.spread_ns)


class Traffic:
    """Frames, latches, clears and reads; ``script`` for the gateware, and what it must read.

    Parameters
    ----------
    bin_limit : a bin stays there.
    slots, window, with_fields : int, int, bool; of the meters.
    """

    def __init__(
        self,
        seed: int,
        bin_limit: int = (1 << 32) - 1,
        slots: int = STREAM_SLOTS,
        window: int = STREAM_WINDOW,
        with_fields: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.script = Script()
        self.model = PortMeterModel(bin_limit=bin_limit, slots=slots, window=window)
        self.with_fields = with_fields
        self.read_cycles = READ_CYCLES * slots * (1 + with_fields)
        self.cycle = 100
        self.stamp = self.rng.getrandbits(60)
        self.snapshots: list[list[int]] = []
        self.bins: list[list[int] | None] = []
        self.saturated: list[bool] = []
        self.frames = 0
        self.ids: set[int] = set()
        self.free_cycle = 0
        self.waiting = 0

    def begin(self) -> None:
        """Choose settings and streams, and clear."""
        rng = self.rng
        model = self.model
        model.stream_base = rng.choice([0, 1, 65533, rng.getrandbits(16)])
        model.measure_passed = rng.random() < 0.3
        model.prbs = rng.getrandbits(model.slots) if self.with_fields else 0
        kinds = [(1 << rng.randrange(1, 63), rng.randrange(1, 40)) for _ in range(max(10, model.slots + 2))]
        self.streams = [Stream(rng, rng.choice([-1, 1]) * far, 1 << near, window=model.window) for far, near in kinds]
        self.shares = [rng.random() for _ in self.streams]
        some = rng.choice(self.streams)
        model.settings = BinSettings(
            {
                BinKind.LENGTH: rng.choice([0, 64, rng.randrange(3000)]),
                BinKind.DELAY: rng.choice([some.delay_ns, 0, -5, rng.getrandbits(64) - (1 << 63)]),
                BinKind.ARRIVAL: rng.choice([0, 600, 640, rng.getrandbits(32)]),
            },
            {
                BinKind.LENGTH: rng.choice([5, 6, rng.randrange(32)]),
                BinKind.DELAY: rng.choice([min(31, max(0, some.spread_ns.bit_length() - 5)), rng.randrange(32)]),
                BinKind.ARRIVAL: rng.choice([0, 5, 6, 7, rng.randrange(32)]),
            },
        )
        self.cycle += 100
        self.script.set(self.cycle, model.settings, model.stream_base, model.measure_passed, model.prbs)
        self.clear()

    def clear(self) -> None:
        """Clear in this cycle."""
        self.script.do(self.cycle, Kind.CLEAR)
        self.model.clear()

    def frame(self) -> MeasuredFrame:
        """Return a random frame of now."""
        rng = self.rng
        if rng.random() < 0.001:
            self.stamp = (self.stamp + rng.choice([-1, 1]) * rng.getrandbits(rng.randrange(63))) % (1 << 64)
        flags = int(OTHER_FLAGS) & rng.getrandbits(16)
        if rng.random() < 0.1:
            flags |= int(rng.choice([*DAMAGES, UnifiedFlag.LENGTH_ERROR]))
        number = rng.choices(range(len(self.streams)), self.shares)[0]
        stream = self.streams[number]
        stream_id = (self.model.stream_base - 1 + number) % (1 << 16)
        self.ids.add(stream_id)
        is_probe = rng.random() < 0.8
        has_fields = self.with_fields and rng.random() < 0.8
        return MeasuredFrame(
            stamp=self.stamp,
            length=rng.choice([rng.randrange(1 << 16), rng.randrange(60, 1515), 0, 60, 1514, 65535]),
            flags=flags,
            is_probe=is_probe,
            stream_id=stream_id,
            sequence=stream.next(),
            tx_stamp=(self.stamp - stream.delay()) % (1 << 64),
            passed=rng.random() < 0.9,
            bit_errors=rng.getrandbits(rng.choice([0, 1, 17])) if has_fields else 0,
            is_bare=has_fields and not is_probe,
        )

    def run(self, frames: int) -> None:
        """Bring frames, now and then a latch, a clear, or a read of bins that shall disturb nothing."""
        rng = self.rng
        for _ in range(frames):
            spacing = LEAST_SPACING + (int(rng.expovariate(0.05)) if rng.random() < 0.3 else 0)
            self.cycle += spacing
            self.stamp = (self.stamp + CYCLE_NS * spacing) % (1 << 64)
            frame = self.frame()
            self.script.frame(self.cycle, frame)
            self.model.arrive(frame)
            self.frames += 1
            draw = rng.random()
            if draw < 0.0005:
                # Anywhere in the frame: it leaves no trace until it is done, 31 cycles later, and none afterwards.
                self.cycle += rng.randrange(LEAST_SPACING)
                self.clear()
                self.cycle += LEAST_SPACING
            elif draw < 0.01 and self.cycle > self.free_cycle:
                self.snapshot(rng.randrange(LEAST_SPACING - 1))
            elif draw < 0.011 and self.cycle > self.free_cycle:
                self.script.do(self.cycle, Kind.READ_BINS)
                self.bins.append(None)
                self.saturated.append(False)
                self.free_cycle = self.cycle + self.read_cycles

    def snapshot(self, after: int) -> None:
        """Latch so many cycles after the last frame, of which it must know; and read."""
        self.script.do(self.cycle + after, Kind.LATCH)
        self.script.do(self.cycle + after, Kind.READ_STREAMS)
        self.snapshots.append(self.model.words())
        self.cycle += after
        self.free_cycle = self.cycle + self.read_cycles

    def end(self) -> None:
        """Let all be still, and read it."""
        self.cycle = max(self.cycle + 100, self.free_cycle)
        self.snapshot(0)
        self.cycle = self.free_cycle
        self.script.do(self.cycle, Kind.READ_BINS)
        self.bins.append([count for slot in self.model.bins for count in slot])
        self.saturated.append(self.model.saturated)
        self.cycle += self.read_cycles


@dataclass(frozen=True)
class Outcome:
    """Counts words that were compared, and those that were wrong; ``found`` says where, of the first ones."""

    frames: int
    streams: int
    words: int
    off_words: int
    bins: int
    off_bins: int
    off_saturated: int
    found: list[str]


def compare(traffic: Traffic, done: MeasureRun) -> Outcome:
    """Hold what the gateware read against the model."""
    found = []
    off_words = off_bins = words = bins = 0
    for number, (got, wanted) in enumerate(zip(done.snapshots, traffic.snapshots, strict=True)):
        wrong = np.flatnonzero(got != np.array(wanted, np.uint32))
        found += [f"snapshot {number} slot {at // 32} word {at % 32}: {got[at]:#x}, not {wanted[at]:#x}" for at in wrong]
        words, off_words = words + len(wanted), off_words + len(wrong)
    for number, (got, maybe) in enumerate(zip(done.bins, traffic.bins, strict=True)):
        if maybe is not None:
            wrong = np.flatnonzero(got != np.array(maybe, np.uint32))
            found += [f"bins {number} slot {at // 128} bin {at % 128}: {got[at]}, not {maybe[at]}" for at in wrong]
            bins, off_bins = bins + len(maybe), off_bins + len(wrong)
    pairs = zip(done.saturated, traffic.saturated, traffic.bins, strict=True)
    off_saturated = sum(got != wanted for got, wanted, bins_ in pairs if bins_ is not None)
    return Outcome(
        traffic.frames, len(traffic.ids), words, off_words, bins, off_bins, off_saturated, found[:20]
    )


def random_run(
    frames: int,
    seed: int,
    segment: int = 2000,
    count_bits: int = 32,
    slots: int = STREAM_SLOTS,
    window: int = STREAM_WINDOW,
    with_fields: bool = False,
) -> Outcome:
    """Send frames in segments, each with settings and streams of its own, and compare all that is read."""
    traffic = Traffic(seed, (1 << count_bits) - 1, slots, window, with_fields)
    while traffic.frames < frames:
        traffic.begin()
        traffic.run(min(segment, frames - traffic.frames))
        traffic.end()
    return compare(traffic, run(traffic.script, count_bits, slots, window, with_fields))
