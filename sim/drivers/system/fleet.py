# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Opens the probes of a modelled fleet for an experiment, and has faults befall them."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from liteprobe.cores.formats import CLOCK_STEPS_BIT, PRESETS, UNCERTAINTY_UNKNOWN, ClockState, TransmitState
from liteprobe.host.base.errors import NoProbeError, ProbeError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device.link.base import Words
from liteprobe.host.capture.request import CaptureRequest
from liteprobe.host.fleet.experiment import Experiment, ExperimentResult, PairFigures
from liteprobe.host.fleet.plan import ExperimentPlan, PlannedCapture, mesh
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import Fixed, RandomLength
from liteprobe.host.traffic.stream import Stream
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.fleet import Fleet, FleetProbe


class FleetLink(FakeLink):
    """A link to a probe of a fleet, which may be cut: nobody answers then."""

    look_ns = 20_000.0
    is_cut = False
    delay_ns = 0.0 # That each write takes, besides.
    interrupt_ns = math.inf # True time at which Ctrl-C comes.

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        """Return the words at ``addresses``; NoProbeError while it is cut."""
        self._check()
        return super().read_scattered(addresses)

    def write(self, address: int, words: Sequence[int]) -> Words:
        """Write words; NoProbeError while it is cut."""
        self._check()
        assert isinstance(self.model, FleetProbe)
        self.model.catch_up()
        if self.delay_ns:
            self.model.fleet.advance(self.delay_ns)
            self.model.catch_up()
        return super().write(address, words)

    def wait(self, seconds: float) -> None:
        """Let time pass for all."""
        super().wait(seconds)
        self.waits.clear()
        assert isinstance(self.model, FleetProbe)
        if self.model.fleet.now_ns >= self.interrupt_ns:
            self.interrupt_ns = math.inf
            raise Interrupted

    def _check(self) -> None:
        if self.is_cut:
            self.model.advance(20_000) # What a host waits for an answer.
            raise NoProbeError(f"no answer from probe {getattr(self.model, 'number', '')}")


BEFORE = ("absent", "busy", "preset")
KINDS = (*BEFORE, "no link", "cut", "flap", "unlocked", "bound", "second", "step", "slow", "interrupt", "killed")


def name_of(number: int) -> str:
    """Return the name of a probe in plans."""
    return f"p{number:02}"


