# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the set-up itself adds to a delay, through a loopback."""

import argparse

from liteprobe.host.analysis.calibration import Calibration, calibrate
from liteprobe.host.analysis.rows import Row
from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import STDOUT
from liteprobe.host.cli.commands.train import measure
from liteprobe.host.cli.output import write_text
from liteprobe.host.errors import ProbeError
from liteprobe.host.suites import sweep
from liteprobe.host.traffic.train import TrainProgram


def run(args: argparse.Namespace) -> None:
    """Measure, fit, print and write."""
    template = TrainProgram(length=args.length[0], count=args.count, repeats=args.repeat)
    programs = sweep.programs_for(args.length, [args.count], template)
    sweep.check_programs(programs)
    request = sweep.SweepRequest("calibration", args.probe, programs, args.map, args.transmit, args.receive)
    rows: list[Row] = []
    try:
        measure(request, lambda measured: rows.append(measured.rows[-1]))
    except (ProbeError, KeyboardInterrupt) as end:
        if len(rows) > 1:  # A calibration that was written before is better than one that was cut short.
            _show(args, calibrate(rows, args.slope, args.intercept))
            end.args = (f"{end}; what is shown is of {len(rows)} lengths of {len(programs)}, and no file has it",)
        raise
    found = calibrate(rows, args.slope, args.intercept)
    if args.json != STDOUT:
        _show(args, found)
    if args.json:
        write_text(args.json, found.text())


def _show(args: argparse.Namespace, found: Calibration) -> None:
    line = found.line
    slope_reach, intercept_reach = line.interval()
    shown = tables.table("", "measured", "+- 95 %", "theory", "difference", "unit")
    for name, value, reach, theory, unit in (
        ("slope", line.slope, slope_reach, args.slope, "ns/B"),
        ("intercept", line.intercept, intercept_reach, args.intercept, "ns"),
    ):
        figures = (f"{number:.4f}" for number in (value, reach, theory, value - theory))
        shown.add_row(name, *figures, unit)
    out = tables.console()
    out.print(shown)
    out.print(f"{line.points} trains; scatter about the line {line.residual_std:.3f} ns. Repeat after each link-up.")
