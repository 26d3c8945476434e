# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packets of a pcap file, of any byte order, in microseconds or nanoseconds.

Source: draft-ietf-opsawg-pcap, sections 4 (file header) and 5 (packet record).
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.packets.frames import Index, windows
from liteprobe.host.packets.window import CutError, Window

HEADER_OCTETS, RECORD_OCTETS = 24, 16
MAGICS = {0xA1B2C3D4: 10**6, 0xA1B23C4D: 10**9}  # To parts of a second.
ETHERNET = 1
ALIKE_LEAST = 64  # Packets of one length, one after the other, that are found at once.
KEPT_MOST = 262_144  # Octets of a packet, as all programs have it; a greater number is not a length.
HAS_FCS_BIT, FCS_BIT, LINK_MASK = 26, 28, 0xFFFF


@dataclass(frozen=True)
class Packets:
    """Some packets of a file, as they stand there."""

    at: Index  # Shape (packets,), as all of these. First octet of each in the window.
    kept: Index  # Octets that are there, with the FCS where there is one.
    length: Index  # Octets on the wire, likewise.
    time: Index  # Parts of a second from the beginning of second ``origin`` of the file.
    fcs: Index  # Shape (packets,). Octets of FCS at the end of each.
    link: Index  # Shape (packets,). Link type.
    wrong: NDArray[np.bool_]  # Shape (packets,). Whether a packet can't be what it says.


def fcs_octets(field: int) -> int:
    """Return the octets of FCS that the link type field of a pcap speaks of."""
    return 2 * (field >> FCS_BIT) if field >> HAS_FCS_BIT & 1 else 0


class PcapReader:
    """Reads a pcap; ``window``: with the file header at its beginning."""

    def __init__(self, window: Window) -> None:
        self._window = window
        if window.filled < HEADER_OCTETS:
            raise CutError("it ends within its header")
        magic = bytes(window.octets[:4])
        self._order = "<" if int.from_bytes(magic, "little") in MAGICS else ">"
        #: Parts of a second that times are counted in.
        self.per_second = MAGICS[int.from_bytes(magic, "little" if self._order == "<" else "big")]
        (field,) = struct.unpack_from(self._order + "I", window.octets.data, 20)
        self._link, self._fcs = field & LINK_MASK, fcs_octets(field)
        names = ("second", "part", "kept", "length")
        self._head = np.dtype([(name, self._order + "u4") for name in names])
        self._origin: int | None = None
        self.at = HEADER_OCTETS

    def read(self) -> Packets:
        """Return the packets that are whole in the window; ``at`` is behind them then."""
        alike = self._alike(self.at)
        if len(alike):
            self.at = 2 * int(alike[-1]) - int(alike[-2])
        places, self.at = self._places(self.at)
        at = np.concatenate([alike, np.array(places, np.int64)])
        heads = windows(self._window.octets, 4, self._head)[at]
        second, part, kept, length = (heads[name].astype(np.int64) for name in self._head.names or ())
        if len(at) and self._origin is None:
            self._origin = int(second[0])
        time = (second - (self._origin or 0)) * self.per_second + part
        full = np.full(len(at), 1, np.int64)
        wrong = (kept > length) | (length > KEPT_MOST) | (part >= self.per_second)
        return Packets(at + RECORD_OCTETS, kept, length, time, self._fcs * full, self._link * full, wrong)

    def move_on(self) -> bool:
        """Read on, from what isn't read yet; return whether anything came."""
        came = self._window.move_on(self.at)
        self.at = 0
        return came

    def reason(self) -> str:
        """Return why the packet at ``at`` can't be read, at the end of the file."""
        left = self._window.filled - self.at
        if left < RECORD_OCTETS:
            return f"its header is cut after {left} of {RECORD_OCTETS} octets"
        (kept,) = struct.unpack_from(self._order + "I", self._window.octets.data, self.at + 8)
        if kept > KEPT_MOST:
            return f"it would be {kept} octets long, so its header is not one"
        return f"it is cut after {left - RECORD_OCTETS} of {kept} octets"

    def is_stuck(self) -> bool:
        """Return whether reading on would not help."""
        if self._window.filled - self.at < RECORD_OCTETS:
            return False
        (kept,) = struct.unpack_from(self._order + "I", self._window.octets.data, self.at + 8)
        return bool(kept > KEPT_MOST)

    # # #

    def _alike(self, at: int) -> Index:
        """Return where whole packets begin, from octet ``at`` on, that are as long as the first one, if they are many."""
        left = self._window.filled - at
        if left < RECORD_OCTETS:
            return np.empty(0, np.int64)
        (kept,) = struct.unpack_from(self._order + "I", self._window.octets.data, at + 8)
        count = left // (RECORD_OCTETS + kept)
        if count < ALIKE_LEAST:
            return np.empty(0, np.int64)
        step, kind = RECORD_OCTETS + kept, np.dtype(self._order + "u4")
        found: NDArray[np.uint32] = np.ndarray((count,), kind, self._window.octets.data, at + 8, (step,))
        others = np.flatnonzero(found != kept)[:1]
        count = int(others[0]) if len(others) else count
        found_at: Index = at + step * np.arange(count if count >= ALIKE_LEAST else 0, dtype=np.int64)
        return found_at

    def _places(self, at: int) -> tuple[list[int], int]:
        """Return where whole packets begin, from octet ``at`` on, and where the last one ends."""
        view, filled = self._window.octets.data, self._window.filled
        places: list[int] = []
        kept_of = struct.Struct(self._order + "I").unpack_from
        last, add = filled - RECORD_OCTETS, places.append
        while at <= last:
            end = at + RECORD_OCTETS + kept_of(view, at + 8)[0]
            if end > filled:
                break
            add(at)
            at = end
        return places, at
