# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the one-way delay from one probe to another and back; the clock of each follows a PPS."""

import sys

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.run.trains import Route
from liteprobe.host.serve.discipline import Discipline, settle
from liteprobe.host.suites.owd import OneWay

PAIR = "sim://pair?oscillators=20,-30&delay=1us&pps=1ms&cpu=0"
PERIODS = 8  # Of the PPS, until both clocks are locked.


def main(first: str = f"{PAIR}&probe=a", second: str = f"{PAIR}&probe=b") -> None:
    """Measure both ways at once; by default between two simulated probes whose oscillators are 50 ppm apart."""
    with Probe(first) as a, Probe(second) as b:
        servos = [Discipline(a), Discipline(b)]  # Not needed on boards: their firmware disciplines the clock.
        settle(servos, PERIODS * servos[0].period_ns / 1e9)

        def tend() -> None:
            for servo in servos:
                servo.tend()

        program = TrainProgram(60, count=20, interval_ns=10_000.0)
        there, back = OneWay([Route(program, a, b), Route(program, b, a, 1, 1)], tend=tend).measure()
        for name, way in (("there", there), ("back", back)):
            mean, bound = way.owd_ns.mean(), way.train.uncertainty_ns
            print(
                f"{name:5} {len(way.owd_ns)} of {way.train.sent}: {mean:.1f} ± {bound:.1f} ns, {way.train.clock_state}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
