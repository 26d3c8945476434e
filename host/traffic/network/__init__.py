# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A degraded network between two ports, as data: its directions and classes, and the words that describe it to a probe."""

from liteprobe.host.traffic.network.network import (
    Background,
    BandwidthTrace,
    Bernoulli,
    Bucket,
    Change,
    Codel,
    Direction,
    GilbertElliott,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Pie,
    Queue,
    Red,
    Reorder,
    TrafficClass,
)

__all__ = [
    "Background",
    "BandwidthTrace",
    "Bernoulli",
    "Bucket",
    "Change",
    "Codel",
    "Direction",
    "GilbertElliott",
    "Jitter",
    "LossList",
    "LossPattern",
    "Network",
    "Pie",
    "Queue",
    "Red",
    "Reorder",
    "TrafficClass",
]
