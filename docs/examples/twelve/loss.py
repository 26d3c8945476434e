# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the loss over the rate (as RFC 2544, section 26.3)."""

import sys
from itertools import product

from liteprobe.host import Fixed, Interval, Probe, Stream

with Probe(sys.argv[1] if len(sys.argv) > 1 else "sim://switch?rate=400M&queue=4&preset=tester") as probe:
    for length, percent in product((60, 1514), (100, 80, 60, 40)):
        trial = Stream("trial", 1, Fixed(length), Interval(share=percent / 100), count=400)
        result = probe.send([trial]).result()
        print(f"{length:4} octets at {percent:3} %: {result.loss_ratio:.1%} lost")
