# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows what a probe is and how it is."""

import argparse
import json

from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.output import write_text
from liteprobe.host.cli.tables import facts
from liteprobe.host.probe import Probe


def run(args: argparse.Namespace) -> None:
    """Print the probe's facts."""
    with Probe(args.probe, args.map, args.steal) as probe:
        found = probe.info()
    if args.json:
        write_text(args.json, json.dumps(found, indent=2) + "\n")
    if args.json != STDOUT:
        facts(found)
