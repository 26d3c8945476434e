# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds records of a capture as arrays, with their octets where they came to lie.

Source: docs/design/monitor.md ("Record").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import RECORD_HEAD_WORDS, UNIFIED_DTYPE, UNIFIED_WORDS, UnifiedFlag
from liteprobe.host.packets.frames import WORD_OCTETS, Index, move, starts, take

#: The four words that every record has: the first ones of the unified header.
HEAD_DTYPE = np.dtype(
    [("stamp", "<u8"), ("length", "<u2"), ("snap_length", "<u2"), ("flags", "<u2"), ("rule", "u1"), ("way", "u1")]
)
GAP = int(UnifiedFlag.GAP)
HEADER = int(UnifiedFlag.HEADER)


def record_words(snap_length: Index, flags: NDArray[Any]) -> Index:
    """Return how many words each record has; of a gap ``snap_length`` is anything."""
    size = RECORD_HEAD_WORDS + (snap_length + WORD_OCTETS - 1) // WORD_OCTETS
    size += np.where(flags & HEADER != 0, UNIFIED_WORDS - RECORD_HEAD_WORDS, 0)
    size[flags & GAP != 0] = RECORD_HEAD_WORDS
    return size


@dataclass(frozen=True)
class Batch:
    """Holds some records, in order."""

    words: NDArray[np.uint32]  # Where the records lie, among others maybe.
    at: Index  # Shape (records,). First word of each record.
    heads: NDArray[np.void]  # Shape (records,), of HEAD_DTYPE.
    step: int = 0  # Words from each record to the next, where all are alike (size, header or none, no gap); else 0.

    def __len__(self) -> int:
        return len(self.at)

    @property
    def stamp(self) -> NDArray[np.uint64]:
        """Time of each SFD (ns); of a gap, of the first frame that is missing."""
        return np.ascontiguousarray(self.heads["stamp"])

    @property
    def is_gap(self) -> NDArray[np.bool_]:
        """Whether a record stands for frames that were dropped."""
        return np.zeros(len(self), bool) if self.step else np.asarray(self.heads["flags"] & GAP != 0)

    @property
    def has_header(self) -> NDArray[np.bool_]:
        """Whether a record has a whole unified header."""
        if self.step:
            return np.full(len(self), len(self) and self.heads["flags"][0] & HEADER != 0)
        return np.asarray(self.heads["flags"] & (HEADER | GAP) == HEADER)

    @property
    def missing(self) -> NDArray[np.int64]:
        """Frames that were dropped where a gap is; 0 elsewhere."""
        count = self.heads["length"].astype(np.int64) | self.heads["snap_length"].astype(np.int64) << 16
        return np.where(self.is_gap, count, 0)

    @property
    def snap_length(self) -> Index:
        """Octets of each frame that are there; 0 where a gap is."""
        return np.where(self.is_gap, 0, self.heads["snap_length"].astype(np.int64))

    @property
    def channel(self) -> NDArray[np.uint8]:
        """Channel of each record."""
        return np.asarray(self.heads["way"] & 0xF)

    @property
    def port(self) -> NDArray[np.uint8]:
        """Port of the probe that each frame came to."""
        return np.asarray(self.heads["way"] >> 4)

    @property
    def octets_at(self) -> Index:
        """Word of ``words`` that each frame's octets begin at."""
        return self.at + np.where(self.has_header, UNIFIED_WORDS, RECORD_HEAD_WORDS)

    def rows(self) -> NDArray[np.uint32]:
        """Return the records, shape (records, step), where they lie; only where all are alike."""
        return np.ndarray(
            (len(self), self.step),
            np.uint32,
            self.words,
            WORD_OCTETS * int(self.at[:1].sum()),
            (WORD_OCTETS * self.step, WORD_OCTETS),
        )

    def octets(self, number: int) -> bytes:
        """Return the octets of one frame."""
        first = WORD_OCTETS * int(self.octets_at[number])
        return self.words.view(np.uint8)[first : first + int(self.snap_length[number])].tobytes()

    def headers(self) -> NDArray[np.void]:
        """Return the unified headers of the records that have one (`has_header`), in order."""
        return take(self.words, self.at[self.has_header], UNIFIED_DTYPE)

    def select(self, which: NDArray[Any] | slice) -> "Batch":
        """Return the records that ``which`` (indices, truth values or a slice of step 1) names; no octet is copied."""
        step = self.step if isinstance(which, slice) else 0
        return Batch(self.words, self.at[which], self.heads[which], step)

    def compact(self) -> "Batch":
        """Return the same records with their words alone, one after the other."""
        if self.step:
            return Batch(self.rows().reshape(-1), np.arange(0, len(self) * self.step, self.step), self.heads, self.step)
        counts = record_words(self.heads["snap_length"].astype(np.int64), self.heads["flags"])
        at = starts(counts)
        words = np.empty(int(counts.sum()), np.uint32)
        move(self.words, self.at, words, at, counts)
        return Batch(words, at, self.heads)


def empty_batch() -> Batch:
    """Return no records."""
    return Batch(np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, HEAD_DTYPE))


def joined(batches: Sequence[Batch]) -> Batch:
    """Return the records of several batches, one batch after the other."""
    some = [batch for batch in batches if len(batch)]
    if len(some) == 1:
        return some[0]
    if not some:
        return empty_batch()
    shifts = starts(np.array([len(batch.words) for batch in some]))
    return Batch(
        np.concatenate([batch.words for batch in some]),
        np.concatenate([batch.at + shift for batch, shift in zip(some, shifts.tolist(), strict=True)]),
        np.concatenate([batch.heads for batch in some]),
    )
