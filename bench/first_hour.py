# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what a new user meets in the first hour: the package and its extras, the first train, commands, labs and pages.

Prints one line a figure (``name value unit target ok|short``), writes build/bench/first-hour.json, and ends with 1 when one
falls short. Packages come from the package index, through pip's cache (``--full``: without it). Times are those of this
machine and its network, and of what else runs on it.
"""

import sys

import _first_commands
import _first_docs
import _first_install
import _first_labs
from _figures import Row, run

ROWS: dict[str, Row] = {
    "install": _first_install.install,
    "wheel": _first_install.wheel,
    "train": _first_install.train,
    "build": _first_install.build,
    "lowest": _first_install.lowest,
    "commands": _first_commands.commands,
    "docs": _first_docs.docs,
    "labs": _first_labs.labs,
}

if __name__ == "__main__":
    sys.exit(run("first-hour", __doc__, ROWS))
