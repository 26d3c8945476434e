# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Looks at this machine, and says what to do about what is missing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import STDOUT, write_json
from liteprobe.host.cli.arguments import add, add_json
from liteprobe.host.cli.lazy import lazily

with lazily():
    import rich.text

    from liteprobe.host.base import doctor
    from liteprobe.host.cli import tables
    from liteprobe.host.device import discover

HELP = "look at this machine: Python, packages, compilers, tools, cables, serial ports, probes; what to do about what is missing"
EXAMPLES = """
liteprobe doctor
liteprobe doctor --no-network
liteprobe doctor --json doctor.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add(parser, "--no-network", bool, "look for no probes on the network")
    add_json(parser, "them")


COLOURS = {"ok": "green", "missing": "red", "none": "yellow"}
WAIT_S = 0.5


def run(args: argparse.Namespace) -> None:
    """Look, print, and fail where what the host needs is missing.

    Raises ProbeError when the host can do nothing on this machine.
    """
    checks = look(not args.no_network)
    needed = [check for check in checks if check.is_needed and check.state == doctor.State.MISSING]
    if args.json:
        write_json(args.json, {"is_ready": not needed, "checks": [asdict(check) for check in checks]})
    if args.json != STDOUT:
        show(checks)
    if needed:
        raise ProbeError("; ".join(f"{check.name}: {check.said}: {check.advice}" for check in needed))


def look(with_network: bool = True) -> list[doctor.Finding]:
    """Return what came of all checks; where the host can't run, only of those that say why."""
    checks = [doctor.python(), doctor.packages()]
    if any(check.state == doctor.State.MISSING for check in checks):
        return checks
    checks += [*doctor.optional(), doctor.build_folder(), *doctor.compilers(), *doctor.tools()]
    checks += [*doctor.cables(), *doctor.serial_ports(), *doctor.cards()]
    if with_network:
        asked, left_out = discover.places()
        checks += doctor.probes(discover.discover(asked, WAIT_S), len(asked), left_out)
    return checks


def show(checks: Sequence[doctor.Finding]) -> None:
    """Print a line a check, and under it what to do, as it can be typed."""
    width = max(len(check.name) for check in checks)
    console = tables.console()
    for check in checks:
        said = (f"{check.name:<{width}}  {check.said}", "default")
        console.print(rich.text.Text.assemble((f"{check.state:<8}", COLOURS[check.state]), said), soft_wrap=True)
        if check.advice:
            console.print(
                rich.text.Text(f"{'':8}{check.advice}", "bold" if check.state == doctor.State.MISSING else "dim"),
                soft_wrap=True,
            )
