# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Rows of the bench ``suites`` about trials and RFC 2544: devices with a known truth, in plain Python and simulated.

A device of plain Python is asked frame by frame; trials are scaled (5 to 125 ms), and so are its pauses and its rare losses.
What is excluded: other traffic in the device, and clocks that differ.
"""

import copy
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from liteprobe.host.probe import Probe
from liteprobe.host.suites.rfc2544 import (
    OVERSIZE,
    SIZES,
    TESTS_2889,
    Rfc2544,
    Rfc2544Request,
    SizeFigures,
    Throughput,
    length_of,
)
from liteprobe.host.suites.rfc2889 import AddressSettings
from liteprobe.host.suites.search import METHODS, Goal
from liteprobe.host.suites.trials import GROWTH_MOST
from liteprobe.sim.drivers.suites import kept_suite
from liteprobe.sim.drivers.suites.fake_probe import FakeProbe
from liteprobe.sim.drivers.tools.figures import Figure, note, row
from liteprobe.sim.models import switch
from liteprobe.sim.models.forwarder import Device, Learner, Lossy, Policer, Switch

ONE, BOTH = ((0, 1),), ((0, 1), (1, 0))
TICKS = 125_000_000
LINE_FPS = Fraction(TICKS, 84)  # Frames of 64 octets with FCS.
KILLS = 10


@dataclass(frozen=True)
class Known:
    """A device, and how long its trials must be for what it does to be seen."""

    device: Device
    seconds: float = 0.02
    least: float = 0.01  # Load.


DEVICES = {
    "600 Mb/s, 64 frames": Known(Switch(rate=Fraction(6, 10))),
    "400,000 frames/s": Known(Switch(frames=400_000)),
    "both ways share 1 Gb/s": Known(Switch(is_shared=True)),
    "30 % at 512 octets": Known(Switch(faults={508: Fraction(3, 10)})),
    "policer at 83.4 %": Known(Policer(), 0.05),
    "line rate": Known(Device()),
    "pause of 40 us each 20 ms": Known(Switch(queue=500, pause=(5_000, 2_500_000)), 0.1),
    "loses 1 of 1,000": Known(Lossy(one_of=1_000), 0.125, 0.1),
}
QUEUES = {
    "600 Mb/s, 2,000 frames": Switch(rate=Fraction(6, 10), queue=2_000),
    "600 Mb/s, 20,000 frames": Switch(rate=Fraction(6, 10), queue=20_000),
    "600 Mb/s, 1,000,000 frames": Switch(rate=Fraction(6, 10), queue=1_000_000),
    "990 Mb/s, 100,000 frames": Switch(rate=Fraction(99, 100), queue=100_000),
    "100 Mb/s, 1,000,000 frames": Switch(rate=Fraction(1, 10), queue=1_000_000),
    "300,000 frames/s, 100,000 frames": Switch(frames=300_000, queue=100_000),
}


def measured(device: Device, size: str, ways: tuple[tuple[int, int], ...], search: str, goal: Goal) -> SizeFigures:
    """Search the throughput of a device that has seen nothing before."""
    request = Rfc2544Request(tests=("throughput",), sizes=(size,), ways=ways, goal=goal, search=search, pause_s=0.001)
    return Rfc2544(FakeProbe(copy.deepcopy(device)), request).run().sizes[0]


def is_right(found: SizeFigures, truth: float, width: float) -> bool:
    """Return whether the truth lies between the two ends of a search, which are as close as was asked for."""
    throughput = found.throughput
    assert throughput is not None
    if throughput.lower is None:
        return truth == 0
    is_close = throughput.upper is None or throughput.upper - throughput.lower <= width * throughput.upper * (1 + 1e-9)
    return throughput.lower * (1 - GROWTH_MOST) <= truth <= (throughput.upper or 1.0) and is_close


@row("suites")
def test_throughput(is_full: bool) -> Iterator[Figure]:
    """Eight devices, seven sizes, one and both ways, by both searches: is the truth within what the search states?"""
    del is_full
    trials, seconds = dict.fromkeys(METHODS, 0), dict.fromkeys(METHODS, 0.0)
    for ways, words in ((ONE, "one_way"), (BOTH, "both_ways")):
        for search in METHODS:
            wrong = []
            for name, known in DEVICES.items():
                goal = Goal(seconds=known.seconds, least=known.least)
                for size in SIZES:
                    found = measured(known.device, size, ways, search, goal)
                    truth = float(known.device.truth(length_of(size).least, len(ways) > 1))
                    if not is_right(found, truth, goal.width):
                        wrong.append(f"{name}, {size}: {found.throughput}, truth {truth:.6f}")
                    assert found.throughput is not None
                    trials[search] += found.throughput.trials
                    seconds[search] += found.throughput.seconds
            note(*(f"# {search}, {words}: {one}" for one in wrong))
            yield Figure(
                f"throughput_{words}_{search}", len(DEVICES) * len(SIZES) - len(wrong), "of 56", 56, is_least=True
            )
    for search in METHODS:
        note(
            f"# {search}: {trials[search]} trials, {seconds[search]:.2f} s of trials, those run again longer among them"
        )
    yield Figure("trials_of_mlrsearch_over_bisection", trials["mlrsearch"] / trials["bisection"], "", 1.0)
    yield Figure("time_of_mlrsearch_over_bisection", seconds["mlrsearch"] / seconds["bisection"], "", 1.0)


@row("suites")
def test_lies(is_full: bool) -> Iterator[Figure]:
    """Six devices with queues that swallow whole trials of 0.5 to 20 ms: does any load pass that they can't sustain?"""
    passed, searches, off = 0, 0, 0.0
    for name, device in QUEUES.items():
        for seconds in (0.0005, 0.002, 0.02):
            for size in SIZES if is_full else ("64", "512", "1518"):
                for search in METHODS:
                    found = measured(device, size, ONE, search, Goal(seconds=seconds))
                    truth = float(device.truth(length_of(size).least, False))
                    searches += 1
                    assert found.throughput is not None
                    lower = found.throughput.lower
                    if lower is None:
                        continue
                    is_false = lower * (1 - GROWTH_MOST) > truth
                    passed += is_false
                    off = max(off, 1 - lower / truth)
                    if is_false:
                        note(f"# {name}, {size}, {search}, {1e3 * seconds:g} ms: {found.throughput}, truth {truth}")
    note(f"# {searches} searches; the figure is at most {100 * off:.2f} % below the truth")
    yield Figure("false_passed", passed, "searches", 0)


