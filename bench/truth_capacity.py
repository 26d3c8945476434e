# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Capacity and dispersion rate of trains through loaded hops, against queues that are worked out apart."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product, repeat

import numpy as np
from lindley import IMIX, LINE_RATE, MODELS, TICK_NS, Floats, Hop, slot_ns, stamps, through

from liteprobe.host.analysis import capacity, confidence, summary, theory
from liteprobe.sim.drivers.tools.figures import Figure, Size, note, row

SEED = 13
LENGTHS = (60, 512, 1514, 9000)
SIZES = {"60": (60,), "200": (200,), "590": (590,), "1514": (1514,), "imix": IMIX, "9000": (9000,)}
LOADS = (0.1, 0.3, 0.5, 0.7, 0.9)
COUNTS = (2, 3, 10, 100)
TRAINS = (20, 50)  # Of an experiment on capacity, in turn.
SHORT = 60
REPEATS = (3, 5, 10, 20, 50)  # Trains of an experiment on intervals.
#: Width that an interval may have where trains are many and varied; with fewer, it is longer.
WIDTHS = {3: 5.0, 5: 4.5, 10: 3.0, 20: 1.6, 50: 1.3}
SHORT_PARETO = 10  # Cells of Pareto's traffic that may fall short: the time between its frames has no variance.
LONG = 300_000  # Octets of a train that takes long to work out: fewer of them.
#: The hops, with the other traffic where it is; which of them is narrow.
PATHS: dict[str, Callable[[Callable[[float], Hop]], tuple[Hop, ...]]] = {
    "one_hop": lambda loaded: (loaded(1e9),),
    "two_hops": lambda loaded: (loaded(1e9), loaded(1e9)),
    "narrow_first": lambda loaded: (Hop(1e8), loaded(1e9)),
    "narrow_last": lambda loaded: (loaded(1e9), Hop(1e8)),
    "narrow_loaded_first": lambda loaded: (loaded(1e8), loaded(1e9)),
    "narrow_loaded_last": lambda loaded: (loaded(1e9), loaded(1e8)),
}
WIDE = ("one_hop", "two_hops")  # Nothing is narrower than the probe's line.


