# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The reference of the emulator beside the theory of its loss models, its delay table, its bucket and its traces."""

from collections.abc import Iterator

import numpy as np

from liteprobe.cores.formats.emulate import DELAY_ENTRIES, ClassFlag, Outcome
from liteprobe.sim.bench.emulator.theory_run import (
    LENGTH,
    SERVICE,
    TICK,
    Claim,
    Experiment,
    Floats,
    Ticks,
    claim,
    frames_of,
    poisson,
    waits,
)
from liteprobe.sim.models.emulator import queueing
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.settings import Settings, bank_words

SEED = {"frame_seed_low": 0x9E3779B9, "frame_seed_high": 0x7F4A7C15}
LAGS = (1, 2, 5, 10)
MILLISECOND = 125_000  # Ticks.
OPPORTUNITY = 1500  # Octets.
#: Of a line of a trace each: the millisecond of an opportunity.
MAHIMAHI = (0, 0, 3, 5, 5, 5, 8, 13, 13, 20)


def share(of: float) -> int:
    """Return the word of a share."""
    return min(round(of * 2**32), 2**32 - 1)


def seldom(count: int, settings: Settings) -> Direction:
    """Return a direction through which frames went that never wait for each other."""
    one = Direction(settings)
    one.finish([(2000 * n, 60, 0) for n in range(count)], 2000 * count + 10**6)
    return one


def passed_by(settings: Settings, arrivals: list[tuple[int, int, int]]) -> Direction:
    """Return a direction of these settings through which all arrivals went."""
    one = Direction(settings)
    one.finish(arrivals, arrivals[-1][0] + (10**9 if settings.trace else 10**11))
    return one


def exact(name: str, found: Ticks, expected: Ticks) -> Claim:
    """Return how many of some ticks are off."""
    off = int((found != expected).sum())
    return Claim(name, 0, off, 2.0 * off, len(found))


def products(values: Floats, lag: int) -> Floats:
    """Return each value times the one so many places later."""
    return values[:-lag] * values[lag:]


# Loss ---------------------------------------------------------------------------------------------------


def bursty_loss(count: int, enter: float = 0.02, leave: float = 0.25) -> Iterator[Claim]:
    """Gilbert: share of loss, length of bursts and of what is between them, correlation."""
    words = {**SEED, "loss_enter": share(enter), "loss_leave": share(leave), "loss_bad": share(1)}
    done = seldom(count, Settings(bank_words({0: words})))
    lost = np.array([frame.outcome is Outcome.LOST for frame in done.frames], np.float64)
    mean = enter / (enter + leave)
    yield claim("gilbert_loss", mean, lost)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], lost, [0]])))
    bursts = (edges[1::2] - edges[::2]).astype(np.float64)
    yield claim("gilbert_burst", 1 / leave, bursts)
    yield claim("gilbert_burst_of_3", (1 - leave) ** 2, (bursts >= 3).astype(np.float64))
    yield claim("gilbert_between", 1 / enter, (edges[2::2] - edges[1:-1:2]).astype(np.float64))
    for lag in LAGS:
        expected = mean**2 + mean * (1 - mean) * (1 - enter - leave) ** lag
        yield claim(f"gilbert_lag_{lag}", expected, products(lost, lag))


def four_shares(
    count: int, enter: float = 0.05, leave: float = 0.2, good: float = 0.01, bad: float = 0.6
) -> Iterator[Claim]:
    """Gilbert-Elliott, with losses in the good state and none of some in the bad one; Bernoulli, from one state."""
    words = {"loss_enter": share(enter), "loss_leave": share(leave), "loss_good": share(good), "loss_bad": share(bad)}
    done = seldom(count, Settings(bank_words({0: {**SEED, **words}})))
    lost = np.array([frame.outcome is Outcome.LOST for frame in done.frames], np.float64)
    mean = (leave * good + enter * bad) / (enter + leave)
    yield claim("elliott_loss", mean, lost)
    spread = enter * leave / (enter + leave) ** 2 * (bad - good) ** 2
    for lag in LAGS:
        yield claim(f"elliott_lag_{lag}", mean**2 + spread * (1 - enter - leave) ** lag, products(lost, lag))
    done = seldom(count, Settings(bank_words({0: {**SEED, "loss_good": share(0.1)}})))
    lost = np.array([frame.outcome is Outcome.LOST for frame in done.frames], np.float64)
    yield claim("bernoulli_loss", 0.1, lost)
    yield claim("bernoulli_lag_1", 0.01, products(lost, 1))


