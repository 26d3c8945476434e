# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packets of a pcap file, of any byte order, in microseconds or nanoseconds.

Source: draft-ietf-opsawg-pcap, sections 4 (file header) and 5 (packet record); libpcap, sf-pcap.c (older and changed files).
"""

import struct
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.packets.frames import PARTS, Index, normal, windows
from liteprobe.host.packets.window import CutError, Window


class Form(NamedTuple):
    """The form of a file: parts of a second that it counts, octets of its header, and of that of a packet."""

    per_second: int
    header: int = 24
    record: int = 16


#: By magic: the usual two, that of Kuznetsov's libpcap (interface and protocol follow the lengths), and those of Ixia.
MAGICS = {
    0xA1B2C3D4: Form(10**6),
    0xA1B23C4D: Form(10**9),
    0xA1B2CD34: Form(10**6, record=24),
    0x1C0001AB: Form(10**6, header=28),
    0x1C0001AC: Form(10**9, header=28),
}
ETHERNET = 1
#: Of a little-endian pcap of Ethernet frames with nanoseconds.
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, ETHERNET)
ALIKE_LEAST = 64  # Packets of one length, one after the other, that are found at once.
KEPT_MOST = 262_144  # Octets of a packet, as all programs have it; a greater number is not a length.
HAS_FCS_BIT, FCS_BIT, LINK_MASK = 26, 28, 0xFFFF
LENGTHS_TURNED = (543, 2)  # Major versions, the second up to minor version 2, that have the length before what is kept.


@dataclass(frozen=True)
class Packets:
    """Some packets of a file, as they stand there; all arrays have the shape (packets,)."""

    at: Index  # First octet of each in the window.
    kept: Index  # Octets that are there, with the FCS where there is one.
    length: Index  # Octets on the wire, likewise.
    time: Index  # Whole seconds from the first packet of the file on.
    rest: Index  # What is left of the time, in 1/`PARTS` s; finer times are rounded down.
    fcs: Index  # Octets of FCS at the end of each.
    link: Index  # Link type.
    wrong: NDArray[np.bool_]  # Whether a packet can't be what it says.
    carried: NDArray[np.bool_]  # Whether its part of a second is one of a second or more.
    damaged: NDArray[np.bool_]  # Whether the file says that it was received with an error.
    timeless: NDArray[np.bool_]  # Whether it has no time.

    def __len__(self) -> int:
        return len(self.at)

    def select(self, which: NDArray[Any] | slice) -> "Packets":
        """Return the packets that ``which`` (indices, truth values or a slice) names."""
        return Packets(*(getattr(self, one.name)[which] for one in fields(self)))


def fcs_octets(field: int) -> int:
    """Return the octets of FCS that the link type field of a pcap speaks of."""
    return 2 * (field >> FCS_BIT) if field >> HAS_FCS_BIT & 1 else 0


class PcapReader:
    """Reads a pcap; ``window``: with the file header at its beginning."""

    def __init__(self, window: Window) -> None:
        self._window = window
        magic = bytes(window.octets[:4])
        self._order = "<" if int.from_bytes(magic, "little") in MAGICS else ">"
        self._form = MAGICS[int.from_bytes(magic, "little" if self._order == "<" else "big")]
        if window.filled < self._form.header:
            raise CutError("it ends within its header")
        major, minor = struct.unpack_from(self._order + "HH", window.octets.data, 4)
        (field,) = struct.unpack_from(self._order + "I", window.octets.data, 20)
        self._link, self._fcs = field & LINK_MASK, fcs_octets(field)
        is_turned = major in LENGTHS_TURNED and (major != LENGTHS_TURNED[1] or minor < 3)
        names = ("second", "part", *(("length", "kept") if is_turned else ("kept", "length")))
        self._head = np.dtype([(name, self._order + "u4") for name in names])
        self._kept_at = 4 * names.index("kept")
        self._origin: tuple[int, int] | None = None
        self.at = self._form.header

    def read(self) -> Packets:
        """Return the packets that are whole in the window; ``at`` is behind them then."""
        alike = self._alike(self.at)
        if len(alike):
            self.at = 2 * int(alike[-1]) - int(alike[-2])
        places, self.at = self._places(self.at)
        at = np.concatenate([alike, np.array(places, np.int64)])
        heads = windows(self._window.octets, 4, self._head)[at]
        second, part, kept, length = (heads[name].astype(np.int64) for name in ("second", "part", "kept", "length"))
        per_second = self._form.per_second
        carried = part >= per_second
        if carried.any():
            second, part = second + part // per_second, part % per_second
        rest = part * (PARTS // per_second)
        if len(at) and self._origin is None:
            self._origin = int(second[0]), int(rest[0])
        first = self._origin or (0, 0)
        time, rest = normal(second - first[0], rest - first[1])
        full, none = np.full(len(at), 1, np.int64), np.zeros(len(at), np.bool_)
        wrong = kept > KEPT_MOST
        fcs, link = self._fcs * full, self._link * full
        return Packets(at + self._form.record, kept, length, time, rest, fcs, link, wrong, carried, none, none)

    def move_on(self) -> bool:
        """Read on, from what isn't read yet; return whether anything came."""
        came = self._window.move_on(self.at)
        self.at = 0
        return came

    def reason(self) -> str:
        """Return why the packet at ``at`` can't be read, at the end of the file."""
        left, head = self._window.filled - self.at, self._form.record
        if left < head:
            return f"its header is cut after {left} of {head} octets"
        kept = self._kept(self.at)
        if kept > KEPT_MOST:
            return f"it would be {kept} octets long, so its header is not one"
        return f"it is cut after {left - head} of {kept} octets"

    def is_stuck(self) -> bool:
        """Return whether reading on would not help."""
        return self._window.filled - self.at >= self._form.record and self._kept(self.at) > KEPT_MOST

    # # #

    def _kept(self, at: int) -> int:
        """Return the octets of the packet whose header is at octet ``at``."""
        return int(struct.unpack_from(self._order + "I", self._window.octets.data, at + self._kept_at)[0])

    def _alike(self, at: int) -> Index:
        """Return where whole packets begin, from octet ``at`` on, that are as long as the first one, if they are many."""
        left = self._window.filled - at
        if left < self._form.record:
            return np.empty(0, np.int64)
        kept = self._kept(at)
        step, kind = self._form.record + kept, np.dtype(self._order + "u4")
        count = left // step
        if count < ALIKE_LEAST:
            return np.empty(0, np.int64)
        found: NDArray[np.uint32] = np.ndarray((count,), kind, self._window.octets.data, at + self._kept_at, (step,))
        others = np.flatnonzero(found != kept)[:1]
        count = int(others[0]) if len(others) else count
        found_at: Index = at + step * np.arange(count if count >= ALIKE_LEAST else 0, dtype=np.int64)
        return found_at

    def _places(self, at: int) -> tuple[list[int], int]:
        """Return where whole packets begin, from octet ``at`` on, and where the last one ends."""
        view, filled, head, kept_at = self._window.octets.data, self._window.filled, self._form.record, self._kept_at
        places: list[int] = []
        kept_of = struct.Struct(self._order + "I").unpack_from
        last, add = filled - head, places.append
        while at <= last:
            end = at + head + kept_of(view, at + kept_at)[0]
            if end > filled:
                break
            add(at)
            at = end
        return places, at
