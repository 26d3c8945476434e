# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Has the probes of a modelled fleet run suites, at themselves and between them, and holds what comes of them against the truth."""

import random
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from liteprobe.cores.formats import TransmitState
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.fleet.experiment import Experiment, ExperimentResult
from liteprobe.host.fleet.plan import read_plan
from liteprobe.host.fleet.suite_runs import SuiteFigures
from liteprobe.host.suites.rfc2544 import CHECK_FRAMES
from liteprobe.sim.drivers.system.fleet import KINDS, WITHIN_BOUNDS, FleetBench, Hostile, name_of
from liteprobe.sim.drivers.system.fleet_stations import Stations, befallen
from liteprobe.sim.models.probe.fleet import TAI_NS, FleetProbe, FleetTester
from liteprobe.sim.models.probe.fleet import Path as Way

PROBES = 6
#: What each of them runs: a benchmark and services between two, a soak test at one, each sends a few hundred frames.
PLAN = """
suites:
  - at: p00
    to: p01
    rfc2544:
      {tests: [throughput, latency], frame_size: [1518], duration: 300us, pause: 1ms, search: bisection, precision: 20%,
       latency_duration: 300us, latency_repeats: 2, loss_ratio: 20%}
  - at: p02
    to: p03
    y1564:
      {duration: 1ms, performance: 2ms, pause: 1ms, steps: [50%, 100%],
       services: [{name: voice, length: 214, cir: 50M, policed: false, loss: 50%}]}
  - at: p04
    soak:
      {duration: 4ms, segment: 1ms, receive: 0,
       streams: [{name: a, length: 500, rate: 50M, ipv4: {destination: 10.0.0.5}}]}
  - {at: p05, to: p00, name: later, soak: {duration: 2ms, segment: 1ms, streams: [{name: b, length: 60, pps: 20k}]}}
"""
AT = 4 # The probe that hears itself.
DELAY_TICKS = 2 # That a meter may add: it takes the end of the tick, by a bin.
BIN = 1/128 # Of a delay, which a meter keeps in bins.


def document(more: str = PLAN, url: Callable[[int], str] = lambda n: f"10.9.0.{n + 1}", count: int = PROBES) -> str:
    """Return a plan with the probes of a fleet."""
    probes = "".join(f"  {name_of(n)}: {{url: '{url(n)}', ip: 10.0.0.{n + 1}}}\n" for n in range(count))
    return f"probes:\n{probes}{more}"


def bench_of(seed: int, folder: Path, of: type[FleetProbe] = FleetTester) -> FleetBench:
    """Return a fleet in which one of the probes hears itself, by a device that delays."""
    bench = FleetBench(PROBES, seed, folder, of)
    bench.fleet.paths[AT, AT] = Way(20e3, 500)
    return bench


def check_all(bench: FleetBench, suites: Sequence[SuiteFigures], found: Hostile, victim: str = "") -> None:
    """Hold what came of all suites against the truth."""
    for one in suites:
        later = [each.start_time_ns for each in suites if each.sender == one.sender and each.start_time_ns]
        until = min((each for each in later if each > (one.start_time_ns or 0)), default=None)
        check(bench, one, found, victim, inf if until is None else until - TAI_NS - 1e6)


