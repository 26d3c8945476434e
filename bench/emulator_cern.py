# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Row ``cern`` of the bench ``emulator``: a web site fetched through a queue with background, as in CERN's experiment of 2005.

A client and a server on lwIP, whose clock is the simulation's; the network between them is the reference of the emulator, event
by event. (The gateware's engine is held to that reference, frame by frame, by a row of its own.) A slowdown is the total
transfer time over that without background, a mean over seeds. Writes a table and a plot into build/bench.
"""

import os
from collections.abc import Iterator

import matplotlib
import numpy as np
from matplotlib.figure import Figure as Picture

from liteprobe.sim.drivers.emulator.cern import Kind, Transfer, site, transfer
from liteprobe.sim.drivers.emulator.stations import build
from liteprobe.sim.drivers.tools.figures import ROOT, Figure, row

FOLDER = ROOT / "build" / "bench"
LOADS = (0, 20, 40, 60, 80, 90, 100)  # %.
SEEDS, SEEDS_FULL = 3, 10
LIMIT_S = 600.0
HARMLESS = 1.25  # Slowdown.
STYLES = {
    Kind.CONSTANT: ("#0072b2", "o", "CBR"),
    Kind.EXPONENTIAL: ("#d55e00", "s", "exponential"),
    Kind.BURSTS: ("#009e73", "^", "bursts of 32 on average"),
}

Case = tuple[Kind, bool, int]  # Keep-alive, load.
Results = dict[Case, list[Transfer]]


def measured(seeds: int) -> Results:
    """Return the transfers of all cases; those without load are the same for each kind and seed."""
    lengths = site()
    free = {is_kept: transfer(Kind.CONSTANT, 0, is_kept, 0, lengths, LIMIT_S) for is_kept in (False, True)}
    return {
        (kind, is_kept, load): [transfer(kind, load / 100, is_kept, seed, lengths, LIMIT_S) for seed in range(seeds)]
        if load
        else [free[is_kept]]
        for kind in Kind
        for is_kept in (False, True)
        for load in LOADS
    }


def seconds(transfers: list[Transfer]) -> float:
    """Return the mean time; a transfer that isn't complete counts as long as it was given."""
    return float(np.mean([one.seconds for one in transfers]))


def table(results: Results) -> str:
    """Return all cases as a table."""
    lines = [
        "| background | keep-alive | load % | s | least | most | complete | frames | lost |",
        "|---|---|" + "--:|" * 7,
    ]
    for (kind, is_kept, load), transfers in results.items():
        times = [one.seconds for one in transfers]
        lines.append(
            f"| {kind.value} | {'on' if is_kept else 'off'} | {load} | {seconds(transfers):.2f} | {min(times):.2f} "
            f"| {max(times):.2f} | {sum(one.is_complete for one in transfers)} of {len(transfers)} "
            f"| {sum(one.frames for one in transfers)} | {sum(one.lost for one in transfers)} |"
        )
    return "\n".join(lines) + "\n"


def draw(results: Results) -> None:
    """Draw the times over the load, keep-alive off and on; the bars go from the least to the most."""
    with matplotlib.rc_context({"font.size": 10, "axes.grid": True, "grid.alpha": 0.3, "legend.frameon": False}):
        picture = Picture(figsize=(9, 4), layout="constrained")
        left, right = picture.subplots(1, 2, sharey=True)
        for axes, is_kept in ((left, False), (right, True)):
            for kind, (colour, marker, label) in STYLES.items():
                cases = [results[kind, is_kept, load] for load in LOADS]
                means = np.array([seconds(one) for one in cases])
                ends = np.array([[min(t.seconds for t in one), max(t.seconds for t in one)] for one in cases])
                bars = np.abs(ends.T - means)
                axes.errorbar(LOADS, means, bars, color=colour, marker=marker, capsize=3, label=label)
            axes.axhline(LIMIT_S, color="0.5", linestyle=":")
            axes.text(0, LIMIT_S * 0.95, f"not complete after {LIMIT_S:.0f} s", va="top", color="0.4")
            axes.set_title(f"keep-alive {'on' if is_kept else 'off'}")
            axes.set_xlabel("background load (% of 10 Mb/s)")
            axes.set_yscale("log")
            axes.set_yticks([10, 20, 50, 100, 200, 500], ["10", "20", "50", "100", "200", "500"])
            axes.minorticks_off()
        left.set_ylabel("total transfer time (s)")
        left.legend(loc="upper left", bbox_to_anchor=(0, 0.9))
        picture.savefig(FOLDER / "emulator-cern.png", dpi=110)


@row("emulator")
def test_cern(is_full: bool) -> Iterator[Figure]:
    """Slowdown by background, at constant and exponential intervals and in bursts."""
    reason = build.lacking()
    if reason:
        print(f"cern skipped: {reason}")
        return
    results = measured(SEEDS_FULL if is_full else SEEDS)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "emulator-cern.md").write_text(table(results), encoding="utf-8")
    draw(results)
    print(f"cern: {os.path.relpath(FOLDER, ROOT)}/emulator-cern.md and .png")
    everything = [one for transfers in results.values() for one in transfers]
    below = [one for (_, _, load), transfers in results.items() if load < 100 for one in transfers]
    yield Figure("cern_wrong_octets", sum(one.wrong for one in everything), "octets", 0)
    yield Figure("cern_incomplete_below_100", sum(not one.is_complete for one in below), "transfers", 0)
    for is_kept, name in ((False, "off"), (True, "on")):
        # Added by the background, over the time without it.
        added = {
            (kind, load): seconds(results[kind, is_kept, load]) / seconds(results[kind, is_kept, 0]) - 1
            for kind in Kind
            for load in LOADS
        }
        constant, exponential = ([added[kind, load] for load in LOADS] for kind in (Kind.CONSTANT, Kind.EXPONENTIAL))
        at_80, at_90, at_100 = (LOADS.index(load) for load in (80, 90, 100))
        yield Figure(f"cern_{name}_constant_80", 1 + max(constant[: at_80 + 1]), "times", HARMLESS)
        yield Figure(f"cern_{name}_constant_90", 1 + constant[at_90], "times", HARMLESS)
        yield Figure(f"cern_{name}_constant_100", 1 + constant[at_100], "times", 10, is_least=True)
        # What frames wait for at random beyond what they wait for at regular intervals.
        for load in (60, 80, 90):
            ratio = added[Kind.EXPONENTIAL, load] / added[Kind.CONSTANT, load]
            yield Figure(f"cern_{name}_exponential_over_constant_{load}", ratio, "times", 1.2, is_least=True)
        yield Figure(f"cern_{name}_exponential_80", 1 + exponential[at_80], "times", HARMLESS - 0.1, is_least=True)
        yield Figure(f"cern_{name}_exponential_90", 1 + exponential[at_90], "times", HARMLESS, is_least=True)
        yield Figure(f"cern_{name}_exponential_100", 1 + exponential[at_100], "times", 5, is_least=True)
        yield Figure(f"cern_{name}_bursts_80", 1 + added[Kind.BURSTS, 80], "times", 3, is_least=True)