@dataclass(frozen=True)
class Cell:
    """Conditions: of the path, of its traffic, and of the trains."""

    path: str
    length: int
    sizes: str
    load: float
    count: int
    model: str

    @property
    def hops(self) -> tuple[Hop, ...]:
        return PATHS[self.path](lambda rate: Hop(rate, self.load, SIZES[self.sizes], self.model))

    @property
    def truth(self) -> float:
        """Capacity (b/s)."""
        return min(hop.rate for hop in self.hops)

    def trains(self, experiments: int, trains: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return departures and arrivals (ns), shape (experiments x trains, count); each experiment has a phase of its own."""
        if self.model == "step" and self.load:
            parts = [
                through(self.hops, trains, self.count, self.length, random, random.random()) for _ in range(experiments)
            ]
            return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
        departures, arrivals = through(self.hops, experiments * trains, self.count, self.length, random)
        order = random.permutation(experiments * trains)  # Neighbours met the same queue.
        return departures[order], arrivals[order]


def could(cell: Cell, departures: Floats, arrivals: Floats) -> bool:
    """Tell whether two trains of an experiment had a pair that waited for nothing."""
    empty = arrivals.copy()
    for number, hop in enumerate(cell.hops):
        own = slot_ns(cell.length, hop.rate)
        before = own * np.arange(cell.count)
        empty = np.maximum.accumulate((empty if number else departures) - before, axis=1) + before + own
    waits = arrivals - empty
    return bool((((waits[:, :-1] < 1e-3) & (waits[:, 1:] < 1e-3)).any(axis=1)).sum() >= 2)


def is_off(found: capacity.Capacity, truth: float) -> bool:
    """Tell whether a capacity is wrong: by more than 0.1 %, and by more than its bounds allow."""
    if found.bps is None or found.low_bps is None or found.high_bps is None:
        return False
    return abs(found.bps / truth - 1) > 1e-3 and not found.low_bps <= truth <= found.high_bps


def measured(
    cell: Cell, experiments: int, trains: int, random: np.random.Generator
) -> Iterator[tuple[capacity.Capacity, bool]]:
    """Yield what the pairs of each experiment tell, and whether they could tell."""
    departures, arrivals = cell.trains(experiments, trains, random)
    numbers = np.arange(trains * cell.count)
    for number in range(experiments):
        part = slice(number * trains, (number + 1) * trains)
        tx, rx = stamps(departures[part]).ravel(), stamps(arrivals[part]).ravel()
        known = capacity.pair_capacity(numbers, cell.count, tx, rx, cell.length)
        yield known, could(cell, departures[part], arrivals[part])


def claims(cell: Cell, experiments: int, random: np.random.Generator) -> Iterator[tuple[str, capacity.Capacity, bool]]:
    """Yield what trains tell alone, and with trains of 60 octets beside."""
    trains = TRAINS[int(random.integers(len(TRAINS)))]
    if cell.length * cell.count > LONG:
        experiments, trains = max(experiments // 3, 1), TRAINS[0]
    beside: Iterator[tuple[capacity.Capacity, bool]] = repeat((capacity.Capacity(None, None, None, 0, 0), False))
    if cell.length != SHORT:
        beside = measured(replace(cell, length=SHORT), experiments, trains, random)
    for (known, can), (short, _) in zip(measured(cell, experiments, trains, random), beside, strict=False):
        yield "alone", known, can
        if cell.length != SHORT:
            yield "beside_60", capacity.together([(SHORT, short), (cell.length, known)])[1], can


def shown(path: str, length: int, kind: str, found: dict[Cell, Counter[str]]) -> Iterator[Figure]:
    """Yield the figures of a path, a length and a way to claim."""
    total = sum(found.values(), Counter[str]())
    name = f"{path}_{length}" + "_beside_60" * (kind != "alone")
    yield Figure(f"capacity_wrong_{name}", total["wrong"], f"of {total['made']} claims", 0)
    bounds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for cell, counts in found.items():
        bounds[cell.sizes, cell.model] += counts
    shares = [100 * of["false"] / of["least"] for of in bounds.values() if of["least"] >= 20]
    worst = max(shares, default=0.0)
    yield Figure(f"least_false_{name}", worst, f"% of a cell, at the most; {total['false']} of {total['least']}", 5)
    if path in WIDE and length == SHORT:
        yield Figure(
            f"capacity_had_{name}", 100 * total["had"] / total["can"], f"% of {total['can']} possible", 90, True
        )


@row("truth")
def test_capacity(size: Size) -> Iterator[Figure]:
    """Claims of capacity, and bounds, over lengths, other traffic, loads, trains and paths.

    Wrong: off by more than 0.1 %, and by more than the stated bounds. Possible: two trains had a pair that waited for
    nothing. A cell of bounds: a path, a length, other traffic (all loads and counts), with 20 bounds or more.
    Left out of the figures: traffic that keeps step with the trains on a path with a narrow link, where nothing tells
    all pairs from those of another path; how many claims there are, and how many wrong, is printed.
    """
    random = np.random.default_rng(SEED)
    for path, length in product(PATHS, LENGTHS):
        found: dict[str, dict[Cell, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        experiments = size.of(1, 4, 12) if path in WIDE else size.of(1, 2, 6)
        for sizes, load, count, model in product(SIZES, LOADS, COUNTS, MODELS):
            cell = Cell(path, length, sizes, load, count, model)
            of = "left_out_" * (model == "step" and path not in WIDE)
            for kind, known, can in claims(cell, experiments, random):
                counts = found[of + kind][cell]
                if is_off(known, cell.truth):
                    note(f"wrong: {of}{kind} {cell}: {known}")
                counts["made"] += known.bps is not None
                counts["wrong"] += is_off(known, cell.truth)
                counts["least"] += known.at_least_bps is not None
                counts["false"] += (known.at_least_bps or 0.0) > cell.truth * (1 + 1e-9)
                counts["can"] += can
                counts["had"] += can and known.bps is not None
        for kind, cells in found.items():
            if kind.startswith("left_out"):
                total = sum(cells.values(), Counter[str]())
                note(f"left out: {path} {length} {kind}: {dict(total)}")
            else:
                yield from shown(path, length, kind, cells)


# Intervals ----------------------------------------------------------------------------------------


def rates_of(cell: Cell, trains: int, random: np.random.Generator) -> Floats:
    """Return the dispersion rate of each train (b/s) by its stamps, worked out here."""
    ticks = stamps(cell.trains(1, trains, random)[1]) // TICK_NS
    spans = (ticks[:, -1] - ticks[:, 0]).astype(np.float64) * TICK_NS
    return np.asarray((cell.count - 1) * slot_ns(cell.length) * LINE_RATE / spans)


@dataclass(frozen=True)
class Held:
    """Says how often intervals held the mean, and how wide they were, beside Student's of the true scatter (b/s)."""

    share: float
    error: float  # Standard deviation of the share, where it is 93 %.
    width: float
    ideal: float


def held(rates: Floats, mean: float, cell: Cell, trains: int, experiments: int, random: np.random.Generator) -> Held:
    """Return how often the 95 % interval of so many trains holds the mean of all."""
    tick = theory.tick_error(cell.length, cell.count)
    samples = rates[random.integers(0, len(rates), (experiments, trains))]
    inside, width = 0, 0.0
    for found in (summary.rates(sample, tick) for sample in samples):
        low, high = found["ci95_low"], found["ci95_high"]
        assert low is not None and high is not None
        inside += low * (1 - 1e-12) <= mean <= high * (1 + 1e-12)
        width += (high - low) / experiments
    ideal = 2 * confidence.student(0.975, trains - 1) * float(rates.std()) / trains**0.5
    return Held(inside / experiments, (0.93 * 0.07 / experiments) ** 0.5, width, ideal)


@row("truth")
def test_interval(size: Size) -> Iterator[Figure]:
    """The 95 % interval of the mean dispersion rate, over the same cells, with 3 to 50 trains.

    A cell whose share is below 95 % is measured again with ten times as many experiments; it is short where its share is
    below 93 % by more than three standard deviations. Left out: traffic that keeps step, where all trains are alike.
    Printed without a target: a narrow link that comes first, where trains are pressed together once in hundreds.
    """
    random = np.random.default_rng(SEED)
    experiments = size.of(20, 100, 400)
    models = [model for model in MODELS if model != "step"]
    for path in (*WIDE, "narrow_first"):
        found: dict[int, dict[Cell, Held]] = defaultdict(dict)
        for length, sizes, load, count, model in product(LENGTHS, SIZES, LOADS, COUNTS, models):
            cell = Cell(path, length, sizes, load, count, model)
            frames = cell.count * (length + 24) * load / (float(np.mean(SIZES[sizes])) + 24)
            rates = rates_of(cell, int(np.clip(1e6 / max(frames, 1), 300, 3000)), random)
            for trains in REPEATS:
                known = held(rates, float(rates.mean()), cell, trains, experiments, random)
                if known.share < 0.95:
                    known = held(rates, float(rates.mean()), cell, trains, 10 * experiments, random)
                found[trains][cell] = known
            widths = " ".join(f"{found[trains][cell].width / 1e6:.3g}" for trains in REPEATS)
            shares = " ".join(f"{100 * found[trains][cell].share:.1f}" for trains in REPEATS)
            note(f"{path} {length} {sizes} {load} {count} {model}: {shares} %, width {widths} Mb/s")
        for trains, cells in found.items():
            yield from widths_of(path, trains, cells)


def widths_of(path: str, trains: int, cells: dict[Cell, Held]) -> Iterator[Figure]:
    """Yield the figures of one number of trains; print those of a path with a narrow link, which have no target."""
    name = f"{path}_{trains}"
    shares = np.array([one.share for one in cells.values()])
    below = sum(one.share + 3 * one.error < 0.93 for one in cells.values())
    note(f"{name}: {below} of {len(cells)} cells below 93 %, {(shares > 0.99).mean():.0%} above 99 %")
    if path not in WIDE:
        return
    for kind, models in (("", ("poisson", "cbr", "onoff")), ("_pareto", ("pareto",))):
        of = [one for cell, one in cells.items() if cell.model in models]
        short = sum(one.share + 3 * one.error < 0.93 for one in of)
        target = SHORT_PARETO if kind else 0
        yield Figure(f"interval_short{kind}_{name}", short, f"of {len(of)} cells below 93 %", target)
        yield Figure(f"interval_least{kind}_{name}", 100 * min(one.share for one in of), "%", 85, True)
    varied = [(cell, one) for cell, one in cells.items() if cell.model == "poisson" and is_varied(cell)]
    ratio = float(np.median([one.width / one.ideal for _, one in varied if one.ideal > 0]))
    yield Figure(f"interval_width_{name}", ratio, "of Student's, varied", WIDTHS[trains])


def is_varied(cell: Cell) -> bool:
    """Tell whether nearly all trains of a cell meet other frames, several of them."""
    return cell.load * cell.count * (cell.length + 24) > 5 * (float(np.mean(SIZES[cell.sizes])) + 24)


# As before ----------------------------------------------------------------------------------------


@row("hostile", "capacity")
def test_equal_frames(size: Size) -> Iterator[Figure]:
    """Capacity and interval with other frames as long as the probe's, 50 trains, on one and two hops, at loads 0 to 0.9.

    With trains of 60 octets beside, as a narrow link needs. Left out: intervals at load 0, where nothing scatters, and
    of all paths but one hop and a narrow link that comes first: a narrow link later on keeps its queue, and nothing
    scatters, either.
    """
    random = np.random.default_rng(SEED)
    experiments = size.of(5, 50, 250)
    for path, count in product(PATHS, (2, 10, 100)):
        wrong = made = easy = 0
        for load in (0.0, *LOADS):
            cell = Cell(path, 1514, "1514", load, count, "poisson")
            runs = [measured(replace(cell, length=length), experiments, 50, random) for length in (SHORT, 1514)]
            for (short, _), (long, _) in zip(*runs, strict=True):
                known = capacity.together([(SHORT, short), (1514, long)])[1]
                made += known.bps is not None
                easy += known.bps is not None and load <= 0.5
                wrong += is_off(known, cell.truth)
        yield Figure(f"capacity_wrong_{path}_{count}", wrong, f"of {made} claims", 0)
        yield Figure(f"capacity_had_{path}_{count}", 25 * easy / experiments, "% up to load 0.5", 90, True)
    for path, count in product(("one_hop", "narrow_first"), (2, 10, 100)):
        shares, off = [], 0.0
        for load in LOADS:
            cell = Cell(path, 1514, "1514", load, count, "poisson")
            rates = rates_of(cell, size.of(2_000, 20_000, 100_000), random)
            mean = float(rates.mean())
            if path == "one_hop":
                mean = theory.expected_dispersion_rate(LINE_RATE, load, count)
                off = max(off, abs(float(rates.mean()) - mean) / float(rates.std() / len(rates) ** 0.5))
            shares.append(held(rates, mean, cell, 50, size.of(100, 1000, 2000), random).share)
        yield Figure(f"interval_holds_least_{path}_{count}", 100 * min(shares), "% of the worst load", 93, True)
        yield Figure(f"interval_holds_mean_{path}_{count}", 100 * float(np.mean(shares)), "%", 100)
        if path == "one_hop":
            yield Figure(f"expectation_off_theory_{path}_{count}", off, "standard errors", 4)