def delay_table(count: int, repeat: float = 0.8) -> Iterator[Claim]:
    """Delays of the table: uniform over its entries, and correlated."""
    words = {**SEED, "flags": ClassFlag.JITTER, "delay_repeat": share(repeat)}
    done = seldom(count, Settings(bank_words({0: words}), delays=range(DELAY_ENTRIES)))
    found = np.array([frame.due - frame.time for frame in done.frames if frame.due is not None], np.float64)
    mean, spread = (DELAY_ENTRIES - 1) / 2, (DELAY_ENTRIES**2 - 1) / 12
    yield claim("delay_mean", mean, found)
    yield claim("delay_of_the_upper_tenth", 102 / 1024, (found >= 922).astype(np.float64))
    for lag in LAGS:
        yield claim(f"delay_lag_{lag}", mean**2 + spread * repeat**lag, products(found, lag))


# Shapers ------------------------------------------------------------------------------------------------


def bucket(count: int, load: float = 0.7, burst: int = 3) -> Iterator[Claim]:
    """A bucket before a link that takes no time: the wait of M/D/1, less the burst; and its rate, exactly."""
    ahead = burst * SERVICE * TICK
    own = {"token_octet": SERVICE // LENGTH * TICK, "token_burst_low": ahead % 2**32, "token_burst_high": ahead >> 32}
    settings = Settings(bank_words({0: own}))
    random = np.random.default_rng(7)
    one = passed_by(settings, frames_of(poisson(random, SERVICE / load, count)))
    found = waits(one, service=0, unit=SERVICE)
    yield claim("bucket_at_once", queueing.md1_at_most(load, burst), (found == 0).astype(np.float64))
    yield claim("bucket_mean", queueing.md1_wait_beyond(load, burst), found)
    number = np.arange(min(count, 60_000))  # They wait, below the limit of the queue.
    one = passed_by(settings, frames_of(number * SERVICE // 2))
    due = np.array([frame.due for frame in one.frames])
    yield exact("bucket_rate", due, np.maximum(number * SERVICE // 2, (number - burst) * SERVICE))


def opportunities(count: int, load: float = 0.8) -> Iterator[Claim]:
    """A trace of one opportunity in each slot, and a frame for each: it waits for the end of its slot, and for those before it."""
    settings = Settings(bank_words({}, {"trace": 1}), trace=[(SERVICE, OPPORTUNITY)])
    random = np.random.default_rng(8)
    one = passed_by(settings, frames_of(poisson(random, SERVICE / load, count), length=OPPORTUNITY))
    yield claim("trace_mean", 1 / 2 + queueing.md1_wait(load), waits(one, service=0, unit=SERVICE))


def mahimahi(count: int) -> Iterator[Claim]:
    """A trace that always has something to serve: each frame leaves when the octets of the trace have reached its last one."""
    gaps = np.diff([0, *MAHIMAHI]) * MILLISECOND
    settings = Settings(
        bank_words({0: {"limit_frames": 200}}, {"trace": 1}), trace=[(int(gap), OPPORTUNITY) for gap in gaps]
    )
    random = np.random.default_rng(9)
    lengths = random.integers(60, 1515, count)
    mean = lengths.mean() / OPPORTUNITY * MAHIMAHI[-1] * MILLISECOND / len(MAHIMAHI)  # Ticks of a frame, by the trace.
    ticks = np.maximum(
        100 + np.arange(count), (np.arange(count) - 150) * round(mean * 0.8)
    )  # 150 at the start; then too many.
    one = passed_by(settings, list(zip(ticks.tolist(), lengths.tolist(), [0] * count, strict=True)))
    sent = [frame for frame in one.frames if frame.due is not None and frame.due < ticks[-1]]
    place = -(-np.cumsum([frame.length for frame in sent]) // OPPORTUNITY) - 1 + 2  # Those at tick 0 find nothing.
    turn, entry = np.divmod(place, len(MAHIMAHI))
    expected = (turn * MAHIMAHI[-1] + np.array(MAHIMAHI)[entry]) * MILLISECOND
    yield exact("trace_exact", np.array([frame.due for frame in sent]), expected)


EXPERIMENTS: tuple[Experiment, ...] = (bursty_loss, four_shares, delay_table, bucket, opportunities, mahimahi)
