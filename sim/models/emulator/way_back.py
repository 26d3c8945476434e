# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The way back of a network of one direction, frame by frame: what leaves, in which order, and within which ticks."""

from collections.abc import Iterable
from typing import NamedTuple

from liteprobe.cores.formats import MIN_LENGTH, slot_octets

FCS_OCTETS = 4
#: From the last octet of a frame on the pins to the SFD of the same frame where it leaves, where the line is free.
LEAST_TICKS, MOST_TICKS = 20, 80


class Arrival(NamedTuple):
    """A frame that comes: the tick of its SFD, its octets without FCS, whether the FCS is wrong."""

    tick: int
    octets: bytes
    is_bad: bool


class Leave(NamedTuple):
    """A frame that leaves: its octets, and the first and last tick in which its SFD may be."""

    octets: bytes
    first: int
    last: int


def is_good(frame: Arrival, longest: int) -> bool:
    """Return whether a frame is sent at all."""
    return not frame.is_bad and MIN_LENGTH <= len(frame.octets) <= longest


def leaving(frames: Iterable[Arrival], longest: int) -> list[Leave]:
    """Return what leaves, where nothing else is on the line: each frame once it is whole and the one before is through."""
    left: list[Leave] = []
    first = last = 0
    for frame in frames:
        if is_good(frame, longest):
            end = frame.tick + len(frame.octets) + FCS_OCTETS
            first, last = max(end + LEAST_TICKS, first), max(end + MOST_TICKS, last)
            left.append(Leave(frame.octets, first, last))
            slot = slot_octets(len(frame.octets))
            first, last = first + slot, last + slot
    return left
