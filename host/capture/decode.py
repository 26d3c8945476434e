# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Decodes the blocks of a capture to records.

Every block says where its first record begins, so the walks through many blocks go side by side, a record of each at
a time. Whatever comes, nothing is taken for a record that its neighbours don't confirm, and everything is counted.

Source: docs/design/monitor.md ("Record", "Block").
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    BLOCK_DTYPE,
    BLOCK_HEADER_WORDS,
    BLOCK_MAGIC,
    BLOCK_VERSION,
    BLOCK_WORDS,
    CHANNELS,
    NO_RECORD,
    RECORD_HEAD_WORDS,
)
from liteprobe.host.packets.batch import GAP, HEAD_DTYPE, HEADER, Batch, empty_batch, record_words
from liteprobe.host.packets.frames import WORD_OCTETS, Index, starts, take

LEAP = 1 << 16  # Blocks: a step further than that is not a loss (it would be 100 MB), the numbers began anew.
WRAP = 1 << 32
REMEMBERED = 4096  # Numbers of missing blocks, to tell a late block from a repeated one.


@dataclass
class OrderCounters:
    """Counts what became of blocks."""

    missing: int = 0  # Numbers that were passed over; late ones are among them.
    repeated: int = 0  # Blocks that had come before: refused.
    late: int = 0  # Blocks that came after their place was given up: refused.
    out_of_order: int = 0  # Blocks that came after a later one, and could still be put into their place.
    restarts: int = 0  # Times that the numbers began anew.


@dataclass(frozen=True)
class Run:
    """Blocks that follow one another: indices into what came, and whether they go on from the last run."""

    blocks: NDArray[np.int64]
    goes_on: bool
    is_new: bool = False  # The numbers began anew.


