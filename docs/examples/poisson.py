# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Poisson load against latency through a switch, beside the waiting time of M/D/1; with --plot as a picture, too.

Frames of one length and exponential intervals come to an output that is ten times slower than the line they come by. Each
takes the time D there, so a frame waits rho * D / (2 * (1 - rho)) in the mean (Pollaczek and Khinchine).
"""

import argparse
from pathlib import Path

import numpy as np
from scipy import stats

from liteprobe.host import Fixed, Interval, Probe, Stream

URL = "sim://switch?latency=3us&rate=100M&queue=1000&preset=tester&cpu=0"
LENGTH, OVERHEAD = 60, 24  # Octets.
OUTPUT_BPS = 1e8
SERVICE_NS = 8e9 * (LENGTH + OVERHEAD) / OUTPUT_BPS


def md1_ns(load: float) -> float:
    """Return the mean time that a frame waits (ns)."""
    return load * SERVICE_NS / (2 * (1 - load))


def wait_ns(probe: Probe, load: float, count: int, seed: int, port: int) -> float:
    """Return how long ``count`` frames waited in the mean (ns): their delay over that of a frame that did not wait."""
    pace = Interval(rate_bps=load * OUTPUT_BPS, exponential=True)
    result = probe.send([Stream("poisson", 1, Fixed(LENGTH), pace, count, port=port, seed=seed)]).result()
    latency = result["poisson"].latency
    assert latency is not None
    return latency.mean_ns - latency.least_ns


def measure(probe: Probe, loads: list[float], count: int, runs: int, port: int) -> list[tuple[float, float, float]]:
    """Return load, mean wait and half of its 95 % interval (ns), from runs with seeds of their own."""
    rows = []
    for load in loads:
        waits = [wait_ns(probe, load, count, seed, port) for seed in range(1, runs + 1)]
        half = stats.t.ppf(0.975, runs - 1) * np.std(waits, ddof=1) / runs**0.5
        rows.append((load, float(np.mean(waits)), float(half)))
    return rows


def plot(path: Path, rows: list[tuple[float, float, float]]) -> None:
    """Draw what was measured beside M/D/1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    smooth = np.linspace(0.01, 0.95, 200)
    axes.plot(smooth, [md1_ns(load) / 1e3 for load in smooth], label="M/D/1")
    loads, waits, halves = np.array(rows).T
    axes.errorbar(loads, waits / 1e3, halves / 1e3, fmt="o", capsize=3, label="measured, 95 %")
    axes.set(xlabel="load of the output", ylabel="mean wait (µs)", ylim=(0, 1.1 * max(waits + halves) / 1e3))
    axes.legend()
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and draw where that is asked for."""
    parser = argparse.ArgumentParser(description="Poisson load against latency, beside M/D/1.")
    parser.add_argument("--probe", default=URL)
    parser.add_argument("--loads", default="0.3,0.5,0.7,0.8")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args(arguments)
    with Probe(args.probe) as probe:
        rows = measure(probe, [float(load) for load in args.loads.split(",")], args.count, args.runs, args.port)
    print("load   wait, us   +-95 %   M/D/1, us")
    for load, wait, half in rows:
        print(f"{load:4.2f} {wait / 1e3:10.2f} {half / 1e3:8.2f} {md1_ns(load) / 1e3:11.2f}")
    if args.plot:
        plot(args.plot, rows)


if __name__ == "__main__":
    main()