@row("suites")
def test_exact(is_full: bool) -> Iterator[Figure]:
    """Loss, burst and latency of devices of random rate, queue and latency, against arithmetic: frames and ticks."""
    chance = random.Random(2544)
    off = dict.fromkeys(("loss", "burst", "latency"), 0)
    count = 40 if is_full else 12
    for _ in range(count):
        size, latency = chance.choice(SIZES), chance.randrange(0, 20_000)
        length = int(size) - 4
        rate, queue = Fraction(chance.randrange(50, 95), 100), chance.randrange(1, 60)
        device = Switch(latency=latency, rate=rate, queue=queue)
        request = Rfc2544Request(
            tests=("latency", "loss", "back-to-back"), sizes=(size,), goal=Goal(seconds=0.005), latency_s=0.005, latency_repeats=1,
            burst_s=0.005, burst_repeats=2, pause_s=0.001, load=0.3,
        )  # fmt: skip
        found = Rfc2544(FakeProbe(device), request).run()
        delay_ns = 8 * (length + 12 + latency)
        way = found.sizes[0].latency[0]
        off["latency"] += {way.least, way.most, *way.typical, *way.worst} != {delay_ns}
        steps = {step.load: step for step in found.sizes[0].loss}
        full = [trial for trial in found.trials if trial.name == f"loss {size}" and trial.load == 1.0][-1]
        off["loss"] += abs(steps[1.0].lost - lost(full.sent, length + 24, rate, queue))
        back_to_back = found.sizes[0].back_to_back
        assert back_to_back is not None
        longest = int(0.005 * TICKS / (length + 24))
        truth = next((n for n in range(1, longest) if lost(n + 1, length + 24, rate, queue)), longest)
        off["burst"] += sum(abs(one - truth) for one in back_to_back.bursts)
    yield Figure("loss_off", off["loss"], f"frames of {count} devices", 0)
    yield Figure("burst_off", off["burst"], "frames", 0)
    yield Figure("latency_off", off["latency"], "devices", 0)


