# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations at the ports of an emulated network: they begin with it, end it, and stand in its result."""

from pathlib import Path

import pytest

from liteprobe.cores.formats.emulate import UNMATCHED_CLASS
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device.link.sim_stations import Seen, Station, Stations, StationsAsked, StationsReport
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import EmulationLook, EmulationResult, have_done
from liteprobe.host.traffic.network import Direction, Network, TrafficClass
from liteprobe.sim.drivers.system.fake_link import fake_emulator

DELAYED = Network(Direction(classes=[TrafficClass(delay_ns=5_000_000)]))


class FakePlayers:
    """Players of captures that have played and received what a test says."""

    def __init__(self) -> None:
        self.ports = [Seen(0, False, 0, 0, 0, 0)] * 2
        self.played: list[tuple[int, Path, int, int]] = []

    def now_ns(self) -> int:
        return 7000

    def put_station(self, port: int, station: Station, start_ns: int) -> None:
        raise NotImplementedError

    def play(self, port: int, path: Path, start_ns: int = 0, repeats: int = 1) -> int:
        self.played.append((port, path, start_ns, repeats))
        return 1

    def seen(self, port: int) -> Seen:
        return self.ports[port]


@pytest.fixture
def players() -> FakePlayers:
    return FakePlayers()


@pytest.fixture
def probe(tmp_path: Path, players: FakePlayers) -> Probe:
    """A probe that emulates, with a player at port 0 and 1000 octets from it each 1 ms."""
    model, link = fake_emulator(tmp_path)
    model.offer(0, UNMATCHED_CLASS, 1000, 125_000)
    link.stations = Stations(players, StationsAsked(is_web=False, play=(Path("a.pcap"),), repeats=2))
    return Probe(link)


def test_a_network_is_done_when_all_that_was_played_has_come_out(probe: Probe, players: FakePlayers) -> None:
    with probe, probe.emulate(DELAYED) as emulation:
        assert players.played == [(0, Path("a.pcap"), 107_000, 2)]
        probe.wait(0.1)
        look, stations = emulation.look(), probe.link.stations
        assert stations
        count = look.there.classes[0].counts
        assert count.arrived > count.sent > 0  # Those of the last 5 ms are under way.

        def is_done(played: int, received: int, is_playing: bool = False) -> bool:
            players.ports = [Seen(played, is_playing, 0, 0, 0, 0), Seen(0, False, 0, received, 0, 0)]
            return have_done(stations, look)

        assert is_done(count.arrived, count.arrived)
        assert not is_done(count.arrived, count.arrived, is_playing=True)
        assert not is_done(count.arrived, count.sent)
        assert not is_done(count.arrived + 1, count.arrived)


def test_stations_that_have_nothing_to_do_are_never_done(players: FakePlayers) -> None:
    """So a network with stations=none goes on until Ctrl-C."""
    for play in ((Path("a.pcap"),), ()):
        assert Stations(players, StationsAsked(is_web=False, play=play)).report().are_done == bool(play)


def test_the_result_says_that_stations_ended_it_and_what_they_saw(probe: Probe, players: FakePlayers) -> None:
    looks: list[EmulationLook] = []

    def is_done(look: EmulationLook) -> bool:
        looks.append(look)
        players.ports = [Seen(len(looks), False, 0, 0, 0, 0)] * 2
        return len(looks) == 3

    with probe, probe.emulate(DELAYED) as emulation:
        result = emulation.wait(look_s=0.01, is_done=is_done)
        assert (result.end, emulation.wait(0.1).end) == ("finished", "done")
    assert result.last is looks[-1] and result.stations
    assert [one.played for one in result.stations.ports] == [3, 3]


@pytest.mark.parametrize(
    ("client", "said"),
    [
        (Seen(0, False, 2, 0, 0, 0), "No file of 3 has come yet; connections: 0."),
        (
            Seen(0, False, 9, 2, 120, 0, connections=2, repeats=1),
            "No file of 3 has come yet; connections: 2, 1 begun anew.",
        ),
        (
            Seen(0, False, 9, 9, 900, 0, content=700, connections=1),
            "0 of 3 files, 700 octets so far, each as the server has it; connections: 1.",
        ),
        (
            Seen(0, False, 9, 9, 900, 0, 125_000, 3, 9000, 5, 1),
            "3 of 3 files, 9,000 octets in 1.000 ms, 5 of them wrong; connections: 1.",
        ),
    ],
)
def test_what_a_client_has_is_a_sentence_from_the_start_on(client: Seen, said: str) -> None:
    assert StationsReport(StationsAsked(), (Seen(0, False, 0, 0, 0, 0), client)).sentence == said


def test_a_result_of_an_interrupt_has_what_stations_saw(
    probe: Probe, players: FakePlayers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(probe: Probe, seconds: float) -> None:
        players.ports = [Seen(5, True, 0, 0, 0, 0)] * 2
        raise Interrupted

    monkeypatch.setattr(Probe, "wait", interrupted)
    with probe, probe.emulate(DELAYED) as emulation, pytest.raises(Interrupted) as caught:
        emulation.wait()
    result: EmulationResult
    (result,) = caught.value.results
    assert result.stations and result.stations.sentence == "10 frames played, 0 received."
