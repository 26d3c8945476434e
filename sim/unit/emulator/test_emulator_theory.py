# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The reference of the emulator against the theory of queues, of loss models and of shapers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import TICK_NS
from liteprobe.cores.formats.emulate import BackgroundKind, ClassFlag, DELAY_ENTRIES, UNMATCHED_CLASS, Outcome
from liteprobe.host.analysis.confidence import mean_interval
from liteprobe.host.traffic.network import Jitter
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.network.network import in_order
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import words_of
from liteprobe.sim.drivers.tools.figures import Figure, Size, row
from liteprobe.sim.models.emulator import queueing
from liteprobe.sim.models.emulator.direction import Direction
from liteprobe.sim.models.emulator.settings import Settings, bank_words

# Queues -------------------------------------------------------------------------------------------

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
    """Pairs what theory says of a figure with what came.

    Attributes
    ----------
    found : the mean of ``samples`` values.
    reach : how far the two are from each other, in halves of the interval of CONFIDENCE: at most 1.
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


def vacations(count: int, every_ms: int = 20, away_ms: int = 5) -> Iterator[Claim]:
    """A server with vacations, as the page writes it: exact where they come at an interval, in the mean where at random."""
    random = np.random.default_rng(7)
    ms = 1250 * OCTET  # Of a link of 10 Mb/s.
    ticks = poisson(random, SERVICE / 0.5, count // 2)
    found = passed_by_document(vacations_document("constant", every_ms, away_ms), frames_of(ticks, UNMATCHED_CLASS))
    free, away, dues = 0, 0, []
    for tick in ticks.tolist():
        while away <= max(tick, free):  # A vacation begins where the service under way ends.
            free, away = max(free, away) + away_ms * ms, away + every_ms * ms
        free = max(tick, free) + SERVICE
        dues.append(free)
    yield exact("vacations_exact", np.array([frame.due for frame in found.frames], np.int64), np.array(dues))
    found = passed_by_document(vacations_document("exponential", every_ms, away_ms), frames_of(ticks, UNMATCHED_CLASS))
    times = (float(away_ms * ms), float(SERVICE))
    expected = queueing.priority_waits((1 / (every_ms * ms), 0.5 / SERVICE), times)
    yield claim("vacations_mean", expected[1] / SERVICE, waits(found, UNMATCHED_CLASS))


def vacations_document(kind: str, every_ms: int, away_ms: int) -> str:
    return f"""
there:
  rate: 10Mbit
  queue: 2000
  overhead: 0
  classes:
  - name: vacations
    match: nothing
    queue: 1000
    background: {{kind: {kind}, interval: {every_ms}ms, takes: {away_ms}ms}}
"""


def passed_by_document(document: str, arrivals: Sequence[tuple[int, int, int]]) -> Direction:
    """Return a direction of a document, without the least delay of a probe, through which all arrivals went."""
    limits = Limits(store_words=1 << 26, entries=1 << 20, longest=1536, least_delay=0)
    (words,) = words_of(read_network(document), [limits])
    one = Direction(Settings(words.banks[0]))
    one.finish(arrivals, arrivals[-1][0] + 10**9)
    return one


QUEUE_EXPERIMENTS: tuple[Experiment, ...] = (
    random_arrivals,
    full_queues,
    periodic_sources,
    one_against_constant,
    random_background,
    two_classes,
    vacations,
)


# Models of loss, delays, buckets and traces -------------------------------------------------------

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


def order(count: int, gap: int = 250_000) -> Iterator[Claim]:
    """Frames that keep their order, one each 2 ms, a deviation of 20 ms: mean and square of their delays, by the closed form."""
    for kind, repeat in (("pareto", 0.0), ("normal", 0.0), ("uniform", 0.9)):
        quantiles = [round(one / TICK_NS) for one in Jitter(kind, 20 * 10**6).quantiles_ns()]
        delays = [one - quantiles[0] for one in quantiles]
        words = {**SEED, "flags": ClassFlag.JITTER, "delay_repeat": share(repeat)}
        one = passed_by(Settings(bank_words({0: words}), delays=delays), frames_of(gap * np.arange(1, count + 1)))
        found = np.array([frame.due - frame.time for frame in one.frames if frame.due is not None], np.float64)
        mean, deviation = in_order(np.array(delays, np.float64), gap, repeat)
        yield claim(f"order_{kind}_mean", mean, found)
        yield claim(f"order_{kind}_square", mean**2 + deviation**2, found**2)


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


MODEL_EXPERIMENTS: tuple[Experiment, ...] = (bursty_loss, four_shares, delay_table, order, bucket, opportunities, mahimahi)

EXPERIMENTS = (*QUEUE_EXPERIMENTS, *MODEL_EXPERIMENTS)


# Tests ---------------------------------------------------------------------------------------------

@row("emulator", "theory", is_test=True)
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=[one.__name__ for one in EXPERIMENTS])
def test_the_reference_is_what_the_theory_says(experiment: Experiment, size: Size) -> Iterator[Figure]:
    """Yield how far each mean is from theory, in halves of the interval of 99.9 % that the means of batches give.

    What must be exact counts 2 for each frame that is off.
    """
    for one in experiment(size.of(20_000, 1_000_000, 4_000_000)):
        yield Figure(f"theory_{one.name}", one.reach, "of 99.9 %", 1)


def test_a_figure_that_is_off_is_seen() -> None:
    values = np.random.default_rng(1).normal(10, 1, 10_000)
    assert claim("near", 10, values).reach < 1
    assert claim("far", 10.1, values).reach > 1
    assert exact("off", np.array([1, 2, 3]), np.array([1, 2, 4])).reach == 2
