# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Puts a station beside each probe of a modelled fleet, has faults befall them, and holds what is collected against the truth."""

import errno
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from liteprobe.host.agent import Agent
from liteprobe.host.base.defaults import TAI_UTC_S
from liteprobe.host.base.errors import ProbeError
from liteprobe.host.fleet import collect
from liteprobe.host.fleet.experiment import ExperimentResult
from liteprobe.host.fleet.plan import read_plan
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.fleet.station import ProbeStation
from liteprobe.host.fleet.turns import in_turns
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fleet import FleetBench, Hostile, judge, name_of
from liteprobe.sim.drivers.system.fleet_captures import FleetCapturer, frames_of
from liteprobe.sim.models.probe.fleet import TAI_NS, FleetProbe, FleetTester
from liteprobe.sim.models.probe.fleet import Path as Way

COUNT = 3
START_S = TAI_NS // 10**9 + 30
STREAMS = (
    "streams:\n"
    "  - {name: voice, length: 60, pps: 20k, count: 20}\n"
    "  - {name: data, length: {least: 60, greatest: 1514}, rate: 300M, exponential: true, count: 40}"
)
#: What is sent, by the kind of the probes.
SENT: dict[type[FleetProbe], str] = {
    FleetProbe: "train: {length: 60, count: 20, interval: 10us}",
    FleetTester: STREAMS,
    FleetCapturer: STREAMS,
}
EVERY_S = 30 # From one start to the next, of `hostile`.
OF_PROBES = ("absent", "busy", "preset", "no link", "cut", "flap", "unlocked", "bound", "second", "step", "slow")
OF_STATIONS = ("killed", "away", "full disk", "not handed out", "unreachable")


class Killed(BaseException):
    """Ends a station at once, as kill -9 does."""


class Stations:
    """Stations of a modelled fleet, each in a folder and at an agent of its own; time is that of the fleet."""

    def __init__(self, folder: Path, seed: int = 5, count: int = COUNT, of: type[FleetProbe] = FleetProbe) -> None:
        self.bench, self.folder, self.of = FleetBench(count, seed, folder, of), folder, of
        self.late_ns = dict.fromkeys(range(count), 0)  # Of machines' clocks.
        self.stations = [self.make(number) for number in range(count)]
        self.agents: list[Agent] = []
        self.away: set[int] = set()
        self.faults: list[tuple[float, str, int]] = []  # When (TAI, s), what, of whom.
        self.victim: int | None = None  # Of a fault that kills.
        self.kill_reads = 0  # Of its probe, until it dies.

    def make(self, number: int) -> ProbeStation:
        """Start a station, as after a power failure."""
        return ProbeStation(self.folder / f"s{number}", lambda: self.opened(number), lambda: self.utc_ns(number))

    def utc_ns(self, number: int) -> int:
        return round(self.bench.fleet.now_ns) + TAI_NS - TAI_UTC_S * 10**9 + self.late_ns[number]

    def opened(self, number: int) -> Probe:
        return self.bench.open_one(PlannedProbe(name_of(number), str(number)))

    def text(self, start_s: int = START_S, more: str = "", sent: str = "") -> str:
        """Return a plan: of a mesh that sends what probes of this kind send, where ``sent`` says nothing else."""
        probes = "".join(
            f"  {name_of(n)}: {{url: 'station://{agent.address.removeprefix('tcp://')}', ip: 10.0.0.{n + 1}}}\n"
            for n, agent in enumerate(self.agents)
        )
        return f"probes:\n{probes}start_tai: {start_s}\n{sent or SENT[self.of]}\n{more}"

    def pass_until(self, tai_s: float) -> None:
        """Let all stations do what is due until then, side by side."""
        while self.bench.fleet.now_ns + TAI_NS < tai_s * 1e9:
            self.step()

    def serve(self, stack: ExitStack) -> None:
        """Have each station listen, at a port of its own."""
        for number, one in enumerate(self.stations):
            agent = Agent(name_of(number), "tcp://127.0.0.1:0")
            one.offer(agent)
            self.agents.append(stack.enter_context(agent))

    def _befall(self) -> None:
        for one in [one for one in self.faults if one[0]*1e9 <= self.bench.fleet.now_ns + TAI_NS]:
            self.faults.remove(one)
            at_s, kind, victim = one
            if kind == "killed":
                self._kill(victim)
            elif kind == "away":
                self.away.add(victim)
                self.faults.append((at_s + 20, "back", victim))
            elif kind == "back":
                self.away.discard(victim)
                self.replace(victim)
            elif kind == "full disk":
                vars(self.stations[victim])["_write"] = _full
                self.faults.append((at_s + 20, "space", victim))
            elif kind == "space":
                vars(self.stations[victim]).pop("_write", None)

    def _kill(self, victim: int) -> None:
        """Have a station die at one of the next times that it reads its probe."""
        link, left = self.bench.links[victim], [self.kill_reads]

        def read(addresses: Sequence[int]) -> Any:
            left[0] -= 1
            if left[0] == 0:
                del vars(link)["read_scattered"]
                raise Killed
            return type(link).read_scattered(link, addresses)

        vars(link)["read_scattered"] = read

    def step(self) -> None:
        """Let a second pass, or all of them measure side by side."""
        fleet, links = self.bench.fleet, self.bench.links

        def act(one: ProbeStation, number: int) -> Callable[[Callable[[float], None]], None]:
            def run(sleep: Callable[[float], None]) -> None:
                vars(links[number])["wait"] = sleep
                try:
                    one.step()
                finally:
                    del vars(links[number])["wait"]

            return run

        self._befall()
        acts = [act(one, n) for n, one in enumerate(self.stations) if n not in self.away]
        try:
            in_turns(acts, lambda seconds: fleet.advance(seconds * 1e9))
        except Killed:
            if self.victim is None:
                raise
            self.replace(self.victim)
        fleet.advance(1e9)
        for probe in fleet.probes:
            probe.catch_up()

    def replace(self, number: int) -> None:
        """Kill a station, which leaves what is on its disk, and start it again."""
        one = self.make(number)
        self.stations[number].__dict__ = one.__dict__  # Its agent goes on.


