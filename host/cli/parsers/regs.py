# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``regs``."""

import argparse

from liteprobe.host.cli.arguments import add_probe, whole

HELP = "read, write or list registers by name"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("action", choices=["read", "write", "list"], help="what to do")
    parser.add_argument("name", nargs="?", help="register; 'list' and 'read' take a pattern, like 'port0_tx_*'")
    parser.add_argument("value", nargs="?", type=whole, help="what to write, decimal or 0x hexadecimal")
    add_probe(parser)
