# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations beside modelled probes: plans kept and run without a host, results fetched later, against the model's truth; faults."""

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from liteprobe.host.agent import Agent, AgentClient, Keys, make_keys
from liteprobe.host.base.errors import DataError, NoProbeError, ProbeError, UsageError
from liteprobe.host.fleet import collect, station
from liteprobe.host.fleet.collect import hand_out
from liteprobe.host.fleet.plan import PlannedProbe, read_plan
from liteprobe.host.fleet.station import Station, check_private, envelope, key_of
from liteprobe.host.fleet.turns import in_turns
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fleet import FleetBench, name_of
from liteprobe.sim.models.probe.fleet import TAI_NS

COUNT = 3
START_S = TAI_NS // 10**9 + 30

Run = Callable[..., tuple[int, str, str]]


class Stations:
    """Stations of a modelled fleet, each in a folder and at an agent of its own; time is that of the fleet."""

    def __init__(self, folder: Path, seed: int = 5, count: int = COUNT) -> None:
        self.bench, self.folder = FleetBench(count, seed, folder), folder
        self.late_ns = dict.fromkeys(range(count), 0)  # Of machines' clocks.
        self.stations = [self.make(number) for number in range(count)]
        self.agents: list[Agent] = []

    def make(self, number: int) -> Station:
        """Start a station, as after a power failure."""
        return Station(self.folder / f"s{number}", lambda: self.opened(number), lambda: self.utc_ns(number))

    def utc_ns(self, number: int) -> int:
        return round(self.bench.fleet.now_ns) + TAI_NS - station.TAI_UTC_S * 10**9 + self.late_ns[number]

    def opened(self, number: int) -> Probe:
        return self.bench.open_one(PlannedProbe(name_of(number), str(number)))

    def text(self, start_s: int = START_S, more: str = "") -> str:
        """Return a plan of a mesh."""
        probes = "".join(
            f"  {name_of(n)}: {{url: 'station://{agent.address.removeprefix('tcp://')}', ip: 10.0.0.{n + 1}}}\n"
            for n, agent in enumerate(self.agents)
        )
        return f"probes:\n{probes}start_tai: {start_s}\ntrain: {{length: 60, count: 20, interval: 10us}}\n{more}"

    def pass_until(self, tai_s: float) -> None:
        """Let all stations do what is due until then, side by side."""
        while self.bench.fleet.now_ns + TAI_NS < tai_s * 1e9:
            self.step()

    def step(self) -> None:
        """Let a second pass, or all of them measure side by side."""
        fleet, links = self.bench.fleet, self.bench.links

        def act(one: Station, number: int) -> Callable[[Callable[[float], None]], None]:
            def run(sleep: Callable[[float], None]) -> None:
                links[number].wait = sleep  # type: ignore[method-assign]
                try:
                    one.step()
                finally:
                    del links[number].wait  # type: ignore[method-assign]

            return run

        in_turns([act(one, n) for n, one in enumerate(self.stations)], lambda seconds: fleet.advance(seconds * 1e9))
        fleet.advance(1e9)
        for probe in fleet.probes:
            probe.catch_up()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Stations]:
    """Three stations, reached over loopback."""
    made = Stations(tmp_path)
    with ExitStack() as stack:
        for number in range(COUNT):
            agent = Agent(name_of(number), "tcp://127.0.0.1:*".replace("*", "0"))
            made.stations[number].offer(agent)
            made.agents.append(stack.enter_context(agent))
        yield made


def check_true(fleet: Stations, result: collect.ExperimentResult, without: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """Hold all figures against what the model did; those of ``without`` have none, and say why."""
    for one in result.pairs:
        if {one.sender, one.receiver} & without:
            assert one.delays is None and one.why, one
            continue
        true_ns, lost = fleet.bench.truth(int(one.sender[1:]), int(one.receiver[1:]))
        assert (one.count("sent"), one.count("lost"), one.count("received")) == (20, lost, len(true_ns)), one.why
        assert one.delays is not None and one.bound_ns is not None, one.why
        assert abs(one.delays["mean"] - sum(true_ns) / len(true_ns)) < 2.5 * one.bound_ns + 8


def test_a_plan_is_run_without_a_host_and_its_result_fetched_later(fleet: Stations) -> None:
    text = fleet.text()
    plan = read_plan(text)
    assert hand_out(plan, text, collect.connector(None)) == {}
    with pytest.raises(ProbeError, match="it is not done yet: collect it in"):
        collect.collect(plan, text, collect.connector(None))
    fleet.pass_until(START_S + 2 * plan.round_ns / 1e9)
    for _ in range(2):  # Whoever breaks off may collect again.
        result = collect.collect(plan, text, collect.connector(None))
        check_true(fleet, result)
        assert result.is_complete and {one.start_time_ns for one in result.pairs} == {
            START_S * 10**9,
            START_S * 10**9 + plan.round_ns,
        }
    assert collect.forget(plan, text, collect.connector(None)) == {}
    with pytest.raises(ProbeError, match="its result was fetched already"):
        collect.collect(plan, text, collect.connector(None))
    with pytest.raises(ProbeError, match="its result fetched: give the plan another start_tai"):
        hand_out(plan, text, collect.connector(None))
