# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads and writes lines of XGMII octet by octet, by the words of clause 46 alone: the truth beside the cores of 10 Gb/s.

A line is two arrays: octets, and whether each is a control character; the octet at place n stands in lane n modulo 8.
"""

import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

IDLE, START, TERMINATE, ERROR, SEQUENCE = 0x07, 0xFB, 0xFD, 0xFE, 0x9C
LOCAL, REMOTE = 1, 2
PREAMBLE = bytes.fromhex("555555555555d5")  # After the start.
WORD = np.dtype([("octets", "u1", 8), ("control", "u1")])


def with_fcs(frame: bytes) -> bytes:
    """Return a frame as it stands on the line: padded to 60 octets, with its FCS."""
    padded = frame.ljust(60, b"\0")
    return padded + zlib.crc32(padded).to_bytes(4, "little")


# Lines --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Holds octets of a line, from lane 0 on, and which of them are control characters."""

    octets: NDArray[np.uint8]
    control: NDArray[np.bool_]

    @classmethod
    def read(cls, words: NDArray[np.void]) -> "Line":
        """Return the line of an array of WORD."""
        return cls(words["octets"].reshape(-1), np.unpackbits(words["control"], bitorder="little").astype(bool))

    def words(self) -> NDArray[np.void]:
        """Return an array of WORD; the last one is filled with idle."""
        count = -(-len(self.octets) // 8)
        octets = np.full(8 * count, IDLE, np.uint8)
        control = np.ones(8 * count, bool)
        octets[: len(self.octets)] = self.octets
        control[: len(self.control)] = self.control
        found = np.empty(count, WORD)
        found["octets"] = octets.reshape(-1, 8)
        found["control"] = np.packbits(control.reshape(-1, 8), axis=1, bitorder="little")[:, 0]
        return found


@dataclass
class LineWriter:
    """Writes a line, octet after octet."""

    octets: bytearray = field(default_factory=bytearray)
    control: bytearray = field(default_factory=bytearray)

    def put(self, data: bytes) -> None:
        """Append octets."""
        self.octets += data
        self.control += bytes(len(data))

    def tell(self, *characters: int) -> None:
        """Append control characters."""
        self.octets += bytes(characters)
        self.control += b"\1" * len(characters)

    def idle(self, count: int, multiple: int = 1) -> None:
        """Append idle, and as much more as leads to a multiple of so many octets."""
        count += -(len(self.octets) + count) % multiple
        self.octets += bytes([IDLE]) * count
        self.control += b"\1" * count

    def sequence(self, fault: int) -> None:
        """Append an ordered set, which stands in a column."""
        self.idle(0, 4)
        self.tell(SEQUENCE)
        self.put(bytes([0, 0, fault]))

    def frame(self, frame: bytes, ends: bool = True) -> None:
        """Append a frame with its start, and its terminate where it ``ends``."""
        self.tell(START)
        self.put(PREAMBLE + frame)
        if ends:
            self.tell(TERMINATE)

    def line(self) -> Line:
        """Return what was written."""
        return Line(
            np.frombuffer(bytes(self.octets), np.uint8), np.frombuffer(bytes(self.control), np.uint8).astype(bool)
        )


# What a transmitter sends --------------------------------------------------------------------------


def frames_on(line: Line) -> tuple[list[int], list[bytes]]:
    """Return the places of the starts and the frames with their FCS; ValueError where there is anything but frames and idle."""
    marks = np.flatnonzero(line.control & (line.octets != IDLE))
    starts, ends = marks[0::2], marks[1::2]
    if (line.octets[starts] != START).any() or (line.octets[ends] != TERMINATE).any() or len(starts) != len(ends):
        raise ValueError("starts and terminates don't take turns")
    if (starts % 4).any():
        raise ValueError(f"a frame starts at octet {starts[starts % 4 != 0][0]}: in no lane 0 or 4")
    controls = np.concatenate([[0], np.cumsum(line.control)])
    if (controls[ends] - controls[starts + 1]).any():
        raise ValueError("idle in a frame")
    if len(line.octets) - controls[-1] != (ends - starts - 1).sum():
        raise ValueError("octets outside of frames")
    octets = line.octets.tobytes()
    frames = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if octets[start + 1 : start + 8] != PREAMBLE:
            raise ValueError(f"the preamble at octet {start} is {octets[start + 1 : start + 8].hex()}")
        frames.append(octets[start + 8 : end])
    return starts.tolist(), frames


def back_to_back(lengths: Iterable[int]) -> list[int]:
    """Return where frames start that follow one another, in octets from the first, by the columns of a line without bubbles."""
    places, octets = [], 0
    for length in lengths:
        places.append(octets // 4 * 4)
        octets += max(length, 60) + 24
    return places


def started(shown: Sequence[int], in_lane_4: Sequence[bool], lengths: Sequence[int]) -> list[int]:
    """Return where frames start that may not do so before an octet each, and in lane 4 only where that is asked for.

    Each gap, terminate included, has 12 octets less what brings the start into a column, where no more than three octets are
    taken from all gaps altogether.
    """
    places: list[int] = []
    free, taken = 0, 0  # Where the next one may start with a whole gap; what gaps so far were cut by.
    for wish, is_lane_4, length in zip(shown, in_lane_4, lengths, strict=True):
        whole = free + taken
        place = max(wish, whole // 4 * 4)
        if is_lane_4 and place % 8 == 0:
            place += 4
        taken = max(whole - place, 0)
        places.append(place)
        free = place + 8 + max(length, 60) + 4 + 12
    return places


# What a receiver finds ----------------------------------------------------------------------------


@dataclass
class Found:
    """Holds what a receiver makes of a line; ``sfds`` are places of octets, ``faults`` states of the link with their places."""

    frames: list[bytes] = field(default_factory=list)  # Without FCS.
    fcs_errors: list[bool] = field(default_factory=list)
    symbol_errors: list[bool] = field(default_factory=list)
    sfds: list[int] = field(default_factory=list)
    runts: int = 0
    preamble_errors: int = 0
    lane_errors: int = 0
    faults: list[tuple[int, int]] = field(default_factory=list)


def received(line: Line) -> Found:
    """Return what a receiver finds on a line, which ends with idle."""
    found = Found()
    octets = line.octets.tobytes()
    # Of idle, the first one counts: it may end a frame.
    is_idle = line.control & (line.octets == IDLE)
    ends = np.flatnonzero(line.control & ~(is_idle & np.concatenate([[False], is_idle[:-1]])))
    marks = [(place, octets[place]) for place in ends.tolist()] + [(len(octets), IDLE)]
    controls = np.concatenate([[0], np.cumsum(line.control)])
    begin, has_error = -1, False  # Of the present frame.
    wrong_cycle = -1
    for place, character in marks:
        if begin >= 0 and place >= begin and character != ERROR:
            _take(found, octets[begin:place], has_error or character != TERMINATE)
            begin = -1
        elif begin >= 0 and place >= begin:
            has_error = True
        if character == START and place % 4:
            found.lane_errors += place // 8 != wrong_cycle
            wrong_cycle = place // 8
        elif character == START:
            is_right = octets[place + 1 : place + 8] == PREAMBLE and controls[place + 8] == controls[place + 1]
            if is_right:
                begin, has_error = place + 8, False
                found.sfds.append(place + 7)
            else:
                found.preamble_errors += 1
    found.faults = list(_faults(line))
    return found


def _take(found: Found, frame: bytes, is_wrong: bool) -> None:
    """Note a frame with its FCS."""
    found.frames.append(frame[:-4])
    found.fcs_errors.append(len(frame) < 4 or zlib.crc32(frame[:-4]).to_bytes(4, "little") != frame[-4:])
    found.symbol_errors.append(is_wrong)
    found.runts += len(frame) < 64


def _faults(line: Line) -> Iterator[tuple[int, int]]:
    """Yield each change of the link's state, with the place of the column that brought it."""
    columns = line.octets.reshape(-1, 4)
    control = line.control.reshape(-1, 4)
    is_set = (control == [True, False, False, False]).all(axis=1) & (columns[:, :3] == [SEQUENCE, 0, 0]).all(axis=1)
    heard = np.flatnonzero(is_set & np.isin(columns[:, 3], (LOCAL, REMOTE))).tolist()
    state, kind, count, last = 0, 0, 0, -1000
    for column in [*heard, len(columns) + 1000]:
        if column - last > 128 and kind:
            kind, count = 0, 0
            if state:
                state = 0
                if last + 128 < len(columns):
                    yield 4 * (last + 128), 0
        if column >= len(columns):
            return
        here = int(columns[column, 3])
        kind, count = here, count + 1 if here == kind else 1
        last = column
        if count >= 4 and state != here:
            state = here
            yield 4 * column, here


# A line that nobody would wish for -----------------------------------------------------------------


def hostile(frames: int, seed: int) -> Line:
    """Return a line of so many frames, good and broken, with gaps from one octet on, faults and noise between them."""
    chance = random.Random(seed)
    writer = LineWriter()
    writer.idle(16)
    for _ in range(frames):
        _hostile_frame(writer, chance)
        if chance.random() < 0.1:
            _hostile_gap(writer, chance)
    writer.idle(1024, 8)
    return writer.line()


def _hostile_frame(writer: LineWriter, chance: random.Random) -> None:
    """Append one frame of some kind, and a gap."""
    length = chance.choice([60, 60, 61, 62, 63, 64, 65, 66, 67, chance.randrange(60, 200), chance.randrange(60, 400)])
    if chance.random() < 0.003:
        length = chance.choice([1514, 9000, 9018, 12000])
    frame = with_fcs(chance.randbytes(length))
    draw = chance.random()
    if draw < 0.1:  # A runt, with a right FCS or without.
        short = chance.randbytes(chance.randrange(60))
        frame = short + zlib.crc32(short).to_bytes(4, "little") if draw < 0.06 else short
    elif draw < 0.15:
        place = chance.randrange(len(frame))
        frame = frame[:place] + bytes([frame[place] ^ 1 << chance.randrange(8)]) + frame[place + 1 :]
    elif draw < 0.17:
        frame = frame[: chance.randrange(len(frame))]
    begin = len(writer.octets)
    draw = chance.random()
    writer.frame(frame, ends=draw >= 0.04)
    if draw < 0.02:
        writer.idle(chance.randrange(1, 12))
    elif draw < 0.04:
        pass  # What follows ends it.
    elif draw < 0.12:  # A character of some kind, anywhere, of the preamble too.
        place = begin + chance.randrange(len(writer.octets) - begin)
        writer.octets[place] = chance.choice(
            [ERROR, ERROR, ERROR, START, TERMINATE, SEQUENCE, IDLE, chance.randrange(256)]
        )
        writer.control[place] = 1
    elif draw < 0.15:  # An octet of the preamble is another one.
        writer.octets[begin + chance.randrange(1, 8)] = chance.choice([0x55, 0xD5, 0x54, chance.randrange(256)])
    gap = chance.choice([5, 5, 5, 6, 7, 8, 9, 12, 12, 15, chance.randrange(1, 5), chance.randrange(40)])
    if draw >= 0.04:
        writer.idle(max(gap - 1, 0), 4)
    else:
        writer.idle(0, 4)


def _hostile_gap(writer: LineWriter, chance: random.Random) -> None:
    """Append something between frames: ordered sets, a start in a wrong lane, a lone start, noise; then idle up to a column."""
    kind = chance.randrange(6)
    if kind == 0:  # Ordered sets, of both faults and of none.
        fault = chance.choice([LOCAL, REMOTE])
        for _ in range(chance.randrange(1, 8)):
            writer.sequence(fault if chance.random() < 0.95 else chance.choice([0, LOCAL, REMOTE, 3]))
            writer.idle(4 * chance.choice([0, 0, 1, 2, chance.randrange(126, 131)]))
    elif kind == 1:
        writer.idle(chance.randrange(1, 4))
        writer.frame(with_fcs(chance.randbytes(60)))
    elif kind == 2:
        writer.tell(*[START] * chance.randrange(1, 10))
    elif kind == 3:
        writer.tell(*[TERMINATE] * chance.randrange(1, 10))
    elif kind == 4:
        for _ in range(chance.randrange(1, 60)):
            character = chance.choice([IDLE, START, TERMINATE, ERROR, SEQUENCE, chance.randrange(256)])
            if chance.random() < 0.5:
                writer.tell(character)
            else:
                writer.put(bytes([chance.choice([0x55, 0xD5, 0, 1, 2, character])]))
    else:
        writer.idle(8 * chance.randrange(1, 100))
    writer.idle(0, 4)
