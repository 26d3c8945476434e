# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Truth for a port that replays: when each frame of a trace is due and starts, its octets, and what is counted.

It knows the frames as they are asked for and when their words came into the ring, never how the gateware goes about it.

Source: docs/design/replay.md; IEEE 802.3-2022, 4.4.2 (what a frame takes on the line); RFC 791, 3.1 (checksum of the header).
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WAIT, STAMP, END = 1, 2, 8


class Record(NamedTuple):
    """A frame as it is sent: its tick from the start of the program, its octets (without FCS), and its stamp's word."""

    tick: int
    octets: bytes
    snap: int
    stamp: int | None


def decode(words: Sequence[int]) -> list[Record]:
    """Return the frames of a whole trace.

    Raises ValueError when a record is not one, or the last one doesn't end the trace.
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


# Frames --------------------------------------------------------------------------------------------

AROUND = 24
"""Octets that a frame takes on the line beyond its own: preamble, SFD, FCS, interpacket gap."""
SOON = 40
"""Ticks within which it is not said which of two things was first: the one that the port knows late, or the other."""


@dataclass(frozen=True)
class StampPlace:
    """Places the time of the SFD in a frame.

    Attributes
    ----------
    offset, octets : first octet in the frame, and how many, the highest first.
    shift : nibbles by which the time (ns) is shifted right.
    with_nibble : the high nibble of the first octet stays.
    mends : it is the identification of an IPv4 header of 20 octets, 0 so far, whose checksum is made right.
    """

    offset: int
    octets: int = 8
    shift: int = 0
    with_nibble: bool = False
    mends: bool = False


@dataclass(frozen=True)
class TraceFrame:
    """A frame of a trace.

    Attributes
    ----------
    gap : ticks from the start that is due of the frame before, or from that of the program.
    length : octets on the wire, without FCS.
    octets : the first of them; the others are 0.
    """

    gap: int
    length: int
    octets: bytes
    stamp: StampPlace | None = None


def dues(frames: Sequence[TraceFrame], loops: int = 1, end_gap: int = 0) -> list[int]:
    """Return when each frame is due (ticks from that of the program); ``end_gap`` is waited behind the last one of a loop."""
    found, due = [], 0
    for _ in range(loops):
        for frame in frames:
            due += frame.gap
            found.append(due)
        due += end_gap
    return found


def octets(frame: TraceFrame, sfd_ns: int) -> bytes:
    """Return the octets of a frame whose SFD is at ``sfd_ns``, without FCS."""
    found = bytearray(frame.octets + bytes(frame.length - len(frame.octets)))
    place = frame.stamp
    if place is None:
        return bytes(found)
    first = found[place.offset]
    time = (sfd_ns >> 4 * place.shift) & (1 << 8 * place.octets) - 1
    found[place.offset : place.offset + place.octets] = time.to_bytes(place.octets, "big")
    if place.with_nibble:
        found[place.offset] = first & 0xF0 | found[place.offset] & 0x0F
    if place.mends:
        header = slice(place.offset - 4, place.offset + 16)
        found[place.offset + 6 : place.offset + 8] = bytes(2)
        words = np.frombuffer(bytes(found[header]), ">u2")
        total = int(words.astype(np.int64).sum())
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        found[place.offset + 6 : place.offset + 8] = (total ^ 0xFFFF).to_bytes(2, "big")
    return bytes(found)


@dataclass(frozen=True)
class Verdict:
    """Lists what a run says that the truth doesn't.

    Attributes
    ----------
    starts_off : int
        Frames that started in another tick than they must, or, of words that came late, too early or too long after them.
    late : frames that started after their tick, and that is right.
    underruns, underruns_unsaid : int
        Frames that were due before their words came; frames where it is not said, within SOON.
    """

    starts_off: int
    late: int
    underruns: int
    underruns_unsaid: int
    first_underrun: int | None


def judged(
    due: NDArray[np.int64], length: NDArray[np.int64], came: NDArray[np.int64], start: NDArray[np.int64], most: int
) -> Verdict:
    """Judge the starts of frames, given what each could know when it started.

    Parameters
    ----------
    due, length, came, start : arrays, shape (frames,)
        When each is due; octets without FCS; when its last word came into the ring; when it started. Ticks of the program.
    most : ticks that a frame takes at most from the ring to the line, if nothing is in its way.
    """
    free = np.concatenate(([-(1 << 62)], start[:-1] + length[:-1] + AROUND))
    earliest = np.maximum(due, free)
    is_exact = came + most <= earliest
    is_right = np.where(
        is_exact, start == earliest, (start >= earliest) & (start > came) & (start <= np.maximum(came + most, earliest))
    )
    # A port comes to a frame when the one before has started, or where it is long when nearly all of it has left.
    left = np.maximum(start[:-1], start[:-1] + length[:-1] - 2 * SOON)
    ready_first = np.concatenate(([-(1 << 62)], left))
    ready_last = np.concatenate(([-(1 << 62)], left + 2 * SOON))
    is_dry = (came > due + SOON) & (came > ready_last)
    is_fed = (came + most <= due) | (came < ready_first)
    first = np.flatnonzero(is_dry)
    return Verdict(
        int(np.sum(~is_right)),
        int(np.sum(start > due)),
        int(np.sum(is_dry)),
        int(np.sum(~is_dry & ~is_fed)),
        int(first[0]) if len(first) else None,
    )
