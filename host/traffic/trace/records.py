# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Turns frames of a trace into the words that a probe replays them from, and sums up what they come to: many at once.

Source: cores/formats/replay.py ("Trace").
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    OVERHEAD,
    TRACE_FLAGS_BIT,
    TRACE_HEADER_WORDS,
    TRACE_LENGTH_BIT,
    TRACE_SNAP_BIT,
    TRACE_STAMP_MEND_BIT,
    TRACE_STAMP_NIBBLE_BIT,
    TRACE_STAMP_OCTETS_BIT,
    TRACE_STAMP_OFFSET_BIT,
    TRACE_STAMP_SHIFT_BIT,
    TraceFlag,
)
from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.line import GIGABIT, Line
from liteprobe.host.packets.frames import MASKS, WORD_OCTETS, Frames, Index, move, put, starts
from liteprobe.host.traffic.stamps import PLACES, Stamp

TAG_TYPES = (0x8100, 0x88A8, 0x9100)
TAGS_MOST = 4
TYPE_OFFSET = 12
IPV4, IPV6 = 0x0800, 0x86DD
#: Ethertype of the frames that have a place, and its octets after the start of their IP header.
FIELDS = {"ipv4.identification": (IPV4, 4), "ipv4.checksum": (IPV4, 10), "ipv6.flow_label": (IPV6, 1)}
OFFSET_MOST = 255
NOWHERE = -1


def check_stamp(stamp: Stamp) -> None:
    """Raise UsageError unless the frames of a trace can have their stamp there."""
    if stamp.place == "octet":
        assert stamp.octet is not None
        if not 0 <= stamp.octet <= OFFSET_MOST:
            raise UsageError(f"octet {stamp.octet} of a stamp is out of range: give 0 to {OFFSET_MOST}")
    elif stamp.place not in FIELDS:
        places = ", ".join(name for name in PLACES if name == "octet" or name in FIELDS)
        raise UsageError(f"frames of a trace have no stamp in the place '{stamp.place}': give one of {places}")


def stamp_offsets(stamp: Stamp, octets: NDArray[np.uint8], at: Index, kept: Index) -> Index:
    """Return the octet of each frame that its stamp begins with, or ``NOWHERE`` where it has no such place.

    Parameters
    ----------
    octets : array of u1
        Where frames lie.
    at, kept : array, shape (frames,)
        First octet of each, and how many are there.
    """
    if stamp.place == "octet":
        offsets = np.full(len(at), stamp.octet, np.int64)
    else:
        kind, inner = FIELDS[stamp.place]
        offsets, found = _network(octets, at, kept)
        offsets = np.where(found == kind, offsets + inner, NOWHERE)
    return np.where((offsets + stamp.octets <= kept) & (offsets <= OFFSET_MOST), offsets, NOWHERE)


def stamp_word(stamp: Stamp, offsets: Index) -> NDArray[np.uint32]:
    """Return the third word of the records of frames whose stamps begin at ``offsets``."""
    word = (
        (stamp.octets - 1) << TRACE_STAMP_OCTETS_BIT
        | stamp.tick << TRACE_STAMP_SHIFT_BIT
        | (stamp.bits % 8 != 0) << TRACE_STAMP_NIBBLE_BIT
        | (stamp.place == "ipv4.identification") << TRACE_STAMP_MEND_BIT
    )
    return (word | offsets << TRACE_STAMP_OFFSET_BIT).astype(np.uint32)


def delays_ns(
    stamp: Stamp, received_ns: NDArray[np.uint64], octets: NDArray[np.uint8], at: Index, kept: Index
) -> NDArray[np.int64]:
    """Return the delay of each frame from its stamp to its reception (ns), or -1 where it has no stamp.

    A delay of more than the stamp counts is short by multiples of that. Its unit is that of the stamp, 16^tick ns.
    """
    offsets = stamp_offsets(stamp, octets, at, kept)
    has_stamp = offsets != NOWHERE
    first = at[has_stamp] + offsets[has_stamp]
    sent = np.zeros(len(first), np.uint64)
    for octet in range(stamp.octets):
        sent = sent << np.uint64(8) | octets[first + octet].astype(np.uint64)
    unit = np.uint64(4 * stamp.tick)
    mask = np.uint64((1 << stamp.bits) - 1)
    found = np.full(len(at), -1, np.int64)
    found[has_stamp] = ((((received_ns[has_stamp] >> unit) - sent) & mask) << unit).astype(np.int64)
    return found


