# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of any kind that is read here, as the one kind that the simulation's player reads."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.host.packets.files import FileSource
from liteprobe.host.packets.pcap import ETHERNET, MAGICS
from liteprobe.host.packets.pcapng import SECTION

NANOSECONDS = 0xA1B23C4D
SNAP = 1 << 18
ORIGIN_S = 1 << 20  # Times begin here, so that a packet may be from before the first one.


@contextmanager
def as_pcap(path: Path) -> Iterator[Path]:
    """Lend a little-endian pcap of what is in a capture: itself, if it is one, or if it can't be read at all.

    Raises
    ------
    UsageError
        When a pcapng (or a big-endian pcap) is damaged, or isn't of Ethernet frames.
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
