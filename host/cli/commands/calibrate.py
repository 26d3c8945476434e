# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the delay that the set-up itself adds, through a loopback."""

from __future__ import annotations

import argparse
import json

from liteprobe.host.base.defaults import FIGURES_OF_TRAINS, PAPER_LENGTHS
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.base.output import STDOUT, outputs, write_text
from liteprobe.host.cli.arguments import add, add_data, add_expect, add_lengths, add_ports, add_probe, is_plain
from liteprobe.host.cli.commands.train import measure
from liteprobe.host.cli.lazy import lazily
from liteprobe.host.cli.values import frame_sizes, lengths, number, time_ns, whole

with lazily():
    from liteprobe.host.analysis import calibration
    from liteprobe.host.analysis import rows as figures
    from liteprobe.host.cli import results, tables, verdicts
    from liteprobe.host.report import files
    from liteprobe.host.suites import sweep
    from liteprobe.host.traffic import train

HELP = "measure the set-up's own delay through a loopback: a line over the frame length, against theory"
EXAMPLES = """
liteprobe calibrate --probe sim://loopback --repeat 2
liteprobe calibrate --probe 192.168.1.50 --json calibration.json
liteprobe calibrate --probe 'sim://switch?latency=3us' --slope 8 --length 60,512,1514 --count 10 --repeat 2
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_ports(parser)
    group = parser.add_argument_group("trains")
    usual = ",".join(map(str, PAPER_LENGTHS))
    add_lengths(group, "L,L[,L...]", (lengths, frame_sizes), f"octets without FCS (default: {usual})", [*PAPER_LENGTHS])
    add(group, "--count N", whole, "frames in a train (default: 100)", 100)
    add(group, "--repeat R", whole, "trains of each length (default: 10)", 10)
    theory = parser.add_argument_group("theory of the calibrated path")
    add(theory, "--slope NS/B", number, "0 for a wire (default), 8 for each store-and-forward hop", 0.0)
    add(theory, "--intercept TIME", time_ns, "delay of the wire itself, like 5ns (default: 0)", 0.0)
    add_data(parser, "the calibration, for train --calibration,", "length")
    add_expect(parser, FIGURES_OF_TRAINS)


def run(args: argparse.Namespace) -> None:
    """Measure, fit, print and write."""
    template = train.TrainProgram(length=args.length[0], count=args.count, repeats=args.repeat)
    programs = sweep.programs_for(args.length, [args.count], template)
    sweep.check_programs(programs)
    request = sweep.SweepRequest("calibration", args.probe, programs, args.map, args.transmit, args.receive, args.steal)
    rows: list[figures.Row] = []
    looks = results.looks_of(args)

    def take(measured: sweep.Sweep) -> None:
        rows.append(measured.rows[-1])
        looks.write(dict(rows[-1]))

    try:
        measured = measure(args, request, take)
    except (ProbeError, KeyboardInterrupt) as end:
        if len(rows) > 1:  # A calibration that was written before is better than one that was cut short.
            found = calibration.calibrate(rows, args.slope, args.intercept)
            end.args = (f"{end}; what is shown is of {len(rows)} lengths of {len(programs)}, and no file has it",)
            with outputs(end) as out:
                out.write(STDOUT, lambda: _show(args, found))
        raise
    found = calibration.calibrate(rows, args.slope, args.intercept)
    verdict = verdicts.judged(args, measured)
    with outputs() as out:
        if not is_plain(args):
            out.write(STDOUT, lambda: _show(args, found))
        out.write(args.json, lambda: write_text(args.json, found.text()))
        looks.end(out, json.loads(found.text()))
        out.write(args.csv, lambda: write_text(args.csv, files.csv_of([files.flat(row) for row in rows])))
        if verdict is not None:
            verdicts.publish(args, verdict, out)
    if verdict is not None:
        verdict.require()


def _show(args: argparse.Namespace, found: calibration.Calibration) -> None:
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
