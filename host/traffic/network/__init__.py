# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A degraded network between two ports, as data: its directions and classes, and the words that describe it to a probe."""

from liteprobe.host.traffic.network.background import Background
from liteprobe.host.traffic.network.bandwidth import BandwidthTrace
from liteprobe.host.traffic.network.delays import Jitter, Reorder
from liteprobe.host.traffic.network.losses import Bernoulli, GilbertElliott, LossList, LossPattern
from liteprobe.host.traffic.network.network import Bucket, Change, Direction, Network, Queue, Red, TrafficClass

__all__ = [
    "Background",
    "BandwidthTrace",
    "Bernoulli",
    "Bucket",
    "Change",
    "Direction",
    "GilbertElliott",
    "Jitter",
    "LossList",
    "LossPattern",
    "Network",
    "Queue",
    "Red",
    "Reorder",
    "TrafficClass",
]
