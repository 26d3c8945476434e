# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The device on the bench: a probe sends the same patterns to it, and the same is expected of what comes back.

By default the probe is a simulated one whose wire is such a hop; with a board, connect the device to its two ports.
"""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from patterns import PATTERNS, check

from liteprobe.host import Probe

URL = "sim://switch?latency=3us&preset=tester&cpu=0"


def main(url: str = URL, port: str = "0") -> None:
    """Send the patterns from a port, and check what came of each."""
    with Probe(url) as probe:
        result = probe.send([replace(stream, port=int(port)) for stream in PATTERNS]).result()
    for row in result.rows:
        assert row.latency is not None and row.received is not None and row.lost is not None
        delays_ns = [row.latency.least_ns, row.latency.most_ns]
        check(row.stream, row.sent, row.received, row.lost, delays_ns)
        print(f"{row.name:9} {row.received} of {row.sent} frames, {delays_ns[0]} to {delays_ns[1]} ns: as expected")


if __name__ == "__main__":
    main(*sys.argv[1:])
