# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Reference that was written from docs/design/emulator.md alone, beside the project's own: the page says all that is needed.

It takes networks, not settings. Left out: traces, buckets, what drops early, changes, bursts and patterns of a background.
"""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random
from statistics import NormalDist
from typing import Any

import pytest

from liteprobe.host.traffic.network import (
    Background,
    Bernoulli,
    Direction,
    GilbertElliott,
    LossList,
    LossPattern,
    Network,
    TrafficClass,
)
from liteprobe.host.traffic.network.network import DIRECTIONS
from liteprobe.host.traffic.network.store import Limits
from liteprobe.host.traffic.network.words import words_of
from liteprobe.sim.drivers.emulator.random_networks import LEAST_NS, NetworkMaker
from liteprobe.sim.models.emulator.direction import Direction as Ours
from liteprobe.sim.models.emulator.settings import Settings

M64, ALL = 2**64 - 1, 2**32 - 1
LEAST = LEAST_NS // 8
LIMITS = Limits(store_words=1 << 21, entries=1 << 16, longest=1536, least_delay=LEAST, trace_words=1 << 16)


def mix(n: int) -> int:
    n = n + 0x9E3779B97F4A7C15 & M64
    n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9 & M64
    n = (n ^ n >> 27) * 0x94D049BB133111EB & M64
    return n ^ n >> 31


def seed(network: int, own: int | None, way: int, number: int, purpose: int) -> int:
    state = mix(network if own is None else own)
    for one in (way, number, purpose) if own is None else (purpose,):
        state = mix(state ^ one)
    return state or 1


class Draws:
    def __init__(self, state: int) -> None:
        self.x = state

    def __call__(self) -> int:
        self.x ^= self.x << 13 & M64
        self.x ^= self.x >> 7
        self.x ^= self.x << 17 & M64
        return self.x >> 32


def share(value: Any) -> int:
    """Return the number below which a draw of what happens lies."""
    value = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    return 2**32 if value == 1 else min(round(value * 2**32), ALL - 1)


def ticks(ns: Any) -> int:
    return round((Fraction(str(ns)) if isinstance(ns, float) else Fraction(ns)) / 8)


def quantile(kind: str, p: float) -> float:
    pareto = min(4 / 3 * ((1 - p) ** (-1 / 3) - 1.5), 32767 / 8192)
    normal = NormalDist().inv_cdf(p)
    return {"uniform": 2 * p - 1, "normal": normal, "pareto": pareto, "paretonormal": (normal + 3 * pareto) / 4}[kind]


def delays(one: TrafficClass) -> list[int]:
    """Return the delay of each quantile."""
    delay = LEAST if one.delay_ns is None else ticks(one.delay_ns)
    if not one.jitter:
        return [delay] * 1024
    jitter, table = one.jitter, sorted(one.jitter.table_ns)
    found = []
    for q in range(1024):
        p = (2 * q + 1) / 2048
        ns = table[q * len(table) >> 10] if table else Fraction(quantile(jitter.kind, p)) * Fraction(jitter.spread_ns)
        found.append(max(delay + ticks(ns), LEAST))
    return found


def exponential(mean_32: int, u: int) -> int:
    u = u or 1
    zeros = 32 - u.bit_length()
    m = (u << zeros >> 22) - 512
    with localcontext() as context:
        context.prec = 30
        ln2 = round(Decimal(2).ln() * 2**27)
        rest = round(-(Decimal(2 * (512 + m) + 1) / 2048).ln() * 2**27)
    return mean_32 * (zeros * ln2 + rest) >> 16


class Class:
    """Draws for the frames of a class."""

    def __init__(self, one: TrafficClass, number: int, way: int, network: int, rate: Fraction | None) -> None:
        self.one, self.number = one, number
        self.draw, self.other = (Draws(seed(network, one.seed, way, number, purpose)) for purpose in (0, 1))
        self.count = self.q = 0
        self.is_bad = False
        self.delays = delays(one)
        self.around = 24 if one.overhead is None else one.overhead
        self.queue: list[Any] = []
        self.background = one.background
        if self.background:
            back = self.background
            if back.interval_ns is not None:
                each = Fraction(str(back.interval_ns)) / 8
            else:
                bps = (
                    Fraction(str(back.rate_bps))
                    if back.rate_bps is not None
                    else Fraction(str(back.share)) * (rate or 0)
                )
                each = 8 * (back.length + self.around) * Fraction(10**9, 8) / bps
            self.fine, self.at = round(each * 65536), ticks(back.phase_ns) << 16
            self.step(is_first=True)

    def step(self, is_first: bool = False) -> None:
        """Schedule the next background frame."""
        interval = self.other()
        self.other(), self.other()
        assert self.background
        if self.background.kind == "exponential":
            self.at += exponential((self.fine >> 16) * 32 + ((self.fine & 0xFFFF) >> 11) & ALL, interval)
        else:
            self.at += 0 if is_first else self.fine

    def frame(self, tick: int, length: int) -> dict[str, Any]:
        """Return what a frame draws."""
        state, loss, twice, wrong, bit, held, repeat, which, _ = (self.draw() for _ in range(9))
        one, i = self.one, self.count
        self.count += 1
        lost = False
        if isinstance(one.pattern, LossList):
            lost = i in one.pattern.numbers
        elif isinstance(one.pattern, LossPattern):
            lost = one.pattern.bits[i % len(one.pattern.bits)] == "1"
        if isinstance(one.loss, Bernoulli):
            lost |= loss < share(one.loss.share)
        elif isinstance(one.loss, GilbertElliott):
            self.is_bad = state >= share(one.loss.r) if self.is_bad else state < share(one.loss.p)
            lost |= loss < share(1 - Fraction(str(one.loss.h if self.is_bad else one.loss.k)))
        if not (one.jitter and repeat < share(one.jitter.correlation)):
            self.q = which >> 22
        is_held = bool(one.reorder and held < share(one.reorder.share))
        extra = ticks(one.reorder.extent_ns) if one.reorder and is_held else 0
        return {
            "tick": tick, "length": length, "class": self, "lost": lost, "lane": 8 if is_held else self.number,
            "delay": self.delays[self.q] + extra, "bit": bit * 8 * length >> 32 if wrong < share(one.corrupt) else None,
            "twice": twice < share(one.duplicate), "fate": None, "due": None,
        }  # fmt: skip


def page(
    network: Network, way: int, limits: dict[int, int], frames: list[tuple[int, int, int]]
) -> list[dict[str, Any]]:
    """Return what becomes of frames (tick, length, class) of a direction; ``limits``: of queues without a length."""
    direction: Direction = getattr(network, DIRECTIONS[way])
    rate = None if direction.rate_bps is None else Fraction(str(direction.rate_bps))
    octet = 0 if rate is None else round(Fraction(8 * 10**9, 8) * 65536 / rate)
    classes = {n: Class(one, n, way, network.seed, rate) for n, one in direction.numbered.items()}
    found: list[dict[str, Any]] = []
    free, served, left, last = 0, 7, 0, 0
    lanes = dict.fromkeys(range(9), 0)

    def join(klass: Class, frame: dict[str, Any]) -> None:
        nonlocal last
        queue = klass.one.queue
        most = limits[klass.number] if queue.frames is None else queue.frames
        octets = math.inf if queue.octets is None else queue.octets
        last = frame["time"]
        if len(klass.queue) + 1 > most or sum(one["length"] for one in klass.queue) + frame["length"] > octets:
            frame["fate"] = "FULL"
        else:
            klass.queue.append(frame)

    def serve(until: float) -> None:
        nonlocal free, served, left, last
        while (waiting := [n for n, one in sorted(classes.items()) if one.queue]) and max(free, last) < until:
            begins = last = max(free, last)
            goes_on = left > 0 and served in waiting
            if direction.service == "strict":
                number = waiting[0]
                goes_on = goes_on and number == served
            else:
                number = served if goes_on else next((n for n in waiting if n > served), waiting[0])
            if not goes_on:
                served, left = number, classes[number].one.weight
            left -= 1
            frame = classes[number].queue.pop(0)
            free = begins + (frame["length"] + classes[number].around) * octet
            if "delay" not in frame:
                continue
            frame["fate"] = "LOST" if frame["lost"] else "SENT"
            if not frame["lost"]:
                frame["due"] = lanes[frame["lane"]] = max((free >> 16) + frame["delay"], lanes[frame["lane"]])

    def background(until: float) -> None:
        """Let background frames come, and what is served between them."""
        while ready := [one for one in classes.values() if one.background and one.at < until]:
            first = min(ready, key=lambda one: (one.at, one.number))
            serve(first.at)
            assert first.background
            join(first, {"length": first.background.length, "time": first.at})
            first.step()

    for tick, length, number in frames:
        background(tick << 16)
        serve(tick << 16)
        klass = classes[number]
        frame = klass.frame(tick, length) | {"time": tick << 16}
        found.append(frame)
        if klass.one.discard:
            frame["fate"] = "DISCARDED"
        elif frame["lost"] and not klass.one.is_lost_late:
            frame["fate"] = "LOST"
        else:
            join(klass, frame)
    end = (frames[-1][0] + 10**6) << 16
    background(end)
    serve(end)
    return found


def plain(network: Network) -> Network:
    """Return a network without what is left out here."""

    def kept(one: TrafficClass) -> TrafficClass:
        back = one.background
        if back and back.kind not in ("constant", "exponential"):
            back = Background("exponential", back.length, interval_ns=50_000)
        if back and back.rate_bps is None and back.interval_ns is None:
            back = replace(back, share=None, rate_bps=10**6)
        return replace(one, bucket=None, queue=replace(one.queue, red=None, codel=None), background=back)

    ways = {
        way: replace(one, trace=None, classes=[kept(each) for each in one.classes])
        for way, one in ((way, getattr(network, way)) for way in DIRECTIONS)
    }
    return replace(network, changes=(), **ways)


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(12))
def test_a_reference_of_the_page_alone_says_what_ours_says(seed: int) -> None:
    network, draw = plain(NetworkMaker(seed).network()), Random(seed)
    for way, words in enumerate(words_of(network, (LIMITS, LIMITS))):
        numbers = list(getattr(network, DIRECTIONS[way]).numbered)
        frames, tick = [], 0
        for _ in range(400):
            length = draw.choice([60, 1514, draw.randint(60, 1514)])
            tick += length + 24 + (0 if draw.random() < 0.7 else draw.randint(1, 40_000))
            frames.append((tick, length, draw.choice(numbers)))
        ours = Ours(Settings(words.banks[0], words.delays, words.patterns))
        ours.finish(frames, tick + 10**6)
        theirs = page(network, way, words.division.queue_frames, frames)
        for number, (one, other) in enumerate(zip(ours.frames, theirs, strict=True)):
            if one.outcome is None or other["fate"] is None:  # It waits at the end of the run.
                continue
            found = (one.outcome.name, one.due, one.is_twice, one.bit if one.is_corrupt else None)
            assert found == tuple(other[name] for name in ("fate", "due", "twice", "bit")), (number, other)
        assert sum(frame.outcome is not None for frame in ours.frames) >= 0.2 * len(frames)
