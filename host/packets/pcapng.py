# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packets of a pcapng file: sections of either byte order, interfaces with times of their own.

Source: draft-ietf-opsawg-pcapng, sections 4.1 (section), 4.2 (interface), 4.3 (enhanced packet), 4.4 (simple packet) and
appendix A (the obsolete packet).
"""

import struct
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.packets.frames import PARTS, Index, normal, windows
from liteprobe.host.packets.pcap import KEPT_MOST, Packets
from liteprobe.host.packets.window import Window

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
#: Octets of a block with a packet, beside the packet: the least, and up to the first octet of it.
PACKETS = {PACKET: (32, 28), OLD_PACKET: (32, 28), SIMPLE_PACKET: (16, 12)}
BYTE_ORDER, VERSION = 0x1A2B3C4D, 1
HEAD_OCTETS = 12  # Of any block, its size at the end included.
RESOLUTION, OFFSET, FCS_LENGTH = 9, 14, 13  # Options of an interface.
FLAGS = 2  # Option of a packet.
DAMAGED = (
    0xFF000000  # Of its flags: wrong FCS, too long or short, wrong gap, unaligned, wrong SFD or preamble, wrong symbol.
)
FCS_BIT, FCS_MASK = 5, 0xF
RESOLUTION_USUAL = 6
SECOND_MOST = (1 << 62) - 1  # From the first packet on, either way: a time that is farther away is not one.
COARSE = 8  # Units a second. With fewer, a stamp of 64 bits can be a time beyond SECOND_MOST.


@dataclass(frozen=True)
class Interface:
    """An interface says of its packets: units of time in a second, seconds to add, octets of FCS, of a packet at most, link."""

    per_second: int
    offset_s: int
    fcs: int
    snap: int
    link: int


class PcapngReader:
    """Reads a pcapng; ``window``: with the first section's header at its beginning."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._origin: Fraction | None = None  # Time of the first packet (s).
        self.at = 0
        self._stuck = ""

    def read(self) -> Packets:
        """Return packets that are whole in the window, of one byte order and set of interfaces; ``at`` is behind them then."""
        at = np.array(self._places(), np.int64)
        order = self._order
        kind, size, length = self._words(at, 3)
        simple = kind == SIMPLE_PACKET
        head = np.zeros((5, len(at)), np.int64)
        head[:, ~simple] = self._words(at[~simple] + 8, 5)
        interface, high, low, kept, _ = head
        length = np.where(simple, length, head[4])
        old = kind == OLD_PACKET  # Its interface has 16 bits; drops follow.
        interface[old] = interface[old] & 0xFFFF if order == "<" else interface[old] >> 16
        wrong = interface >= len(self._interfaces)
        interface[wrong] = 0
        table = self._interfaces or [Interface(1, 0, 0, 0, 0)]
        offsets = np.where(simple, *(PACKETS[one][1] for one in (SIMPLE_PACKET, PACKET)))
        kept[simple] = np.minimum(length, np.minimum(size - 16, table[0].snap or KEPT_MOST))[simple]
        (ends,) = self._words(at + size - 4, 1)
        first = offsets + -(-kept // 4) * 4  # Octet of each block that its options begin at.
        wrong |= (kept > KEPT_MOST) | (first + 4 > size) | (ends != size)
        flags = self._flags(at, np.where(wrong | simple, size, first), size)
        raw = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
        timeless = simple & ~wrong
        time, rest = self._times(raw, interface, table, timeless)
        wrong |= np.abs(time) >= SECOND_MOST
        fcs, link = (np.array([getattr(one, name) for one in table])[interface] for name in ("fcs", "link"))
        of_flags = flags >> FCS_BIT & FCS_MASK
        fcs = np.where(of_flags, of_flags, fcs)
        none = np.zeros(len(at), np.bool_)
        damaged = flags & DAMAGED != 0
        return Packets(at + offsets, kept, length, time, rest, fcs, link, wrong, none, damaged, timeless)

    def move_on(self) -> bool:
        """Read on, from what isn't read yet; return whether anything came."""
        came = self._window.move_on(self.at)
        self.at = 0
        return came

    def reason(self) -> str:
        """Return why the block at ``at`` can't be read, at the end of the file."""
        if self._stuck:
            return self._stuck
        left = self._window.filled - self.at
        if left < HEAD_OCTETS:
            return f"its header is cut after {left} of {HEAD_OCTETS} octets"
        _, size = struct.unpack_from(self._order + "II", self._window.octets.data, self.at)
        return f"it is cut after {left} of {size} octets"

    def is_stuck(self) -> bool:
        """Return whether reading on would not help."""
        return bool(self._stuck)

    # # #

    def _words(self, at: Index, count: int) -> Index:
        """Return ``count`` words of each block, shape (count, blocks); ``at``: octet that they begin at."""
        kind = np.dtype([("words", self._order + "u4", (count,))])
        found: Index = windows(self._window.octets, count, kind)[at]["words"].astype(np.int64).T
        return found

    def _times(
        self, raw: NDArray[np.uint64], interface: Index, table: list[Interface], timeless: NDArray[np.bool_]
    ) -> tuple[Index, Index]:
        """Return seconds from the first packet that has a time on, and what is left, as of `Packets`."""
        time, rest = np.zeros((2, len(raw)), np.int64)
        timed = np.flatnonzero(~timeless)
        if len(timed) and self._origin is None:
            one = table[int(interface[timed[0]])]
            self._origin = Fraction(int(raw[timed[0]]), one.per_second) + one.offset_s
        for number, one in enumerate(table):
            own = timed[interface[timed] == number]
            if not len(own):
                continue
            origin = Fraction(self._origin or 0) - one.offset_s  # On the clock of this interface.
            parts = origin * PARTS
            is_finer = PARTS % one.per_second > 0 or parts.denominator > 1  # Than can be counted.
            if is_finer or one.per_second < COARSE or abs(origin) >= SECOND_MOST:  # By whole numbers of any size.
                over, under = PARTS * parts.denominator, one.per_second * parts.denominator
                shift = parts.numerator * one.per_second
                pairs = [divmod((value * over - shift) // under, PARTS) for value in raw[own].tolist()]
                limited = [(min(max(whole, -SECOND_MOST), SECOND_MOST), left) for whole, left in pairs]
                time[own], rest[own] = np.array(limited, np.int64).T
                continue
            whole, left = np.divmod(raw[own], np.uint64(one.per_second))
            origin_s, origin_rest = divmod(int(parts), PARTS)
            found = left.astype(np.int64) * (PARTS // one.per_second) - origin_rest
            time[own], rest[own] = normal(whole.astype(np.int64) - origin_s, found)
        return time, rest

    def _flags(self, at: Index, first: Index, size: Index) -> Index:
        """Return the flags of packets, 0 where there are none; ``first``: octet of each block that its options begin at."""
        flags = np.zeros(len(at), np.int64)
        view = windows(self._window.octets, 1, np.dtype([("code", self._order + "u2"), ("size", self._order + "u2")]))
        left = np.flatnonzero(first + 8 <= size)
        place = at + first
        while len(left):
            option = view[place[left]]
            following = place[left] + 4 + -(-option["size"].astype(np.int64) // 4) * 4
            is_right = (option["code"] == FLAGS) & (option["size"] == 4) & (following + 4 <= (at + size)[left])
            (flags[left[is_right]],) = self._words(place[left[is_right]] + 4, 1)
            place[left] = following
            left = left[(option["code"] != 0) & (following + 8 <= (at + size)[left])]
        return flags

    def _places(self) -> list[int]:
        """Return where whole blocks with packets begin; other blocks are taken on the way, sections and interfaces before them."""
        view, filled = self._window.octets.data, self._window.filled
        places: list[int] = []
        head = struct.Struct(self._order + "II").unpack_from
        at, last, add = self.at, filled - HEAD_OCTETS, places.append
        while at <= last:
            kind, size = head(view, at)
            if kind in PACKETS and PACKETS[kind][0] <= size <= filled - at and not size & 3:
                add(at)
                at += size
                continue
            if (kind in (SECTION, INTERFACE) and places) or not self._take(at, kind, size, filled):
                break
            head = struct.Struct(self._order + "II").unpack_from
            at += head(view, at)[1]
        self.at = at
        return places

    def _take(self, at: int, kind: int, size: int, filled: int) -> bool:
        """Take a block that has no packet; return whether it could be read."""
        view = self._window.octets
        if kind == SECTION:
            order = bytes(view[at + 8 : at + 12])
            self._order = "<" if int.from_bytes(order, "little") == BYTE_ORDER else ">"
            self._interfaces = []
            (size,) = struct.unpack_from(self._order + "I", view.data, at + 4)
            if int.from_bytes(order, "little" if self._order == "<" else "big") != BYTE_ORDER:
                self._stuck = "the section has no byte order"
        if size < HEAD_OCTETS or size & 3:
            self._stuck = f"a block can't be {size} octets long"
        elif kind in PACKETS and size > KEPT_MOST + 65536:
            self._stuck = f"a packet can't be {size} octets long"
        elif kind in (INTERFACE, SECTION, *PACKETS) and size > filled - at:
            return False
        elif kind in PACKETS:
            self._stuck = f"a block with a packet can't be {size} octets long"
        elif kind == SECTION and not self._stuck:
            (major,) = struct.unpack_from(self._order + "H", view.data, at + 12)
            self._stuck = (
                "" if major == VERSION else f"its section is of version {major} of pcapng, and there is only {VERSION}"
            )
        elif kind == INTERFACE:
            self._add_interface(at, size)
        return not self._stuck

    def _add_interface(self, at: int, size: int) -> None:
        link, _, snap = struct.unpack_from(self._order + "HHI", self._window.octets.data, at + 8)
        options = self._options(at + 16, at + size - 4)
        resolution = options.get(RESOLUTION, bytes([RESOLUTION_USUAL]))[0]
        per_second = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        offset = int.from_bytes(options.get(OFFSET, b""), "little" if self._order == "<" else "big", signed=True)
        bits = options.get(FCS_LENGTH, b"\0")[0]  # Of octets, in the files of some programs.
        self._interfaces.append(Interface(per_second, offset, bits // 8 if bits >= 8 else bits, snap, link))

    def _options(self, at: int, end: int) -> dict[int, bytes]:
        """Return the options of a block, by code."""
        found: dict[int, bytes] = {}
        while at + 4 <= end:
            code, size = struct.unpack_from(self._order + "HH", self._window.octets.data, at)
            if code == 0 or at + 4 + size > end or not size:
                at += 4
                if code == 0 or size:
                    break
                continue
            found[code] = bytes(self._window.octets[at + 4 : at + 4 + size])
            at += 4 + -(-size // 4) * 4
        return found