class FleetBench:
    """A fleet, and links to its probes."""

    def __init__(self, count: int, seed: int, folder: Path, kind: type[FleetProbe] = FleetProbe) -> None:
        self.fleet = Fleet(count, seed, kind=kind)
        self.links: list[FleetLink] = []
        for probe in self.fleet.probes:
            place = folder/name_of(probe.number)
            place.mkdir(exist_ok=True)
            self.links.append(FleetLink(probe, place))
        self.is_absent: set[int] = set()

    def open_one(self, planned: PlannedProbe) -> Probe:
        """Open a probe of a plan; the URL is its number."""
        number = int(planned.url)
        if number in self.is_absent:
            raise NoProbeError(f"no answer from probe {number}")
        probe = Probe(self.links[number])
        probe.url = f"sim://{planned.name}" # Its time goes on only while something is asked.
        return probe

    def planned(self) -> list[PlannedProbe]:
        """Return all of them for a plan."""
        return [PlannedProbe(name_of(n), str(n), ip=f"10.0.0.{n + 1}") for n in range(self.fleet.count)]

    def plan(self, program: TrainProgram | Sequence[Stream], **settings: object) -> ExperimentPlan:
        """Return a plan of a mesh."""
        probes = self.planned()
        return ExperimentPlan(tuple(probes), mesh(probes, program), **settings) # type: ignore[arg-type]

    def fault(self, kind: str, victim: int, at_ns: float) -> None:
        """Have a fault befall a probe at a true time, or from before the start (those of `BEFORE`)."""
        probe, link, fleet = self.fleet.probes[victim], self.links[victim], self.fleet
        values = probe.values
        if kind == "absent":
            self.is_absent.add(victim)
        elif kind == "busy":
            values["probe_lease_owner"] = 7 << 16 | 0x8000 | 3
        elif kind == "preset":
            values["probe_parts"] = PRESETS["monitor"]
        elif kind == "no link":
            fleet.befall(at_ns, lambda: values.update({"port0_tx_link_up": 0, "port0_rx_link_up": 0}))
        elif kind == "cut":
            fleet.befall(at_ns, lambda: setattr(link, "is_cut", True))
        elif kind == "flap":
            fleet.befall(at_ns, lambda: setattr(link, "is_cut", True))
            fleet.befall(at_ns + 1e8, lambda: setattr(link, "is_cut", False))
        elif kind == "unlocked":
            gone = {"clock_state": int(ClockState.FREE_RUNNING), "clock_uncertainty": UNCERTAINTY_UNKNOWN}
            fleet.befall(at_ns, lambda: values.update(gone))
        elif kind == "bound":
            fleet.befall(at_ns, lambda: values.update({"clock_state": int(ClockState.HOLDOVER), "clock_uncertainty": 5000 << 8}))
        elif kind == "second":
            fleet.befall(at_ns, lambda: self._jump(probe, 1e9, 0))
        elif kind == "step":
            # It begins anew: it is off, says so, and steps back.
            locked = {name: values[name] for name in ("clock_state", "clock_uncertainty")}
            anew = {"clock_state": int(ClockState.ACQUIRING), "clock_uncertainty": 10_000 << 8}
            fleet.befall(at_ns, lambda: self._jump(probe, 5e3, 1, anew))
            fleet.befall(at_ns + 1e8, lambda: self._jump(probe, -5e3, 1, locked))
        elif kind == "slow":
            fleet.befall(at_ns, lambda: setattr(link, "delay_ns", 2e8))
        elif kind == "interrupt":
            for one in self.links:
                one.interrupt_ns = at_ns
        elif kind == "killed": # As by SIGKILL: nothing of this host comes to any probe from then on.
            for one in self.links:
                one.interrupt_ns = at_ns
                fleet.befall(at_ns, lambda one=one: setattr(one, "is_cut", True)) # type: ignore[misc]
        else:
            raise ValueError(kind)

    def end_leases(self) -> None:
        """Let the leases of a host end that was killed: its ports stop, and others may have the probes."""
        for link, probe in zip(self.links, self.fleet.probes, strict=True):
            link.is_cut, link.interrupt_ns = False, math.inf
            probe.catch_up()
            probe.end_lease()
        self.fleet.advance(1e9) # What is still on its way comes.
        self.fleet.passages.clear()

    @staticmethod
    def _jump(probe: FleetProbe, offset_ns: float, steps: int, says: dict[str, int] | None = None) -> None:
        probe.values |= says or {}
        probe.catch_up()
        probe.slew(offset_ns)
        probe.values["clock_error"] += steps << CLOCK_STEPS_BIT

    def truth(self, sender: int, receiver: int, stream_id: int | None = None) -> tuple[list[float], int]:
        """Return the true delays of a pair's frames that came (ns), of one stream or of all, and how many were lost."""
        own = [one for one in self.fleet.passages if (one.sender, one.receiver) == (sender, receiver)]
        own = [one for one in own if stream_id in (None, one.stream_id)]
        return [one.came_ns - one.left_ns for one in own if one.came_ns is not None], sum(one.came_ns is None for one in own)


PROGRAM = TrainProgram(60, 20, interval_ns=10_000.0)
STREAMS = (
    Stream("voice", 1, Fixed(60), Interval(pps=20_000), count=20),
    Stream("data", 2, RandomLength(60, 1514), Interval(rate_bps=3*10**8, exponential=True), count=40),
)
PROBES_OF_FAULTS = 5
WITHIN_BOUNDS = 2.5 # Nearly five standard deviations: a delay that is further off is wrong.


CheckCaptures = Callable[[Fleet, ExperimentResult, str, "Hostile"], None]


