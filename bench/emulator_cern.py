# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Rows ``cern`` and ``cern_engine`` of the bench ``emulator``: CERN's experiment of 2005, a web site behind a busy queue.

A client and a server on lwIP, whose clock is the simulation's; the network between them is Lindley's recursion. Row ``cern_engine``
gives the gateware's engine, compiled, the frames of such transfers: where it lets them leave on the same ticks, the stations would
have done the same on it. Row ``cern`` writes a table and the plot of docs/design/emulator.md into build/bench.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Picture

from liteprobe.sim.drivers.emulator import engine
from liteprobe.sim.drivers.emulator.cern import TICKS_S, Case, Kind, settings, simulation, site, transfers
from liteprobe.sim.drivers.emulator.stations import build
from liteprobe.sim.drivers.emulator.stations.network import CLASS
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, note, row

FOLDER = ROOT / "build" / "bench"
LOADS = (40, 60, 80, 90, 95, 100)  # %.
LOADS_FULL = (*range(5, 100, 5), 96, 97, 98, 99, 100)
GAPS, GAPS_FULL = (16, 64, 256), (16, 64, 256, 1024, 4096)
SEEDS = 5
LIMIT_S = 600.0
LIMIT_LONG_S = 6000.0  # Of those that say what keep-alive gains: few are complete by then without it.
HARMLESS = 1.25  # Slowdown.
STEP_TICKS = 1_000_000  # Of the engine, at once, where nothing happens: less than the delay.
COLOURS = ("#d55e00", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")

Series = tuple[Kind, int]  # With how many intervals its pattern has.
CBR, ENDLESS = (Kind.CONSTANT, 0), (Kind.EXPONENTIAL, 0)


class Results:
    """Holds the transfers of all cases, as a series, keep-alive and a load (%) name them."""

    def __init__(self, loads: Sequence[int], gaps: Sequence[int]) -> None:
        self.loads = loads
        self.series: list[Series] = [CBR, ENDLESS, *((Kind.PATTERN, n) for n in gaps)]
        cases = {
            (one, is_kept, load): [
                Case(one[0], load / 100, is_kept, seed, one[1]) for seed in range(1 if one == CBR else SEEDS)
            ]
            for one, is_kept, load in product(self.series, (False, True), loads)
        }
        cases |= {((Kind.BURSTS, 0), is_kept, 80): [Case(Kind.BURSTS, 0.8, is_kept)] for is_kept in (False, True)}
        cases |= {(CBR, is_kept, 0): [Case(Kind.CONSTANT, 0, is_kept)] for is_kept in (False, True)}
        flat = [case for several in cases.values() for case in several]
        done = dict(zip(flat, transfers(flat, LIMIT_S), strict=True))
        self.all = {name: [done[case] for case in several] for name, several in cases.items()}

    def seconds(self, series: Series, is_kept: bool, load: int) -> np.ndarray:
        """Return the time of each seed; a transfer that isn't complete counts as long as it was given."""
        return np.array([one.seconds for one in self.all[series, is_kept, load]])

    def over_constant(self, series: Series, *, is_kept: bool, load: int) -> float:
        """Return the mean time over that with a background at constant intervals of the same load."""
        return float(self.seconds(series, is_kept, load).mean() / self.seconds(CBR, is_kept, load).mean())


def title(series: Series) -> str:
    """Return the name of a series."""
    return {CBR: "CBR", ENDLESS: "exponential, endless"}.get(series, f"pattern of {series[1]}")


def table(results: Results) -> str:
    """Return mean and deviation of each case (s), and how many of its transfers were complete."""
    lines = []
    for is_kept in (False, True):
        lines += [f"\nkeep-alive {'on' if is_kept else 'off'}\n"]
        lines += ["| load % | " + " | ".join(map(title, results.series)) + " |", "|--:|" + "--:|" * len(results.series)]
        for load in results.loads:
            cells = []
            for series in results.series:
                seconds, ones = results.seconds(series, is_kept, load), results.all[series, is_kept, load]
                missing = sum(not one.is_complete for one in ones)
                deviation = f" ± {seconds.std(ddof=1):.1f}" if len(ones) > 1 else ""
                cells.append(f"{seconds.mean():.1f}{deviation}" + (f" ({missing} not)" if missing else ""))
            lines.append(f"| {load} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(results: Results) -> None:
    """Draw the times over the load, keep-alive off and on: means, and each seed of the patterns."""
    with matplotlib.rc_context({"font.size": 10, "axes.grid": True, "grid.alpha": 0.3, "legend.frameon": False}):
        picture = Picture(figsize=(11, 4.6), layout="constrained")
        for axes, is_kept in zip(picture.subplots(1, 2, sharey=True), (False, True), strict=True):
            styles = {CBR: ("black", "o"), ENDLESS: ("#0072b2", "s")}
            styles |= {one: (colour, "^") for one, colour in zip(results.series[2:], COLOURS, strict=False)}
            for series, (colour, marker) in styles.items():
                times = [results.seconds(series, is_kept, load) for load in results.loads]
                style = {"color": colour, "marker": marker, "ms": 4, "label": title(series)}
                axes.plot(results.loads, [one.mean() for one in times], **style)
                if series[1]:
                    places = np.repeat(results.loads, SEEDS)
                    axes.scatter(places, np.concatenate(times), s=7, color=colour, alpha=0.45, linewidths=0)
            axes.axhline(LIMIT_S, color="0.5", linestyle=":")
            axes.text(0, LIMIT_S * 0.95, f"not complete after {LIMIT_S:.0f} s", va="top", color="0.4")
            axes.set_title(f"keep-alive {'on' if is_kept else 'off'}")
            axes.set_xlabel("background load (% of 10 Mb/s)")
            axes.set_xlim(left=-2)
            axes.set_yscale("log")
            axes.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
            axes.minorticks_off()
            if not is_kept:
                axes.set_ylabel("total transfer time (s)")
                axes.legend(loc="upper left", bbox_to_anchor=(0, 0.9))
        picture.savefig(FOLDER / "emulator-cern.png", dpi=100)


def gains(loads: Sequence[int], seeds: Sequence[int]) -> list[float]:
    """Return how many times as long transfers take without keep-alive, by patterns of 16; of one that isn't complete, at least."""
    cases = [
        Case(Kind.PATTERN, load / 100, is_kept, seed, GAPS[0])
        for load, seed, is_kept in product(loads, seeds, (False, True))
    ]
    done = transfers(cases, LIMIT_LONG_S)
    for case, one in zip(cases, done, strict=True):
        note(
            f"{case.load:.0%}, seed {case.seed}, keep-alive {case.is_kept}: {one.seconds:.0f} s, complete {one.is_complete}"
        )
    return [off.seconds / on.seconds for off, on in zip(done[::2], done[1::2], strict=True) if on.is_complete]


def is_lacking() -> bool:
    """Return whether there are no stations, and say why."""
    reason = build.lacking()
    if reason:
        print(f"skipped: {reason}")
    return bool(reason)


@row("emulator")
def test_cern(is_full: bool) -> Iterator[Figure]:
    """Time of a transfer by background: at constant and exponential intervals, and by patterns of those, which repeat."""
    if is_lacking():
        return
    results = Results(LOADS_FULL if is_full else LOADS, GAPS_FULL if is_full else GAPS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "emulator-cern.md").write_text(table(results), encoding="utf-8")
    draw(results)
    print(f"cern: {os.path.relpath(FOLDER, ROOT)}/emulator-cern.md and .png")
    everything = [one for several in results.all.values() for one in several]
    yield Figure("cern_wrong_octets", sum(one.wrong for one in everything), "octets", 0)
    below = [
        one
        for (series, _, load), several in results.all.items()
        for one in several
        if series in (CBR, ENDLESS) and load < 100
    ]
    gain = max(gains((65, 70, 75, 80), range(SEEDS)) if is_full else gains((75,), (4,)))
    yield Figure("cern_keep_alive_gain", gain, "times", 10, is_least=True)
    yield Figure("cern_incomplete_below_100", sum(not one.is_complete for one in below), "transfers", 0)
    for is_kept, name in ((False, "off"), (True, "on")):
        free = float(results.seconds(CBR, is_kept, 0).mean())
        for load in (80, 90):
            slowdown = results.seconds(CBR, is_kept, load).mean() / free
            yield Figure(f"cern_{name}_constant_{load}", slowdown, "times", HARMLESS)
        slowdown = results.seconds(CBR, is_kept, 100).mean() / free
        yield Figure(f"cern_{name}_constant_100", slowdown, "times", 10, is_least=True)
        bursts = results.seconds((Kind.BURSTS, 0), is_kept, 80).mean() / free
        yield Figure(f"cern_{name}_bursts_80", bursts, "times", 3, is_least=True)
        over = partial(results.over_constant, is_kept=is_kept)
        above = [load for load in results.loads if 80 < load < 100]
        for load, most in ((60, 1.1), (80, 1.25), (90, 1.5)):  # Endless intervals never come near the paper's factor.
            yield Figure(f"cern_{name}_endless_{load}", over(ENDLESS, load=load), "times of CBR", most)
        # The paper's shape: little up to 60 %, tenfold above 80 %, with large deviations; the longer a pattern, the less.
        early = max(over((Kind.PATTERN, 16), load=load) for load in results.loads if load <= 60)
        yield Figure(f"cern_{name}_pattern_16_up_to_60", early, "times of CBR", 1.1)
        for gaps, least in ((16, 10), (64, 5), (256, 1.5)):
            most = max(over((Kind.PATTERN, gaps), load=load) for load in above)
            yield Figure(f"cern_{name}_pattern_{gaps}_above_80", most, "times of CBR", least, is_least=True)
        times = results.seconds((Kind.PATTERN, 16), is_kept, 80)
        deviation = times.std(ddof=1) / times.mean()
        yield Figure(f"cern_{name}_pattern_16_deviation_80", deviation, "of the mean", 0.5, is_least=True)


@row("emulator")
def test_cern_engine(is_full: bool) -> Iterator[Figure]:
    """Give the engine the frames of transfers: those that leave, and their ticks, which the stations went by."""
    if is_lacking():
        return
    gaps, loads, seeds, limit_s = (GAPS, (60, 80, 95), 3, 120.0) if is_full else (GAPS, (80, 95), 1, 60.0)
    cases = [
        Case(Kind.PATTERN, load / 100, is_kept, seed, n)
        for n, load, is_kept, seed in product(gaps, loads, (False, True), range(seeds))
    ]
    cases += [Case(kind, 0.9, is_kept) for kind in (Kind.CONSTANT, Kind.EXPONENTIAL) for is_kept in (False, True)]
    frames = off = departures_off = cycles = 0
    for case in cases:
        one = simulation(case, site())
        one.run(round(limit_s * TICKS_S))
        for number, path in enumerate(one.paths.values()):
            arrivals = [(came.time, came.length, CLASS) for came in path.direction.frames if came.time < one.tick]
            plan = engine.Plan(settings(case, number), [], arrivals, one.tick, STEP_TICKS, lag_ticks=0, stall_256=0)
            compared = engine.compare(plan)
            left = engine.reference(plan)[0].departures
            common = min(len(left), len(path.direction.departures))
            departures_off += left[:common] != path.direction.departures[:common]
            departures_off += sum(tick < plan.end for tick, _ in path.direction.departures[common:])
            frames, off, cycles = frames + compared.frames, off + compared.off, cycles + compared.cycles
    yield Figure("cern_engine_transfers", len(cases), "transfers", len(cases), is_least=True)
    yield Figure("cern_engine_frames", frames, "frames", 10_000, is_least=True)
    yield Figure("cern_engine_cycles", cycles, "cycles", 1, is_least=True)
    yield Figure("cern_engine_off", off, "frames, departures and counters", 0)
    yield Figure("cern_engine_departures_off", departures_off, "directions and frames", 0)
