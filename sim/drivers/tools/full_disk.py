# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A disk that fills, as a program sees it."""

import errno
import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch


@contextmanager
def room_for(octets: int) -> Iterator[None]:
    """Let no file grow beyond ``octets``."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def room_of_each(rooms: Mapping[str, int]) -> Iterator[None]:
    """Let there be room for so many octets of each file, by its name; what asks by `os` for more finds the disk full."""
    write, allocate = os.write, os.posix_fallocate

    def left(file: int) -> int:
        room = rooms.get(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        return (1 << 62) if room is None else room - os.lseek(file, 0, os.SEEK_CUR)

    def limited(file: int, octets: memoryview) -> int:
        if (most := left(file)) <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, octets[:most])

    def reserved(file: int, offset: int, length: int) -> None:
        if offset + length > left(file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        allocate(file, offset, length)

    with patch.object(os, "write", limited), patch.object(os, "posix_fallocate", reserved):
        yield
