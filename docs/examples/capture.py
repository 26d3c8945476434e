# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Captures some frames that a filter lets pass, with their stamps, into a file that Wireshark opens."""

import sys

from liteprobe.host import CaptureRequest, Headers, Probe, TrainProgram


def main(
    url: str = "sim://cable?delay=1us&preset=tester&cpu=0", path: str = "dns.pcapng", expression: str = "udp port 53"
) -> None:
    """Capture 20 frames of ``expression``; by default of traffic that the probe sends itself, to two UDP ports."""
    with Probe(url) as probe:
        start_ns = probe.timebase.now_ns + 5_000_000  # When the capture has long begun.
        for port, udp_port in ((0, 53), (1, 443)):
            headers = Headers(destination_port=udp_port)
            program = TrainProgram(200, 50, interval_ns=10_000.0, start_time_ns=start_ns, headers=headers)
            probe.launch(program, transmit=port)
        found = probe.capture(CaptureRequest(write=path, filter=expression, count=20))
        complete = "complete" if found.is_complete else "not complete"
        print(f"{found.frames} frames, {found.octets} octets in {path}, {complete}")


if __name__ == "__main__":
    main(*sys.argv[1:])