def has_octets(wanted: bytes, offset: int, octets: NDArray[np.uint8], at: Index, kept: Index) -> NDArray[np.bool_]:
    """Return which frames, as of ``delays_ns``, have ``wanted`` at an octet."""
    found = kept >= offset + len(wanted)
    for number, octet in enumerate(wanted, offset):
        found[found] = octets[at[found] + number] == octet
    return found


def _network(octets: NDArray[np.uint8], at: Index, kept: Index) -> tuple[Index, Index]:
    """Return the octet of each frame that its network header begins at, after VLAN tags, and its Ethertype; 0: cut."""
    offsets = np.full(len(at), TYPE_OFFSET, np.int64)
    kinds = _pairs(octets, at, kept, offsets)
    for _ in range(TAGS_MOST):
        is_tag = np.isin(kinds, TAG_TYPES)
        if not is_tag.any():
            break
        offsets[is_tag] += 4
        kinds[is_tag] = _pairs(octets, at[is_tag], kept[is_tag], offsets[is_tag])
    return offsets + 2, kinds


def _pairs(octets: NDArray[np.uint8], at: Index, kept: Index, offsets: Index) -> Index:
    first = np.minimum(at + offsets, len(octets) - 2)
    pair = octets[first].astype(np.int64) << 8 | octets[first + 1]
    return np.where(offsets + 2 <= kept, pair, 0)


TICKS_MOST = 2**32 - 1  # Of a record; a longer time takes records that wait.
HEAD = np.dtype([("ticks", "<u4"), ("shape", "<u4")])

Words = NDArray[np.uint32]


def records(chunks: Iterator[tuple[Frames, Index]], stamp: Stamp | None, first_ticks: int = 0) -> Iterator[Words]:
    """Yield the words of all records.

    ``chunks``: frames, and the tick at which each is due, from the first one on; ``first_ticks``: from the start of the
    program to the first frame.
    """
    before = -first_ticks
    held: Words | None = None
    last = 0  # Word of ``held`` that has the flags of its last record.
    for frames, due in chunks:
        if not len(frames):
            continue
        if held is not None:
            yield held
        gaps = np.diff(due, prepend=before)
        before = int(due[-1])
        held, last = _words(frames, gaps, stamp)
    if held is not None:
        held[last] |= TraceFlag.END << TRACE_FLAGS_BIT
        yield held


def record_words(frames: Frames, offsets: Index | None) -> Index:
    """Return the words of each record, those that wait left out; ``offsets``: of the stamps."""
    count = TRACE_HEADER_WORDS + (frames.kept + WORD_OCTETS - 1) // WORD_OCTETS
    return count if offsets is None else count + (offsets != NOWHERE)


def _words(frames: Frames, gaps: Index, stamp: Stamp | None) -> tuple[Words, int]:
    """Return the records of frames, and the word with the flags of the last one."""
    offsets = stamp_offsets(stamp, frames.octets, frames.at, frames.kept) if stamp else None
    sizes = record_words(frames, offsets)
    at, total = starts(sizes), int(sizes.sum())
    waits = None
    if int(gaps.max()) > TICKS_MOST:
        waits = gaps // TICKS_MOST
        at, total = (
            starts(sizes + TRACE_HEADER_WORDS * waits) + TRACE_HEADER_WORDS * waits,
            total + TRACE_HEADER_WORDS * int(waits.sum()),
        )
        gaps = gaps - waits * TICKS_MOST
    words = np.empty(total, np.uint32)
    heads = np.empty(len(frames), HEAD)
    heads["ticks"] = gaps
    heads["shape"] = frames.length << TRACE_LENGTH_BIT | frames.kept << TRACE_SNAP_BIT
    octets_at = at + TRACE_HEADER_WORDS
    if stamp and offsets is not None:
        has_stamp = offsets != NOWHERE
        heads["shape"][has_stamp] |= TraceFlag.STAMP << TRACE_FLAGS_BIT
        words[octets_at[has_stamp]] = stamp_word(stamp, offsets[has_stamp])
        octets_at = octets_at + has_stamp
    put(words, at, heads)
    if waits is not None:
        _put_waits(words, at, waits)
    counts = (frames.kept + WORD_OCTETS - 1) // WORD_OCTETS
    move(frames.octets, frames.at, words, octets_at, counts)
    cut = frames.kept % WORD_OCTETS != 0
    words[(octets_at + counts - 1)[cut]] &= MASKS[frames.kept[cut] % WORD_OCTETS]
    return words, int(at[-1]) + 1


