# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shares memory with a process that is started."""

import mmap
import os
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any


class SharedMemory:
    """Shares memory with a process that is started; it has no name, so it ends with those who have it, however they end.

    ``size``: octets.
    ``number``: file descriptor, of a process that was given it; None: it is made.
    """

    def __init__(self, size: int, number: int | None = None) -> None:
        self._size = size
        self._number = os.memfd_create("liteprobe-blocks") if number is None else number
        if number is None:
            os.ftruncate(self._number, size)
        self.buffer = mmap.mmap(self._number, size)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return how the process that is started gets it."""
        return _joined, (self._size, reduction.DupFd(self._number))

    def close(self) -> None:
        self.buffer.close()
        os.close(self._number)


def _joined(size: int, duplicate: Any) -> SharedMemory:
    return SharedMemory(size, duplicate.detach())
