# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the frames of a file of packets, pcap or pcapng, and names what is wrong in it by packet and octet."""

import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats import FCS, MAX_LENGTH, MIN_LENGTH, TICKS_PER_SECOND
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.frames import Frames
from liteprobe.host.packets.pcap import ETHERNET, MAGICS, Packets, PcapReader
from liteprobe.host.packets.pcapng import SECTION, PcapngReader
from liteprobe.host.packets.window import CutError, Window

LINKS = {
    0: "BSD loopback",
    101: "raw IP",
    105: "802.11",
    113: "Linux cooked",
    127: "radiotap",
    228: "IPv4",
    276: "Linux cooked",
}
REPAIR = "capture it again, or replay what is before with --repair"
Reader = PcapReader | PcapngReader


class Where(NamedTuple):
    """The place of packets: their octets, the number of the first one, and where in the file the octets begin."""

    octets: NDArray[np.uint8]
    number: int
    base: int


@dataclass(frozen=True)
class FileSource:
    """The frames of a file; UsageError when it can't be read, or is of another kind."""

    path: Path
    repair: bool = False  # Where the file is cut or corrupt, it ends before that, with a note; else that is an error.
    per_second: int = field(init=False)  # Units of a second that times of its packets are counted in.
    ticks_per_unit: Fraction = field(init=False)  # Of the times of its frames.
    #: What was left out, of the last time that all was read.
    notes: list[str] = field(default_factory=list, init=False, compare=False)

    follows_line = is_endless = False

    def __post_init__(self) -> None:
        with closing(Window(self.path)) as window:
            object.__setattr__(self, "per_second", self._open(window).per_second)
        object.__setattr__(self, "ticks_per_unit", Fraction(TICKS_PER_SECOND, self.per_second))

    def frames(self) -> Iterator[Frames]:
        """Yield all frames, some at once; UsageError when a packet can't be replayed."""
        for packets, count, where in self.packets():
            yield self._frames(packets, count, where)

    def packets(self) -> Iterator[tuple[Packets, int, Where]]:
        """Yield packets as they stand in the file, some at once: the first so many of `Packets` are right.

        Raises UsageError where the file is cut or corrupt.
        """
        self.notes.clear()
        with closing(Window(self.path)) as window:
            reader, number = self._open(window), 1
            while True:
                packets = reader.read()
                count = int(np.argmax(packets.wrong)) if packets.wrong.any() else len(packets.at)
                if count:
                    yield packets, count, Where(window.octets, number, window.base)
                    number += count
                if count < len(packets.at):
                    at = window.base + int(packets.at[count])
                    self._end(f"packet {number} (octets from {at} on) is corrupt: its header contradicts itself")
                    return
                if len(packets.at):  # There may be another section.
                    continue
                if reader.is_stuck() or not reader.move_on():
                    if window.missing:
                        self._end(f"the block before packet {number} is cut: {window.missing} octets are missing")
                    elif reader.is_stuck() or reader.at < window.filled:
                        self._end(
                            f"packet {number} (at octet {window.base + reader.at}) can't be read: {reader.reason()}"
                        )
                    return

    # # #

    def _open(self, window: Window) -> Reader:
        window.move_on(0)
        magics = {int.from_bytes(window.octets[:4].tobytes(), order) for order in ("little", "big")}
        try:
            if magics & set(MAGICS) and window.filled >= 4:
                return PcapReader(window)
            if SECTION in magics:
                return PcapngReader(window)
        except CutError as error:
            raise UsageError(f"{self.path} can't be read: {error}: capture it again") from None
        what = "is empty" if not window.filled else "is neither pcap nor pcapng"
        pack = " (it is packed: unpack it with gunzip)" if window.octets[:2].tobytes() == b"\x1f\x8b" else ""
        raise UsageError(f"{self.path} {what}{pack}: give a file that tcpdump, dumpcap or liteprobe capture wrote")

    def _end(self, what: str) -> None:
        if not self.repair:
            raise UsageError(f"{self.path}: {what}: {REPAIR}")
        self.notes.append(f"{self.path.name} was read up to where it is broken: {what}")

    def _frames(self, packets: Packets, count: int, where: Where) -> Frames:
        """Return the first ``count`` packets as frames; ``where``: of which octets, from which packet on."""
        self.check_links(packets, count, where)
        at, kept, length, time, fcs = (
            getattr(packets, name)[:count] for name in ("at", "kept", "length", "time", "fcs")
        )
        length = np.maximum(length - fcs, 0)
        if (length > MAX_LENGTH).any():
            first = int(np.argmax(length > MAX_LENGTH))
            raise UsageError(
                f"{self.path}: packet {where.number + first} (at octet {where.base + int(at[first])}) is {int(length[first])} "
                f"octets long, and a probe sends {MAX_LENGTH} at most: leave it out with editcap, or capture with offloads off "
                "(ethtool -K INTERFACE gro off tso off gso off)"
            )
        kept = np.minimum(kept, length)
        return Frames(where.octets, at, kept, np.maximum(length, MIN_LENGTH), time, where.number, where.base)

    def check_links(self, packets: Packets, count: int, where: Where) -> None:
        """Raise UsageError if one of the first ``count`` packets isn't an Ethernet frame, with an FCS or without."""
        at, fcs, link = (getattr(packets, name)[:count] for name in ("at", "fcs", "link"))
        if (link != ETHERNET).any():
            first = int(np.argmax(link != ETHERNET))
            kind = int(link[first])
            raise UsageError(
                f"{self.path}: packet {where.number + first} (at octet {where.base + int(at[first])}) is of link type {kind}"
                f"{' (' + LINKS[kind] + ')' if kind in LINKS else ''}, and a probe sends Ethernet (1): capture on an Ethernet "
                "interface, or write the file anew with an Ethernet header"
            )
        if not np.isin(fcs, (0, FCS)).all():
            raise UsageError(
                f"{self.path}: its link type speaks of an FCS of {int(fcs[np.argmax(~np.isin(fcs, (0, FCS)))])} octets, and "
                "Ethernet has 4: write the file anew with editcap"
            )


NANOSECONDS = 0xA1B23C4D
SNAP = 1 << 18
ORIGIN_S = 1 << 20  # Times begin here, so that a packet may be from before the first one.


@contextmanager
def as_pcap(path: Path) -> Iterator[Path]:
    """Lend a little-endian pcap of what is in a capture: itself, if it is one, or if it can't be read at all.

    Raises UsageError when a pcapng (or a big-endian pcap) is damaged, or isn't of Ethernet frames.
    """
    start = b""
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(4)
    if int.from_bytes(start) not in (*MAGICS, SECTION):  # Of a section the same in either order.
        yield path
        return
    with TemporaryDirectory() as folder:
        made = Path(folder) / f"{path.stem}.pcap"
        write_pcap(FileSource(path), made)
        yield made


def write_pcap(source: FileSource, path: Path) -> None:
    """Write the packets of a file as a little-endian pcap with nanoseconds, without FCS, from second `ORIGIN_S` on."""
    per_second = source.per_second
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, SNAP, ETHERNET))
        for packets, count, where in source.packets():
            source.check_links(packets, count, where)
            for at, kept, length, time, fcs in zip(
                *(getattr(packets, name)[:count].tolist() for name in ("at", "kept", "length", "time", "fcs")),
                strict=True,
            ):
                whole = max(length - fcs, 0)
                octets = where.octets[at : at + min(kept, whole)].tobytes()
                seconds, rest = divmod(time * 10**9 // per_second, 10**9)
                file.write(struct.pack("<IIII", ORIGIN_S + seconds, rest, len(octets), whole) + octets)
