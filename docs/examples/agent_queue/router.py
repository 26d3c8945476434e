# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A device under test with an agent: an emulated router whose output queue is as long as a script sets it.

Frames come as a Poisson process and take the same time each on the output; one that finds the queue full is dropped. Run it
with ``./run liteprobe agent run docs/examples/agent_queue/router.py``.
"""

import random
from collections import deque

from liteprobe.host.agent import Agent

SERVICE_US = 6.72  # A frame of 60 octets with its overhead, at 100 Mb/s.
FRAMES = 20_000


class Router:
    """One output with a queue.

    Attributes
    ----------
    queue_length : int
        Frames that may wait, the one that is being sent left out.
    forwarded, dropped, peak : int
        Of the last traffic: frames that left, frames that were dropped, most frames that waited.
    mean_wait_us : float
        How long frames that left had waited.
    """

    def __init__(self) -> None:
        self.queue_length = 64
        self.forwarded = self.dropped = self.peak = 0
        self.mean_wait_us = 0.0

    def take_traffic(self, load: float, seed: int = 1) -> None:
        """Take frames at a load of the output; stands for what a probe would send."""
        chance = random.Random(seed)
        leaves: deque[float] = deque()  # When each frame that is in the router will have left.
        now_us = waited_us = 0.0
        self.forwarded = self.dropped = self.peak = 0
        for _ in range(FRAMES):
            now_us += chance.expovariate(load / SERVICE_US)
            while leaves and leaves[0] <= now_us:
                leaves.popleft()
            if len(leaves) > self.queue_length:
                self.dropped += 1
                continue
            begins_us = max(now_us, leaves[-1]) if leaves else now_us
            waited_us += begins_us - now_us
            leaves.append(begins_us + SERVICE_US)
            self.forwarded += 1
            self.peak = max(self.peak, len(leaves) - 1)
        self.mean_wait_us = waited_us / max(self.forwarded, 1)


def offer(agent: Agent) -> None:
    """Offer what the router has."""
    router = Router()

    @agent.setting("queue_length", minimum=1, maximum=10_000, initial=router.queue_length)
    def set_queue_length(value: int) -> None:
        router.queue_length = value

    @agent.setting("traffic_load", minimum=0.01, maximum=2)
    def take_traffic(value: float) -> None:
        router.take_traffic(value)

    @agent.value("queue_length_now")
    def queue_length_now() -> int:
        return router.queue_length

    @agent.value("forwarded")
    def forwarded() -> int:
        return router.forwarded

    @agent.value("dropped")
    def dropped() -> int:
        return router.dropped

    @agent.value("queue_peak", interval_s=0.1)
    def peak() -> int:
        return router.peak

    @agent.value("mean_wait_us")
    def mean_wait_us() -> float:
        return router.mean_wait_us
