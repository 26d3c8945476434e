# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends two streams from one port at once, stops one of them on the way, and prints what came of each."""

import sys

from liteprobe.host import IMIX, Fixed, Interval, Probe, Stream


def main(url: str = "sim://switch?latency=3us&preset=tester&cpu=0", port: str = "0") -> None:
    """Send a voice call beside the Internet mix; by default through a simulated switch."""
    voice = Stream("voice", 1, Fixed(214), Interval(pps=20_000), port=int(port))
    bulk = Stream("bulk", 2, IMIX, Interval(share=0.5), count=60, port=int(port), fill="prbs")
    with Probe(url) as probe:
        traffic = probe.send([voice, bulk])
        probe.wait(0.002)
        traffic.stop("voice")  # The other one goes on until it has sent its 60 frames.
        result = traffic.result()
        for row in result.rows:
            assert row.latency is not None
            print(
                f"{row.name}: {row.sent} sent, {row.received} received, {row.lost} lost, {row.delayed} after their tick"
            )
            print(f"  delay {row.latency.least_ns} to {row.latency.most_ns} ns, bit errors: {row.bit_errors}")


if __name__ == "__main__":
    main(*sys.argv[1:])
