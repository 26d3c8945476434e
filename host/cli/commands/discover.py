# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds the probes on the network, and says which have one address between them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from liteprobe.host.base.errors import NoProbeError, ProbeError, UsageError
from liteprobe.host.base.output import STDOUT, write_json
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_json, take_old
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, whole

with lazily():
    import rich.text

    from liteprobe.host.cli import tables
    from liteprobe.host.device import discover

HELP = "find the probes on the network"
EXAMPLES = """
liteprobe discover
liteprobe discover 192.168.1.0/24 --wait 500ms
liteprobe discover 192.168.1.50 --json
"""
DEFAULT_PORT = 1234  # Of Etherbone, as in liteprobe.host.device.link.etherbone, which would load numpy.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    take_old(parser, {"--port": "--udp-port"})
    add(
        parser,
        "targets TARGET",
        str,
        "where to look: HOST, HOST:PORT or a network like 192.168.1.0/24 (default: all networks of this host, and localhost)",
        nargs="*",
    )
    add(parser, "--udp-port N", whole, "UDP port (default: 1234)", DEFAULT_PORT)
    add(parser, "--wait TIME", duration_ns, "for answers after the last request (default: 1s)", 1e9)
    add_json(parser, "them")


PORTS = 1 << 16
UNKNOWN = "-"


def run(args: argparse.Namespace) -> None:
    """Look, and print what was found; raises NoProbeError when no probe has answered, ProbeError when two have one address."""
    if not 0 < args.udp_port < PORTS:
        raise UsageError(f"there is no port {args.udp_port}: give 1 to {PORTS - 1}")
    asked, skipped = discover.places(args.targets, args.udp_port)
    for line in skipped:
        say(f"liteprobe: {line}", stream=sys.stderr)
    found = discover.discover(asked, args.wait / 1e9)
    if args.json:
        write_json(
            args.json, {"asked": len(asked), "left_out": skipped, "probes": [document(probe) for probe in found]}
        )
    if args.json != STDOUT and found:
        show(found)
    if not found:
        raise NoProbeError(
            f"no probe answers at {addresses(len(asked))}: give this host an address in the probe's network "
            "(192.168.1.50 where the build was given no other; sudo ip addr add 192.168.1.1/24 dev INTERFACE), and check its link"
        )
    if shared := [probe for probe in found if probe.is_shared]:
        raise ProbeError("; ".join(words(probe) for probe in shared))


def addresses(count: int) -> str:
    """Return how many were asked, in words."""
    return "the one address that was asked" if count == 1 else f"{count} addresses"


def document(probe: discover.FoundProbe) -> dict[str, Any]:
    """Return a probe as plain data."""
    place = asdict(probe.place)
    rest = {name: value for name, value in asdict(probe).items() if name != "place"}
    return {"url": probe.url, **place, **rest, "macs": list(probe.macs), "is_shared": probe.is_shared}


def words(probe: discover.FoundProbe) -> str:
    """Return what to do where two have one address."""
    who = f"MAC addresses {', '.join(probe.macs)}" if len(probe.macs) > 1 else f"{probe.answers} answers to one request"
    return (
        f"two devices have the address {probe.place.address} ({who}): unplug one, and build it with another "
        "(liteprobe build BOARD --ip-address A.B.C.D --mac-address MAC)"
    )


def show(found: Sequence[discover.FoundProbe]) -> None:
    """Print a table."""
    shown = tables.table("probe", "what", "preset", "ports", "map", "MAC", text=6)
    for probe in found:
        facts = (probe.identifier or "no LiteProbe", probe.preset or UNKNOWN, str(probe.ports or UNKNOWN))
        map_hash = f"{probe.map_hash:08x}" if probe.map_hash else UNKNOWN
        row = (probe.url, *facts, map_hash, ", ".join(probe.macs) or UNKNOWN)
        shown.add_row(
            *map(rich.text.Text, row)
        )  # Else a part of a MAC address like :ab: is taken for the name of a picture.
    tables.console().print(shown)