def check(bench: FleetBench, one: SuiteFigures, found: Hostile, victim: str, until_ns: float) -> None:
    """Hold what came of a suite against the truth, until the next one of its probe: all that its trials count, every delay."""
    is_concerned = found.kind == "interrupt" or victim in (one.sender, one.receiver)
    if not one.is_complete:
        found.unnamed += [one.name]*(not one.why)
        found.missing += [one.words]*(not is_concerned)
    if one.document is None:
        return
    sender, receiver = int(one.sender[1:]), int(one.receiver[1:])
    own = [each for each in bench.fleet.passages if (each.sender, each.receiver) == (sender, receiver)]
    if one.start_time_ns is not None: # Another suite of the same probe begins in a start of its own.
        own = [each for each in own if one.start_time_ns - TAI_NS - 1e6 <= each.left_ns < until_ns]
    own = own[CHECK_FRAMES if one.kind == "rfc2544" else 0:]
    trials = one.document["trials"]
    counted = [(way["sent"], way["lost"]) for trial in trials for way in trial["streams"]]
    is_again = one.note.startswith("the station was away") # A trial that was cut off is in the middle of all that was sent.
    sent, lost = (sum(each[place] for each in counted) for place in range(2))
    before = own[:sent] # What was sent in a trial that was cut off is in no figure.
    if one.is_complete and sent != len(own) and not is_again:
        found.wrong.append(f"{one.name}: {sent} frames, truly {len(own)}")
    if len(before) < sent or (lost != sum(each.came_ns is None for each in before) and not is_again):
        found.wrong.append(f"{one.name}: {lost} lost, truly {sum(each.came_ns is None for each in before)}")
    true_ns = [each.came_ns - each.left_ns for each in before if each.came_ns is not None]
    if one.uncertainty_ns is None:
        found.wrong += [f"{one.name}: delays without an error"]*bool(one.rows)
        return
    true_ns = true_ns or [inf] # Any delay is wrong then.
    most_ns = WITHIN_BOUNDS*one.uncertainty_ns + 8*DELAY_TICKS
    for part, row in one.rows.items():
        for name in ("least", "mean", "p50", "p99_9", "most"):
            if row.get(name) is None:
                continue
            value, *_ = row[name]
            slack_ns = most_ns + BIN*max(true_ns)
            if not min(true_ns) - slack_ns <= value <= max(true_ns) + slack_ns:
                found.wrong.append(f"{one.name}, {part}: {name} {value:.0f} ns, truly {min(true_ns):.0f} to {max(true_ns):.0f}")


def hostile(seed: int, folder: Path, of: type[FleetProbe] = FleetTester) -> Hostile:
    """Run suites on six probes, of which a random fault befalls one, and hold all of them against the truth."""
    draw = random.Random(seed)
    kind, victim = draw.choice([one for one in KINDS if one not in ("slow", "killed")]), draw.randrange(PROBES)
    at_ns = draw.randrange(2, 5)*1e9 + (draw.uniform(-5e4, 4e7) if draw.random() < 0.8 else draw.uniform(0, 1e9))
    bench = bench_of(seed, folder, of)
    bench.fault(kind, victim, at_ns)
    found = Hostile(kind, [], [], [], True, False)
    experiment = Experiment(read_plan(document()), opener=lambda one: bench.open_one(bench.planned()[int(one.name[1:])]))
    try:
        with experiment:
            result = experiment.run()
    except Interrupted as stop:
        (result,) = stop.results
    check_all(bench, result.suites, found, name_of(victim))
    found.is_noticed = not result.is_complete or any(one.note for one in result.suites)
    reached = [probe for probe, link in zip(bench.fleet.probes, bench.links, strict=True) if not link.is_cut]
    found.is_stopped = all(probe.values["port0_tx_state"] == TransmitState.IDLE for probe in reached)
    return found


#: Of stations, each at its own probe: what each takes is known before.
OF_STATIONS = """
suites:
  - at: p00
    rfc2544:
      {tests: [throughput], frame_size: [1518], duration: 300us, pause: 1ms, search: bisection, precision: 20%, receive: 0,
       loss_ratio: 20%, ipv4: {destination: 10.0.0.1}}
  - at: p01
    y1564:
      {duration: 1ms, performance: 2ms, pause: 1ms, steps: [50%, 100%], receive: 0,
       services: [{name: voice, length: 214, cir: 50M, policed: false, loss: 50%, ipv4: {destination: 10.0.0.2}}]}
  - at: p02
    soak:
      {duration: 3ms, segment: 1ms, receive: 0,
       streams: [{name: a, length: 500, rate: 50M, ipv4: {destination: 10.0.0.3}}]}
  - at: p00
    name: later
    soak:
      {duration: 2ms, segment: 1ms, receive: 0,
       streams: [{name: b, length: 500, rate: 50M, ipv4: {destination: 10.0.0.1}}]}
"""


def hostile_stations(seed: int, folder: Path, of: type[FleetProbe] = FleetTester) -> Hostile:
    """Run suites on three stations, of which a random fault befalls one or its probe, and hold them against the truth."""

    def of_all(made: Stations, result: ExperimentResult, found: Hostile, victim: str) -> None:
        check_all(made.bench, result.suites, found, victim)

    return befallen(seed, folder, of, check=of_all, sent=OF_STATIONS)
