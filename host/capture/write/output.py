# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Writes a capture to a file or a pipe: what is in it stays readable, whatever becomes of the disk or the reader."""

import contextlib
import errno
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import FULL, named

GONE = "the reader of "  # What the error begins with where a pipe was closed at its other end.


class Output:
    """Takes octets; ``path``: a file, made anew; ``-`` is stdout."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.octets = self.parts = 0  # Octets that were written, and parts.
        self.is_stdout = str(path) == "-"
        self._file = (
            sys.stdout.fileno() if self.is_stdout else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        )

    @property
    def name(self) -> str:
        """Name of the output."""
        return "stdout" if self.is_stdout else str(self.path)

    def write(self, octets: bytes | NDArray[np.uint32], parts: NDArray[np.int64] | None = None) -> None:
        """Write all of ``octets``.

        Raises ProbeError when the disk is full, or the reader of a pipe has gone; OSError with its name for any other reason.

        Parameters
        ----------
        octets : bytes or array
        parts : array or None
            Where in it (octets) a part begins that can be read on its own: what a full disk cut is taken away. Attribute ``parts``
            counts them.
        """
        view = memoryview(octets if isinstance(octets, bytes) else octets.data).cast("B")
        done = 0
        try:
            while done < len(view):
                done += os.write(self._file, view[done:])
        except OSError as error:
            self._fail(error, done, parts)
        except BaseException:  # A second signal: what was written of the last part isn't known.
            self._cut(done, parts)
            raise
        self.octets += done
        self.parts += 0 if parts is None else len(parts)

    def fileno(self) -> int:
        """Return the descriptor of the file."""
        return self._file

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        file, self._file = self._file, -1
        if file >= 0 and not self.is_stdout:
            with named(self.path):
                os.close(file)

    def _fail(self, error: OSError, done: int, parts: NDArray[np.int64] | None) -> None:
        """Say what happened, with the file cut back to its last whole part."""
        if error.errno == errno.EPIPE:
            self._count(done, parts)
            raise ProbeError(f"{GONE}{self.name} has gone after {self.octets + done} octets") from None
        self._cut(done, parts)
        if error.errno not in FULL:
            with named(Path(self.name)):
                raise error
        held = f"holds what came before, {self.octets} octets, whole and readable" if self.octets else "holds nothing"
        raise ProbeError(
            f"the disk is full: {self.name} {held}; make room, or keep less (--snap, --filter, --sample)"
        ) from None

    def _count(self, done: int, parts: NDArray[np.int64] | None) -> int:
        """Count the parts that are whole when ``done`` octets were written, and return where they end."""
        if parts is None:
            return 0
        whole = max(int(np.searchsorted(parts, done, side="right")) - 1, 0)
        self.parts += whole
        return int(parts[whole])

    def _cut(self, done: int, parts: NDArray[np.int64] | None) -> None:
        self.octets += self._count(done, parts)
        with contextlib.suppress(OSError):  # A pipe or a device can't be cut.
            os.ftruncate(self._file, self.octets)
