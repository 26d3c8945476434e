# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Computes waits and losses by the theory of queues. Times in service times of a frame, where nothing else is said."""

from math import comb, exp, factorial, floor

import numpy as np


def md1_wait(load: float) -> float:
    """Return the mean wait of Poisson arrivals at a server of constant time (M/D/1)."""
    return load / (2 * (1 - load))


def md1_variance(load: float) -> float:
    """Return the variance of that wait."""
    return load / (3 * (1 - load)) + load**2 / (4 * (1 - load) ** 2)


def md1_at_most(load: float, wait: float) -> float:
    """Return the share of arrivals that wait no longer.

    Source: C. D. Crommelin, "Delay probability formulae when the holding times are constant", 1932.
    """
    terms = ((-load * (wait - i)) ** i / factorial(i) * exp(load * (wait - i)) for i in range(floor(wait) + 1))
    return (1 - load) * sum(terms)


def md1_wait_beyond(load: float, spared: float) -> float:
    """Return the mean of that part of the wait that is beyond ``spared``."""
    steps = np.linspace(0, spared, max(2, round(spared * 2000) + 1))
    beyond = [1 - md1_at_most(load, float(step)) for step in steps]
    return md1_wait(load) - float(np.trapezoid(beyond, steps))


def md1k_loss(load: float, places: int) -> float:
    """Return the share of Poisson arrivals that find all places taken; the one of the frame in service is among them."""
    arrivals = [exp(-load) * load**j / factorial(j) for j in range(places + 1)]
    found = [1.0]
    for j in range(places - 1):
        rest = sum(found[i] * arrivals[j - i + 1] for i in range(1, j + 1))
        found.append((found[j] - found[0] * arrivals[j] - rest) / arrivals[0])
    return 1 - 1 / (found[0] / sum(found) + load)


def ndd1_beyond(sources: int, period: float, wait: float) -> float:
    """Return the share of times at which the work of periodic sources of random phases is more than ``wait``.

    Source: J. W. Roberts, J. T. Virtamo, "The superposition of periodic cell arrival streams in an ATM multiplexer", 1991.
    """
    total = 0.0
    for n in range(floor(wait) + 1, sources + 1):
        part = (n - wait) / period
        rest = (period - sources + wait) / (period - n + wait)
        total += comb(sources, n) * part**n * (1 - part) ** (sources - n) * rest
    return total


def residual(rates: list[float], times: list[float]) -> float:
    """Return the mean rest of the service that a Poisson arrival finds: frames of several kinds, of constant times."""
    return sum(rate * time**2 for rate, time in zip(rates, times, strict=True)) / 2


def priority_waits(rates: tuple[float, float], times: tuple[float, float]) -> tuple[float, float]:
    """Return the mean waits of two kinds of Poisson arrivals, the first one of strict priority."""
    rest = residual(list(rates), list(times))
    first = rates[0] * times[0]
    load = first + rates[1] * times[1]
    return rest / (1 - first), rest / ((1 - first) * (1 - load))
