# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``discover``."""

import argparse

from liteprobe.host.cli.arguments import add_json, duration_ns, whole

HELP = "find the probes on the network"
DEFAULT_PORT = 1234  # Of Etherbone, as in liteprobe.host.device.link.etherbone, which would load numpy.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="where to look: HOST, HOST:PORT or a network like 192.168.1.0/24 (default: all networks of this host, and localhost)",
    )
    parser.add_argument("--port", metavar="N", type=whole, default=DEFAULT_PORT, help="UDP port (default: 1234)")
    parser.add_argument(
        "--wait", metavar="TIME", type=duration_ns, default=1e9, help="for answers after the last request (default: 1s)"
    )
    add_json(parser, "them")
