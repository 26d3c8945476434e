# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of a trace to the words that a probe replays them from, many at once.

Source: cores/formats/replay.py ("Trace").
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import (
    TRACE_FLAGS_BIT,
    TRACE_HEADER_WORDS,
    TRACE_LENGTH_BIT,
    TRACE_SNAP_BIT,
    TraceFlag,
)
from liteprobe.host.errors import UsageError
from liteprobe.host.packets.copy_ranges import WORD_OCTETS, Index, move, put, starts
from liteprobe.host.packets.frames import MASKS, Frames
from liteprobe.host.traffic.stamps import Stamp
from liteprobe.host.traffic.trace.stamping import NOWHERE, stamp_offsets, stamp_word

TICKS_MOST = 2**32 - 1  # Of a record; a longer time takes records that wait.
WAITS_MOST = 4096  # In a row: 39 hours.
HEAD = np.dtype([("ticks", "<u4"), ("shape", "<u4")])

Words = NDArray[np.uint32]


def records(chunks: Iterator[tuple[Frames, Index]], stamp: Stamp | None, first_ticks: int = 0) -> Iterator[Words]:
    """Yield the words of all records.

    Parameters
    ----------
    chunks : iterator of (Frames, array)
        Frames, and the tick at which each is due, from the first one on.
    stamp : Stamp or None
    first_ticks : int
        From the start of the program to the first frame.

    Raises
    ------
    UsageError
        When a time between two frames is longer than can be waited for.
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


# # #


def _words(frames: Frames, gaps: Index, stamp: Stamp | None) -> tuple[Words, int]:
    """Return the records of frames, and the word with the flags of the last one."""
    offsets = stamp_offsets(stamp, frames.octets, frames.at, frames.kept) if stamp else None
    sizes = record_words(frames, offsets)
    at, total = starts(sizes), int(sizes.sum())
    waits = None
    if int(gaps.max()) > TICKS_MOST:
        waits = gaps // TICKS_MOST
        _check_waits(frames, waits)
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


def _check_waits(frames: Frames, waits: Index) -> None:
    if int(waits.max()) > WAITS_MOST:
        first = int(np.argmax(waits > WAITS_MOST))
        hours = int(waits[first]) * TICKS_MOST * 8 / 3.6e12
        raise UsageError(
            f"packet {frames.number + first} comes {hours:,.0f} hours after the one before: cut the file there with editcap, "
            "or set the times aside with --rate or --top"
        )


def _put_waits(words: Words, at: Index, waits: Index) -> None:
    for place in np.flatnonzero(waits).tolist():
        end, count = int(at[place]), int(waits[place])
        pairs = words[end - TRACE_HEADER_WORDS * count : end].reshape(-1, TRACE_HEADER_WORDS)
        pairs[:, 0] = TICKS_MOST
        pairs[:, 1] = TraceFlag.WAIT << TRACE_FLAGS_BIT