def _put_waits(words: Words, at: Index, waits: Index) -> None:
    for place in np.flatnonzero(waits).tolist():
        end, count = int(at[place]), int(waits[place])
        pairs = words[end - TRACE_HEADER_WORDS * count : end].reshape(-1, TRACE_HEADER_WORDS)
        pairs[:, 0] = TICKS_MOST
        pairs[:, 1] = TraceFlag.WAIT << TRACE_FLAGS_BIT


@dataclass(frozen=True)
class Summary:
    """Sums up a trace."""

    frames: int = 0
    octets: int = 0  # Of the frames on the wire, without FCS.
    words: int = 0  # Words of its records, without those of long waits.
    kept: int = 0  # Octets that are sent of the frames; the rest is zero.
    last_due: int = 0  # Ticks from the first start to when the last frame is due.
    last_start: int = 0  # To when it starts.
    line_ticks: int = 0  # Ticks that the line is taken.
    expected_late: int = 0  # Frames that can't start when they are due, because the line is taken.
    first_late: int | None = None  # Number of the first of them, from 0.
    cut: int = 0  # Frames of which the file, or the snap length, has not all octets.
    stamped: int | None = None  # Frames that have a place for the stamp; None: none is asked for.
    notes: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(
        default_factory=dict
    )  # Packets that are not sent as they stand in the file, by kind.
    line: Line = GIGABIT  # Whose octets the ticks are.

    @property
    def free_ticks(self) -> int:
        """Ticks from the first start to when the line is free after the last frame."""
        return self.last_start + self._last_slot

    @property
    def duration_s(self) -> float:
        """From the first start to the end of the last frame (s)."""
        return float(self.free_ticks * self.line.octet_ns / 10**9)

    @property
    def share(self) -> float:
        """Of the line, from the first start to the end of the last frame."""
        return self.line_ticks / self.free_ticks if self.free_ticks else 0.0

    @property
    def load(self) -> float:
        """Of the line, from the first start to the last one: what a device sees whose clock is another."""
        return (self.line_ticks - self._last_slot) / self.last_start if self.last_start else 0.0

    @property
    def rate_bps(self) -> float:
        """Mean rate on the wire (b/s)."""
        return self.share * self.line.rate_bps

    _last_slot: int = 0


def starts_of(due: Index, slots: Index, free: int) -> tuple[Index, int]:
    """Return when frames start, max(due, line free), and when the line is free again.

    Parameters
    ----------
    due : array, shape (frames,)
        Tick at which each is due, in order.
    slots : array, shape (frames,)
        Ticks that each takes of the line, the gap after it included.
    free : int
        Tick from which on the line is free.
    """
    before = np.cumsum(slots) - slots
    start = np.maximum(np.maximum.accumulate(due - before), free) + before
    return start, int(start[-1] + slots[-1])


def summarize(chunks: Iterator[tuple[Frames, Index]], stamp: Stamp | None) -> Summary:
    """Return what frames come to; ``chunks``: frames, and the tick at which each is due."""
    frames = octets = words = kept = late = cut = stamped = free = last_due = last_start = slot = line = 0
    first_late: int | None = None
    for chunk, due in chunks:
        slots = chunk.length + OVERHEAD
        start, free = starts_of(due, slots, free)
        is_late = start > due
        if first_late is None and is_late.any():
            first_late = frames + int(np.argmax(is_late))
        offsets = stamp_offsets(stamp, chunk.octets, chunk.at, chunk.kept) if stamp else None
        stamped += int(np.count_nonzero(offsets != NOWHERE)) if offsets is not None else 0
        late += int(np.count_nonzero(is_late))
        cut += int(np.count_nonzero(chunk.kept < chunk.own))
        frames, octets, kept = frames + len(chunk), octets + int(chunk.length.sum()), kept + int(chunk.kept.sum())
        words += int(record_words(chunk, offsets).sum())
        line += int(slots.sum())
        last_due, last_start, slot = int(due[-1]), int(start[-1]), int(slots[-1])
    return Summary(
        frames,
        octets,
        words,
        kept,
        last_due,
        last_start,
        line,
        late,
        first_late,
        cut,
        stamped if stamp else None,
        _last_slot=slot,
    )
