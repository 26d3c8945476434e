# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts a network that isn't there between two ports, in netem's words, and prints what became of the frames."""

import sys

from liteprobe.host import Probe
from liteprobe.host.run.emulate import have_done
from liteprobe.host.traffic.network.netem import from_netem


def main(url: str = "sim://emulator?files=2&octets=3000", there: str = "delay 1ms", back: str = "delay 500us") -> None:
    """Emulate until the stations have done all; by default a simulated web client fetches two files through it."""
    network, notes = from_netem(there, back)
    for note in notes:
        print(f"note: {note}")
    with Probe(url) as probe, probe.emulate(network) as emulation:
        stations = probe.link.stations
        result = emulation.wait(
            seconds=None if stations else 10.0,
            look_s=0.001 if stations else 1.0,
            is_done=lambda look: stations is not None and have_done(stations, look),
        )
    for way in result.last.directions:
        for one in way.classes:
            counts, delays = one.counts, one.delays
            print(
                f"{way.way}: {counts.arrived} arrived, {counts.sent} sent, {counts.dropped} dropped, {counts.late} late"
            )
            print(f"  delay {delays.least_ns or 0:.0f} to {delays.most_ns or 0:.0f} ns")
    if result.stations:
        print(result.stations.sentence)


if __name__ == "__main__":
    main(*sys.argv[1:])
