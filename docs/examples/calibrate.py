# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures what cables and PHYs add to a delay, as a line over the frame length, and takes it out of a later measurement."""

import sys

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.analysis.calibration import calibrate
from liteprobe.host.analysis.summary import row

LENGTHS = (60, 512, 1514)
CABLE_NS = 5.0  # Of the 1 m between the ports, which stays in; what is taken out stands for PHYs here.


def main(url: str = "sim://cable?delay=1us&cpu=0") -> None:
    """Calibrate with a cable between the two ports, and correct the delays of a train; by default on a simulated cable."""
    with Probe(url) as probe:
        rows = [row(probe.train(TrainProgram(length, count=20, repeats=3))) for length in LENGTHS]
        found = calibrate(rows, slope=0.0, intercept=CABLE_NS)
        slope, intercept = found.line.interval()
        print(f"slope {found.line.slope:.4f} ± {slope:.4f} ns an octet, {found.line.points} trains")
        print(f"intercept {found.line.intercept:.2f} ± {intercept:.2f} ns")
        raw = row(probe.train(TrainProgram(256, count=100)))
        corrected = found.correct(raw)
        print(f"256 octets: {raw['owd_ns']['mean']:.2f} ns raw, {corrected['owd_ns']['mean']:.2f} ns corrected")


if __name__ == "__main__":
    main(*sys.argv[1:])
