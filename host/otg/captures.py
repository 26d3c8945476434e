# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps what ports capture in files of its own until a client fetches it, as pcap or pcapng, with the FCS of each frame.

Frames of Open Traffic Generator have their FCS. A probe keeps none: it drops frames whose FCS is wrong, and of the others the
host works it out.

Source: IEEE 802.3-2022, 3.2.9 (FCS); draft-ietf-opsawg-pcap; draft-ietf-opsawg-pcapng.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from liteprobe.cores.formats import FCS
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.capture.write.pcapng import STATISTICS, block, option, section
from liteprobe.host.capture.write.pcapng import number as count_option
from liteprobe.host.otg.config import PortCapture
from liteprobe.host.packets.batch import Batch
from liteprobe.host.packets.filter.expression import Passes, parse
from liteprobe.host.packets.pcap import ETHERNET, PCAP_HEADER
from liteprobe.host.packets.pcapng import INTERFACE, PACKET

HEAD = struct.Struct("<QII")  # Stamp (ns), octets on the wire and octets kept, both with FCS.
RECORD = struct.Struct("<IIII")  # Of a pcap.
SECOND_NS = 10**9
NANOSECONDS = 9
PIECE = 1 << 20  # Octets that are read, and sent, at once.


class PortFile:
    """Holds what a port has captured, on disk.

    Parameters
    ----------
    folder : Path
        Where it may write.
    most : int
        Octets at the most: then the oldest half goes, or, where nothing is to be overwritten, the newest frames do.
    """

    def __init__(self, folder: Path, asked: PortCapture, most: int) -> None:
        self.asked = asked
        self.frames = self.dropped = 0  # Frames that are there; those that found no space.
        self.is_open = True
        self.ends_ns: int | None = None  # Frames after it are not of the capture.
        self._passes: Passes | None = parse(asked.filter, True).passes() if asked.filter else None
        self._most = most
        self._paths = [folder / f"{asked.port_name.encode().hex()}.{part}" for part in ("old", "new")]
        self._counts = [0, 0]
        self._size = 0
        for path in self._paths:
            path.unlink(missing_ok=True)
        self._file: BinaryIO = self._paths[1].open("wb")

    def write(self, batch: Batch) -> None:
        """Take the frames of its port."""
        if not self.is_open:
            return
        if self._passes is not None and len(batch):
            batch = batch.select(self._passes(batch))
        for number, (stamp, length) in enumerate(
            zip(batch.stamp.tolist(), batch.heads["length"].tolist(), strict=True)
        ):
            if self.ends_ns is None or stamp <= self.ends_ns:
                self._add(stamp, length, batch.octets(number))

    def close(self) -> None:
        """End it: what comes later is not taken."""
        self.is_open = False
        self._file.close()

    def pieces(self, first: int = 0, count: int | None = None) -> Iterator[bytes]:
        """Yield the octets of a pcap or pcapng: of ``count`` frames from number ``first`` on; None: of all."""
        is_pcap = self.asked.format == "pcap"
        piece = bytearray(PCAP_HEADER if is_pcap else self._start())
        stamp = 0
        place, left = 0, self.frames if count is None else count
        for path in self._paths:
            if not path.exists():
                continue
            with path.open("rb") as stream:
                while left and (head := stream.read(HEAD.size)):
                    stamp, length, kept = HEAD.unpack(head)
                    octets = stream.read(kept)
                    place += 1
                    if place <= first:
                        continue
                    left -= 1
                    piece += _pcap(stamp, length, octets) if is_pcap else _pcapng(stamp, length, octets)
                    if len(piece) >= PIECE:
                        yield bytes(piece)
                        piece.clear()
        if not is_pcap:
            piece += self._counts_block(stamp)
        yield bytes(piece)

    # # #

    def _add(self, stamp: int, length: int, octets: bytes) -> None:
        if len(octets) == length:
            octets += zlib.crc32(octets).to_bytes(FCS, "little")
        octets = octets[: self.asked.snap_length]
        size = HEAD.size + len(octets)
        if self._size + size > self._most // (2 if self.asked.overwrites else 1):
            if not self.asked.overwrites:
                self.dropped += 1
                return
            self._turn()
        try:
            self._file.write(HEAD.pack(stamp, length + FCS, len(octets)) + octets)
        except OSError as error:
            raise ProbeError(
                f"the capture of port '{self.asked.port_name}' can't be written ({error.strerror})"
            ) from None
        self._size += size
        self._counts[1] += 1
        self.frames += 1

    def _turn(self) -> None:
        """Let the older half go."""
        self._file.close()
        self._paths[1].replace(self._paths[0])
        self.frames -= self._counts[0]
        self.dropped += self._counts[0]
        self._counts, self._size = [self._counts[1], 0], 0
        self._file = self._paths[1].open("wb")

    def _counts_block(self, stamp: int) -> bytes:
        """Return statistics of the port: frames that came, that found no space, that were kept."""
        pairs = ((4, self.frames + self.dropped), (7, self.dropped), (8, self.frames))
        counts = b"".join(count_option(code, count) for code, count in pairs)
        return block(STATISTICS, struct.pack("<III", 0, stamp >> 32, stamp & 0xFFFFFFFF) + counts + option(0, b""))

    def _start(self) -> bytes:
        options = option(NANOSECONDS, bytes([NANOSECONDS])) + option(2, self.asked.port_name.encode())
        head = struct.pack("<HHI", ETHERNET, 0, self.asked.snap_length or 0)
        return section("liteprobe", "") + block(INTERFACE, head + options + option(13, bytes([FCS])) + option(0, b""))


def _pcap(stamp: int, length: int, octets: bytes) -> bytes:
    seconds, rest = divmod(stamp, SECOND_NS)
    return RECORD.pack(seconds & 0xFFFFFFFF, rest, len(octets), length) + octets


def _pcapng(stamp: int, length: int, octets: bytes) -> bytes:
    head = struct.pack("<IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(octets), length)
    return block(PACKET, head + octets + bytes(-len(octets) % 4))


class PortSink:
    """Hands records on to the files of their ports.

    Parameters
    ----------
    files : mapping of int to PortFile
        By the number of the port; it may grow while frames come.
    """

    def __init__(self, files: Mapping[int, PortFile]) -> None:
        self.files = files

    def write(self, batch: Batch) -> None:
        """Take records."""
        batch = batch.select(~batch.is_gap)
        for number, file in list(self.files.items()):
            file.write(batch.select(batch.port == number))
