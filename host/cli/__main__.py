# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The program ``liteprobe``: hears signals before it loads anything else, and ends well when its output can't be written."""

import os
import sys

from liteprobe.host.base import interrupt
from liteprobe.host.base.text import say
from liteprobe.host.cli.streams import let_go, open_standard_streams


def program() -> int:
    """Run the command line, and return the exit code."""
    try:
        interrupt.install()
        open_standard_streams()
        # NumPy's OpenBLAS would start threads for products of large matrices, which are nowhere here: a fifth of its loading.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        from liteprobe.host.cli.main import main

        code = main()
        interrupt.ignore()
    except interrupt.Interrupted as stop:  # While it was loaded.
        code = end(stop)
    except Exception as error:
        cause = interrupt.interrupt_of(error)
        if cause is None:
            raise
        code = end(cause)
    let_go(sys.stderr)
    return code


def end(stop: interrupt.Interrupted) -> int:
    """Say why the program ends, and return its exit code."""
    interrupt.ignore()
    say(f"liteprobe: {stop}", stream=sys.stderr)
    return stop.exit_code


if __name__ == "__main__":
    sys.exit(program())
