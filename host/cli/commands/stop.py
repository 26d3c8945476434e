# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stops what a probe sends, whoever started it."""

import argparse

from liteprobe.cores.formats import Part
from liteprobe.host.probe import Probe


def run(args: argparse.Namespace) -> None:
    """Stop a port, or all."""
    with Probe(args.probe, args.map, args.steal) as probe:
        probe.need(Part.GENERATE)
        for port in range(probe.port_count) if args.port is None else [args.port]:
            has_sent = probe.stop(port)
            print(f"port {port}: {'stopped' if has_sent else 'nothing was sent'}")
