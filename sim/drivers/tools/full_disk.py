# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A disk that fills, as a program sees it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def room_for(octets: int) -> Iterator[None]:
    """Let no file grow beyond ``octets``."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (octets, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