@dataclass
class Hostile:
    """Holds what came of an experiment that a fault befell."""

    kind: str
    wrong: list[str] # Pairs with a figure that isn't true.
    unnamed: list[str] # Pairs without a delay and without a reason.
    missing: list[str] # Pairs that had nothing to do with the fault, and have no delay.
    is_stopped: bool # No port sends any more.
    is_noticed: bool # It left something without a delay, or a note.


def hostile(seed: int, folder: Path, of: type[FleetProbe] = FleetProbe, kind: str = "") -> Hostile:
    """Run an experiment on five probes, which a random fault befalls, and hold its result against the model's truth.

    ``of``: the kind of the probes: trains are sent, or streams; ``kind``: of the fault, where it isn't random.
    """
    return befallen(seed, folder, of, None, kind)


def befallen(
    seed: int, folder: Path, of: type[FleetProbe], check_captures: CheckCaptures | None, kind: str = ""
) -> Hostile:
    """Do what `hostile` says; ``check_captures`` holds those at the victim and at the probe after it against the truth."""
    draw = random.Random(seed)
    # Of a slow link a start takes minutes of the model's time, in which captures look for frames again and again.
    kinds = [one for one in KINDS if one != "slow"] if check_captures else KINDS
    drawn, victim = draw.choice(kinds), draw.randrange(PROBES_OF_FAULTS)
    kind = kind or drawn
    second_ns = draw.randrange(7)*1e9
    at_ns = second_ns + (draw.uniform(-5e4, 7e5) if draw.random() < 0.6 else draw.uniform(0, 1e9))
    bench = FleetBench(PROBES_OF_FAULTS, seed, folder, of)
    bench.fault(kind, victim, max(at_ns, 0.0))
    at = [name_of(n) for n in (victim, (victim + 1) % PROBES_OF_FAULTS)] if check_captures else []
    captures = tuple(PlannedCapture(name, CaptureRequest(write=folder/f"{name}.pcapng")) for name in at)
    sent = PROGRAM if of is FleetProbe else STREAMS
    plan = bench.plan(sent, captures=captures)
    result = None
    try:
        with Experiment(plan, opener=bench.open_one) as experiment:
            result = experiment.run()
    except Interrupted as stop:
        result = None if kind == "killed" else stop.results[0]
    except ProbeError:
        if kind != "killed":
            raise
    concerned = name_of(victim)
    if result is None: # Nobody is there to print anything: what the next host measures is to be true.
        bench.end_leases()
        concerned = ""
        with Experiment(plan, opener=bench.open_one) as experiment:
            result = experiment.run()
    found = Hostile(kind, [], [], [], True, not result.is_complete)
    for one in result.pairs:
        judge(bench, one, found, concerned)
    if check_captures:
        check_captures(bench.fleet, result, concerned, found)
    found.is_noticed |= any(one.note for one in result.pairs)
    reached = [probe for probe, link in zip(bench.fleet.probes, bench.links, strict=True) if not link.is_cut]
    found.is_stopped = all(probe.values["port0_tx_state"] == TransmitState.IDLE for probe in reached)
    return found


def judge(bench: FleetBench, one: PairFigures, found: Hostile, victim: str) -> None:
    """Hold the figures of a pair's train, or of one of its streams, against the truth."""
    stream_id = one.flow.stream.stream_id if one.flow else None
    true_ns, lost = bench.truth(int(one.sender[1:]), int(one.receiver[1:]), stream_id)
    is_concerned = victim in (one.sender, one.receiver) or found.kind == "interrupt"
    if one.is_measured and not one.note and (one.count("lost"), one.count("received")) != (lost, len(true_ns)):
        found.wrong.append(f"{one.name}: lost {one.count('lost')}, truly {lost}")
    if one.delays is None:
        found.unnamed += [one.name]*(not one.why)
        found.missing += [f"{one.name}: {one.why}"]*(not is_concerned)
        return
    assert one.bound_ns is not None
    error_ns = one.delays["mean"] - sum(true_ns)/len(true_ns)
    if abs(error_ns) > WITHIN_BOUNDS*one.bound_ns + 8:
        found.wrong.append(f"{one.name}: off by {error_ns:.0f} ns, bound {one.bound_ns:.0f}")
