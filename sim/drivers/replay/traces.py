# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Traces of random frames, and their records as a host streams them."""

import random
import struct
from collections.abc import Callable, Iterable, Sequence

from liteprobe.cores.formats import (
    DATAGRAM_HEADER_WORDS, DATAGRAM_WORDS, TRACE_FLAGS_BIT, TRACE_LENGTH_BIT, TRACE_SNAP_BIT, TRACE_STAMP_MEND_BIT,
    TRACE_STAMP_NIBBLE_BIT, TRACE_STAMP_OCTETS_BIT, TRACE_STAMP_OFFSET_BIT, TRACE_STAMP_SHIFT_BIT, TraceFlag,
)
from liteprobe.sim.models.traffic.replay import AROUND, StampPlace, TraceFrame

LONGEST_GAP = 2**32 - 1
DATAGRAM = DATAGRAM_WORDS - DATAGRAM_HEADER_WORDS  # Words that come into the ring at once.
FIRST_STAMP, BEHIND_STAMP = 15, 256  # Places of a stamp's first octet: a record has 8 bits for it.
ID_OFFSET = 18  # Of the identification of an IPv4 header behind 14 octets of Ethernet.


def record(frame: TraceFrame, is_end: bool = False, junk: int = 0, waits: Sequence[int] = ()) -> list[int]:
    """Return the words of a frame; ``waits``: parts of its gap that come before; ``junk`` fills the last word."""
    words = []
    gap = frame.gap - sum(waits)
    parts = [*waits, *[LONGEST_GAP] * (gap // LONGEST_GAP)]
    for part in parts:
        words += [part, TraceFlag.WAIT << TRACE_FLAGS_BIT]
    flags = (TraceFlag.END if is_end else TraceFlag.NONE) | (TraceFlag.STAMP if frame.stamp else TraceFlag.NONE)
    snap = len(frame.octets)
    words.append(gap % LONGEST_GAP)
    words.append(frame.length << TRACE_LENGTH_BIT | snap << TRACE_SNAP_BIT | flags << TRACE_FLAGS_BIT)
    if frame.stamp:
        words.append(stamp_word(frame.stamp))
    filled = frame.octets + junk.to_bytes(4, "little")[: -snap % 4]
    return [*words, *struct.unpack(f"<{len(filled) // 4}I", filled)]


def stamp_word(place: StampPlace) -> int:
    """Return the third word of a record."""
    return (
        place.offset << TRACE_STAMP_OFFSET_BIT
        | place.octets - 1 << TRACE_STAMP_OCTETS_BIT
        | place.shift << TRACE_STAMP_SHIFT_BIT
        | place.with_nibble << TRACE_STAMP_NIBBLE_BIT
        | place.mends << TRACE_STAMP_MEND_BIT
    )


def end_wait(gap: int) -> list[int]:
    """Return a record that ends a trace without a frame."""
    return [gap, (TraceFlag.WAIT | TraceFlag.END) << TRACE_FLAGS_BIT]


def trace(
    frames: Sequence[TraceFrame], chance: random.Random, waits: float = 0, end_gap: int | None = None
) -> list[list[int]]:
    """Return the records of frames, ``waits`` of them with WAITs before; ``end_gap``: of a WAIT that is the end."""
    found = []
    for number, frame in enumerate(frames):
        is_end = end_gap is None and number == len(frames) - 1
        cuts = (
            sorted(chance.randint(0, frame.gap) for _ in range(chance.randint(1, 3))) if chance.random() < waits else []
        )
        parts = [high - low for low, high in zip([0, *cuts], cuts, strict=False)]
        found.append(record(frame, is_end, chance.getrandbits(32) | 0x01010101, parts))
    if end_gap is not None:
        found.append(end_wait(end_gap))
    return found


def stalled(
    words: int, chance: random.Random, every: int, stalls: int, lead: int = 8, longest: int = 200_000
) -> list[tuple[int, int]]:
    """Return datagrams as (tick, words): some before the start, then one ``every`` so many ticks, and ``stalls`` of the host."""
    sizes = [min(DATAGRAM, words - first) for first in range(0, words, DATAGRAM)]
    at = set(chance.sample(range(lead, len(sizes)), min(stalls, len(sizes) - lead)))
    tick, found = 0, []
    for number, size in enumerate(sizes):
        tick += every * (number >= lead) + (chance.randint(10_000, longest) if number in at else 0)
        found.append((tick, size))
    return found


def with_checksum(octets: bytes) -> bytes:
    """Return a frame whose IPv4 header has 0 for its identification, and the checksum of that."""
    header = octets[14:ID_OFFSET] + bytes(2) + octets[ID_OFFSET + 2 : 24] + bytes(2) + octets[26:34]
    total = sum(struct.unpack(">10H", header)) % 0xFFFF or 0xFFFF
    return octets[:14] + header[:10] + struct.pack(">H", 0xFFFF - total) + header[12:] + octets[34:]


class FrameMaker:
    """Makes frames of random octets.

    Parameters
    ----------
    chance : random.Random
    stamps : part of the frames that have a stamp, where they are long enough.
    """

    def __init__(self, chance: random.Random, stamps: float = 0) -> None:
        self.chance = chance
        self.stamps = stamps

    def frame(self, gap: int, length: int, snap: int | None = None) -> TraceFrame:
        """Return a frame of ``length`` octets, ``snap`` of them in its record (None: all)."""
        snap = length if snap is None else snap
        octets = self.chance.randbytes(snap)
        if self.chance.random() >= self.stamps or snap <= FIRST_STAMP + 8:
            return TraceFrame(gap, length, octets)
        place = self._place(snap)
        if place.mends:
            octets = with_checksum(octets)
        return TraceFrame(gap, length, octets, place)

    def back_to_back(
        self, lengths: Iterable[int], snap: Callable[[int], int] = lambda length: length
    ) -> list[TraceFrame]:
        """Return frames that fill the line."""
        found, gap = [], 0
        for length in lengths:
            found.append(self.frame(gap, length, snap(length)))
            gap = length + AROUND
        return found

    def exponential(self, count: int, load: float, least: int = 60, most: int = 1514) -> list[TraceFrame]:
        """Return frames of random lengths whose gaps, from start to start, are exponential, with so much of the line taken."""
        mean = ((least + most) / 2 + AROUND) / load
        lengths = [self.chance.randint(least, most) for _ in range(count)]
        return [self.frame(int(self.chance.expovariate(1 / mean)), length) for length in lengths]

    def _place(self, snap: int) -> StampPlace:
        chance = self.chance
        if chance.random() < 0.2 and snap >= 34:
            return StampPlace(ID_OFFSET, 2, chance.randint(0, 12), mends=True)
        octets = chance.randint(1, 8)
        offset = chance.randint(FIRST_STAMP, min(BEHIND_STAMP - 1, snap - octets))
        if chance.random() < 0.2:
            offset = min(BEHIND_STAMP - 1, snap - octets)
        return StampPlace(offset, octets, chance.randint(0, 15), chance.random() < 0.3)
