# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Tries each part of a board that is new, and writes a report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from liteprobe.host.base.defaults import FIGURES_OF_CHECKS
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.output import STDOUT, outputs, write_text
from liteprobe.host.base.text import say
from liteprobe.host.cli.arguments import add, add_expect, add_probe, add_results, open_probe
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import duration_ns, output_or_stdout, whole

with lazily():
    import rich.console
    import rich.text

    from liteprobe.host.cli import results, tables
    from liteprobe.host.report import files, page
    from liteprobe.host.suites import bring_up as suite
    from liteprobe.host.suites import suite as common

FORMAT = "liteprobe-bring-up"
HELP = "try each part of a board that is new, and write a report that can be attached to an issue"
EXAMPLES = """
liteprobe bring-up --probe 192.168.1.50 --report board.html --markdown board.md
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
    to = add_results(parser, "write a report", "check")
    add(to, "--markdown FILE.md", output_or_stdout, "write it as Markdown, for an issue; -: to stdout")
    add_expect(parser, FIGURES_OF_CHECKS)


def run(args: argparse.Namespace) -> None:
    """Try everything; a check that fails ends the command with exit code 1, after all is written."""
    if args.frames < 0 or (args.ram or 0) < 0:
        raise UsageError("frames and RAM are counted from 0 upwards")
    if args.report and args.report.suffix.lower() in (".md", ".markdown"):
        raise UsageError(f"--report writes HTML: give --markdown {args.report}, or --report FILE.html")
    extent = suite.Extent(args.frames, args.ram, args.duration / 1e9, args.eye)
    looks = results.looks_of(args)
    with open_probe(args) as probe:
        facts = probe.info()
        made = suite.BringUp(probe, extent, _progress, lambda one: looks.write(asdict(one)))
        ended: KeyboardInterrupt | None = None
        try:
            checks = made.run()
        except KeyboardInterrupt as end:
            checks = made.checks
            end.args, ended = (f"{end}; {len(checks)} checks were made",), end
    found = suite.BringUpResult(checks)
    content = {**files.of_run(FORMAT, args.probe, facts, results.typed()), **found.to_dict()}
    shown = tables.table("check", "result", "what was seen", text=3)
    for check in found.checks:
        shown.add_row(*map(rich.text.Text, (check.name, check.verdict, check.seen)))
    failed = [check.name for check in found.checks if check.verdict == common.Verdict.FAILED]
    cause = ProbeError(f"{len(failed)} of {len(found.checks)} checks failed: {', '.join(failed)}") if failed else None
    with outputs(ended or cause) as out:
        out.write(args.markdown, lambda: write_text(args.markdown, as_markdown(content)))
    results.publish(args, rich.console.Group() if args.markdown == STDOUT else shown, content, write_page, ended, found)
    if ended:
        raise ended
    if cause:
        raise cause


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        say(f"{name} ...", stream=sys.stderr, flush=True)


def write_page(path: Path, content: Mapping[str, Any]) -> None:
    """Write the report: the checks, what their figures are, and what the probe and this host are."""
    checks = content["checks"]
    verdicts = [check["verdict"] for check in checks]
    parts = [
        *page.said_of([f"{page.address(content['url'])}: each part was tried, one after the other."]),
        page.tiles_of([(str(verdicts.count(one)), f"checks {one.value.lower()}") for one in common.Verdict]),
        page.heading("Checks"),
        page.table("Check|Result|What was seen", [[c["name"], c["verdict"], c["seen"]] for c in checks], "words"),
        page.heading("Figures"),
        page.Block("verbatim", text=_figures(content)),
        page.heading("Probe"),
        page.table("Fact|Value", [[name, str(value)] for name, value in content["probe"].items()], "words"),
        *page.made_with(content),
    ]
    write_text(path, page.document(f"Bring-up of {content['probe']['build']}", content, parts))


def _figures(content: Mapping[str, Any]) -> str:
    return json.dumps({check["name"]: check["figures"] for check in content["checks"] if check["figures"]}, indent=1)


def as_markdown(found: Mapping[str, Any]) -> str:
    """Return the document of a bring-up as a page that can be attached to an issue."""
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
        _figures(found),
        "```",
    ]
    return "\n".join(parts) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(content: object) -> str:
    return " ".join(str(content).split()).replace("|", "\\|")