@dataclass
class Order:
    """Sorts the blocks of one channel into runs by their numbers."""

    counters: OrderCounters
    expected: int | None = None  # Number of the next block; None before the first.
    _missing: dict[int, None] = field(default_factory=dict)

    def runs(self, numbers: NDArray[np.uint32]) -> Iterator[Run]:
        """Yield runs of the blocks with these ``numbers``, in the order in which they came."""
        if not len(numbers):
            return
        first = int(numbers[0]) if self.expected is None else self.expected
        if (numbers == np.arange(first, first + len(numbers)).astype(np.uint32)).all():  # As nearly always.
            self.expected = (first + len(numbers)) % WRAP
            yield Run(np.arange(len(numbers)), goes_on=True)
            return
        before = numbers[0] if self.expected is None else np.uint32(self.expected)
        steps = np.diff(numbers, prepend=before).view(np.int32).astype(np.int64)
        cuts = np.flatnonzero(np.abs(steps) > LEAP)
        for place, part in zip([0, *cuts.tolist()], np.split(np.arange(len(numbers)), cuts), strict=True):
            if not len(part):
                continue
            is_leap = bool(abs(int(steps[place])) > LEAP)
            if is_leap:
                self.counters.restarts += 1
                self.expected = None
                self._missing.clear()
            yield from self._near(numbers, part, is_leap)

    def _near(self, numbers: NDArray[np.uint32], part: NDArray[np.int64], is_new: bool) -> Iterator[Run]:
        """Yield runs of blocks whose numbers are close to one another."""
        first = int(numbers[part[0]]) if self.expected is None else self.expected
        ahead = (numbers[part] - np.uint32(first)).view(np.int32).astype(np.int64)
        if self.expected is None and (least := int(ahead.min())) < 0:
            first = (first + least) % WRAP
            ahead -= least
        is_behind = ahead < 0
        if is_behind.any():
            self._refuse(numbers[part[is_behind]])
            part, ahead = part[~is_behind], ahead[~is_behind]
        if not len(part):
            return
        if (np.diff(ahead) <= 0).any():
            order = self._sort(ahead)
            part, ahead = part[order], ahead[order]
        jumps = np.diff(ahead, prepend=-1) - 1
        self._miss(first, ahead, jumps)
        self.expected = (first + int(ahead[-1]) + 1) % WRAP
        for number, run in enumerate(np.split(part, np.flatnonzero(jumps[1:]) + 1)):
            yield Run(run, goes_on=number == 0 and jumps[0] == 0 and not is_new, is_new=is_new and number == 0)

    def _sort(self, ahead: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first copy of each block, in order."""
        order = np.argsort(ahead, kind="stable")
        order = order[np.diff(ahead[order], prepend=-1) > 0]
        self.counters.repeated += len(ahead) - len(order)
        as_they_came = ahead[np.sort(order)]
        self.counters.out_of_order += int(np.count_nonzero(as_they_came < np.maximum.accumulate(as_they_came)))
        return order

    def _refuse(self, numbers: NDArray[np.uint32]) -> None:
        for number in numbers.tolist():
            if number in self._missing:
                del self._missing[number]
                self.counters.late += 1
            else:
                self.counters.repeated += 1

    def _miss(self, first: int, ahead: NDArray[np.int64], jumps: NDArray[np.int64]) -> None:
        for place in np.flatnonzero(jumps).tolist():
            count = int(jumps[place])
            self.counters.missing += count
            for step in range(int(ahead[place]) - min(count, REMEMBERED), int(ahead[place])):
                self._missing[(first + step) % WRAP] = None
        while len(self._missing) > REMEMBERED:
            del self._missing[next(iter(self._missing))]


BLOCK_OCTETS = WORD_OCTETS * BLOCK_WORDS
PAYLOAD_WORDS = BLOCK_WORDS - BLOCK_HEADER_WORDS
HEADER_OCTETS = WORD_OCTETS * BLOCK_HEADER_WORDS

Blocks = NDArray[np.uint32]


_OF_CHANNEL = np.uint16((CHANNELS - 1) << 8)  # Of a block's kind.


def no_blocks() -> Blocks:
    """Return blocks, shape (0, 368)."""
    return np.empty((0, BLOCK_WORDS), np.uint32)


@dataclass
class StreamCounters(OrderCounters):
    """Counts what became of blocks, and of the records in them."""

    blocks: int = 0  # Blocks that came, refused ones included.
    damaged: int = 0  # Blocks that are none: magic, version, channel, lengths. Refused.
    records: int = 0  # Records that were found, gaps included.
    gaps: int = 0  # Gap records.
    gap_frames: int = 0  # Frames that these stand for.
    cut: int = 0  # Records that a missing block took a part of.
    broken: int = 0  # Places where records don't end where the next begins, or that no record can have.
    #: Frames that the probe dropped for want of space, by channel, as the blocks say.
    dropped: dict[int, int] = field(default_factory=dict)


def block_headers(blocks: Blocks) -> NDArray[np.void]:
    """Return the headers of blocks, shape (blocks,), of ``BLOCK_DTYPE``."""
    return np.ascontiguousarray(blocks[:, :BLOCK_HEADER_WORDS]).view(BLOCK_DTYPE)[:, 0]


def channels_of(headers: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the channel of each block."""
    return headers["kind"].astype(np.int64) >> 8 & 0xF


def are_whole(headers: NDArray[np.void], lengths: NDArray[Any] | None = None) -> NDArray[np.bool_]:
    """Return which blocks may be read: magic, version, channel and lengths are such as the probe writes.

    ``lengths``: octets that came of each block; None: all.
    """
    count, first = headers["words"], headers["first"]
    is_whole = (headers["magic"] == BLOCK_MAGIC) & (headers["kind"] & ~_OF_CHANNEL == BLOCK_VERSION << 12)
    is_whole &= (count > 0) & (count <= PAYLOAD_WORDS) & ((first < count) | (first == NO_RECORD))
    if lengths is not None:
        is_whole &= lengths >= HEADER_OCTETS + WORD_OCTETS * count
    return np.asarray(is_whole)


@dataclass
class _Channel:
    """Holds the rest of a channel: the beginning of a record, and whether the next one begins where it ends."""

    order: Order
    rest: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    is_in_step: bool = False
    dropped: int | None = None  # As the last block said.


@dataclass
class _Piece:
    """A run of blocks with what was left over before it, as words that follow one another."""

    channel: int
    run: Run
    rest: NDArray[np.uint32]
    is_in_step: bool


class BlockDecoder:
    """Turns blocks into records, however many at once and of however many channels.

    ``first_numbers``: number of the first block to come, by channel, where it is known; else the first to come is the
    first.
    """

    def __init__(self, first_numbers: Mapping[int, int] | None = None) -> None:
        self.counters = StreamCounters()
        known = first_numbers or {}
        self._channels = [_Channel(Order(self.counters, known.get(number))) for number in range(CHANNELS)]

    def decode(self, blocks: Blocks, lengths: NDArray[Any] | None = None) -> Batch:
        """Return the records that ``blocks`` complete.

        Parameters
        ----------
        blocks : array, shape (blocks, 368)
        lengths : array, shape (blocks,), or None
            Octets that came of each block; None: all.

        Returns
        -------
        Batch
            By channel, and in the order of each channel. Its words are a copy: ``blocks`` may be overwritten.
        """
        headers = block_headers(blocks)
        is_whole = are_whole(headers, lengths)
        self.counters.blocks += len(blocks)
        self.counters.damaged += int(np.count_nonzero(~is_whole))
        channels = channels_of(headers)
        pieces: list[_Piece] = []
        for number in np.flatnonzero(np.bincount(channels[is_whole])).tolist():
            chosen = np.flatnonzero(is_whole & (channels == number))
            pieces += self._pieces(number, chosen, headers)
        if not pieces:
            return empty_batch()
        words, walks = _lay(pieces, blocks, headers)
        return self._records(words, walks, pieces)

    def _pieces(self, number: int, chosen: Index, headers: NDArray[np.void]) -> Iterable[_Piece]:
        """Return the runs of a channel's blocks, each with what was left over before it."""
        channel = self._channels[number]
        pieces = []
        for run in channel.order.runs(headers["number"][chosen]):
            blocks = chosen[run.blocks]
            if not run.goes_on:
                self.counters.cut += int(len(channel.rest) > 0)
                channel.rest, channel.is_in_step = channel.rest[:0], False
            self._note_drops(number, channel, headers[blocks], run.is_new)
            is_at_start = not run.goes_on and headers["number"][blocks[0]] == 0
            pieces.append(
                _Piece(number, Run(blocks, run.goes_on), channel.rest, channel.is_in_step or bool(is_at_start))
            )
            has_record = bool((headers["first"][blocks] != NO_RECORD).any())
            channel.rest, channel.is_in_step = channel.rest[:0], pieces[-1].is_in_step or has_record
        return pieces

    def _note_drops(self, number: int, channel: _Channel, headers: NDArray[np.void], is_new: bool) -> None:
        """Add what the blocks say of frames that were dropped."""
        said = int(headers["dropped"][-1])
        if channel.dropped is None or is_new:
            channel.dropped = 0 if headers["number"][0] == 0 else int(headers["dropped"][0])
        dropped = (said - channel.dropped) & 0xFFFFFFFF
        if dropped >> 31:  # Counts don't run backwards: a damaged header.
            self.counters.broken += 1
            return
        self.counters.dropped[number] = self.counters.dropped.get(number, 0) + dropped
        channel.dropped = said

    def _records(self, words: NDArray[np.uint32], walks: "_Walks", pieces: list[_Piece]) -> Batch:
        """Find the records, and keep what is left over."""
        step, found, left = walks.alike(words) or (0, *walks.records(words))
        self.counters.broken += walks.bad + walks.astray(pieces)
        # What is not whole ends with its run: kept if nothing is missing behind it.
        last_of = {piece.channel: number for number, piece in enumerate(pieces)}
        for place in left:
            number = int(np.searchsorted(walks.piece_ends, place, side="right"))
            channel = pieces[number].channel
            if number == last_of[channel]:
                self._channels[channel].rest = words[place : int(walks.piece_ends[number])].copy()
            else:
                self.counters.cut += 1
        batch = Batch(words, found, take(words, found, HEAD_DTYPE), step)
        self.counters.records += len(batch)
        is_gap = batch.is_gap
        if is_gap.any():
            self.counters.gaps += int(np.count_nonzero(is_gap))
            self.counters.gap_frames += int(batch.missing.sum())
        return batch


def _lay(pieces: list[_Piece], blocks: Blocks, headers: NDArray[np.void]) -> tuple[NDArray[np.uint32], "_Walks"]:
    """Copy the words of all pieces into one array, and say where walks begin in it."""
    counts = [headers["words"][piece.run.blocks].astype(np.int64) for piece in pieces]
    sizes = np.array([len(piece.rest) + int(count.sum()) for piece, count in zip(pieces, counts, strict=True)])
    words = np.empty(int(sizes.sum()), np.uint32)
    begins, limits, run_ends, owners = [], [], [], []
    for number, (piece, count, at) in enumerate(zip(pieces, counts, starts(sizes).tolist(), strict=True)):
        body = at + len(piece.rest)
        words[at:body] = piece.rest
        end = at + int(sizes[number])
        _copy(blocks, piece.run.blocks, count, words[body:end])
        first = headers["first"][piece.run.blocks].astype(np.int64)
        block_at = body + starts(count)
        has_record = first != NO_RECORD
        begin, limit = (block_at + first)[has_record], (block_at + count)[has_record]
        if len(piece.rest):
            begin, limit = np.concatenate([(at,), begin]), np.concatenate([(body,), limit])
        begins.append(begin)
        limits.append(limit)
        run_ends.append(np.full(len(begin), end))
        owners.append(np.full(len(begin), number))
    begin, limit, run_end, owner = (np.concatenate(part) for part in (begins, limits, run_ends, owners))
    return words, _Walks(begin, limit, run_end, owner, np.cumsum(sizes))


def _copy(blocks: Blocks, chosen: Index, counts: Index, target: NDArray[np.uint32]) -> None:
    """Copy what stands behind the headers of the ``chosen`` blocks."""
    is_row = int(chosen[-1]) - int(chosen[0]) + 1 == len(chosen)
    payload = (blocks[int(chosen[0]) : int(chosen[-1]) + 1] if is_row else blocks[chosen])[:, BLOCK_HEADER_WORDS:]
    if len(target) == payload.size:
        target.reshape(payload.shape)[:] = payload
    else:
        target[:] = payload[np.arange(PAYLOAD_WORDS) < counts[:, np.newaxis]]


_KIND = GAP | HEADER  # Of the flags: what says how long a record is, beside its octets.


class _Walks:
    """Walks through blocks, side by side."""

    def __init__(self, begins: Index, limits: Index, run_ends: Index, owners: Index, piece_ends: Index) -> None:
        #: Shape (walks,). Where a block's first record begins, and where the block ends: the next walk takes over.
        #: Shape (walks,). Where the words end that follow one another without a gap.
        self.begins, self.limits, self.run_ends, self.piece_ends = begins, limits, run_ends, piece_ends
        self._owners = owners
        #: Shape (walks,). Where the next walk of the run begins; -1 for the last one.
        self.following = np.full(len(begins), -1)
        is_followed = owners[:-1] == owners[1:]
        self.following[:-1][is_followed] = begins[1:][is_followed]
        self.heads_cut = np.empty(0, np.int64)  # Where the head of a record begins that goes beyond its run.
        self.bad = 0  # Records that no frame can have, and walks that don't end where the next one begins.

    def alike(self, words: NDArray[np.uint32]) -> tuple[int, Index, list[int]] | None:
        """Return the step from record to record, where each begins, and what is left over; None where they aren't all alike.

        So it is where frames are of one length, and where headers come alone. It is the same walk: every head is looked at,
        and each block must begin where its records end. The step is 0 where there is more than one run.
        """
        found, left = [], []
        if not len(self.begins) or int(self.begins[0]) + RECORD_HEAD_WORDS > self.piece_ends[0]:
            return None
        _, _, length, flags = words[int(self.begins[0]) :][:RECORD_HEAD_WORDS].tolist()
        size = int(record_words(np.array([length >> 16]), np.array([flags]))[0])
        for number, end in enumerate(self.piece_ends.tolist()):
            mine = slice(*np.searchsorted(self._owners, (number, number + 1)))
            begins, limits = self.begins[mine], self.limits[mine]
            if not len(begins):
                return None
            first = int(begins[0])
            lengths, kinds = words[first + 2 : end - 1 : size], words[first + 3 : end : size]
            ends = first - (first - limits) // size * size
            is_alike = (
                flags & GAP == 0 and (lengths >> 16 == length >> 16).all() and (lengths & 0xFFFF >= length >> 16).all()
            )
            is_alike &= bool(((kinds ^ flags) & _KIND == 0).all())
            if not is_alike or (ends[:-1] != begins[1:]).any() or ends[-1] < end:
                return None
            last = first + (end - first) // size * size
            found.append(np.arange(first, last, size))
            left += [last] * (last < end)
        return size * (len(found) == 1), np.concatenate(found), left

    def records(self, words: NDArray[np.uint32]) -> tuple[Index, list[int]]:
        """Walk, and hold each walk's end against the next one's start; return where records begin, and what is left over."""
        walk, at, ends = self._walk(words)
        is_last = ends >= self.limits[walk]
        whole = ends <= self.run_ends[walk]
        agrees = ~is_last | (self.following[walk] < 0) | (ends == self.following[walk])
        self.bad += int(np.count_nonzero(~agrees))
        is_record = whole & (agrees | (ends <= self.limits[walk]))
        return np.sort(at[is_record]), np.concatenate([at[~whole & agrees], self.heads_cut]).tolist()

    def _walk(self, words: NDArray[np.uint32]) -> tuple[Index, Index, Index]:
        """Return walk, begin and end of every record, ends beyond the run included."""
        walk, at = np.arange(len(self.begins)), self.begins
        limits, run_ends = self.limits, self.run_ends
        found: list[tuple[Index, Index, Index]] = []
        while len(at):
            is_cut = at + RECORD_HEAD_WORDS > run_ends
            if is_cut.any():
                is_end = is_cut & (self.following[walk] < 0)
                self.bad += int(np.count_nonzero(is_cut & ~is_end))
                self.heads_cut = np.concatenate([self.heads_cut, at[is_end]])
                walk, at, limits, run_ends = (array[~is_cut] for array in (walk, at, limits, run_ends))
            lengths, flags = words[at + 2], words[at + 3]
            snap = (lengths >> 16).astype(np.int64)
            size = record_words(snap, flags)
            is_bad = (snap > (lengths & 0xFFFF)) & (flags & GAP == 0)
            if is_bad.any():
                self.bad += int(np.count_nonzero(is_bad))
                walk, at, limits, run_ends, size = (array[~is_bad] for array in (walk, at, limits, run_ends, size))
            end = at + size
            found.append((walk, at, end))
            goes_on = end < limits
            if goes_on.all():
                at = end
            else:
                walk, at, limits, run_ends = (array[goes_on] for array in (walk, end, limits, run_ends))
        if not found:
            return (np.empty(0, np.int64),) * 3
        walks, places, ends = (np.concatenate(part) for part in zip(*found, strict=True))
        return walks, places, ends

    def astray(self, pieces: list[_Piece]) -> int:
        """Return how many runs should begin with a record, and don't."""
        count = 0
        piece_begins = self.piece_ends - np.diff(self.piece_ends, prepend=0)
        for number, piece in enumerate(pieces):
            if piece.is_in_step and not len(piece.rest):
                first = np.searchsorted(self._owners, number)
                is_there = first < len(self._owners) and self._owners[first] == number
                count += int(not is_there or self.begins[first] != piece_begins[number])
        return count
