# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The program ``liteprobe``: hears signals before it loads anything else, and ends well when its output can't be written."""

import os
import sys

from liteprobe.host import interrupt


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


def let_go_of_stderr() -> None:
    """Throw away what stderr doesn't take, which Python would try again as it ends, with an exit code of its own."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def program() -> int:
    """Run the command line, and return the exit code."""
    try:
        interrupt.install()
        open_standard_streams()
        from liteprobe.host.cli.main import main

        code = main()
        interrupt.ignore()
    except interrupt.Interrupted as stop:  # While it was loaded.
        code = end(stop)
    except Exception as error:
        behind = interrupt.behind(error)
        if behind is None:
            raise
        code = end(behind)
    let_go_of_stderr()
    return code


def end(stop: interrupt.Interrupted) -> int:
    """Say why the program ends, and return its exit code."""
    interrupt.ignore()
    print(f"liteprobe: {stop}", file=sys.stderr)
    return stop.exit_code


if __name__ == "__main__":
    sys.exit(program())
