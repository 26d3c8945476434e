# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the histogram of delay of a port while frames arrive, as bars; the probe sorts every frame, and keeps none."""

import sys

from liteprobe.cores.formats import BinKind
from liteprobe.host import Probe, TrainProgram
from liteprobe.host.measure.monitor import BinSetting, Histogram, Monitor

BARS = " ▁▂▃▄▅▆▇█"


def bars(histogram: Histogram) -> str:
    """Return a bar for each bin up to the last that has a value, the highest as high as a line."""
    counts = histogram.counts[: max(histogram.counts.nonzero()[0], default=-1) + 1]
    return "".join(BARS[-(-8 * count // max(counts))] for count in counts)


def main(url: str = "sim://switch?latency=3us&preset=tester&cpu=0", looks: str = "3") -> None:
    """Look some times while trains of three lengths come, then once more; by default through a simulated switch."""
    with Probe(url) as probe:
        monitor = Monitor(probe, 1)
        monitor.set_bins({BinKind.DELAY: BinSetting(origin=0, shift=10)})  # 1024 ns wide.
        for length, count in ((60, 40), (700, 20), (1514, 10)):
            end_ns = probe.launch(TrainProgram(length, count, interval_ns=20_000.0), transmit=0)
            for look in range(int(looks)):
                probe.wait((end_ns - probe.timebase.now_ns) / 1e9 / (int(looks) - look) + 1e-5)
                histogram = monitor.read().histograms[0][BinKind.DELAY]
                print(f"{histogram.total:3} frames |{bars(histogram)}|")
        print({int(histogram.edges[place]): int(histogram.counts[place]) for place in histogram.counts.nonzero()[0]})


if __name__ == "__main__":
    main(*sys.argv[1:])