def lost(frames: int, slot: int, rate: Fraction, queue: int) -> int:
    """Return how many of so many frames back to back a queue loses: in units in which all times are whole."""
    each, came, starts, free, count = slot * rate.denominator, slot * rate.numerator, list[int](), 0, 0
    for number in range(frames):
        now = number * came
        starts = [start for start in starts if start > now]
        if len(starts) >= queue:
            count += 1
            continue
        starts.append(max(now, free))
        free = starts[-1] + each
    return count


@row("suites")
def test_switches(is_full: bool) -> Iterator[Figure]:
    """Learning switches of random table, learning rate, limit of broadcasts and largest frame: RFC 2889's figures against them."""
    chance = random.Random(2889)
    count, off, rate_off = (
        40 if is_full else 12,
        dict.fromkeys(("capacity", "learning", "broadcast", "oversize"), 0),
        0.0,
    )
    table = AddressSettings(ageing_s=0.05, most=2_000, fps=100_000, learned=40)
    asked = Rfc2544Request(
        tests=("loss", *TESTS_2889), sizes=("64",), goal=Goal(seconds=0.01), pause_s=0.001, table=table,
    )  # fmt: skip
    trials = 0
    for _ in range(count):
        size, learn = chance.randrange(50, 2_000), chance.randrange(100_000, 1_200_000)
        storm, largest = chance.randrange(50_000, 1_400_000), chance.choice([1518, *OVERSIZE])
        spec = f"device?table={size}&learn={learn}&age=48ms&storm={storm}&largest={largest}"
        rate = Fraction(chance.randrange(30, 100), 100)
        result = Rfc2544(FakeProbe(Learner(rate=rate, queue=chance.choice([10, 100_000]), spec=spec)), asked).run()
        found, trials = result.sizes[0], trials + len(result.trials)
        off["capacity"] += abs((found.addresses or (0, 0))[0] - size)
        off["oversize"] += sum(one.received != one.sent * (one.size <= largest) for one in found.oversize)
        assert found.broadcast is not None
        for name, (lower, upper), truth in (
            ("learning", found.learning_fps or (None, None), float(learn)),
            ("broadcast", _fps(found.broadcast), float(min(Fraction(storm), rate * LINE_FPS))),
        ):
            tick = 1 + truth * 8e-9  # Frames are due on whole ticks.
            is_right = lower is not None and lower <= truth * tick and (upper is None or truth <= upper * tick)
            off[name] += not is_right
            note(*[f"# {spec}: {name} {lower} to {upper}"] * (not is_right))
        assert found.forwarding is not None
        for step in found.forwarding:
            rate_off = max(rate_off, abs((step.forwarded_fps or 0.0) / float(rate * LINE_FPS) - 1))
    note(f"# {trials} trials")
    yield Figure("capacity_off", off["capacity"], f"addresses of {count} switches", 0)
    yield Figure("learning_rate_wrong", off["learning"], "switches", 0)
    yield Figure("broadcast_wrong", off["broadcast"], "switches", 0)
    yield Figure("oversize_wrong", off["oversize"], f"of {count * len(OVERSIZE)} sizes", 0)
    yield Figure("forwarding_rate_off", 1e6 * rate_off, "ppm", 2000)


def _fps(found: Throughput) -> tuple[float | None, float | None]:
    ends = (found.lower, found.upper)
    lower, upper = (None if one is None else float(one * LINE_FPS) for one in ends)
    return lower, upper


@row("suites", is_long=True)
def test_simulated_switch(is_full: bool) -> Iterator[Figure]:
    """The same through the simulated probe and its switch of 50 addresses, 250,000 learned and 300,000 broadcasts a second."""
    del is_full
    spec = "device?table=50&learn=250k&age=800us&storm=300k&largest=1522"
    table = AddressSettings(ageing_s=0.001, most=64, fps=200_000, learned=50)
    request = Rfc2544Request(
        tests=TESTS_2889, sizes=("64",), goal=Goal(seconds=0.002, width=0.02), pause_s=0.0005, table=table
    )
    with Probe(f"sim://{spec}&preset=tester") as probe:
        result = Rfc2544(probe, request).run()
    found = result.sizes[0]
    note(f"# {len(result.trials)} trials: {found.addresses}, {found.learning_fps}, {found.broadcast}")
    yield Figure("simulated_capacity_off", abs((found.addresses or (0, 0))[0] - 50), "addresses", 0)
    wrong = [one.size for one in found.oversize if one.received != one.sent * (one.size <= 1522)]
    yield Figure("simulated_oversize_wrong", len(wrong), "of 5 sizes", 0)
    for name, ends, truth in (
        ("learning", found.learning_fps, 250e3), ("broadcast", found.broadcast and _fps(found.broadcast), 300e3)
    ):  # fmt: skip
        lower, upper = ends or (None, None)
        is_right = lower is not None and upper is not None and lower <= truth * 1.01 and truth <= upper * 1.01
        yield Figure(f"simulated_{name}_wrong", not is_right, "", 0)


