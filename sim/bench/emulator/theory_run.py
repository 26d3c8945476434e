# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The reference of the emulator beside the theory of queues, of loss models and of shapers.

A figure is a mean of many frames; how far it may be from what the theory says is the interval of the means of batches, of
99.9 %. What is exact is compared exactly: its ``off`` counts frames.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liteprobe.cores.formats.emulate import BackgroundKind, Outcome
from liteprobe.host.analysis.confidence import mean_interval
from liteprobe.sim.models.emulator import queueing
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.settings import Settings, bank_words

Floats = NDArray[np.float64]
Ticks = NDArray[np.int64]

CONFIDENCE = 0.999
BATCHES = 25
TICK = 1 << 16
OCTET = 100  # Ticks: a tick is 10^-5 of the service of a frame.
LENGTH = 1000
SERVICE = OCTET * LENGTH
BEFORE = 1 / 50  # Of a run, that isn't counted: queues are as after a long time.
LOADS = (0.3, 0.5, 0.8, 0.9, 0.95)
FULL_QUEUES = ((0.8, 5), (0.9, 10), (0.95, 20), (1.0, 10), (1.2, 10))

Experiment = Callable[[int], Iterator["Claim"]]  # Of so many frames.


@dataclass(frozen=True)
class Claim:
    """What the theory says of a figure, and what came.

    Attributes
    ----------
    name : str
    expected : float
    found : float
        The mean of ``samples`` values.
    reach : float
        How far the two are from each other, in halves of the interval of CONFIDENCE: at most 1.
    """

    name: str
    expected: float
    found: float
    reach: float
    samples: int


def claim(name: str, expected: float, values: Floats) -> Claim:
    """Return how a mean compares with what is expected, by the means of batches."""
    means = np.array([float(np.mean(batch)) for batch in np.array_split(values, BATCHES)])
    low, high = mean_interval(means, CONFIDENCE)
    reach = abs(expected - (low + high) / 2) / ((high - low) / 2)
    return Claim(name, expected, float(np.mean(values)), reach, len(values))


# Runs ---------------------------------------------------------------------------------------------------


def poisson(random: np.random.Generator, mean_ticks: float, count: int) -> Ticks:
    """Return the ticks of random arrivals, no two of them in one."""
    ticks = np.cumsum(random.exponential(mean_ticks, count)).astype(np.int64)
    order = np.arange(count)
    return np.asarray(np.maximum.accumulate(ticks - order) + order + 1)


def passed(
    arrivals: Sequence[tuple[int, int, int]], classes: Mapping[int, Mapping[str, int]], octet: int = OCTET
) -> Direction:
    """Return a direction through which all arrivals went."""
    one = Direction(Settings(bank_words(classes, {"octet": octet * TICK})))
    one.finish(arrivals, arrivals[-1][0] + 10**9)
    return one


def waits(one: Direction, klass: int = 0, service: int = SERVICE, unit: int = 0) -> Floats:
    """Return how long the frames of a class waited for their service, in services or units; what was refused is left out."""
    found = [f.due - f.time - service for f in one.frames if f.klass == klass and f.due is not None]
    return np.array(found, np.float64)[int(len(found) * BEFORE) :] / (unit or service)


def frames_of(ticks: Ticks, klass: int = 0, length: int = LENGTH) -> list[tuple[int, int, int]]:
    """Return arrivals of one length."""
    return [(tick, length, klass) for tick in ticks.tolist()]


# Queues -------------------------------------------------------------------------------------------------


def random_arrivals(count: int, loads: Sequence[float] = LOADS) -> Iterator[Claim]:
    """M/D/1: mean and second moment of the wait."""
    for load in loads:
        random = np.random.default_rng([1, round(100 * load)])
        found = waits(passed(frames_of(poisson(random, SERVICE / load, count)), {}))
        mean = queueing.md1_wait(load)
        yield claim(f"md1_{load}_mean", mean, found)
        yield claim(f"md1_{load}_square", queueing.md1_variance(load) + mean**2, found**2)


def full_queues(count: int, cases: Sequence[tuple[float, int]] = FULL_QUEUES) -> Iterator[Claim]:
    """M/D/1/K: losses of a queue of K - 1 frames behind the one in service."""
    for load, places in cases:
        random = np.random.default_rng([2, round(100 * load), places])
        done = passed(frames_of(poisson(random, SERVICE / load, count)), {0: {"limit_frames": places - 1}})
        lost = np.array([frame.outcome is Outcome.FULL for frame in done.frames], np.float64)
        yield claim(f"md1k_{load}_{places}", queueing.md1k_loss(load, places), lost[int(count * BEFORE) :])


