# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``completion``."""

import argparse

HELP = "print the completion script for a shell"
SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")  # Of shtab, which takes long to load.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("shell", choices=SHELLS, help="source its output from the shell's start-up file")
