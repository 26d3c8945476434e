# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows about experiments on many probes: delays and starts against the models' true time, and random faults."""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from liteprobe.host.fleet.experiment import Experiment
from liteprobe.sim.drivers.system.fleet import PROGRAM, FleetBench, Hostile, hostile
from liteprobe.sim.drivers.system.fleet_captures import FleetCapturer
from liteprobe.sim.drivers.system.fleet_captures import hostile as hostile_captures
from liteprobe.sim.drivers.system.fleet_stations import hostile as hostile_stations
from liteprobe.sim.drivers.system.fleet_stations import hostile_captures as hostile_station_captures
from liteprobe.sim.drivers.system.fleet_suites import hostile as hostile_suites
from liteprobe.sim.drivers.system.fleet_suites import hostile_stations as hostile_station_suites
from liteprobe.sim.drivers.tools.figures import Figure, drawn, note, row
from liteprobe.sim.models.probe.fleet import TAI_NS, FleetProbe, FleetTester

PROBES = 20
FLEETS = 5
FAULTS, FULL_FAULTS = 200, 2000
START_S = TAI_NS // 10**9 + 3
Befall = Callable[[int, Path, type[FleetProbe]], Hostile]


@row("fleet")
def test_start(is_full: bool) -> Iterator[Figure]:
    """Twenty probes, one start: first frames of the first start, and 380 delays, of some fleets."""
    rng = drawn()
    inside = lost_wrong = measured = complete = 0
    worst, starts_in, starts = 0.0, 0, 0
    fleets = FLEETS * (4 if is_full else 1)
    for _ in range(fleets):
        with tempfile.TemporaryDirectory() as folder:
            bench = FleetBench(PROBES, rng.randrange(2**32), Path(folder))
            plan = bench.plan(PROGRAM, start_tai_s=START_S)
            with Experiment(plan, opener=bench.open_one) as experiment:
                result = experiment.run()
        complete += result.is_complete
        for one in result.pairs:
            true_ns, lost = bench.truth(int(one.sender[1:]), int(one.receiver[1:]))
            lost_wrong += one.count("lost") != lost
            if one.delays is not None and one.bound_ns is not None:
                measured += 1
                inside += abs(one.delays["mean"] - sum(true_ns) / len(true_ns)) <= one.bound_ns
        heads: dict[int, float] = {}
        for frame in bench.fleet.passages:
            heads.setdefault(frame.sender, frame.left_ns)
        for a, first_ns in heads.items():
            for b, other_ns in heads.items():
                if a < b:
                    starts += 1
                    bound_ns = bench.fleet.probes[a].bound_ns + bench.fleet.probes[b].bound_ns + 8
                    starts_in += abs(first_ns - other_ns) <= bound_ns
                    worst = max(worst, abs(first_ns - other_ns) / bound_ns)
    note(
        f"# fleets {fleets}, pairs of first frames {starts}, of which {starts - starts_in} are further apart than both bounds"
    )
    yield Figure("complete", complete / fleets, "of fleets", 1.0, is_least=True)
    yield Figure("delays_measured", measured / fleets, "a fleet", PROBES * (PROBES - 1), is_least=True)
    yield Figure("delays_inside", 100 * inside / measured, "%", 95.0, is_least=True)
    yield Figure("loss_wrong", lost_wrong, "pairs", 0)
    # Bounds are of 95 %, and the models' errors are normal: 0.6 % of pairs are further apart than the sum of both.
    yield Figure("starts_inside", 100 * starts_in / starts, "%", 99.0, is_least=True)
    yield Figure("starts_worst", worst, "of the sum of both bounds", 2.0)


@row("fleet")
def test_stations(is_full: bool) -> Iterator[Figure]:
    """A plan on three stations without a host, a random fault in each run: no wrong figure, each named."""
    yield from _faults(hostile_stations, FleetProbe, is_full)


@row("fleet")
def test_stations_streams(is_full: bool) -> Iterator[Figure]:
    """The same, of pairs that send streams."""
    yield from _faults(hostile_stations, FleetTester, is_full)


@row("fleet")
def test_faults(is_full: bool) -> Iterator[Figure]:
    """A random fault each on five probes: never a wrong figure, each named, the rest complete."""
    yield from _faults(hostile, FleetProbe, is_full)


@row("fleet")
def test_faults_streams(is_full: bool) -> Iterator[Figure]:
    """The same, of pairs that send streams."""
    yield from _faults(hostile, FleetTester, is_full)


@row("fleet")
def test_faults_captures(is_full: bool) -> Iterator[Figure]:
    """The same, with captures at two probes beside the streams: no frame wrong, none missing in silence."""
    yield from _faults(hostile_captures, FleetCapturer, is_full)


@row("fleet")
def test_faults_suites(is_full: bool) -> Iterator[Figure]:
    """A random fault each on six probes that run suites, at themselves and between them."""
    yield from _faults(hostile_suites, FleetTester, is_full)


@row("fleet")
def test_stations_suites(is_full: bool) -> Iterator[Figure]:
    """Suites at three stations without a host, a random fault in each run: a station that was killed goes on."""
    yield from _faults(hostile_station_suites, FleetTester, is_full)


@row("fleet")
def test_stations_captures(is_full: bool) -> Iterator[Figure]:
    """Captures at stations beside streams: files come with the results, or it is named why not."""
    yield from _faults(hostile_station_captures, FleetCapturer, is_full)


# # #


def _faults(befall: Befall, of: type[FleetProbe], is_full: bool) -> Iterator[Figure]:
    rng = drawn()
    kinds: Counter[str] = Counter()
    wrong, unnamed, missing, running, quiet = [], [], [], 0, 0
    count = FULL_FAULTS if is_full else FAULTS
    for _ in range(count):
        seed = rng.randrange(2**32)
        with tempfile.TemporaryDirectory() as folder:
            found = befall(seed, Path(folder), of)
        kinds[found.kind] += 1
        wrong += [f"{seed} {found.kind} {one}" for one in found.wrong]
        unnamed += [f"{seed} {found.kind} {one}" for one in found.unnamed]
        missing += [f"{seed} {found.kind} {one}" for one in found.missing]
        quiet += not found.is_noticed
        running += not found.is_stopped
    note(f"# faults {dict(kinds)}; {quiet} of {count} left all true", *wrong, *unnamed, *missing)
    yield Figure("faults", count, "runs", count, is_least=True)
    yield Figure("wrong_figures", len(wrong), "pairs", 0)
    yield Figure("unnamed", len(unnamed), "pairs", 0)
    yield Figure("others_incomplete", len(missing), "pairs", 0)
    yield Figure("still_sending", running, "runs", 0)
