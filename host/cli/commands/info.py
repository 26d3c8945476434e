# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows facts of a probe: ports, clock, links, register map."""

import argparse

from liteprobe.host.cli.arguments import add_json, add_probe, open_probe
from liteprobe.host.cli.lazy import lazily

with lazily():
    from liteprobe.host.cli import results, tables

HELP = "show what a probe is: ports, clock, links, register map"
EXAMPLES = """
liteprobe info --probe sim://loopback
liteprobe info --probe 192.168.1.50
liteprobe info --probe uart:///dev/ttyUSB0 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_json(parser, "them")


def run(args: argparse.Namespace) -> None:
    """Print the probe's facts."""
    with open_probe(args) as probe:
        found = probe.info()
    results.publish(args, tables.fact_table(found.items()), found)
