# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The records of a trace, word by word in plain Python: what a probe sends of them, and when.

The truth for what the host makes with numpy. Source: cores/formats/replay.py ("Trace").
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

WAIT, STAMP, END = 1, 2, 8


class Record(NamedTuple):
    """A frame as it is sent: its tick from the start of the program, its octets (without FCS), and its stamp's word."""

    tick: int
    octets: bytes
    snap: int
    stamp: int | None


def decode(words: Sequence[int]) -> list[Record]:
    """Return the frames of a whole trace.

    Raises
    ------
    ValueError
        When a record is not one, or the last one doesn't end the trace.
    """
    found, at, tick = [], 0, 0
    is_over = False
    while at < len(words):
        if is_over:
            raise ValueError(f"word {at} follows the end")
        ticks, shape = words[at], words[at + 1]
        length, snap, flags = shape & 0x3FFF, shape >> 14 & 0x3FFF, shape >> 28
        at += 2
        tick += ticks
        if flags & WAIT:
            if length or snap or flags != WAIT:
                raise ValueError(f"the record that waits before word {at} has more than a time")
            continue
        if not 60 <= length <= 9000 or snap > length:
            raise ValueError(f"the record before word {at} has {length} octets and {snap} of them")
        stamp = None
        if flags & STAMP:
            stamp = words[at]
            at += 1
            if (stamp & 0xFF) + (stamp >> 8 & 7) >= snap:
                raise ValueError(f"the stamp of the record before word {at} is outside of its octets")
        count = (snap + 3) // 4
        octets = b"".join(struct.pack("<I", word) for word in words[at : at + count])
        at += count
        if len(octets) < snap or any(octets[snap:]):
            raise ValueError(f"the octets before word {at} are cut, or what fills their last word isn't zero")
        found.append(Record(tick, octets[:snap] + bytes(length - snap), snap, stamp))
        is_over = bool(flags & END)
    if not is_over:
        raise ValueError("the last record doesn't end the trace")
    return found
