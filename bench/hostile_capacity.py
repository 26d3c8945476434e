# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Capacity and dispersion rate of trains through loaded hops, against queues that are worked out apart."""

from collections.abc import Callable, Iterator

import numpy as np
from lindley import BITS, LENGTH, LINE_RATE, SLOT_NS, TICK_NS, Floats, Hop, stamps, through

from liteprobe.host.analysis import capacity, summary, theory
from liteprobe.sim.drivers.tools.figures import Figure, row

SEED = 13
TRAINS = 50  # Of an experiment.
BATCH = 50  # Experiments that are worked out at once.
COUNTS = (2, 10, 100)
LOADS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
CLAIM_LOADS = (0.0, 0.1, 0.3, 0.5)  # At which a capacity must be had in nine experiments of ten.
#: The hops at a load: which of them is the narrow one, and which have other traffic.
PATHS: dict[str, Callable[[float], tuple[Hop, ...]]] = {
    "one_hop": lambda load: ((1e9, load),),
    "two_hops": lambda load: ((1e9, load), (1e9, load)),
    "narrow_first": lambda load: ((1e8, 0.0), (1e9, load)),
    "narrow_last": lambda load: ((1e9, load), (1e8, 0.0)),
    "narrow_loaded_first": lambda load: ((1e8, load), (1e9, load)),
    "narrow_loaded_last": lambda load: ((1e9, load), (1e8, load)),
}


def claims(path: str, is_full: bool) -> Iterator[Figure]:
    """Claims of capacity of one path: how many are off by more than 0.1 %, and how many there are."""
    experiments = 500 if is_full else 100
    random = np.random.default_rng(SEED)
    for count in COUNTS:
        wrong, made, easy = 0, 0, 0
        for load in LOADS:
            hops = PATHS[path](load)
            truth = min(rate for rate, _ in hops)
            departures, arrivals = through(hops, experiments * TRAINS, count, random)
            sent, came = (stamps(times).reshape(experiments, -1) for times in (departures, arrivals))
            numbers = np.arange(TRAINS * count)
            for tx, rx in zip(sent, came, strict=True):
                found = capacity.pair_capacity(numbers, count, tx, rx, LENGTH).bps
                made += found is not None
                easy += found is not None and load in CLAIM_LOADS
                wrong += found is not None and abs(found / truth - 1) > 1e-3
        yield Figure(f"capacity_wrong_{path}_{count}", wrong, f"of {made} claims", 0)
        share = 100 * easy / experiments / len(CLAIM_LOADS)
        yield Figure(f"capacity_had_{path}_{count}", share, "% up to load 0.5", 90, True)


def rates_of(arrivals: Floats) -> Floats:
    """Return the dispersion rate of each train (b/s) by its stamps, worked out here."""
    ticks = stamps(arrivals) // TICK_NS
    spans = (ticks[:, -1] - ticks[:, 0]).astype(np.float64) * TICK_NS
    return np.asarray((arrivals.shape[1] - 1) * BITS * 1e9 / spans)


def expected(hops: tuple[Hop, ...], load: float, count: int, rates: Floats) -> float:
    """Return the expectation of the rate: theory on one hop, elsewhere the mean of all trains that were worked out."""
    return theory.expected_dispersion_rate(LINE_RATE, load, count) if len(hops) == 1 else float(rates.mean())


def intervals(path: str, is_full: bool) -> Iterator[Figure]:
    """Yield how often the 95 % interval of the mean dispersion rate holds its expectation.

    More than 500 experiments at a load, which would scatter by 1 % themselves.
    """
    experiments = 2000 if is_full else 1000
    random = np.random.default_rng(SEED)
    for count in COUNTS:
        worst, off, total, runs = 0.0, 0.0, 0, 0
        for load in (load for load in LOADS if load):
            hops = PATHS[path](load)
            parts = [through(hops, BATCH * TRAINS, count, random)[1] for _ in range(experiments // BATCH)]
            rates = np.concatenate([rates_of(part) for part in parts])
            known = expected(hops, load, count, rates)
            held = 0
            for found in map(summary.rates, rates.reshape(experiments, TRAINS)):
                low, high = found["ci95_low"], found["ci95_high"]
                held += low is not None and high is not None and low <= known <= high
            worst = max(worst, abs(100 * held / experiments - 95))
            off = max(off, abs(float(rates.mean()) - known) / float(rates.std() / np.sqrt(len(rates))))
            total, runs = total + held, runs + experiments
        yield Figure(f"interval_holds_least_{path}_{count}", 100 * total / runs, "%", 93, True)
        yield Figure(f"interval_holds_most_{path}_{count}", 100 * total / runs, "%", 97)
        yield Figure(f"interval_worst_load_{path}_{count}", worst, "% off 95", 2)
        if len(PATHS[path](0.0)) == 1:
            yield Figure(f"expectation_off_theory_{path}_{count}", off, "standard errors", 4)


@row("hostile")
def test_capacity(is_full: bool) -> Iterator[Figure]:
    """Capacity where it is claimed, and the interval of the dispersion rate, on one and two hops.

    Left out: intervals at load 0 (6 paths x 3 counts), where nothing scatters, and intervals of all paths but one hop
    and a narrow link that comes first, where a narrow link later on keeps its queue, and nothing scatters, either.
    """
    assert theory.slot_ns(LENGTH) == SLOT_NS
    for path in PATHS:
        yield from claims(path, is_full)
    for path in ("one_hop", "narrow_first"):
        yield from intervals(path, is_full)
