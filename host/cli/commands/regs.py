# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads, writes and lists registers by name."""

import argparse
import fnmatch

from liteprobe.host.base.errors import UsageError
from liteprobe.host.cli.arguments import add, add_probe, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import whole

with lazily():
    from liteprobe.host.cli import tables

HELP = "read, write or list registers by name"
EXAMPLES = """
liteprobe regs list 'port0_tx_*' --probe sim://loopback
liteprobe regs read probe_ports --probe sim://loopback
liteprobe regs write port0_tx_length 0x40 --probe sim://loopback
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "action", str, "what to do", choices=["read", "write", "list"])
    add(parser, "name", str, "register; 'list' and 'read' take a pattern, like 'port0_tx_*'", nargs="?")
    add(parser, "value", whole, "what to write, decimal or 0x hexadecimal", nargs="?")
    add_probe(parser)


def run(args: argparse.Namespace) -> None:
    """Read, write or list."""
    if args.action != "list" and args.name is None:
        raise UsageError(f"regs {args.action} needs a register: see 'liteprobe regs list'")
    if (args.action == "write") != (args.value is not None):
        raise UsageError("a value belongs to regs write, and to it alone: liteprobe regs write NAME VALUE")
    with open_probe(args) as probe:
        registers = probe.registers
        if args.action == "write":
            registers.write(args.name, args.value)
            return
        names = fnmatch.filter(registers.names, args.name or "*")
        if not names:
            registers.register(args.name)  # Raises, with names that come close.
            names = [args.name]
        if args.action == "list":
            tables.registers([registers.register(name) for name in names], None)
        else:
            tables.registers([registers.register(name) for name in names], registers.read_many(names))