def _full(name: str, octets: bytes) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


# A fault ------------------------------------------------------------------------------------------


Check = Callable[[Stations, ExperimentResult, Hostile, str], None]


def hostile(seed: int, folder: Path, of: type[FleetProbe] = FleetProbe) -> Hostile:
    """Run a plan on three stations, of which a random fault befalls one or its probe, and hold the result against the truth."""
    return befallen(seed, folder, of)


def hostile_captures(seed: int, folder: Path, of: type[FleetProbe] = FleetCapturer) -> Hostile:
    """Do what `hostile` says, with a capture at each station."""
    more = f"captures: [{{at: p00, write: '{folder}/{{probe}}.pcapng'}}, {{at: p02, write: '{folder}/{{probe}}.pcapng'}}]\n"
    return befallen(seed, folder, of, more, check_captures)


def befallen(
    seed: int, folder: Path, of: type[FleetProbe], more: str = "", check: Check | None = None, sent: str = ""
) -> Hostile:
    """Do what `hostile` says; ``more``, ``sent``: of the plan; ``check`` holds what else came of it against the truth."""
    draw = random.Random(seed)
    # Of a slow link a start takes minutes of the model's time, in which captures look for frames again and again.
    kinds = [one for one in OF_PROBES + OF_STATIONS if one != "slow" or check is not check_captures]
    kind, victim = draw.choice(kinds), draw.randrange(COUNT)
    at_s = START_S - 12 + draw.uniform(0, 2*EVERY_S)
    found = Hostile(kind, [], [], [], True, False)
    made = Stations(folder, seed, of=of)
    for number in range(COUNT if sent else 0):
        made.bench.fleet.paths[number, number] = Way(20e3, 500)
    with ExitStack() as stack:
        made.serve(stack)
        text = made.text(more=f"round_every: {EVERY_S}s\n{more}", sent=sent)
        plan, connect = read_plan(text), collect.connector(None)

        def reach(planned: PlannedProbe) -> Any:
            if kind == "unreachable" and planned.name == name_of(victim):
                raise ProbeError("nothing listens there")
            return connect(planned)

        def give(planned: PlannedProbe) -> Any:
            if kind == "not handed out" and planned.name == name_of(victim):
                raise ProbeError("nothing listens there")
            return connect(planned)

        collect.hand_out(plan, text, give)
        if kind in OF_PROBES:
            made.bench.fault(kind, victim, at_s*1e9 - TAI_NS)
        made.victim, made.kill_reads = victim, draw.randrange(1, 400)
        made.faults.append((at_s, kind, victim))
        starts = plan.starts()
        made.pass_until(starts[-1][0]//10**9 + max(EVERY_S + 15, plan.span_ns(starts[-1][1])//10**9))
        result = collect.collect(plan, text, reach)
    for one in result.pairs:
        judge(made.bench, one, found, name_of(victim))
    if check:
        check(made, result, found, name_of(victim))
    found.is_noticed = not result.is_complete or any([*(one.note for one in result.pairs), *(one.note for one in result.suites)])
    return found


def check_captures(made: Stations, result: ExperimentResult, found: Hostile, victim: str) -> None:
    """Hold the captures of stations against what came to their probes in each start."""
    fleet = made.bench.fleet
    for one in result.captures:
        probe = fleet.probes[int(one.probe[1:])]
        path, is_concerned = Path(one.files[0]), victim == one.probe
        found.unnamed += [one.said]*(not one.is_complete and not one.why and one.result is None)
        found.missing += [one.said]*(not one.is_complete and not is_concerned)
        if not path.exists():
            found.wrong += [f"{one.said}: there is no file"]*one.is_complete
            continue
        came = {(each.stream_id, each.sequence): each.came_ns for each in fleet.passages if each.receiver == probe.number}
        held = frames_of(path)
        for stamp, stream_id, sequence in held:
            true_ns = came.get((stream_id, sequence))
            is_off = true_ns is not None and abs(stamp - TAI_NS - true_ns) > 2.5*probe.bound_ns + 8
            if true_ns is None or (is_off and not is_concerned):
                found.wrong.append(f"{one.said}: stream {stream_id}, number {sequence}, {stamp}")
        if len({each[1:] for each in held}) < len(held):
            found.wrong.append(f"{one.said}: a frame is there twice")
        if one.result and one.result.frames != len(held):
            found.wrong.append(f"{one.said}: {len(held)} are there")
        # Pairs have stream ids of their own: what else came of those that the file has is missing in it. What a victim sends
        # may come when nobody expects it any more, or yet.
        own = {each[1] for each in held}
        others = {
            (each.stream_id, each.sequence)
            for each in fleet.passages
            if each.receiver == probe.number and each.came_ns is not None and name_of(each.sender) != victim
        }
        missing = {key for key in others if key[0] in own} - {each[1:] for each in held}
        if one.is_complete and not is_concerned and missing:
            found.wrong.append(f"{one.said}: {len(missing)} more came")
