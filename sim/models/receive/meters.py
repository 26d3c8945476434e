# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for what is measured without keeping frames: accumulators and histograms of a port and its streams; bit errors
of fills, and TX stamps in any field.

Source: RFC 4737, section 3; RFC 5560 (loss, duplication and reordering).
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    BIN_SLOT_WORDS,
    BINS,
    CHECKSUM_OCTETS,
    FAULTS,
    FILL_OFFSET,
    HEAD_OCTETS,
    PORT_ACCUMULATORS,
    STREAM_ACCUMULATORS,
    STREAM_SLOT_WORDS,
    STREAM_SLOTS,
    STREAM_WINDOW,
    BinKind,
    RecordFlag,
    StampPlace,
)
from liteprobe.sim.models.traffic.trains import prbs_octets

# Delays -------------------------------------------------------------------------------------------


SQUARE_LIMIT_NS = (1 << 32) - 1
"""Greatest delay that enters the sum of squares as it is (ns)."""


def signed(value: int, bits: int = 64) -> int:
    """Return ``value`` modulo 2^bits as a two's complement number."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


@dataclass
class DelayModel:
    """Least, most, sum (ns) and sum of squares (ns^2) of the delays; all 0 before the first."""

    count: int = 0
    least: int = 0
    most: int = 0
    total: int = 0
    squares: int = 0

    def arrive(self, rx_stamp: int, tx_stamp: int) -> None:
        """Take one frame by its stamps (ns)."""
        delay = signed(rx_stamp - tx_stamp)
        self.least = delay if self.count == 0 else min(self.least, delay)
        self.most = delay if self.count == 0 else max(self.most, delay)
        self.count += 1
        self.total = signed(self.total + delay)
        self.squares = (self.squares + min(abs(delay), SQUARE_LIMIT_NS) ** 2) % (1 << 96)


# Order --------------------------------------------------------------------------------------------


MODULUS = 1 << 32


@dataclass
class SequenceModel:
    """Follows arrivals; remembers, if at all, the latest frame on each place of its window.

    Within ``window`` frames that is every frame. It matters where numbers leap about all 2^32 of them, as those of strangers
    in one slot do: a number that comes again a round later is a new frame, unless nothing took its place meanwhile.
    """

    window: int = 1024
    remembers: bool = True
    expected: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    beyond_window: int = 0
    seen: dict[int, int] = field(default_factory=dict)

    def arrive(self, sequence: int) -> RecordFlag:
        """Take one frame and return its flag (NONE when it is in order)."""
        ahead = (sequence - self.expected) % MODULUS
        if ahead < MODULUS // 2:
            self.lost = (self.lost + ahead) % MODULUS
            self.expected = (sequence + 1) % MODULUS
            self.seen[sequence % self.window] = sequence
            return RecordFlag.NONE
        if MODULUS - ahead > self.window:
            self.beyond_window += 1
            return RecordFlag.BEYOND_WINDOW
        if self.remembers and self.seen.get(sequence % self.window) == sequence:
            self.duplicated += 1
            return RecordFlag.DUPLICATE
        self.seen[sequence % self.window] = sequence
        self.reordered += 1
        self.lost = (self.lost - 1) % MODULUS
        return RecordFlag.REORDERED


# Meters of a port ---------------------------------------------------------------------------------


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


# Fills, and stamps in fields ----------------------------------------------------------------------


LONGEST = 9018


@cache
def fill() -> NDArray[np.uint8]:
    """Return the fill of the longest frame."""
    return np.frombuffer(prbs_octets(LONGEST), np.uint8)


def fill_errors(frame: bytes, payload_offset: int, is_ipv6: bool) -> int:
    """Return how many bits of a frame's fill (without FCS) are not those of PRBS-31; IPv6 ends in a complement."""
    octets = np.frombuffer(frame, np.uint8)[payload_offset + FILL_OFFSET : len(frame) - CHECKSUM_OCTETS * is_ipv6]
    return int(np.unpackbits(octets ^ fill()[: len(octets)]).sum())


def field_stamp(frame: bytes, place: StampPlace, stamp: int) -> int | None:
    """Return the TX stamp that a field says of a frame that arrived at ``stamp`` (ns); None: the field isn't there."""
    end = place.offset + place.octets
    if end > min(len(frame), HEAD_OCTETS):
        return None
    modulus = 1 << place.bits
    value = int.from_bytes(frame[place.offset : end]) % modulus
    units = ((stamp >> 4 * place.shift) - value) % modulus
    return (stamp - (units << 4 * place.shift)) % (1 << 64)
