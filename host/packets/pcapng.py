# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packets of a pcapng file: sections of either byte order, interfaces with times of their own.

Source: draft-ietf-opsawg-pcapng, sections 4.1 (section), 4.2 (interface), 4.3 (enhanced packet).
"""

import math
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.packets.frames import Index, windows
from liteprobe.host.packets.pcap import KEPT_MOST, Packets
from liteprobe.host.packets.window import CutError, Window

SECTION, INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
BYTE_ORDER = 0x1A2B3C4D
HEAD_OCTETS, PACKET_OCTETS = 12, 32  # Of a block, and of one with a packet, beside what they hold.
RESOLUTION, OFFSET, FCS_LENGTH = 9, 14, 13  # Options of an interface.
RESOLUTION_USUAL, UNITS_USUAL = 6, 10**9
UNITS_MOST = 10**13  # A second: times of ten days find room in 63 bits.


@dataclass(frozen=True)
class Interface:
    """An interface says of its packets: units of time in a second, seconds to add, octets of FCS, link type."""

    per_second: int
    offset_s: int
    fcs: int
    link: int


class PcapngReader:
    """Reads a pcapng; ``window``: with the first section's header at its beginning."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._origin_s: int | None = None
        self.per_second = UNITS_USUAL  # Units of a second that times are counted in.
        self.at = 0
        self._stuck = ""
        self._has_unit = False
        self._places()  # Up to the first packet: its interfaces are known, and so is the unit.
        if self._stuck:
            raise CutError(self._stuck)
        for one in self._interfaces:
            self.per_second = math.lcm(self.per_second, one.per_second)
        self._has_unit = True

    def read(self) -> Packets:
        """Return packets that are whole in the window, of one byte order; ``at`` is behind them then."""
        places = self._places(True)
        at = np.array(places, np.int64)
        names = ("kind", "size", "interface", "high", "low", "kept", "length")
        kind = np.dtype([(name, self._order + "u4") for name in names])
        heads = windows(self._window.octets, len(names), kind)[at]
        size, interface, kept, length = (
            heads[name].astype(np.int64) for name in ("size", "interface", "kept", "length")
        )
        ends = windows(self._window.octets, 1, np.dtype(self._order + "u4"))[at + size - 4]
        wrong = (kept > length) | (length > KEPT_MOST) | (-(-kept // 4) * 4 + PACKET_OCTETS > size) | (ends != size)
        wrong |= interface >= len(self._interfaces)
        interface[wrong] = 0
        table = self._interfaces or [Interface(UNITS_USUAL, 0, 0, 0)]
        raw = heads["high"].astype(np.uint64) << np.uint64(32) | heads["low"]
        if len(at) and self._origin_s is None:
            first = table[int(interface[0])]
            self._origin_s = int(raw[0]) // first.per_second + first.offset_s
        time = self._times(raw, interface, table, wrong)
        fcs, link = (np.array([getattr(one, name) for one in table])[interface] for name in ("fcs", "link"))
        return Packets(at + PACKET_OCTETS - 4, kept, length, time, fcs, link, wrong)

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

    def _times(
        self, raw: NDArray[np.uint64], interface: Index, table: list[Interface], wrong: NDArray[np.bool_]
    ) -> Index:
        """Return times in units from second ``_origin_s`` on; what finds no room in them marks its packet as wrong."""
        time = np.zeros(len(raw), np.int64)
        for number, one in enumerate(table):
            own = interface == number
            if not own.any():
                continue
            scale = self.per_second // one.per_second
            origin = ((self._origin_s or 0) - one.offset_s) * one.per_second
            times = (raw[own] - np.uint64(origin % 2**64)).astype(np.int64)
            wrong[own] |= np.abs(times) > (1 << 62) // scale
            time[own] = times * scale
        return time

    def _places(self, has_packets: bool = False) -> list[int]:
        """Return where whole blocks with packets begin; other blocks are taken on the way.

        Ends before a new section once there is a packet; without ``has_packets`` before the first one.
        """
        view, filled = self._window.octets.data, self._window.filled
        places: list[int] = []
        head = struct.Struct(self._order + "II").unpack_from
        at, last, add = self.at, filled - HEAD_OCTETS, places.append
        while at <= last:
            kind, size = head(view, at)
            if kind == PACKET and has_packets and PACKET_OCTETS <= size <= filled - at and not size & 3:
                add(at)
                at += size
                continue
            if (kind == SECTION and places) or (kind == PACKET and not has_packets):
                break
            if not self._take(at, kind, size, filled):
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
        elif kind in (OLD_PACKET, SIMPLE_PACKET):
            what = "obsolete Packet Block" if kind == OLD_PACKET else "Simple Packet Block, which has no time"
            self._stuck = f"it is a {what}: write the file anew with editcap"
        if size < HEAD_OCTETS or size & 3:
            self._stuck = f"a block can't be {size} octets long"
        elif kind == PACKET and size > KEPT_MOST + 65536:
            self._stuck = f"a packet can't be {size} octets long"
        elif kind in (INTERFACE, PACKET, SECTION) and size > filled - at:
            return False
        elif kind == PACKET:
            self._stuck = f"a block with a packet can't be {size} octets long"
        elif kind == INTERFACE:
            self._add_interface(at, size)
        return not self._stuck

    def _add_interface(self, at: int, size: int) -> None:
        link, _, _ = struct.unpack_from(self._order + "HHI", self._window.octets.data, at + 8)
        options = self._options(at + 16, at + size - 4)
        resolution = options.get(RESOLUTION, bytes([RESOLUTION_USUAL]))[0]
        per_second = 1 << (resolution & 0x7F) if resolution & 0x80 else 10**resolution
        if per_second > UNITS_MOST or (self._has_unit and self.per_second % per_second):
            self._stuck = f"its interface counts {per_second} units a second, which these times can't be counted in"
        offset = int.from_bytes(options.get(OFFSET, b""), "little" if self._order == "<" else "big", signed=True)
        bits = options.get(FCS_LENGTH, b"\0")[0]  # Of octets, in the files of some programs.
        self._interfaces.append(Interface(per_second, offset, bits // 8 if bits >= 8 else bits, link))

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
