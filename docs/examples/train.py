# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends one packet train and says what came of it: loss, rate, one-way delay."""

import sys

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.analysis.summary import row


def main(url: str = "sim://switch?latency=3us&cpu=0", length: str = "1514", count: str = "100") -> None:
    """Send ``count`` frames of ``length`` octets back to back; by default through a simulated switch."""
    with Probe(url) as probe:
        result = probe.train(TrainProgram(int(length), int(count)))
        figures = row(result)
        delay, rate = figures["owd_ns"], figures["dispersion_rate_bps"]["mean"]
        print(f"{result.sent} sent, {result.late} late, {len(result.records)} received, {figures['lost']} lost")
        print(f"rate {rate / 1e6:.3f} Mb/s on the wire")
        print(f"delay {delay['min']} to {delay['max']} ns, mean {delay['mean']:.1f} ns")
        print(f"a delay is known to {result.uncertainty_ns:.0f} ns; the clock is {result.clock_state}")


if __name__ == "__main__":
    main(*sys.argv[1:])
