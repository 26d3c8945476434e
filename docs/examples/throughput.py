# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Raises the rate until frames are lost: the throughput of what is between two ports (RFC 2544, section 26.1)."""

import sys

from liteprobe.host import Fixed, Interval, Probe, Stream


def throughput(probe: Probe, length: int, count: int = 400, port: int = 0) -> float:
    """Return the greatest share of the line, to 0.1 %, at which none of ``count`` frames is lost.

    A queue of n frames lets them all pass up to its rate / (1 - n / count): the more frames, the nearer.
    """
    good, bad, share = 0.0, 1.001, 1.0
    while bad - good > 0.001:
        trial = Stream("trial", 1, Fixed(length), Interval(share=share), count, port=port)
        if probe.send([trial]).result()["trial"].lost:
            bad = share
        else:
            good = share
        share = round((good + bad) / 2, 4)
    return good


def main(
    url: str = "sim://switch?rate=400M&queue=4&preset=tester&cpu=0", lengths: str = "60,512", port: str = "0"
) -> None:
    """Print the throughput of a switch; by default of a simulated one whose output is at 400 Mb/s."""
    with Probe(url) as probe:
        for length in map(int, lengths.split(",")):
            print(f"{length:5} octets: {throughput(probe, length, port=int(port)):.1%} of the line")


if __name__ == "__main__":
    main(*sys.argv[1:])
