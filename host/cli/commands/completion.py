# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Prints the completion script of a shell."""

import argparse

import shtab


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    from liteprobe.host.cli.main import make_parser  # The parser is made of the commands: this one, too.

    print(shtab.complete(make_parser(), args.shell))