@row("suites")
def test_killed(is_full: bool) -> Iterator[Figure]:
    """A suite in a process of its own, killed by SIGKILL at random moments: the same result as without, no trial run twice."""
    del is_full
    with TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(kept_suite.command(folder / "whole.jsonl", folder / "whole.json"), check=True)
        whole, trials = (folder / "whole.json").read_text(), kept_suite.kept_in(folder / "whole.jsonl")
        same, kept = 0, []
        for seed in random.Random(2544).sample(range(10**6), KILLS):
            found, before = kept_suite.killed(folder, seed, trials)
            same += found == whole
            kept.append(before)
        note(f"# of {trials} trials, kept when killed: {sorted(kept)}")
    yield Figure("killed_before_the_end", sum(one < trials for one in kept), f"of {KILLS}", KILLS - 1, is_least=True)
    yield Figure("same_result_after_kill", same, f"of {KILLS}", KILLS, is_least=True)


@row("suites", is_long=True)
def test_simulated(is_full: bool) -> Iterator[Figure]:
    """The same through the simulated probe and its switch of 600 Mb/s with 20 frames of queue: 64, 512 and 1518, both searches."""
    del is_full
    request = Rfc2544Request(
        tests=("throughput", "latency", "loss", "back-to-back"), goal=Goal(seconds=0.002), latency_s=0.002, latency_repeats=1,
        burst_s=0.002, burst_repeats=1, pause_s=0.0005, loss_step=0.1, sizes=("64", "512", "1518"),
    )  # fmt: skip
    spec = "switch?rate=600M&queue=20&latency=3us"
    for search in METHODS:
        with Probe(f"sim://{spec}&preset=tester") as probe:
            result = Rfc2544(probe, replace(request, search=search)).run()
        right = sum(is_right(one, 0.6, 0.005) for one in result.sizes)
        yield Figure(f"simulated_throughput_{search}", right, "of 3", 3, is_least=True)
        loss_off = burst_off = delay_off = 0
        for one in result.sizes:
            length = int(one.size) - 4
            full = [trial for trial in result.trials if trial.name == f"loss {one.size}" and trial.load == 1.0][-1]
            loss_off += abs(full.lost - switch_lost(spec, length, full.sent))
            assert one.back_to_back is not None
            burst = one.back_to_back.bursts[0]
            burst_off += switch_lost(spec, length, burst) + (switch_lost(spec, length, burst + 1) == 0)
            # Two hops: each takes the frame whole, at 600 Mb/s and at the line's rate.
            delay = switch.passage(spec, 0, [switch.Departure(0, length + 12)]).arrivals[0].sfd_tick - 7
            delay_off = max(
                delay_off,
                abs(round(one.latency[0].least / 8) - delay),
                round((one.latency[0].most - one.latency[0].least) / 8),
            )
        yield Figure(f"simulated_loss_off_{search}", loss_off, "frames", 0)
        yield Figure(f"simulated_burst_off_{search}", burst_off, "sizes", 0)
        yield Figure(f"simulated_delay_off_{search}", delay_off, "ticks", 1)
        note(f"# {search}: {len(result.trials)} trials, {result.lied} lied")


def switch_lost(spec: str, length: int, frames: int) -> int:
    """Return how many of so many frames back to back the model of the switch loses."""
    departures = [switch.Departure(number * (length + 24), length + 12) for number in range(frames)]
    return sum(fate == switch.QUEUE_DROP for fate in switch.passage(spec, 0, departures).fates)
