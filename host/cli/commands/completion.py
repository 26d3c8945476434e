# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the completion script of a shell."""

import argparse

from liteprobe.host.cli.arguments import add
from liteprobe.host.cli.lazy import lazily

with lazily():
    import shtab

HELP = "print the completion script for a shell"
EXAMPLES = """
liteprobe completion bash
liteprobe completion zsh
liteprobe completion fish
"""
SHELLS = ("bash", "zsh", "tcsh", "fish", "powershell")  # Of shtab, which takes long to load.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "shell", str, "source its output from the shell's start-up file", choices=SHELLS)


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    print(shtab.complete(args.parser, args.shell))
