# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Patterns that are sent to the device and expected of it: the same in simulation and on the bench. They need no probe."""

from collections.abc import Sequence

from liteprobe.host import Fixed, Headers, Interval, Stream
from liteprobe.host.traffic.modifiers import Increment

LATENCY_NS = 3000
BEFORE_AND_BEHIND = (
    12  # Octets of preamble and SFD of the copy, and of the FCS: what a store-and-forward hop adds to the frame.
)

PATTERNS = [
    Stream("short", 1, Fixed(60), Interval(pps=100_000), count=30),
    Stream("long", 2, Fixed(1514), Interval(pps=30_000), count=9, start_ns=3_000),
    Stream(
        "changing", 3, Fixed(128), Interval(pps=60_000, exponential=True), 20,
        headers=Headers(vlan_tags=(5,)), modifiers=(Increment("vlan[0].id", 100), Increment("udp.source")),
    ),
]  # fmt: skip


def delay_ns(length: int) -> int:
    """Return how long a frame takes through the hop when it finds nothing before it (ns)."""
    return 8 * (length + BEFORE_AND_BEHIND) + LATENCY_NS


def check(stream: Stream, sent: int, received: int, lost: int, delays_ns: Sequence[float]) -> None:
    """Hold what was seen of a stream against what is expected: nothing lost, least delay exact, no queue but of these streams.

    ``delays_ns``: the least and the greatest, at least.
    """
    assert (sent, received, lost) == (stream.count, stream.count, 0), f"{stream.name}: {lost} of {sent} frames are lost"
    assert min(delays_ns) == delay_ns(stream.length.least), f"{stream.name}: least delay of {min(delays_ns)} ns"
    waits_ns = sum(delay_ns(other.length.greatest) for other in PATTERNS)
    assert max(delays_ns) <= delay_ns(stream.length.greatest) + waits_ns, f"{stream.name}: {max(delays_ns)} ns"
