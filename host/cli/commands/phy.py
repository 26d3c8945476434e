# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the PHYs of a probe, or sets the receive delay of a port to the middle of its eye."""

import argparse
import json
from dataclasses import asdict

from liteprobe.cores.formats import TAP_NS
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.output import write_text
from liteprobe.host.cli.tables import console, table
from liteprobe.host.device.phy import Phys
from liteprobe.host.errors import UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.suites.eye import Eye, sweep

HIDDEN = {
    "": "both edges were seen",
    "first": "its first edge lies before tap 0, so the middle counts from the last, with the width of data sheets",
    "last": "its last edge lies beyond tap 127, so the middle counts from the first, with the width of data sheets",
    "both": "neither edge is within reach",
}


def run(args: argparse.Namespace) -> None:
    """Do what is asked for."""
    with Probe(args.probe, args.map, args.steal) as probe:
        if args.action == "sweep":
            _sweep(args, probe)
        else:
            _show(args, probe)


def _show(args: argparse.Namespace, probe: Probe) -> None:
    if not Phys.are_there(probe.registers):
        raise UsageError(f"{probe.url} does not reach its PHYs: it is simulated, or not a board with MDIO")
    states = probe.links.states
    if args.json:
        write_text(args.json, json.dumps([asdict(state) for state in states], indent=2) + "\n")
    if args.json == STDOUT:
        return
    shown = table("port", "PHY", "MDIO", "link", "Energy Efficient Ethernet", text=5)
    for port, state in enumerate(states):
        shown.add_row(str(port), state.name, str(state.address), state.link, state.eee)
    console().print(shown)
    for note in probe.links.notes():
        console().print(note)


def _sweep(args: argparse.Namespace, probe: Probe) -> None:
    eye = sweep(probe, args.port, args.transmit, args.count, args.step)
    if args.json:
        write_text(args.json, json.dumps(eye._asdict(), indent=2) + "\n")
    if args.json != STDOUT:
        console().print(_drawn(eye, args.step))
        console().print(
            f"taps {eye.first} to {eye.last} ({eye.first * TAP_NS:.3f} to {eye.last * TAP_NS:.3f} ns) bring all {eye.sent} "
            f"frames; {HIDDEN[eye.clipped]}.\nPort {args.port} is set to tap {eye.middle} ({eye.middle * TAP_NS:.3f} ns) "
            f"until the FPGA is loaded again."
        )


def _drawn(eye: Eye, step: int) -> str:
    """Return a line of the eye: a mark each delay."""
    marks = "".join("#" if frames == eye.sent else "." if frames else " " for frames in eye.whole)
    return f"tap 0 |{marks}| {(len(eye.whole) - 1) * step}\n# all frames, . some, blank none"
