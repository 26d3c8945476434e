# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays a capture at its own speed and at twice of it, and compares what came."""

import sys

from liteprobe.host import Probe, Replay

if __name__ == "__main__":
    url, path = sys.argv[1:] or ("sim://cable?preset=replay", "docs/examples/office.pcapng")
    with Probe(url) as probe:
        once = probe.replay(Replay.from_pcap(path), capture="seen.pcapng")
        fast = probe.replay(Replay.from_pcap(path).stretched(0.5), capture="seen.pcapng")
    for name, result in (("as captured", once), ("twice as fast", fast)):
        print(f"{name}: {result.sent} sent, {result.lost} lost, p99 {result[0].p99} ns in {result.duration_s:.6f} s")
