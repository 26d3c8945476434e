#!/usr/bin/env python3
# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Yosys as machine code, out of the wheel of pyosys, with the options that sby and soc/build/bitstream.py give to ``yosys``.

YoWASP's is the same version, but a WebAssembly that takes two minutes of CPU to be compiled in a fresh clone.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version


@contextmanager
def output_to(log: str | None) -> Iterator[None]:
    """Let what C++ prints go to a file, or nowhere."""
    sys.stdout.flush()
    file = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    before = os.dup(1)
    os.dup2(file, 1)
    try:
        yield
    finally:
        os.dup2(before, 1)


def main() -> int:
    """Run a script, or commands; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-q", action="store_true", help="print nothing but errors")
    parser.add_argument("-l", metavar="FILE", help="what it says, into a file")
    parser.add_argument("--version", action="version", version=f"Yosys {version('pyosys')} (pyosys)")
    parser.add_argument("script")
    arguments = parser.parse_args()
    from pyosys import libyosys

    with output_to(arguments.l if arguments.q else arguments.l or "/dev/stdout"):
        libyosys.run_pass(f"script {arguments.script}", libyosys.Design())
    return 0


if __name__ == "__main__":
    sys.exit(main())
