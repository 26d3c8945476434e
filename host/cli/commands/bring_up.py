# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tries each part of a board that is new, and writes a report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.output import STDOUT, outputs, write_text
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_json, add_probe, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output_or_stdout, whole

with lazily():
    from liteprobe.host.cli import tables
    from liteprobe.host.report import files
    from liteprobe.host.suites import bring_up as suite

FORMAT = "liteprobe-bring-up"
FORMAT_VERSION = 1
HELP = "try each part of a board that is new, and write a report that can be attached to an issue"
EXAMPLES = """
liteprobe bring-up --probe 192.168.1.50 --report board.md
liteprobe bring-up --probe 192.168.1.50 --frames 1M --eye
liteprobe bring-up --probe uart:///dev/ttyUSB0 --frames 0 --ram 0 --duration 10s
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    group = parser.add_argument_group("extent")
    add(group, "--frames N", whole, "frames each way; 0: none (default: 1000000)", 1_000_000)
    add(group, "--ram BYTES", whole, "of the SDRAM; 0: none (default: all)")
    add(group, "--duration TIME", duration_ns, "how long to look at the oscillator and at the PPS (default: 5s)", 5e9)
    add(group, "--eye", bool, "find the eye of received data, and keep its middle")
    group = parser.add_argument_group("results")
    add(group, "--report FILE", output_or_stdout, "write the report as Markdown; -: to stdout")
    add_json(parser, "what was found")


def run(args: argparse.Namespace) -> None:
    """Try everything; a check that fails ends the command with exit code 1, after the report is written."""
    if args.frames < 0 or (args.ram or 0) < 0:
        raise UsageError("frames and RAM are counted from 0 upwards")
    extent = suite.Extent(args.frames, args.ram, args.duration / 1e9, args.eye)
    with open_probe(args) as probe:
        facts = probe.info()
        made = suite.BringUp(probe, extent, _progress)
        try:
            checks = made.run()
        except KeyboardInterrupt as end:
            end.args = (f"{end}; {len(made.checks)} checks were made",)
            _publish(args, document(facts, made.checks), made.checks, end)
            raise
    _publish(args, document(facts, checks), checks)
    failed = [check.name for check in checks if check.verdict == suite.Verdict.FAILED]
    if failed:
        raise ProbeError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")


def _publish(
    args: argparse.Namespace,
    found: dict[str, Any],
    checks: Sequence[suite.BringUpCheck],
    cause: BaseException | None = None,
) -> None:
    shown = tables.table("check", "result", "what was seen", text=3)
    for check in checks:
        shown.add_row(check.name, check.verdict, check.seen)
    with outputs(cause) as out:
        if STDOUT not in (args.report, args.json):
            out.write(STDOUT, lambda: tables.console().print(shown, markup=False))
        out.write(args.report, lambda: write_text(args.report, as_markdown(found)))
        out.write(args.json, lambda: write_text(args.json, json.dumps(found, indent=2) + "\n"))


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        say(f"{name} ...", stream=sys.stderr, flush=True)


def document(facts: Mapping[str, Any], checks: Sequence[suite.BringUpCheck]) -> dict[str, Any]:
    """Return everything about a bring-up as plain data."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": files.environment(),
        "probe": dict(facts),
        "checks": [asdict(check) for check in checks],
    }


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return a `document` as a page that can be attached to an issue."""
    parts = [
        f"# Bring-up of {found['probe']['build']}, {found['created']}",
        "\n## Checks\n",
        _table(("check", "result", "what was seen"), [(c["name"], c["verdict"], c["seen"]) for c in found["checks"]]),
        "\n## Probe\n",
        _table(("fact", "value"), list(found["probe"].items())),
        "\n## Host\n",
        _table(("fact", "value"), list(found["environment"].items())),
        "\n## Figures\n",
        "```json",
        json.dumps({check["name"]: check["figures"] for check in found["checks"] if check["figures"]}, indent=1),
        "```",
    ]
    return "\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(content: object) -> str:
    return " ".join(str(content).split()).replace("|", "\\|")
