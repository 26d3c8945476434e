# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Holds frames as arrays, some thousands at once, where their octets came to lie, and moves many pieces of words at once."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

WORD_OCTETS = 4

Index = NDArray[np.int64]


def windows(words: NDArray[Any], count: int, kind: np.dtype[Any] | None = None) -> NDArray[Any]:
    """Return a view of ``words`` whose item k is the ``count`` words from item k of it on.

    Parameters
    ----------
    words : array of u4, or of octets (then item k begins with octet k), contiguous
    count : int, 1 or more
    kind : dtype or None
        What an item is (of ``4 * count`` octets); None: octets without meaning, which copy fastest.
    """
    item = kind or np.dtype(f"V{WORD_OCTETS * count}")
    return np.ndarray(
        (max((words.nbytes - item.itemsize) // words.itemsize + 1, 0),), item, words, strides=words.strides
    )


def take(words: NDArray[np.uint32], at: Index, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of ``kind`` whose items lie at words ``at``."""
    found: NDArray[Any] = windows(words, kind.itemsize // WORD_OCTETS)[at]
    return found.view(kind)


def put(words: NDArray[np.uint32], at: Index, items: NDArray[Any]) -> None:
    """Write items of whole words to words ``at``."""
    if len(items):
        octets = items.dtype.itemsize
        windows(words, octets // WORD_OCTETS)[at] = items.view(f"V{octets}")


def move(source: NDArray[Any], source_at: Index, target: NDArray[np.uint32], target_at: Index, counts: Index) -> None:
    """Copy piece k, ``counts[k]`` words, from item ``source_at[k]`` of ``source`` to word ``target_at[k]`` of ``target``.

    ``source`` has words, or octets: then pieces may begin with any octet.
    """
    if not len(counts):
        return
    least, most = int(counts.min()), int(counts.max())
    if least == most:
        if most:
            windows(target, most)[target_at] = windows(source, most)[source_at]
        return
    order = np.argsort(
        counts.astype(np.uint16) if most < 1 << 16 else counts, kind="stable"
    )  # Of 16 bits: a radix sort.
    sizes, first = np.unique(counts[order], return_index=True)
    for size, chosen in zip(sizes.tolist(), np.split(order, first[1:]), strict=True):
        if size:
            windows(target, size)[target_at[chosen]] = windows(source, size)[source_at[chosen]]


def starts(counts: Index) -> Index:
    """Return where each of some pieces begins when they follow one another."""
    ends = np.cumsum(counts)
    return ends - counts


#: Octets after the last frame of ``Frames.octets``: frames are copied as whole words.
SLACK = WORD_OCTETS
#: What of the last word of a frame is its own, by the octets that the frame has modulo 4.
MASKS = np.array([0xFFFFFFFF, 0xFF, 0xFFFF, 0xFFFFFF], "<u4")


#: Of a unit of time, of which a second is one: picoseconds and 2^-32 s are whole numbers of them, and all fit into 60 bits.
PARTS = 5**12 << 32


def normal(time: Index, rest: Index) -> tuple[Index, Index]:
    """Return times with ``rest``, which may be less than 0 or more than a unit, as 0 to a unit."""
    carry = rest // PARTS
    return time + carry, rest - carry * PARTS


@dataclass(frozen=True)
class Frames:
    """Some frames, in order."""

    octets: NDArray[np.uint8]  # Where the frames lie, and ``SLACK`` octets after the last one.
    at: Index  # Shape (frames,). First octet of each.
    kept: Index  # Shape (frames,). Octets of each that are there, from its destination MAC on.
    length: Index  # Shape (frames,). Octets of each on the wire, without FCS: 60 to 9000.
    own: Index  # Shape (frames,). Octets of each as it was, before it was padded.
    time: Index  # Shape (frames,). When each starts, in whole units of its source.
    rest: Index  # Shape (frames,). And in 1/`PARTS` of a unit.
    number: Index  # Shape (frames,). Which packet of the file each is, from 1.
    place: Index  # Shape (frames,). Octet of the file that each begins with.

    def __len__(self) -> int:
        return len(self.at)

    def select(self, which: NDArray[Any] | slice) -> "Frames":
        """Return the frames that ``which`` (indices, truth values or a slice) names; no octet is copied."""
        return replace(self, **{name: getattr(self, name)[which] for name in OF_FRAMES})

    def compact(self) -> "Frames":
        """Return the same frames with their octets alone."""
        words = (self.kept + WORD_OCTETS - 1) // WORD_OCTETS
        at = starts(words)
        words_there = np.zeros(int(words.sum()) + 1, np.uint32)
        move(self.octets, self.at, words_there, at, words)
        return replace(self, octets=words_there.view(np.uint8), at=WORD_OCTETS * at)


#: What `Frames` has of each frame.
OF_FRAMES = ("at", "kept", "length", "own", "time", "rest", "number", "place")


def joined(first: Frames, second: Frames) -> Frames:
    """Return the frames of both."""
    moved = replace(second, at=second.at + len(first.octets))
    both = {name: np.concatenate([getattr(first, name), getattr(moved, name)]) for name in OF_FRAMES}
    return replace(second, octets=np.concatenate([first.octets, second.octets]), **both)
