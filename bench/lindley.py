# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Packet trains through queues, by the recursion of Lindley: the reference that knows nothing of the code under test."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

OVERHEAD = 24  # Octets of FCS, preamble, SFD and IFG.
LINE_RATE = 1e9
TICK_NS = 8
GUARD = 30  # Frame times of other traffic between two trains, at the least: they meet other frames.
BURST = 10  # Frames back to back, in the mean, of traffic that is on and off.
SHAPE = 1.5  # Of Pareto's distribution: the times between frames have a mean, and no variance.
IMIX = (60,) * 7 + (590,) * 4 + (1514,)
MODELS = ("poisson", "cbr", "step", "onoff", "pareto")  # ``step``: periodic, and each train meets the same phase.


def slot_ns(octets: float, rate: float = LINE_RATE) -> float:
    """Return the time (ns) that a frame of so many octets without FCS takes."""
    return float((octets + OVERHEAD) * 8e9 / rate)


@dataclass(frozen=True)
class Hop:
    """A queue of a rate (b/s), with other traffic of a load (of that rate), of frames of these lengths (octets)."""

    rate: float = LINE_RATE
    load: float = 0.0
    sizes: tuple[int, ...] = (1514,)
    model: str = "poisson"

    @property
    def mean_ns(self) -> float:
        """Mean time between frames of other traffic; with ``step``, their sizes repeat in order."""
        return slot_ns(float(np.mean(self.sizes)), self.rate) / self.load

    @property
    def period_ns(self) -> float:
        """Time after which traffic of the model ``step`` is the same."""
        return self.mean_ns * len(self.sizes)

    def traffic(self, until_ns: float, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return when other frames come, from 0 on, and how long each takes (ns)."""
        count = int(until_ns / self.mean_ns * 1.05) + 2000
        sizes = np.resize(self.sizes, count) if self.model == "step" else random.choice(self.sizes, count)
        services = (sizes + OVERHEAD) * 8e9 / self.rate
        if self.model in ("cbr", "step"):
            between = np.full(count, self.mean_ns)
            between[0] = 0 if self.model == "step" else random.uniform(0, self.mean_ns)
        elif self.model == "poisson":
            between = random.exponential(self.mean_ns, count)
        elif self.model == "pareto":
            between = (random.pareto(SHAPE, count) + 1) * self.mean_ns * (SHAPE - 1) / SHAPE
        else:
            pauses = random.exponential(BURST * (1 / self.load - 1) * float(services.mean()), count)
            between = np.concatenate([[0.0], services[:-1]]) + pauses * (random.random(count) < 1 / BURST)
        return np.cumsum(between), services


def passed(arrivals: Floats, hop: Hop, length: int, random: np.random.Generator) -> Floats:
    """Return when the frames of trains leave a hop (ns), shape (trains, count), of those that reach it in this order.

    Each train meets the hop as other traffic alone has left it, whatever the other trains do.

    Source: D. V. Lindley, "The theory of queues with a single server", 1952: each frame leaves a service time after
    it came or after the frame before it left, whichever is later. So it leaves at its own work and that of all before
    it, after the latest (time of arrival less work until then).
    """
    own = slot_ns(length, hop.rate)
    own_before = own * np.arange(arrivals.shape[1])
    if not hop.load:
        return np.asarray(np.maximum.accumulate(arrivals - own_before, axis=1) + own_before + own)
    times, services = hop.traffic(float(arrivals[:, -1].max()), random)
    work = np.concatenate([[0.0], np.cumsum(services)])
    slack = times - work[:-1]
    places = np.searchsorted(times, arrivals, side="right")
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(slack)])[places[:, :1]]
    if arrivals.shape[1] > 1:
        starts, ends = places[:, :-1].ravel(), places[:, 1:].ravel()
        between = np.maximum.reduceat(np.append(slack, -np.inf), np.stack([starts, ends], 1).ravel())[::2]
        between[starts == ends] = -np.inf
        latest = np.concatenate([latest, between.reshape(len(arrivals), -1)], axis=1)
    latest = np.maximum(latest, arrivals - work[places]) - own_before
    return np.asarray(np.maximum.accumulate(latest, axis=1) + work[places] + own_before + own)


def sent(trains: int, count: int, length: int, hops: Sequence[Hop], random: np.random.Generator) -> Floats:
    """Return when frames back to back are sent (ns), in ticks, shape (trains, count)."""
    span = slot_ns(length) * count
    step = max([hop.period_ns for hop in hops if hop.load and hop.model == "step"], default=0.0)
    guard = max([GUARD * hop.mean_ns for hop in hops if hop.load], default=0.0)
    apart = span + guard
    if step:
        apart = np.ceil(apart / step) * step
        starts = 20 * apart + apart * np.arange(trains)
    else:
        starts = 20 * apart + apart * np.arange(trains) + random.uniform(0, 0.5 * guard, trains)
        starts = np.round(starts / TICK_NS) * TICK_NS
    return np.asarray(starts[:, None] + slot_ns(length) * np.arange(count))


def stamps(times: Floats) -> NDArray[np.uint64]:
    """Return times as a probe stamps them: the tick in which they are."""
    return (np.floor(times / TICK_NS) * TICK_NS).astype(np.uint64)


def through(
    hops: Sequence[Hop], trains: int, count: int, length: int, random: np.random.Generator, phase: float = 0.0
) -> tuple[Floats, Floats]:
    """Return when the frames of trains were sent and came (ns), each of shape (trains, count).

    ``phase``: of traffic that keeps step, in parts of its period.
    """
    departures = sent(trains, count, length, hops, random)
    departures += phase * max([hop.period_ns for hop in hops if hop.load and hop.model == "step"], default=0.0)
    times = departures
    for hop in hops:
        times = passed(times, hop, length, random)
    return departures, times
