# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reads, writes and lists registers by name."""

import argparse
import fnmatch

from liteprobe.host.cli.tables import registers as show
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe


def run(args: argparse.Namespace) -> None:
    """Read, write or list."""
    if args.action != "list" and args.name is None:
        raise UsageError(f"regs {args.action} needs a register: see 'liteprobe regs list'")
    if (args.action == "write") != (args.value is not None):
        raise UsageError("a value belongs to regs write, and to it alone: liteprobe regs write NAME VALUE")
    with Probe(args.probe, args.map, args.steal) as probe:
        registers = probe.registers
        if args.action == "write":
            registers.write(args.name, args.value)
            return
        names = fnmatch.filter(registers.names, args.name or "*")
        if not names:
            registers.register(args.name)  # Raises, with names that come close.
            names = [args.name]
        if args.action == "list":
            show([registers.register(name) for name in names], None)
        else:
            show([registers.register(name) for name in names], registers.read_many(names))
