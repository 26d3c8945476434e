# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Builds bitstreams of the smallest board with three seeds, in strict timing."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from liteprobe.sim.drivers.tools.figures import ROOT, Figure

BOARD = "colorlight_5a_75b"
SEEDS = (1, 2, 3)
MHZ = {"sys": 50, "timebase2x": 250}  # Of all other clocks: 125.


def build(folder: Path, *arguments: str) -> dict[str, Any] | None:
    """Build the board into ``folder`` and return the report, or None where it can't be built."""
    # A process each: names, and so the netlist, depend on what Migen has elaborated before.
    command = [sys.executable, "-m", "liteprobe.soc.build.bitstream", BOARD, "--out", str(folder), *arguments]
    if subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        return None
    report: dict[str, Any] = json.loads((ROOT / folder / "report.json").read_text())
    return report


def figures(folder: Path, *arguments: str) -> Iterator[Figure]:
    """Yield how many seeds were built, the least Fmax of each clock over them, and the LUTs taken."""
    reports = [report for seed in SEEDS if (report := build(folder, *arguments, "--seed", str(seed)))]
    yield Figure("seeds_built", len(reports), "seeds", len(SEEDS), is_least=True)
    if not reports:
        return
    for domain in sorted(reports[0]["clocks"]):
        least = min(report["clocks"][domain]["fmax_mhz"] for report in reports)
        yield Figure(f"fmax_{domain}", least, "MHz", MHZ.get(domain, 125), is_least=True)
    yield Figure("luts", max(report["area"]["lut4"]["percent"] for report in reports), "%", 80)
