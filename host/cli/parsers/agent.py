# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``agent``."""

import argparse
from pathlib import Path

from liteprobe.host.cli.arguments import duration_ns
from liteprobe.host.defaults import AGENT_ADDRESS, AGENT_LIMIT_S

HELP = "let measuring scripts set and read this device, or make keys for that"
ACTIONS = ("run", "keys")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    parser.add_argument("action", choices=ACTIONS, help="what to do")
    parser.add_argument(
        "file", type=Path,
        help="run: the device as a YAML document, or a Python file with a function offer(agent); keys: NAME, for NAME.key and "
        "NAME.key_secret",
    )  # fmt: skip
    parser.add_argument(
        "--address",
        metavar="URL",
        help=f"where to listen; other than loopback with keys alone (default: {AGENT_ADDRESS})",
    )
    parser.add_argument("--keys", metavar="FILE", type=Path, help="the agent's own keys (NAME.key_secret)")
    parser.add_argument(
        "--clients", metavar="FILE", type=Path, action="append", default=[],
        help="public key of one who may talk to it (NAME.key), or a folder of them; again for more",
    )  # fmt: skip
    parser.add_argument(
        "--limit", metavar="TIME", type=duration_ns, help=f"what a callback may take (default: {AGENT_LIMIT_S:g}s)"
    )
