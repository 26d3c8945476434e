# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for what is measured without keeping frames: accumulators and histograms of a port and its streams."""

from dataclasses import dataclass, field

from liteprobe.cores.formats import (
    BIN_SLOT_WORDS,
    BINS,
    FAULTS,
    PORT_ACCUMULATORS,
    STREAM_ACCUMULATORS,
    STREAM_SLOT_WORDS,
    STREAM_SLOTS,
    STREAM_WINDOW,
    BinKind,
    RecordFlag,
)
from liteprobe.sim.models.delay import DelayModel, signed
from liteprobe.sim.models.sequence import SequenceModel

WORD = 1 << 32


@dataclass(frozen=True)
class MeasuredFrame:
    """A frame as the path of a port hands it to its meters; stamps in ns, ``length`` in octets without FCS."""

    stamp: int
    length: int
    flags: int = 0
    is_probe: bool = False
    stream_id: int = 0
    sequence: int = 0
    tx_stamp: int = 0
    passed: bool = True
    bit_errors: int = 0
    is_bare: bool = False


@dataclass
class Counts:
    """Frames, octets and stamps of some frames."""

    frames: int = 0
    octets: int = 0
    first_stamp: int = 0
    last_stamp: int = 0

    def arrive(self, frame: MeasuredFrame) -> int | None:
        """Take a frame; return the time since the one before (ns), None for the first."""
        since = signed(frame.stamp - self.last_stamp) if self.frames else None
        if not self.frames:
            self.first_stamp = frame.stamp
        self.frames += 1
        self.octets += frame.length
        self.last_stamp = frame.stamp
        return since


@dataclass
class StreamModel:
    """One stream; its window covers ``window`` frames."""

    window: int = STREAM_WINDOW
    remembers: bool = True
    counts: Counts = field(default_factory=Counts)
    delay: DelayModel = field(default_factory=DelayModel)
    bit_errors: int = 0
    damaged_bit_errors: int = 0

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.sequence = SequenceModel(self.window, self.remembers)

    def arrive(self, frame: MeasuredFrame) -> tuple[RecordFlag, int | None]:
        """Take a good frame; return its flag, and the time since the one before (ns), None for the first."""
        flag = RecordFlag.NONE if frame.is_bare else self.sequence.arrive(frame.sequence)
        self.delay.arrive(frame.stamp, frame.tx_stamp)
        return flag, self.counts.arrive(frame)

    def accumulators(self) -> dict[str, int]:
        """Return all by name, as the host reads them, and ``lost`` beside them."""
        return vars(self.counts) | {
            "expected": self.sequence.expected,
            "duplicated": self.sequence.duplicated,
            "reordered": self.sequence.reordered,
            "beyond_window": self.sequence.beyond_window,
            "delay_min": self.delay.least,
            "delay_max": self.delay.most,
            "delay_sum": self.delay.total,
            "delay_square_sum": self.delay.squares,
            "lost": self.sequence.lost,
            "bit_errors": self.bit_errors,
            "damaged_bit_errors": self.damaged_bit_errors,
        }


@dataclass
class BinSettings:
    """Origin and shift of each histogram."""

    origins: dict[BinKind, int] = field(default_factory=lambda: dict.fromkeys(BinKind, 0))
    shifts: dict[BinKind, int] = field(default_factory=lambda: dict.fromkeys(BinKind, 0))

    def bin(self, kind: BinKind, value: int) -> int:
        """Return the number of a value's bin."""
        number = (value - self.origins[kind]) >> self.shifts[kind]
        return 0 if number < 0 else min(number, BINS[kind].regular) + 1


@dataclass
class PortMeterModel:
    """Accumulators and bins of a port, frame by frame; ``prbs`` has a bit for each slot whose fill is PRBS-31."""

    stream_base: int = 0
    measure_passed: bool = False
    prbs: int = 0
    settings: BinSettings = field(default_factory=BinSettings)
    bin_limit: int = WORD - 1
    slots: int = STREAM_SLOTS
    window: int = STREAM_WINDOW

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.port = Counts()
        self.streams = [StreamModel(self.window, slot != 0 or self.slots > 2) for slot in range(self.slots)]
        self.bins = [[0] * BIN_SLOT_WORDS for _ in range(self.slots)]
        self.saturated = False

    def slot_of(self, stream_id: int) -> int:
        """Return the slot that counts a stream."""
        number = (stream_id - self.stream_base) % (1 << 16)
        return number + 1 if number < self.slots - 1 else 0

    def arrive(self, frame: MeasuredFrame) -> RecordFlag:
        """Take a frame; return what its sequence number makes of it."""
        if self.measure_passed and not frame.passed:
            return RecordFlag.NONE
        since = self.port.arrive(frame)
        self.count(0, BinKind.LENGTH, frame.length)
        self.count(0, BinKind.ARRIVAL, since)
        slot = 0 if frame.is_bare else self.slot_of(frame.stream_id)
        errors = frame.bit_errors if frame.is_probe and self.prbs >> slot & 1 else 0
        if frame.is_probe and frame.flags & (RecordFlag.FCS_ERROR | RecordFlag.GIANT) == RecordFlag.FCS_ERROR:
            self.streams[slot].damaged_bit_errors += errors
        if not (frame.is_probe or frame.is_bare) or frame.flags & FAULTS:
            return RecordFlag.NONE
        self.streams[slot].bit_errors += errors
        flag, since = self.streams[slot].arrive(frame)
        delay = signed(frame.stamp - frame.tx_stamp)
        self.count(0, BinKind.DELAY, delay)
        self.count(slot, BinKind.DELAY, delay, again=slot == 0)
        self.count(slot, BinKind.LENGTH, frame.length, again=slot == 0)
        self.count(slot, BinKind.ARRIVAL, since, again=slot == 0)
        return flag

    def count(self, slot: int, kind: BinKind, value: int | None, again: bool = False) -> None:
        """Count a value in its bin; not ``again`` where the port has counted it already."""
        if value is None or again:
            return
        place = BINS[kind].first + self.settings.bin(kind, value)
        if self.bins[slot][place] == self.bin_limit:
            self.saturated = True
        else:
            self.bins[slot][place] += 1

    def words(self) -> list[int]:
        """Return the snapshot as the bus memory has it."""
        words = [0] * (self.slots * STREAM_SLOT_WORDS)
        tables = [(0, PORT_ACCUMULATORS, vars(self.port))]
        tables += [(n, STREAM_ACCUMULATORS, stream.accumulators()) for n, stream in enumerate(self.streams)]
        for slot, layout, values in tables:
            for name, place in layout.items():
                for word in range(place.words):
                    at = STREAM_SLOT_WORDS * slot + place.first + word
                    words[at] = values[name] >> 32 * word & WORD - 1
        return words