def periodic_sources(
    count: int, sources: int = 20, period: float = 25, beyond: Sequence[float] = (0, 1, 2, 4)
) -> Iterator[Claim]:
    """N*D/D/1: each source sends in each period; what a frame finds is the work of the others."""
    random = np.random.default_rng(3)
    trials = count // (2 * sources)
    phases = np.sort(random.uniform(0, period * SERVICE, (trials, sources)).astype(np.int64), axis=1)
    phases += np.arange(sources)  # No two in a tick.
    around = round(period * SERVICE) + sources
    starts = np.arange(trials)[:, None] * 4 * around
    # The first period is for the queue to build up.
    ticks = np.concatenate([starts + phases, starts + around + phases], axis=1).ravel()
    done = passed(frames_of(ticks), {})
    found = (
        np.array([frame.due - frame.time - SERVICE for frame in done.frames if frame.due is not None], np.float64)
        / SERVICE
    )
    found = found.reshape(trials, 2 * sources)[:, sources:]
    for wait in beyond:
        expected = queueing.ndd1_beyond(sources - 1, period, wait)
        yield claim(f"ndd1_{sources}_{wait}", expected, (found > wait).mean(axis=1))


def one_against_constant(count: int) -> Iterator[Claim]:
    """One packet against background at constant intervals, of which it finds one at most."""
    random = np.random.default_rng(4)
    length, interval = 1500, 2 * 1500 * OCTET
    background = {"background": BackgroundKind.CONSTANT, "background_ticks": interval, "background_length": length}
    ticks = np.cumsum(random.uniform(3 * interval, 5 * interval, count // 5)).astype(
        np.int64
    )  # Some four background frames each.
    busy = length * OCTET
    found = waits(passed(frames_of(ticks, length=60), {0: background}), service=60 * OCTET, unit=busy)
    yield claim("constant_free", 1 - busy / interval, (found == 0).astype(np.float64))
    yield claim("constant_mean", busy / (2 * interval), found)
    off = int((found > 1).sum()) + (found.max() < 0.999)
    yield Claim("constant_greatest", 1, float(found.max()), 2.0 * bool(off), len(found))


def random_background(count: int) -> Iterator[Claim]:
    """Frames among background frames of exponential intervals, in one queue (Pollaczek-Khinchine)."""
    random = np.random.default_rng(5)
    own, other = 300 * OCTET, 1500 * OCTET  # Services.
    interval, between = round(other / 0.6), own / 0.2
    background = {"background": BackgroundKind.EXPONENTIAL, "background_ticks": interval, "background_length": 1500}
    background |= {"background_seed_low": 0x9E3779B9, "background_seed_high": 0x7F4A7C15}
    found = waits(passed(frames_of(poisson(random, between, count // 2), length=300), {0: background}), service=own)
    expected = queueing.residual([1 / between, 1 / interval], [own, other]) / (1 - 0.8)
    yield claim("background_mean", expected / own, found)


def two_classes(count: int) -> Iterator[Claim]:
    """Strict priority: mean waits of both classes, the first one of frames, or of background frames."""
    random = np.random.default_rng(6)
    times = (500 * OCTET, 1500 * OCTET)
    between = (times[0] / 0.3, times[1] / 0.4)
    expected = queueing.priority_waits((1 / between[0], 1 / between[1]), (float(times[0]), float(times[1])))
    share = times[1] / 0.4 / (times[0] / 0.3 + times[1] / 0.4)
    ticks = [poisson(random, between[0], int(count * share)), poisson(random, between[1], int(count * (1 - share)))]
    both = sorted([*frames_of(ticks[0], 0, 500), *frames_of(ticks[1], 1, 1500)])
    arrivals = [(tick + n, length, klass) for n, (tick, length, klass) in enumerate(both)]  # No two in a tick.
    done = passed(arrivals, {})
    for klass in (0, 1):
        yield claim(f"priority_{klass}", expected[klass] / times[klass], waits(done, klass, times[klass]))
    background = {
        "background": BackgroundKind.EXPONENTIAL,
        "background_ticks": round(between[0]),
        "background_length": 500,
    }
    done = passed(frames_of(ticks[1], 1, 1500), {0: background})
    yield claim("priority_below_ghosts", expected[1] / times[1], waits(done, 1, times[1]))


EXPERIMENTS: tuple[Experiment, ...] = (
    random_arrivals,
    full_queues,
    periodic_sources,
    one_against_constant,
    random_background,
    two_classes,
)
