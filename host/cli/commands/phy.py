# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the PHYs of a probe, or sets the receive delay of a port to the middle of its eye."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from liteprobe.host.base.errors import UsageError
from liteprobe.host.base.output import STDOUT
from liteprobe.host.cli.arguments import add, add_json, add_probe, open_probe, take_old
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import whole

with lazily():
    from liteprobe.cores import formats
    from liteprobe.host import probe as probes
    from liteprobe.host.cli import results, tables
    from liteprobe.host.device import phy
    from liteprobe.host.suites import eye as eyes

HELP = "show the PHYs and their links, or find the middle of the eye of received data (sweep)"
EXAMPLES = """
liteprobe phy --probe 192.168.1.50
liteprobe phy show --probe 192.168.1.50 --json
liteprobe phy sweep --probe 192.168.1.50 --receive 1 --transmit 0
"""
ACTIONS = ("show", "sweep")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    take_old(parser, {"--port": "--receive"})
    add(parser, "action", str, "what to do (default: show)", "show", nargs="?", choices=ACTIONS)
    add_probe(parser)
    group = parser.add_argument_group("sweep")
    add(group, "--receive PORT", whole, "port whose receive delay is changed (default: 1)", 1)
    add(group, "--transmit PORT", whole, "port that sends to it (default: 0)", 0)
    add(group, "--count N", whole, "frames at each delay (default: 20)", 20)
    add(group, "--step TAPS", whole, "from one delay to the next (default: 1)", 1)
    add_json(parser, "what was found")


HIDDEN = {
    "": "both edges were seen",
    "first": "its first edge lies before tap 0, so the middle counts from the last, with the width of data sheets",
    "last": "its last edge lies beyond tap 127, so the middle counts from the first, with the width of data sheets",
    "both": "neither edge is within reach",
}


def run(args: argparse.Namespace) -> None:
    """Do what is asked for."""
    with open_probe(args) as probe:
        if args.action == "sweep":
            _sweep(args, probe)
        else:
            _show(args, probe)


def _show(args: argparse.Namespace, probe: probes.Probe) -> None:
    if not phy.Phys.are_there(probe.registers):
        raise UsageError(f"{probe.url} does not reach its PHYs: it is simulated, or not a board with MDIO")
    states = probe.links.states
    shown = tables.table("port", "PHY", "MDIO", "link", "Energy Efficient Ethernet", text=5)
    for port, state in enumerate(states):
        shown.add_row(str(port), state.name, str(state.address), state.link, state.eee)
    results.publish(args, shown, [asdict(state) for state in states])
    for note in probe.links.notes() if args.json != STDOUT else ():
        tables.console().print(note)


def _sweep(args: argparse.Namespace, probe: probes.Probe) -> None:
    eye = eyes.sweep(probe, args.receive, args.transmit, args.count, args.step)
    first, last, middle = (f"{tap * formats.TAP_NS:.3f}" for tap in (eye.first, eye.last, eye.middle))
    said = (
        f"taps {eye.first} to {eye.last} ({first} to {last} ns) bring all {eye.sent} frames; {HIDDEN[eye.clipped]}.\n"
        f"Port {args.receive} is set to tap {eye.middle} ({middle} ns) until the FPGA is loaded again."
    )
    results.publish(args, f"{_drawn(eye, args.step)}\n{said}", eye._asdict())


def _drawn(eye: eyes.Eye, step: int) -> str:
    """Return a line of the eye: a mark each delay."""
    marks = "".join("#" if frames == eye.sent else "." if frames else " " for frames in eye.whole)
    return f"tap 0 |{marks}| {(len(eye.whole) - 1) * step}\n# all frames, . some, blank none"
