# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Captures of real traffic, from the source packages of tcpdump and nDPI; fetched by apt, never committed."""

import struct
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from liteprobe.sim.drivers.tools import debian

REPOSITORY = Path(__file__).resolve().parents[3]
FOLDER = REPOSITORY / "build" / "corpora"

#: Source packages of the distribution, and where each holds its captures.
PACKAGES = {"tcpdump": "tests/", "ndpi": "tests/"}
SUFFIXES = (".pcap", ".pcapng", ".cap")

LINK_ETHERNET = 1


def fetch(package: str) -> Path:
    """Return the folder of a package's captures; downloads and unpacks them if need be."""
    return debian.source(package, FOLDER / package, lambda tar, folder: unpack(tar, folder, PACKAGES[package]))


def unpack(tar: tarfile.TarFile, folder: Path, part: str) -> None:
    """Take the captures below ``part`` out of an archive, flat, each named by its path."""
    for member in tar:
        path = member.name.partition("/")[2]
        if member.isfile() and path.startswith(part) and path.endswith(SUFFIXES):
            file = tar.extractfile(member)
            assert file is not None
            (folder / path.removeprefix(part).replace("/", "-")).write_bytes(file.read())


@cache
def captures() -> tuple[Path, ...]:
    """Return every capture of all packages."""
    return tuple(path for package in PACKAGES for path in sorted(fetch(package).iterdir()))


def packets(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield the link type, the length on the wire and the octets of each packet of a pcap or pcapng file.

    Stops where the file is damaged: some of the corpora are so on purpose.
    """
    data = path.read_bytes()
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        yield from blocks(data)
        return
    for order in "<>":
        if data[:4] in (struct.pack(f"{order}I", 0xA1B2C3D4), struct.pack(f"{order}I", 0xA1B23C4D)):
            yield from records(data, order)


def records(data: bytes, order: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the packets of a pcap file."""
    link = struct.unpack_from(f"{order}I", data, 20)[0] & 0xFFFF if len(data) >= 24 else 0
    at = 24
    while at + 16 <= len(data):
        kept, length = struct.unpack_from(f"{order}II", data, at + 8)
        if kept > 1 << 18 or at + 16 + kept > len(data):
            return
        yield link, length, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def blocks(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the packets of a pcapng file."""
    order, links, at = "<", list[int](), 0
    while at + 12 <= len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack_from(f"{order}II", data, at)
        if size < 12 or at + size > len(data):
            return
        if kind == 1:
            links.append(struct.unpack_from(f"{order}H", data, at + 8)[0])
        elif kind == 6:
            interface, _, _, kept, length = struct.unpack_from(f"{order}5I", data, at + 8)
            yield links[interface], length, data[at + 28 : at + 28 + kept]
        elif kind == 3:
            length = struct.unpack_from(f"{order}I", data, at + 8)[0]
            yield links[0], length, data[at + 12 : at + 12 + min(length, size - 16)]
        at += size + size % 4
