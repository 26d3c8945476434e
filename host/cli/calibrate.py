# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what the set-up itself adds to a delay, through a loopback."""

import argparse

from liteprobe.host import sweep
from liteprobe.host.analysis.calibration import calibrate
from liteprobe.host.cli import tables
from liteprobe.host.cli.arguments import add_ports, add_probe, output, time_ns, whole, wholes
from liteprobe.host.cli.train import measure
from liteprobe.host.train import TrainProgram

HELP = "measure the set-up's own delay through a loopback: a line over the frame length, against theory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what this command takes."""
    add_probe(parser)
    add_ports(parser)
    group = parser.add_argument_group("trains")
    lengths = list(sweep.PAPER_LENGTHS)
    group.add_argument("--length", metavar="L,L[,L...]", type=wholes, default=lengths, help="octets without FCS")
    group.add_argument("--count", metavar="N", type=whole, default=100, help="frames in a train (default: 100)")
    group.add_argument("--repeat", metavar="R", type=whole, default=10, help="trains of each length (default: 10)")
    theory = parser.add_argument_group("theory of the calibrated path")
    theory.add_argument(
        "--slope",
        metavar="NS/B",
        type=float,
        default=0.0,
        help="0 for a wire (default), 8 for each store-and-forward hop",
    )
    theory.add_argument(
        "--intercept", metavar="TIME", type=time_ns, default=0.0, help="delay of the wire itself (default: 0)"
    )
    parser.add_argument("--json", metavar="FILE", type=output, help="write the calibration, for train --calibration")


def run(args: argparse.Namespace) -> None:
    """Measure, fit, print and write."""
    template = TrainProgram(length=args.length[0], count=args.count, repeats=args.repeat)
    programs = sweep.programs_for(args.length, [args.count], template)
    sweep.check_programs(programs)
    request = sweep.SweepRequest("calibration", args.probe, programs, args.map, args.transmit, args.receive)
    found = calibrate(measure(request).rows, args.slope, args.intercept)
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
    if args.json:
        found.save(args.json)
