# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Frames of a trace as arrays, some thousands at once, with their octets where they came to lie."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.packets.copy_ranges import WORD_OCTETS, Index, move, starts

#: Octets behind the last frame of ``Frames.octets``: frames are copied as whole words.
SLACK = WORD_OCTETS
#: What of the last word of a frame is its own, by the octets that the frame has modulo 4.
MASKS = np.array([0xFFFFFFFF, 0xFF, 0xFFFF, 0xFFFFFF], "<u4")


@dataclass(frozen=True)
class Frames:
    """Some frames, in order.

    Attributes
    ----------
    octets : array of u1
        Where the frames lie, and ``SLACK`` octets behind the last one.
    at : array, shape (frames,)
        First octet of each.
    kept : array, shape (frames,)
        Octets of each that are there, from its destination MAC on.
    length : array, shape (frames,)
        Octets of each on the wire, without FCS: 60 to 9000.
    time : array, shape (frames,)
        When each starts, in units of its source.
    number : int
        Of the first packet, as in the file, from 1.
    base : int
        Where in the file ``octets`` begins.
    """

    octets: NDArray[np.uint8]
    at: Index
    kept: Index
    length: Index
    time: Index
    number: int = 1
    base: int = 0

    def __len__(self) -> int:
        return len(self.at)

    def select(self, which: NDArray[Any] | slice) -> "Frames":
        """Return the frames that ``which`` (indices, truth values or a slice) names; no octet is copied."""
        return replace(self, at=self.at[which], kept=self.kept[which], length=self.length[which], time=self.time[which])

    def compact(self) -> "Frames":
        """Return the same frames with their octets alone."""
        words = (self.kept + WORD_OCTETS - 1) // WORD_OCTETS
        at = starts(words)
        room = np.zeros(int(words.sum()) + 1, np.uint32)
        move(self.octets, self.at, room, at, words)
        return replace(self, octets=room.view(np.uint8), at=WORD_OCTETS * at)


def joined(first: Frames, second: Frames) -> Frames:
    """Return the frames of both; packet numbers are those of the second."""
    shift = len(first.octets)
    return replace(
        second,
        octets=np.concatenate([first.octets, second.octets]),
        at=np.concatenate([first.at, second.at + shift]),
        kept=np.concatenate([first.kept, second.kept]),
        length=np.concatenate([first.length, second.length]),
        time=np.concatenate([first.time, second.time]),
    )
