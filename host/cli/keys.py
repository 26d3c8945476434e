# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keys that are pressed while a screen is shown."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def pressed() -> Iterator[Callable[[], str]]:
    """Give what returns the key that was pressed, or nothing; keys aren't echoed meanwhile. Ctrl-C stays a signal."""
    if not sys.stdin.isatty():
        yield lambda: ""
        return
    import termios  # Not on Windows.
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield lambda: os.read(terminal, 1).decode(errors="ignore") if select.select([terminal], [], [], 0)[0] else ""
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
