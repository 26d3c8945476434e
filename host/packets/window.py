# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads a file of packets a few megabytes at a time, so that a file of any size takes no memory."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import UsageError
from liteprobe.host.packets.frames import SLACK

WINDOW = 4 << 20  # Octets: small enough for the caches, large enough that numpy's calls cost little.


class CutError(Exception):
    """The file can't be read on from here; the message says why."""


class Window:
    """The part of a file that is looked at; UsageError when the file can't be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: ``filled`` octets of the file, from octet ``base`` of it on, and free space after them, for what is copied.
        self.octets: NDArray[np.uint8] = np.zeros(SLACK, np.uint8)
        self.filled = self.base = self.missing = 0  # Octets by which the file ends before what was to be read next.
        try:
            if not path.is_file():
                raise UsageError(
                    f"can't replay {path}: "
                    + (
                        "it is not a file, and is read more than once: write it to a file first"
                        if path.exists()
                        else "there is no such file"
                    )
                )
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
