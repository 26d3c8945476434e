# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Replays a capture with its own gaps, from this host while it runs; captures what comes back, with its delays."""

import sys

from liteprobe.host import Fixed, Interval, Probe, Trace


def main(url: str = "sim://cable?delay=1us&preset=replay&cpu=0", file: str = "", seen: str = "seen.pcapng") -> None:
    """Replay ``file``; without one, frames that are made up, with exponential intervals. By default over a simulated cable."""
    made = Trace.poisson(Interval(share=0.3, exponential=True), Fixed(300), 200)
    trace = Trace.from_pcap(file) if file else made
    planned = trace.summary()
    print(f"{planned.frames} frames in {1e6 * planned.duration_s:.3f} us: {planned.share:.1%} of the line")
    with Probe(url) as probe:
        result = probe.replay(trace, capture=seen)
        port = result[0]
        assert result.capture is not None
        print(f"{port.frames} sent, {port.underruns} came too late from this host, {result.capture.frames} captured")
        print(f"{port.waited} waited until the frame before had left the line, {port.late} were late")
        if delays := port.known_delays:
            print(f"delay {delays.least_ns:.0f} to {delays.most_ns:.0f} ns, mean {delays.mean_ns:.1f} ns")


if __name__ == "__main__":
    main(*sys.argv[1:])
