# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what a probe is and how it is."""

import argparse
import json

from liteprobe.host.cli.arguments import add_probe
from liteprobe.host.cli.tables import facts
from liteprobe.host.probe import Probe

HELP = "show what a probe is: ports, clock, links, register map"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> None:
    """Print the probe's facts."""
    with Probe(args.probe, args.map) as probe:
        found = probe.info()
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        facts(found)
