# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Finds the throughput of what is between two ports: the greatest rate at which no frame is lost (RFC 2544, section 26.1)."""

import sys

from liteprobe.host import Fixed, Interval, Probe, Stream

with Probe(sys.argv[1] if len(sys.argv) > 1 else "sim://switch?rate=400M&queue=4&preset=tester") as probe:
    good, bad = 0, 1001  # Tenths of a per cent of the line.
    while bad - good > 1:
        tried = (good + bad) // 2
        trial = Stream("trial", 1, Fixed(512), Interval(share=tried / 1000), count=400)
        good, bad = (good, tried) if probe.send([trial]).result().lost else (tried, bad)
print(f"throughput {good / 10} % of the line")
