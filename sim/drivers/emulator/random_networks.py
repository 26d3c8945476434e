# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Makes networks at random, all of which a large probe can hold."""

import random
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

from liteprobe.host.traffic.network import (
    Background, BandwidthTrace, Bernoulli, Bucket, Change, Codel, Direction, GilbertElliott, Jitter, LossList, LossPattern,
    Network, Pie, Queue, Red, Reorder, TrafficClass,
)

LEAST_NS = 40_000
SPREADS = 4  # Below the mean there is nothing of any distribution.
MATCHES = ("udp", "tcp", "icmp", "arp", "ip6", "vlan 7")


class NetworkMaker:
    """Makes networks, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.random, self.aqm = random.Random(seed), random.Random(f"AQM {seed}")
        self.holder = seed  # Modulo the number of classes: the only one that may hold frames back.

    def network(self) -> Network:
        """Return a network with up to three changes."""
        there, back = self.direction(), self.direction()
        times = sorted(self.random.sample(range(1, 10**6), self.random.randint(0, 3)))
        changes = tuple(Change(1000 * time, self.changed(there), self._maybe(self.changed(back))) for time in times)
        return Network(there, back, changes, self.random.getrandbits(64))

    def direction(self) -> Direction:
        """Return a direction."""
        kind = self.random.choice(("free", "rate", "trace"))
        jitter = self.jitter()
        matches = self.random.sample(MATCHES, self.random.randint(0, 3))
        rest: list[str | None] = [None] if self.random.random() < 0.7 else []
        rate = self.random.randint(20_000, 10**9) if kind == "rate" else None
        trace = self.trace() if kind == "trace" else None
        has_rate = kind != "free"
        classes = [
            self.traffic_class(f"class {number}", match, jitter, has_rate)
            for number, match in enumerate([*matches, *rest])
        ]
        return Direction(rate, self.random.choice(("strict", "weighted")), self._one_holds(classes), trace)

    def changed(self, direction: Direction) -> Direction:
        """Return a direction that does other things to the same classes."""
        jitter = next((one.jitter for one in direction.classes if one.jitter), None)
        has_rate = direction.waits
        classes = []
        for one in direction.classes:
            other = self.traffic_class(one.name, one.match_text, jitter, has_rate)
            fields = {**vars(other), "seed": one.seed}
            classes.append(TrafficClass(**fields))
        rate = self.random.randint(20_000, 10**9) if direction.rate_bps else None
        return Direction(rate, direction.service, self._one_holds(classes), direction.trace)

    def _one_holds(self, classes: list[TrafficClass]) -> list[TrafficClass]:
        return [
            one if number == self.holder % len(classes) else replace(one, reorder=None)
            for number, one in enumerate(classes)
        ]

    def traffic_class(self, name: str, match: str | None, jitter: Jitter | None, has_rate: bool) -> TrafficClass:
        """Return a class."""
        draw = self.random
        least = LEAST_NS + (SPREADS * int(jitter.spread_ns) if jitter else 0)
        options: dict[str, Any] = {
            "queue": self.queue(),
            "weight": draw.randint(1, 255),
            "overhead": draw.choice((None, -59, -10, 0, 4, 24, 255)),
            "delay_ns": draw.randint(least, least + 10**6) if jitter else self._maybe(draw.randint(least, 10**6)),
            "jitter": self._maybe(jitter),
            "loss": self.loss(),
            "pattern": self.pattern(),
            "is_lost_late": draw.random() < 0.5,
            "discard": draw.random() < 0.1,
            "duplicate": self.share(),
            "corrupt": self.share(),
            "is_mended": draw.random() < 0.5,
            "reorder": self._maybe(Reorder(self.share(), draw.randint(8, 10**6))),
            "bucket": self._maybe(Bucket(draw.randint(20_000, 10**9), draw.randint(1800, 50_000))),
            "background": self._maybe(self.background(has_rate)),
            "seed": self._maybe(draw.getrandbits(64)),
        }
        return TrafficClass(name, match, **options)

    def share(self) -> float:
        """Return a share, often one of the ends."""
        return self.random.choice((0, 1, self.random.random(), 10 ** self.random.uniform(-9, 0)))

    def queue(self) -> Queue:
        """Return a queue."""
        least = self.random.randint(0, 50)
        red = Red(least, least + self.random.randint(1, 50), self.share(), self.random.randint(0, 15))
        frames = self.random.choice((None, 1, self.random.randint(1, 200)))
        queue = Queue(frames, self._maybe(self.random.randint(60, 10**6)), self._maybe(red))
        draw = self.aqm
        if queue.red:
            return replace(queue, red=replace(queue.red, has_ecn=draw.random() < 0.5))
        codel = Codel(draw.randint(8, 10**6), draw.randint(8, 10**7), draw.random() < 0.5)
        pie = Pie(draw.randint(8, 10**6), draw.randint(1000, 10**6), draw.randint(0, 10**5), draw.random() < 0.5)
        return replace(queue, **draw.choice(({}, {}, {"codel": codel}, {"pie": pie})))

    def jitter(self) -> Jitter | None:
        """Return jitter."""
        kind = self.random.choice(("", "uniform", "normal", "pareto", "paretonormal", "table"))
        if not kind:
            return None
        if kind == "table":
            table = tuple(self.random.randint(0, 10**6) for _ in range(self.random.choice((1, 7, 1024))))
            return Jitter(kind, table_ns=table, correlation=self.share())
        return Jitter(kind, self.random.randint(8, 500_000), correlation=self.share())

    def loss(self) -> Bernoulli | GilbertElliott | None:
        """Return a model of losses."""
        kind = self.random.choice(("", "bernoulli", "gilbert", "elliott"))
        leave = 0.01 + 0.99 * self.random.random()
        if kind == "bernoulli":
            return Bernoulli(self.share())
        if kind == "gilbert":
            return GilbertElliott(self.share(), leave)
        return GilbertElliott(self.share(), leave, self.share(), self.share()) if kind else None

    def pattern(self) -> LossPattern | LossList | None:
        """Return a pattern of losses."""
        kind = self.random.choice(("", "bits", "list"))
        if kind == "bits":
            return LossPattern("".join(self.random.choice("0001") for _ in range(self.random.randint(1, 200))))
        numbers = self.random.sample(range(1000), self.random.randint(1, 10))
        return LossList(sorted(numbers)) if kind else None

    def background(self, has_rate: bool) -> Background:
        """Return a background."""
        draw = self.random
        kind = draw.choice(("constant", "exponential", "on-off", "random on-off", "pattern"))
        length = draw.randint(60, 1514)
        if kind == "pattern":
            entries = tuple((draw.randint(8, 10**6), draw.randint(60, 1514)) for _ in range(draw.randint(1, 8)))
            return Background(kind, length, entries=entries, phase_ns=draw.randint(0, 10**6))
        pace = draw.choice(("rate_bps", "interval_ns", "share" if has_rate else "rate_bps"))
        value: dict[str, Any] = {
            "rate_bps": draw.randint(10**5, 10**9),
            "interval_ns": draw.randint(100, 10**7),
            "share": 2 * draw.random() + 0.01,
        }
        bursts: dict[str, Any] = {"burst": draw.randint(1, 100), "pause_ns": draw.randint(8, 10**8)} if "on-off" in kind else {}
        phase = 0 if kind == "exponential" else draw.randint(0, 10**6)
        return Background(kind, length, **{pace: value[pace]}, **bursts, phase_ns=phase)

    def trace(self) -> BandwidthTrace:
        """Return a bandwidth trace."""
        stamps = sorted(self.random.sample(range(2000), self.random.randint(2, 50)))
        return BandwidthTrace(tuple(stamps), tuple(1500 * self.random.randint(1, 20) for _ in stamps))

    def _maybe(self, value: Any) -> Any:
        return value if self.random.random() < 0.4 else None


#: Limits that a refusal names, by the field of a class.
OFFERS = {
    "delay_ns":     r"a delay of ([0-9.]+) ms",
    "reorder":      r"extent of ([0-9.]+) ms",
    "queue":        r"queue of (\d+) frames",
    "expected_bps": r"'expected' (\d+)kbit",
}  # fmt: skip


def typed_back(network: Network, refused: str) -> list[Network]:
    """Return what is asked for with each limit that a refusal names in its place."""
    offers = refused.rpartition(": give ")[2]
    name = re.match("class '(.*?)' ", offers)
    found = []
    for field, pattern in OFFERS.items():
        if given := re.search(pattern, offers):
            ways: dict[str, Any] = {
                way: replace(one, classes=[
                    _limited(each, field, Fraction(given[1])) if not name or each.name == name[1] else each
                    for each in one.numbered.values()
                ])
                for way, one in (("there", network.there), ("back", network.back))
            }  # fmt: skip
            found.append(replace(network, **ways, changes=()))
    return found


def _limited(one: TrafficClass, field: str, number: Fraction) -> TrafficClass:
    """Return a class with a field that is a number (ms, frames, kb/s) at most."""
    if field == "queue":
        return replace(one, queue=replace(one.queue, frames=min(one.queue.frames or int(number), int(number))))
    if field == "expected_bps":
        return replace(one, expected_bps=min(one.expected_bps or 1000 * number, 1000 * number))
    ns = number * 10**6
    if field == "delay_ns":
        return one if one.delay_ns is None else replace(one, delay_ns=min(one.delay_ns, ns))
    held = one.reorder
    return replace(one, reorder=replace(held, extent_ns=min(held.extent_ns, ns))) if held else one
