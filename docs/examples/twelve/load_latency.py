# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the delay of Poisson traffic over its load."""

import sys

from liteprobe.host import Fixed, Interval, Probe, Stream

with Probe(sys.argv[1] if len(sys.argv) > 1 else "sim://switch?rate=400M&preset=tester") as probe:
    for load in (0.1, 0.2, 0.3, 0.36):
        stream = Stream("poisson", 1, Fixed(512), Interval(share=load, exponential=True), count=500)
        row = probe.send([stream]).result()["poisson"]
        if row.mean and row.p99:
            print(
                f"{load:4.0%} of the line: mean {row.mean:,.0f} ns, p99 {row.p99:,.0f} ± {row.p99.bounds.error:,.0f} ns"
            )
