# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``completion``."""

import argparse

import shtab

HELP = "print the completion script for a shell"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument(
        "shell", choices=shtab.SUPPORTED_SHELLS, help="source its output from the shell's start-up file"
    )
