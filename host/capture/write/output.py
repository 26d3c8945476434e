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

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Output:
    """Takes octets; ``path``: a file, made anew; ``-`` is stdout."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.octets = 0  # Octets that were written.
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

        Raises ProbeError when the disk is full, or the reader of a pipe has gone.

        Parameters
        ----------
        octets : bytes or array
        parts : array or None
            Where in it (octets) a part begins that can be read on its own: what a full disk cut is taken away.
        """
        view = memoryview(octets if isinstance(octets, bytes) else octets.data).cast("B")
        done = 0
        try:
            while done < len(view):
                done += os.write(self._file, view[done:])
        except OSError as error:
            self._fail(error, done, parts)
        self.octets += done

    def fileno(self) -> int:
        """Return the descriptor of the file."""
        return self._file

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._file >= 0 and not self.is_stdout:
            os.close(self._file)
        self._file = -1

    def _fail(self, error: OSError, done: int, parts: NDArray[np.int64] | None) -> None:
        """Say what happened, with the file cut back to its last whole part."""
        if error.errno == errno.EPIPE:
            raise ProbeError(f"the reader of {self.name} has gone after {self.octets + done} octets") from None
        if error.errno not in FULL:
            raise error
        whole = 0 if parts is None else int(parts[max(int(np.searchsorted(parts, done, side="right")) - 1, 0)])
        self.octets += whole
        with contextlib.suppress(OSError):  # A pipe or a device can't be cut.
            os.ftruncate(self._file, self.octets)
        raise ProbeError(
            f"the disk is full: {self.name} holds what came before, {self.octets} octets, whole and readable; make room, "
            "or keep less (--snap, --filter, --sample)"
        ) from None
