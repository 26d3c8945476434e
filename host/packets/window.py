# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Opens a file of packets, unpacked where need be, and reads it a few megabytes at a time: a file of any size takes no memory."""

import bz2
import lzma
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base import extras
from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.frames import SLACK

STDIN = Path("-")
WINDOW = 4 << 20  # Octets: small enough for the caches, large enough that numpy's calls cost little.
PIECE = 1 << 14  # Octets that are unpacked at once: some thousand times as many may come of them.
MAGIC_MOST = 6
ZSTD_WINDOW_MOST = 1 << 31  # Octets, as ``zstd --long=31`` has it.


def _zstd() -> Any:
    with extras.named():
        import zstandard  # Of an extra.
    return zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_MOST).decompressobj()


def _lz4() -> Any:
    with extras.named():
        from lz4 import frame  # Of an extra.
    return frame.LZ4FrameDecompressor()


#: By what a packed file begins with: what it is called, and what unpacks one of its members.
PACKED: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda: zlib.decompressobj(wbits=31)),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\xfd7zXZ\0": ("xz", lzma.LZMADecompressor),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
    b"\x04\x22\x4d\x18": ("lz4", _lz4),
}
SKIPPED = (b"\x2a\x4d\x18", 1)  # Of zstd and lz4, what a member that has nothing in it has from its second octet on.


class CutError(Exception):
    """The file can't be read on from here; the message says why."""


@dataclass(frozen=True)
class PlainFile:
    """A file of packets as it can be read again and again: itself, or a copy that was unpacked, or taken from a pipe."""

    path: Path
    is_copy: bool = False  # Whoever asked for it deletes it.
    broken: str = ""  # Why the packed file was not unpacked to its end.


def plain_file(path: Path, name: str) -> PlainFile:
    """Return a file that can be read again and again; ``-`` is standard input, ``name`` what messages call it.

    Raises UsageError when there is none, or it can't be read, MissingExtraError when what unpacks it isn't installed.
    """
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("standard input is a terminal, and no capture: pipe one into it, or give a file")
        return _copied(sys.stdin.buffer, name)
    if not (path.is_file() or path.is_fifo()):
        why = "it is neither a file nor a pipe" if path.exists() else "there is no such file"
        raise UsageError(f"can't replay {name}: {why}: give a capture, or - for standard input")
    try:
        with path.open("rb", buffering=0) as file:
            if path.is_fifo():
                return _copied(file, name)
            start = file.read(MAGIC_MOST)
            file.seek(0)
            return _copied(file, name) if _packing(start) or start.startswith(*SKIPPED) else PlainFile(path)
    except OSError as error:
        raise UsageError(f"can't read {name} ({error.strerror}): give a file that you may read") from None


def _packing(start: bytes) -> tuple[str, Callable[[], Any]] | None:
    return next((found for magic, found in PACKED.items() if start.startswith(magic)), None)


def _copied(file: Any, name: str) -> PlainFile:
    """Return a copy of what a file has, unpacked where it is packed."""
    try:
        handle, made = tempfile.mkstemp(prefix="liteprobe-")
    except OSError as error:
        raise UsageError(
            f"there is no place for a copy of {name} ({error.strerror}): name a folder, TMPDIR=FOLDER"
        ) from None
    try:
        with open(handle, "wb") as copy:
            broken = ""
            for piece in _unpacked(file):
                if isinstance(piece, str):
                    broken = piece
                else:
                    copy.write(piece)
    except BaseException as error:
        os.unlink(made)
        if isinstance(error, OSError):
            raise UsageError(
                f"{name} can't be copied to {made} ({error.strerror}): unpack it to a file, or name another folder, "
                "TMPDIR=FOLDER"
            ) from None
        raise
    return PlainFile(Path(made), True, broken)


def _read(file: BinaryIO, count: int) -> bytes:
    """Return so many octets; fewer at the end."""
    data = b""
    while len(data) < count and (more := file.read(count - len(data))):
        data += more
    return data


def _unpacked(file: BinaryIO) -> Iterator[bytes | str]:
    """Yield what is in a file, unpacked; a text: why it ends before its end."""
    data = _read(file, MAGIC_MOST)
    while data.startswith(*SKIPPED):  # Before the first member that has something in it: pzstd writes so.
        left = int.from_bytes((data + _read(file, 8 - MAGIC_MOST))[4:8], "little")
        while left > 0 and (more := file.read(min(left, PIECE))):
            left -= len(more)
        data = _read(file, MAGIC_MOST)
    packing = _packing(data)
    if packing is None:
        yield data
        while data := file.read(PIECE):
            yield data
        return
    name, make = packing
    member = None
    while data or (data := file.read(PIECE)):
        if member is None:
            data = data.lstrip(b"\0")  # What members are padded with.
            while 0 < len(data) < MAGIC_MOST and (more := file.read(PIECE)):
                data += more
            if not data:
                continue
            if _packing(data) != packing and not data.startswith(*SKIPPED):
                yield f"after the end of its {name} data there is something else"
                return
            member = make()
        try:
            piece = member.decompress(data)
        except Exception as error:  # Each of the libraries has errors of its own.
            yield f"its {name} data are corrupt ({error})"
            return
        yield piece
        data = b""
        if member.eof:
            data, member = member.unused_data or b"", None
    if member is not None:
        yield f"its {name} data are cut before their end"


class Window:
    """The part of a file that is looked at; UsageError when the file can't be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: ``filled`` octets of the file, from octet ``base`` of it on, and free space after them, for what is copied.
        self.octets: NDArray[np.uint8] = np.zeros(SLACK, np.uint8)
        self.filled = self.base = self.missing = 0  # Octets by which the file ends before what was to be read next.
        try:
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise UsageError(f"can't read {path} ({error.strerror}): give a file that you may read") from None

    def move_on(self, at: int) -> bool:
        """Let octet ``at``, which may be after what was read, be the first one, and read on; return whether anything came.

        Arrays of what was read stay as they were.
        """
        rest = max(self.filled - at, 0)
        if at > self.filled:
            self.missing = max(self.base + at - os.fstat(self._file.fileno()).st_size, 0)
            self._file.seek(at - self.filled, os.SEEK_CUR)
        octets = np.empty(max(WINDOW, 2 * rest) + SLACK, np.uint8)
        if rest:
            octets[:rest] = self.octets[at : self.filled]
        self.base += at
        came, end = 0, len(octets) - SLACK
        view = octets.data
        while rest + came < end and (count := self._file.readinto(view[rest + came : end])):
            came += count
        self.octets, self.filled = octets, rest + came
        octets[self.filled :] = 0
        return came > 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
