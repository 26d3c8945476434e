# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Standard streams that are closed, or take nothing. Loaded before anything else, so it loads nothing itself."""

import contextlib
import io
import os
import sys
from typing import TextIO


def open_standard_streams() -> None:
    """Give stdin, stdout and stderr something where they are closed, so that no file that is opened later takes their place.

    What is written to a stdout that was closed fails, as it does in other programs.
    """
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(
                os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY
            )  # The lowest that is closed: number.
            setattr(sys, name, os.fdopen(opened, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
    # A path may have characters that the terminal's encoding has not, or octets that are none: they are shown by their number.
    # Python writes UTF-8 where the locale is C; who asks for that (LC_ALL=C) has a terminal, or a program, of ASCII.
    is_ascii = os.environ.get("LC_ALL") in ("C", "POSIX") and not os.environ.keys() & {"PYTHONIOENCODING", "PYTHONUTF8"}
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="ascii" if is_ascii else None, errors="backslashreplace")


def let_go(stream: TextIO) -> None:
    """Write what a stream still holds, and drop it where that can't be done: Python would try, and complain, as it ends."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
