# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Sends for long, and keeps the figures of each round as a line of JSON."""

import json
import sys

from liteprobe.host import IMIX, Interval, Probe, Stream

url, rounds, path = sys.argv[1:] or ("sim://loopback?preset=tester", "3", "soak.jsonl")
with Probe(url) as probe, open(path, "w") as file:
    for number in range(int(rounds)):
        result = probe.send([Stream("imix", 1, IMIX, Interval(rate="500Mbit"))], seconds=0.001).result()
        file.write(json.dumps({"round": number, **result.to_dict()}) + "\n")
        print(number, result)
