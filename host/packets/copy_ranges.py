# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Moves many pieces of words at once: numpy copies items of any size, so an item is made of each piece."""

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
