# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Arguments of the command ``train``, most of which ``owd`` has, too."""

import argparse
from pathlib import Path
from typing import Any

from liteprobe.host.cli.arguments import (
    add_json,
    add_ports,
    add_probe,
    duration_ns,
    output,
    rate_bps,
    time_ns,
    whole,
    wholes,
)
from liteprobe.host.defaults import (
    DESTINATION_IP,
    DESTINATION_MAC,
    DESTINATION_PORT,
    FILLS,
    SOURCE_IP,
    SOURCE_MAC,
    SOURCE_PORT,
    TRAFFIC_CLASS,
    TTL,
)

HELP = "send packet trains and measure throughput, delay, loss and order"
#: Options of the headers: name, field, type, help, default.
HEADER_OPTIONS: tuple[tuple[str, str, Any, str, Any], ...] = (
    ("--src-mac", "source_mac", str, "MAC address", SOURCE_MAC),
    ("--dst-mac", "destination_mac", str, "MAC address", DESTINATION_MAC),
    ("--src-ip", "source_ip", str, "IPv4 or IPv6 address", SOURCE_IP),
    ("--dst-ip", "destination_ip", str, "IPv4 or IPv6 address", DESTINATION_IP),
    ("--src-port", "source_port", whole, "UDP port", SOURCE_PORT),
    ("--dst-port", "destination_port", whole, "UDP port", DESTINATION_PORT),
    ("--ttl", "ttl", whole, "TTL or hop limit", TTL),
    ("--tos", "traffic_class", whole, "TOS or traffic class", TRAFFIC_CLASS),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_program(parser)
    add_ports(parser)
    add_headers(parser)
    add_outputs(parser)
    parser.add_argument(
        "--detach", action="store_true", help="start the train, let it go on without this host, and measure nothing"
    )


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add what says what is sent."""
    group = parser.add_argument_group("trains")
    group.add_argument(
        "--length", metavar="L[,L...]", type=wholes, default=[1514], help="octets without FCS, 60 to 9000"
    )
    group.add_argument(
        "--count", metavar="N[,N...]", type=wholes, default=[100], help="frames in a train (default: 100)"
    )
    group.add_argument("--repeat", metavar="R", type=whole, default=1, help="trains of each kind (default: 1)")
    pace = group.add_mutually_exclusive_group()
    pace.add_argument(
        "--interval", metavar="TIME", type=time_ns, help="SFD to SFD, in ns or like 1.5us (default: back to back)"
    )
    pace.add_argument("--rate", metavar="BPS", type=rate_bps, help="rate on the wire, frame + 24 octets, like 500M")
    group.add_argument(
        "--gap",
        metavar="TIME",
        type=time_ns,
        help="extra time between trains, in ns or like 1.5us (default: what fetching takes)",
    )
    group.add_argument(
        "--stream-id", metavar="ID", type=whole, default=1, help="number that the frames carry (default: 1)"
    )
    group.add_argument("--fill", choices=list(FILLS), default="zero", help="rest of the payload (default: zero)")


def add_headers(parser: argparse.ArgumentParser, tags: str = "up to twice") -> None:
    """Add what says how the frames are addressed; ``tags``: how often a VLAN tag may be given."""
    group = parser.add_argument_group("headers")
    for option, field, kind, what, preset in HEADER_OPTIONS:
        group.add_argument(
            option, dest=field, type=kind, default=preset, metavar="X", help=f"{what} (default: {preset})"
        )
    group.add_argument(
        "--vlan", metavar="TCI", type=whole, action="append", default=[], help=f"VLAN tag, {tags}, outer first"
    )


def add_outputs(parser: argparse.ArgumentParser) -> None:
    """Add where results go."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--waiting-time",
        metavar="TIME",
        type=duration_ns,
        help="T_max: a packet that takes longer is lost (default: 2ms simulated, 1s else)",
    )
    group.add_argument(
        "--calibration", metavar="FILE", type=Path, help="take this set-up's own delay out (see calibrate)"
    )
    add_json(group, "all figures")
    group.add_argument("--csv", metavar="FILE", type=output, help="write a line for each program")
    group.add_argument("--report", metavar="FILE.html", type=output, help="write a report with plots")
