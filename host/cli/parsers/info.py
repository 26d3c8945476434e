# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``info``."""

import argparse

from liteprobe.host.cli.arguments import add_json, add_probe

HELP = "show what a probe is: ports, clock, links, register map"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_json(parser, "them")
