# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packet trains through queues, by the recursion of Lindley: the reference that knows nothing of the code under test."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LENGTH = 1514  # Octets without FCS, of the trains and of all other traffic.
BITS = 8 * (LENGTH + 24)
LINE_RATE = 1e9
SLOT_NS = BITS / LINE_RATE * 1e9
TICK_NS = 8
HISTORY = 200  # Frame times of other traffic before a train: the queue is as it would be after a long time.

Hop = tuple[float, float]  # Rate (b/s), load of other traffic.


def sent(trains: int, count: int, random: np.random.Generator) -> Floats:
    """Return when frames back to back are sent (ns), shape (trains, count); each train has a time of its own."""
    starts: Floats = 1e9 * np.arange(trains)[:, None] + random.uniform(0, 1e6, (trains, 1))
    return starts + SLOT_NS * np.arange(count)


def passed(arrivals: Floats, hop: Hop, random: np.random.Generator) -> Floats:
    """Return when frames leave a hop (ns), of frames that reach it in order, shape (trains, count).

    Other traffic is Poisson, of frames of the same length, and of its own for each train.

    Source: D. V. Lindley, "The theory of queues with a single server", 1952: each frame leaves a service time after
    it came or after the frame before it left, whichever is later.
    """
    rate, load = hop
    service = BITS / rate * 1e9
    begins, ends = arrivals[:, 0] - HISTORY * service, arrivals[:, -1]
    numbers = random.poisson(load * (ends - begins) / service) if load else np.zeros(len(arrivals), int)
    others = random.uniform(0, 1, (len(arrivals), int(numbers.max())))
    others = begins[:, None] + others * (ends - begins)[:, None]
    others[np.arange(others.shape[1]) >= numbers[:, None]] = np.inf
    both = np.concatenate([arrivals, others], axis=1)
    order = np.argsort(both, axis=1, kind="stable")
    place = np.arange(both.shape[1])
    origin = arrivals[:, :1]
    come = np.take_along_axis(both, order, axis=1) - origin
    leave = np.maximum.accumulate(come - place * service, axis=1) + (place + 1) * service
    left = np.empty_like(both)
    np.put_along_axis(left, order, leave + origin, axis=1)
    return left[:, : arrivals.shape[1]]


def stamps(times: Floats) -> NDArray[np.uint64]:
    """Return times as a probe stamps them: the tick in which they are."""
    return (np.floor(times / TICK_NS) * TICK_NS).astype(np.uint64)


def through(hops: Sequence[Hop], trains: int, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return when the frames of trains were sent and came (ns), each of shape (trains, count)."""
    departures = sent(trains, count, random)
    times = departures
    for hop in hops:
        times = passed(times, hop, random)
    return departures, times
