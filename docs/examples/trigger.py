# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Keeps nothing until a frame matches; then what came up to 100 us before it and up to 50 us after it."""

import sys

from liteprobe.host import CaptureRequest, Headers, Probe, Trace, TrainProgram

BEFORE_NS, AFTER_NS = 100_000, 50_000


def main(
    url: str = "sim://cable?delay=1us&preset=tester&cpu=0", path: str = "near.pcapng", expression: str = "udp port 53"
) -> None:
    """Wait for ``expression``; by default port 1 sends some, and port 0 other traffic."""
    with Probe(url) as probe:
        start_ns = probe.timebase.now_ns + 5_000_000  # When the capture has long begun.
        probe.launch(TrainProgram(200, 100, interval_ns=10_000.0, start_time_ns=start_ns), transmit=0)
        alarm = TrainProgram(
            60, 3, interval_ns=100_000.0, start_time_ns=start_ns + 605_000, headers=Headers(destination_port=53)
        )
        probe.launch(alarm, transmit=1)
        request = CaptureRequest(
            write=path,
            trigger=expression,
            before_ns=BEFORE_NS,
            after_ns=AFTER_NS,
            host_trigger=url.startswith("sim"),  # Simulated, the looks at the probe's own trigger take seconds.
        )
        found = probe.capture(request)
        print(f"{found.frames} frames around {expression}, {Trace.from_pcap(path).summary().duration_s * 1e6:.1f} us")


if __name__ == "__main__":
    main(*sys.argv[1:])
