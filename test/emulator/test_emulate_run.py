# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Emulated networks from the first register to the result, over a model of the probe; classes, stations, the way back."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from liteprobe.cores.formats import Part, PhyStatus, TransmitState
from liteprobe.cores.formats.emulate import UNMATCHED_CLASS, ClassCounter
from liteprobe.host.analysis.columns import time_text
from liteprobe.host.base.errors import BusyError, ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.device.link.base import Words
from liteprobe.host.device.link.sim_stations import Seen, Station, Stations, StationsAsked, StationsReport
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import (
    ClassQueue,
    Emulation,
    EmulationLook,
    EmulationResult,
    Extended,
    have_done,
)
from liteprobe.host.traffic.network import (
    BandwidthTrace,
    Bernoulli,
    Change,
    Direction,
    Jitter,
    LossList,
    LossPattern,
    Network,
    Queue,
    Reorder,
    TrafficClass,
)
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.train import TrainProgram
from liteprobe.sim.drivers.system.fake_link import FakeLink, fake_emulator
from liteprobe.sim.drivers.tools.refusals import refusal
from liteprobe.sim.models.emulator.direction import Arrival, leaving
from liteprobe.sim.models.emulator.rules import RulesModel, headers_of
from liteprobe.sim.models.probe.emulator import EmulatorProbe

Fake = tuple[EmulatorProbe, FakeLink]
REST = UNMATCHED_CLASS
MS = 10**6
TICKS_OF_S = 125_000_000


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """A probe that emulates, and the link to it."""
    return fake_emulator(tmp_path)


def one_class(**fields: object) -> Network:
    return Network(Direction(classes=[TrafficClass(**fields)]))  # type: ignore[arg-type]


# What is counted ---------------------------------------------------------------------------------------


def test_a_slow_link_has_the_delays_and_the_queue_of_arithmetic(fake: Fake) -> None:
    """1000 octets each 0.9 ms on 10 Mb/s, 0.8 ms each; then each 0.4 ms on the other way, whose queue is of 5."""
    fake[0].offer(0, REST, 1000, 112_500)
    fake[0].offer(1, REST, 1000, 50_000)
    both = Direction(10**7, classes=[TrafficClass(overhead=0, delay_ns=5 * MS, queue=Queue(5))])
    with Probe(fake[1]) as probe, probe.emulate(Network(both, both)) as emulation:
        result = emulation.wait(0.9, look_s=0.1)
    there, back = (way.classes[0] for way in result.last.directions)
    assert (there.delays.least_ns, there.delays.most_ns) == (5.8 * MS, 5.8 * MS)
    assert there.delays.counts == tuple(there.counts.sent if number == 20 else 0 for number in range(32))
    assert there.delays.edges_ns[20:22] == [8 * 2**19, 8 * 2**20]
    assert (there.queue, there.counts.full, there.counts.arrived) == (ClassQueue(0, 0, 1), 0, 1001)
    assert there.counts.sent == there.counts.arrived - 7  # Those of the last 5.8 ms are under way.
    assert back.queue in (ClassQueue(5, 5000, 5), ClassQueue(4, 4000, 5))  # Just before or after a service begins.
    assert back.delays.most_ns == (0.4 + 4 * 0.8 + 0.8 + 5) * MS  # What is served, four ahead, its own service.
    held = back.counts.arrived - back.counts.full - back.counts.sent - back.queue.frames
    assert held in (7, 8)  # One in service, 5 ms of 0.8 ms each.
    assert there.sent_bps == pytest.approx(8000 / 0.9e-3, rel=0.01)
    assert back.sent_bps == pytest.approx(10**7, rel=0.01)
    assert (result.end, result.notes, result.last.there.is_running) == ("done", (), True)
    assert len(result.samples) == 10 and result.samples[-1] is result.last


@pytest.mark.parametrize("seed", range(4))
def test_means_are_of_the_whole_run_and_the_series_is_all_of_it(
    fake: Fake, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Delays and octets of each frame are known to the model; traffic ends long before the last look."""
    draw, due, octets = Random(seed), [[], []], [0, 0]  # type: ignore[var-annotated]
    depart, looks, spread = EmulatorProbe._depart, [], draw.choice([2, 9])
    monkeypatch.setattr("liteprobe.host.run.emulate.SAMPLES_MOST", draw.choice([5, 400]))

    def seen(model: EmulatorProbe, counts: list[int], length: int, delay: int, marks: object) -> None:
        number = next((n for n, one in enumerate(model.running) if one and one.counts[REST] is counts), None)
        if number is None:  # It has been stopped.
            return
        due[number].append(8 * delay)
        octets[number] += length
        depart(model, counts, length, delay, marks)  # type: ignore[arg-type]

    monkeypatch.setattr(EmulatorProbe, "_depart", seen)
    for number in range(2):
        fake[0].offer(number, REST, draw.randint(60, 1514), draw.randint(40_000, 90_000))
    jitter = Jitter("uniform", spread_ns=spread * MS)
    there, back = (
        Direction(classes=[TrafficClass(delay_ns=one, jitter=two)]) for one, two in ((10 * MS, jitter), (MS, None))
    )
    with Probe(fake[1]) as probe, probe.emulate(Network(there, back, seed=seed)) as emulation:
        first = emulation.wait(0.2, looks.append, 0.01)
        monkeypatch.setattr(EmulatorProbe, "_frame", lambda *_: None)  # No frame comes any more.
        result = emulation.wait(0.25, looks.append, 0.01)
    for number, way in enumerate(("there", "back")):
        (last,) = getattr(result.last, way).classes
        seconds, bounds = getattr(result.last, way).seconds, last.delays.mean_bounds_ns
        assert last.counts.sent == len(due[number]) and last.counts.sent_octets == octets[number]
        assert last.sent_mean_bps == pytest.approx(8 * octets[number] / seconds, rel=1e-9)
        mean = sum(due[number]) / len(due[number])
        assert bounds.least - 1e-6 <= mean <= bounds.most + 1e-6 and bounds.middle == last.delays.mean_ns
        assert number == 0 or bounds.least == bounds.most == due[1][0]  # All alike: exact.
        rows = [(row["seconds"], row[way]["classes"][0]) for row in result.series]
        assert rows[-1][0] == result.last.there.seconds
        assert sum(one["sent"] for _, one in rows) == last.counts.sent
        assert sum(one["arrived"] for _, one in rows) == last.counts.arrived
        spans = zip([0.0, *(time for time, _ in rows)], rows, strict=False)
        bits = sum((time - before) * (one["sent_bps"] or 0.0) for before, (time, one) in spans)
        assert bits == pytest.approx(8 * octets[number], rel=1e-3)  # Directions are looked at one after the other.
        for _, one in rows:
            assert one["sent"] or str(one["sent_bps"]) in ("0.0", "None")
            low, high = one["delay_mean_bounds_ns"] or (0, 0)
            assert low <= (one["delay_mean_ns"] or 0) <= high and (one["sent"] or one["delay_mean_ns"] is None)
    assert json.loads(json.dumps(result.to_dict()))["there"]["classes"][0]["delays"]["mean_bounds_ns"]
    assert first.last.there.classes[0].sent_bps != 0


@pytest.mark.parametrize("ticks", [1_000_000, 1 << 33])
def test_who_attaches_has_means_since_its_first_look(fake: Fake, ticks: int) -> None:
    """Octets that came before are in no mean; those of the whole run aren't known any more after 34 s."""
    fake[0].offer(0, REST, 1000, 1 << 20)
    with Probe(fake[1]) as first:
        Emulation.started(first, Network(Direction(10**9)))
        first.wait(ticks * 8e-9)
        fake[0].shown[0][REST][ClassCounter.SENT_OCTETS] = 123_456  # Whatever it was.
        fake[0].offer(0, REST, 1000, 12_500)
        assert fake[0].running[0]
        fake[0]._arrive_at(fake[0].running[0], (0, REST, 1000, 12_500, 0), fake[0].tick)
        with Probe(fake[1]) as second:
            result = Emulation(second).wait(ticks * 8e-9 + 0.2, look_s=0.02)
    (last,) = result.last.there.classes
    assert result.last.since_s == pytest.approx(ticks * 8e-9, abs=1e-3)
    assert last.sent_mean_bps == pytest.approx(80e6 + 8000 / (8e-9 * (1 << 20)), rel=0.02)
    assert (last.counts.sent_octets is None) == (ticks > 1 << 32)
    since = time_text(1e9 * result.last.since_s)
    assert f"since this host's first look, {since} after the start" in result.notes[-1]
    assert result.series[0]["there"]["classes"] == [] and result.series[1]["there"]["classes"][0]["sent_bps"] > 70e6


def test_what_is_lost_is_what_was_asked_for(fake: Fake) -> None:
    for number in range(4):
        fake[0].offer(0, number, 100, 12_500)
    classes = [
        TrafficClass("pattern", "udp", pattern=LossPattern("0100")),
        TrafficClass("list", "tcp", pattern=LossList([3, 17, 40])),
        TrafficClass("all", "arp", loss=Bernoulli(1)),
        TrafficClass("late", "icmp", loss=Bernoulli(1), is_lost_late=True),
    ]
    with Probe(fake[1]) as probe, probe.emulate(Network(Direction(classes=classes))) as emulation:
        emulation.wait(0.1)
        counts = emulation.counts["there"]
    arrived = counts["pattern"].arrived
    assert 1000 <= arrived <= 1010
    assert counts["pattern"].lost == (arrived + 2) // 4
    assert counts["list"].lost == 3
    for name in ("all", "late"):  # What is lost is read before what has arrived.
        assert counts[name].lost <= counts[name].arrived <= counts[name].lost + 1
        assert arrived <= counts[name].arrived <= arrived + 2
    assert [counts[name].sent for name in ("all", "late")] == [0, 0]


def test_draws_repeat_with_the_seed_and_change_with_it(tmp_path: Path) -> None:
    lost = []
    for seed in (1, 1, 2):
        model, link = fake_emulator(tmp_path)
        model.offer(0, REST, 100, 12_500)
        classes = [TrafficClass(loss=Bernoulli(0.3), duplicate=0.1, corrupt=0.2, reorder=Reorder(0.05, MS))]
        with Probe(link) as probe, probe.emulate(Network(Direction(classes=classes), seed=seed)) as emulation:
            probe.wait(0.1)
            lost.append([model.running[0].counts[REST][one] for one in ClassCounter] if model.running[0] else [])
            assert emulation.counts["there"]["rest"].lost == pytest.approx(300, abs=60)
    assert lost[0] == lost[1] != lost[2]


def test_octets_and_bins_go_on_when_their_counters_come_round() -> None:
    counter = Extended(1536)
    words = [0] * len(ClassCounter)
    counter.take(words)
    for number in range(1, 6):
        words[ClassCounter.SENT] = 2_000_000 * number
        words[ClassCounter.SENT_OCTETS] = 1500 * 2_000_000 * number % 2**32
        totals = counter.take(words)
        assert totals[ClassCounter.SENT_OCTETS] == 3 * 10**9 * number
    words[ClassCounter.SENT] += 2_796_203  # So many of 1536 octets may be 2^32 and more.
    assert counter.take(words)[ClassCounter.SENT_OCTETS] is None
    assert counter.take(words)[ClassCounter.SENT] == 12_796_203


def test_all_counters_of_a_class_go_round_alone() -> None:
    counter = Extended(1536)
    counter.take([2**32 - 5] * 32)
    assert counter.take([3] * 32) == [2**32 + 3] * 32


# Changes -----------------------------------------------------------------------------------------------


def test_changes_take_place_at_their_ticks_both_ways_at_once(fake: Fake) -> None:
    fake[0].offer(0, REST, 60, 12_500)
    slow, slower = (Direction(classes=[TrafficClass(delay_ns=delay)]) for delay in (2 * MS, 3 * MS))
    changes = [Change(20 * MS, slow), Change(40 * MS, slower), Change(60 * MS, slow, slow)]
    with Probe(fake[1]) as probe, probe.emulate(Network(changes=changes)) as emulation:
        result = emulation.wait(0.1)
    at = [20 * 125_000, 40 * 125_000, 60 * 125_000]
    assert [[one for one in fake[0].switches if one[0] == n] for n in range(2)] == [
        [(n, 1, at[0]), (n, 0, at[1]), (n, 1, at[2])] for n in range(2)
    ]
    assert (result.notes, result.last.there.state, result.last.back.state, result.last.changes) == ((), 3, 3, 3)
    there = result.last.there.classes[0].delays
    assert (there.least_ns, there.most_ns) == (24_000, 3 * MS)
    assert result.last.back.classes[0].delays.most_ns is None or result.last.back.classes[0].counts.sent == 0


def test_a_change_that_comes_too_late_is_said(fake: Fake) -> None:
    slow = Direction(classes=[TrafficClass(delay_ns=2 * MS)])
    with Probe(fake[1]) as probe, probe.emulate(Network(changes=[Change(10, slow), Change(MS, slow)])) as emulation:
        result = emulation.wait(0.1)
    late = [note for note in result.notes if note.startswith("change 1 of 'there' was made up to ")]
    assert len(late) == 1 and late[0].endswith("leave more time between changes")
    assert result.last.there.state == 2


# Start, end, other hosts -------------------------------------------------------------------------------


def test_both_directions_start_in_one_tick_and_end_with_the_context(fake: Fake) -> None:
    with Probe(fake[1]) as probe:
        with probe.emulate(Network()):
            starts = [one.start for one in fake[0].running if one]
            assert len(starts) == 2 and starts[0] == starts[1]
        assert fake[0].running == [None, None]


def test_detached_it_goes_on_and_another_host_looks_and_stops_it(fake: Fake, tmp_path: Path) -> None:
    fake[0].offer(0, REST, 60, 12_500)
    fake[0].offer(0, 2, 60, 12_500)
    classes = [TrafficClass(name, match) for name, match in (("a", "udp"), ("b", "tcp"), ("c", "arp"), ("d", None))]
    first = Direction(classes=classes)
    with Probe(fake[1]) as probe:
        with probe.emulate(Network(first)) as emulation:
            emulation.detach()
            result = emulation.result()
        assert (result.end, result.notes) == ("detached", ())
    fake[1].model.advance(TICKS_OF_S // 10)
    with Probe(FakeLink(fake[0], tmp_path)) as probe:
        other = probe.emulate()
        counts = other.counts["there"]
        assert [*counts] == ["a", "b", "c", "d"]
        assert counts["d"].sent > 900 and counts["c"].sent > 900
        result = other.wait(0.001)
        assert result.network == other.now and (result.network and result.network.there, result.end) == (first, "done")
        assert fake[0].running[0]
        other.stop()
        assert fake[0].running == [None, None]
        assert "no network runs on this probe: start one" in refusal(probe.emulate)


def test_it_outlives_its_host(fake: Fake) -> None:
    with Probe(fake[1]) as probe:
        probe.emulate(Network())  # Never stopped, nor detached: as if its host had died.
    assert all(fake[0].running)


def test_a_start_that_fails_leaves_nothing_running(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise Interrupted

    monkeypatch.setattr(Emulation, "_arm_next", fails)
    with Probe(fake[1]) as probe, pytest.raises(Interrupted):
        probe.emulate(Network())
    assert fake[0].running == [None, None]
    assert [fake[0].values[f"port{port}_tx_state"] for port in range(2)] == [TransmitState.IDLE] * 2


def test_what_was_left_running_is_replaced_and_said(fake: Fake) -> None:
    with Probe(fake[1]) as probe:
        probe.emulate(Network()).detach()
        with probe.emulate(Network()) as emulation:
            assert "port 1: what was left running there was stopped" in emulation.result().notes


def test_a_port_that_was_given_something_else_is_not_looked_at(fake: Fake) -> None:
    with Probe(fake[1]) as probe:
        first = probe.emulate(Network())
        probe.emulate(Network())
        assert "port 0 was reset or given something else since" in refusal(first.look)
        first.stop()
        assert fake[0].values["port0_tx_state"] == TransmitState.RUNNING


def test_one_that_was_stopped_by_another_ends(fake: Fake) -> None:
    with Probe(fake[1]) as probe, probe.emulate(Network()) as emulation:
        for port in (0, 1):
            probe.stop(port)
        result = emulation.wait()
    assert result.end == "stopped"
    assert [way.is_running for way in result.last.directions] == [False, False]


def test_an_interrupt_has_what_came_until_then(fake: Fake) -> None:
    fake[0].offer(0, REST, 60, 12_500)

    def show(look: EmulationLook) -> None:
        if look.there.seconds > 0.05:
            raise Interrupted

    with Probe(fake[1]) as probe:
        with pytest.raises(Interrupted) as caught, probe.emulate(Network()) as emulation:
            emulation.wait(None, show, 0.02)
        (result,) = caught.value.results
        assert result.end == "interrupted" and result.last.there.classes[0].counts.arrived > 500
        assert fake[0].running == [None, None]


def test_a_link_that_is_down_is_an_error_before_and_a_note_meanwhile(fake: Fake) -> None:
    fake[0].values["port1_tx_link_up"] = 0
    with Probe(fake[1]) as probe:
        assert "the link of port 1 is down" in refusal(probe.emulate, Network(), error=ProbeError)
        fake[0].values["port1_tx_link_up"] = 1
        with probe.emulate(Network()) as emulation:
            fake[0].values["port1_tx_link_up"] = 0
            assert not emulation.look().there.is_link_up
            fake[0].values["port1_tx_link_up"] = 1
            result = emulation.wait(0.01)
    assert result.notes == ("the link of port 1 was down for a time: frames to it were lost on the line",)


def test_a_link_of_100_mb_s_is_refused_with_its_speed(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake[0].values["port0_tx_link_up"] = 0  # A port counts as up at 1 Gb/s alone.
    phys = SimpleNamespace(
        states=list, in_band=lambda port: PhyStatus.LINK | PhyStatus.FULL_DUPLEX | PhyStatus.SPEED_LOW
    )
    with Probe(fake[1]) as probe:
        monkeypatch.setattr(probe.links, "_phys", phys)
        with pytest.raises(ProbeError, match="the link of port 0 is up at 100 Mb/s, and a probe measures at 1 Gb/s"):
            probe.emulate(Network())


def test_a_probe_that_another_host_has_is_left_alone(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake[0].values["probe_lease_owner"] = 0x1234_8000
    with Probe(fake[1]) as probe, pytest.raises(BusyError):
        monkeypatch.setattr(type(probe.lease), "_wait_for_end", refuse)
        probe.emulate(Network())
    assert fake[0].running == [None, None]


def refuse(_: object) -> None:
    raise BusyError("the probe is in use")


def test_a_probe_without_an_emulator_is_said(tmp_path: Path) -> None:
    from liteprobe.sim.models.probe.trains import ModelProbe

    with Probe(FakeLink(ModelProbe(), tmp_path)) as probe, pytest.raises(UsageError, match="--preset emulator"):
        probe.emulate(Network())


def test_settings_that_are_not_kept_are_an_error(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = fake[0].map["memories"]["direction1_settings"]["base"]
    write = FakeLink.write

    def forgets(link: FakeLink, address: int, words: list[int]) -> Words:
        found = write(link, address, words)
        return found * 0 if address == settings else found

    monkeypatch.setattr(FakeLink, "write", forgets)
    with (
        Probe(fake[1]) as probe,
        pytest.raises(ProbeError, match="doesn't keep what is written to direction1_settings"),
    ):
        probe.emulate(one_class(delay_ns=MS))
    assert fake[0].running == [None, None]


# What goes to the probe --------------------------------------------------------------------------------


def test_a_trace_goes_to_its_memory_and_is_cleared_by_the_next_network(fake: Fake) -> None:
    trace = BandwidthTrace((1, 3), (3000, 1500))
    with Probe(fake[1]) as probe:
        with probe.emulate(Network(Direction(trace=trace))):
            assert probe.registers.read_memory("direction0_trace", 0, 4).tolist() == [125_000, 3000, 250_000, 1500]
            entries = [probe.registers.read(f"direction{n}_trace_entries") for n in range(2)]
        assert entries == [2, 0]
        with probe.emulate(Network()):
            assert probe.registers.read("direction0_trace_entries") == 0


def test_limits_are_those_of_each_direction(tmp_path: Path) -> None:
    model = EmulatorProbe(with_trace=False)
    model.values |= {"direction1_store_words": 1 << 12, "direction1_entries": 64}
    with Probe(fake_emulator(tmp_path, model)[1]) as probe:
        slow = Direction(10**7, classes=[TrafficClass(queue=Queue(100))])
        Emulation(probe, Network(there=slow))
        assert "has 16.0 KiB for 'back'" in refusal(Emulation, probe, Network(back=slow))
        with pytest.raises(UsageError, match="no memory for bandwidth traces"):
            Emulation(probe, Network(Direction(trace=BandwidthTrace((1,), (1500,)))))


def test_a_probe_of_one_direction_emulates_that_and_refuses_the_other(tmp_path: Path) -> None:
    model, link = fake_emulator(tmp_path, EmulatorProbe(directions=1))
    model.offer(0, REST, 60, 12_500)
    slow = Direction(classes=[TrafficClass(delay_ns=MS)])
    with Probe(link) as probe:
        assert "from port 0 to port 1 alone" in refusal(probe.emulate, Network(back=slow))
        assert "from port 0 to port 1 alone" in refusal(probe.emulate, Network(changes=[Change(10, None, slow)]))
        with probe.emulate(Network(slow, changes=[Change(MS, slow)])) as emulation:
            result = emulation.wait(0.1)
            assert list(emulation.counts) == ["there"]
        assert model.values["port0_tx_state"] == TransmitState.IDLE
    assert (result.last.back, result.to_dict()["back"], result.last.there.state) == (None, None, 1)
    assert result.last.there.classes[0].delays.most_ns == MS


def test_a_port_that_forwards_measures_no_train(tmp_path: Path) -> None:
    model, link = fake_emulator(tmp_path)
    model.values["probe_parts"] = int(Part.GENERATE)
    with Probe(link) as probe:
        assert "forwards what comes, and measures nothing" in refusal(probe.train, TrainProgram(60, 10))
        with probe.emulate(Network()) as emulation:
            assert emulation.look().there.is_running


def test_frames_dropped_outside_of_classes_are_said(fake: Fake) -> None:
    with Probe(fake[1]) as probe, probe.emulate(Network()) as emulation:
        fake[0].values |= {"direction0_damaged": 3, "direction1_overflows": 2, "direction0_management": 7}
        fake[0].shown[1][REST][ClassCounter.NO_STORE] = 4
        fake[0].shown[0][REST][ClassCounter.LATE] = 1
        result = emulation.wait(0.01)
    assert result.last.there.management == 7
    assert result.notes == (
        "1 frames of 'rest' of 'there' left up to 0 ns after their tick",
        "3 frames of 'there' were dropped at the input, with bad FCS, too short or too long",
        "4 frames of 'rest' of 'back' found no space in the probe's memory, which the network doesn't ask for: give less delay "
        "or "
        "queue, or less traffic",
        "2 frames of 'back' were dropped at the input, for want of space",
    )


def test_a_slow_clock_has_fewer_ticks_for_the_same_times(fake: Fake) -> None:
    fake[0].offer(0, REST, 60, 12_500)
    fake[0].values["timebase_increment"] = 8 * 2**40 + 8 * 2**40 // 1000  # A tick is 0.1 % longer.
    with Probe(fake[1]) as probe, probe.emulate(read_network("there: {delay: 10ms}")) as emulation:
        emulation.wait(0.1)
        delays = emulation.delays["there"]["rest"]
    assert delays.least_ns == delays.most_ns == pytest.approx(10 * MS, abs=8)
    assert delays.least_ns == float(probe.timebase.tick_ns * round(10 * MS / probe.timebase.tick_ns))


# Rules of classes ---------------------------------------------------------------------------------


def frame(protocol: int, destination: int, tag: bytes = b"", tos: int = 0) -> bytes:
    """Return a frame of IPv4 to a port."""
    packet = (
        bytes([0x45, tos]) + bytes.fromhex("002800000000 40") + bytes([protocol]) + bytes(10) + bytes.fromhex("0001")
    )
    return (bytes(12) + tag + b"\x08\x00" + packet + destination.to_bytes(2)).ljust(60, b"\0")


def named(probe: Probe, number: int, frames: Sequence[bytes]) -> list[int]:
    """Return the class that the rules of a direction name for each frame."""
    registers = probe.registers
    memory = registers.memory(f"direction{number}_rules")
    words = dict(enumerate(map(int, registers.read_memory(f"direction{number}_rules", 0, memory.words))))
    return RulesModel(words, registers.read(f"direction{number}_rule_words")).classes(headers_of(frames)).tolist()


def test_rules_name_the_class_of_a_frame_each_way_by_itself(fake: Fake) -> None:
    there = Direction(
        classes=[TrafficClass("a", "udp port 5060"), TrafficClass("b", "udp"), TrafficClass("c", "vlan 10")]
    )
    back = Direction(classes=[TrafficClass("a", "udp"), TrafficClass("c", "arp"), TrafficClass("d")])
    tagged = frame(17, 5060, bytes.fromhex("8100000a"))
    frames = [frame(17, 5060), frame(17, 9), frame(6, 5060), tagged]
    with Probe(fake[1]) as probe, probe.emulate(Network(there, back)):
        assert named(probe, 0, frames) == [0, 1, REST, 2]
        assert named(probe, 1, frames) == [0, 0, REST, REST]


def test_classes_by_dscp_by_ports_by_vlans_and_by_hosts_stand_beside_each_other(fake: Fake) -> None:
    hosts = " or ".join(f"host 10.0.0.{number}" for number in range(1, 8))
    matches = [
        "ip[1] & 0xfc == 0xb8",
        "udp port 5060",
        "tcp port 443",
        "vlan 10",
        "vlan 20",
        "ether proto 0x88f7",
        hosts,
    ]
    classes = [TrafficClass(str(place), match) for place, match in enumerate(matches)]
    tags = [bytes.fromhex(f"8100{number:04x}") for number in (10, 20, 30)]
    address = bytearray(frame(6, 80))
    address[26:30] = 10, 0, 0, 7
    # The traffic class of IPv6 is another field: none of a lookup by that of IPv4.
    six = bytes(12) + bytes.fromhex("86dd6b8000000000 3b40").ljust(48, b"\0")
    frames = [frame(1, 0, tos=0xB9), frame(17, 5060), frame(6, 443), *(frame(6, 443, tag) for tag in tags)]
    frames += [bytes(12) + b"\x88\xf7" + bytes(46), bytes(address), six, frame(6, 5060)]
    with Probe(fake[1]) as probe, probe.emulate(Network(Direction(classes=classes))):
        assert named(probe, 0, frames) == [0, 1, 2, 3, 4, REST, 5, 6, REST, REST]


def test_tags_joined_by_or_are_read_as_tcpdump_does_and_a_note_says_so(fake: Fake) -> None:
    classes = [TrafficClass("a", "vlan 10 or vlan 20"), TrafficClass("b", "vlan 20 and (tcp or udp)")]
    tags = [bytes.fromhex(octets) for octets in ("8100000a", "81000014", "8100000581000014")]
    with Probe(fake[1]) as probe, probe.emulate(Network(Direction(classes=classes))) as emulation:
        assert named(probe, 0, [frame(6, 80, tag) for tag in tags]) == [0, 1, 0]
        notes = [note for note in emulation.notes if "an inner tag" in note]
    assert len(notes) == 1 and notes[0].startswith("'vlan 10 or vlan 20' of 'there'")


def test_without_classes_no_rule_holds(fake: Fake) -> None:
    fake[0].values["direction0_rule_words"] = 1 << 5
    with Probe(fake[1]) as probe, probe.emulate(Network()):
        assert probe.registers.read("direction0_rule_words") == 0


def test_frames_that_no_bridge_forwards_are_counted_and_the_note_says_what_lets_them_through(fake: Fake) -> None:
    for reserved, is_forwarded in (("eaten", 0), ("forwarded", 1)):
        with Probe(fake[1]) as probe, probe.emulate(read_network(f"reserved: {reserved}")) as emulation:
            fake[0].values["direction1_reserved"] = 3
            result = emulation.result()
            assert probe.registers.read("direction0_forward_reserved") == is_forwarded
        fake[0].values["direction1_reserved"] = 0
        assert result.last.back is not None
        assert (result.last.there.reserved, result.last.back.reserved) == (0, 3)
        assert any("3 frames of 'back'" in note and "reserved: forwarded" in note for note in result.notes)


def test_matches_that_need_more_rules_than_there_are_are_refused_with_the_count_before_anything_is_written(
    fake: Fake,
) -> None:
    most = " or ".join(f"host 10.{number}.0.{number * number % 251}" for number in range(16))
    classes = [TrafficClass("a", most), TrafficClass("b", "udp port 5060")]
    count = r"the classes need 34 rules \('a' 32, 'b' 2\), and a direction has 32: .* --rules 64"
    with Probe(fake[1]) as probe:
        with pytest.raises(UsageError, match=f"^there: {count}"):
            probe.emulate(Network(Direction(classes=classes)))
        assert fake[0].values["probe_lease_owner"] >> 16 == 0
        assert probe.emulate(Network(Direction(classes=classes[:1]))).network


# Stations -----------------------------------------------------------------------------------------


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


# The way back -------------------------------------------------------------------------------------


LONGEST, INTERVAL = 1536, 1600
NAMES = ("sent", "damaged", "full", "state", "reserved")


@pytest.mark.parametrize("seed", range(3))
def test_frames_of_the_way_back_are_counted_whether_a_network_runs_or_not(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    lengths = [59, 60, LONGEST, LONGEST + 1, *(chance.randint(1, INTERVAL - 24) for _ in range(20))]
    frames = [(length, chance.random() < 0.3) for length in lengths]
    model, link = fake_emulator(tmp_path, EmulatorProbe(directions=1, longest=LONGEST))

    def check(start: int) -> None:
        count = (model.tick - start) // INTERVAL + 1
        came = [Arrival(start + INTERVAL * n, bytes(frames[n % 24][0]), frames[n % 24][1]) for n in range(count)]
        whole = [one for one in came if one.tick + len(one.octets) + 4 <= model.tick]
        left = [one for one in leaving(came, LONGEST) if one.first <= model.tick]
        assert [model.values[f"port0_tx_{name}"] for name in NAMES] == [
            len(left),
            len(whole) - len(leaving(whole, LONGEST)),
            *(0, 0, 0),
        ]

    with Probe(link) as probe:
        start = model.tick
        model.offer_back(frames, INTERVAL)
        for _ in range(200):
            probe.wait(chance.randint(1, 2000) * 8e-9)
            check(start)
        with probe.emulate(Network()) as emulation:
            for _ in range(20):
                emulation.wait(chance.randint(1, 2000) * 8e-9)
                check(start)
        sent = probe.registers.read("port0_tx_sent")  # Time goes on with each read.
        assert sent == model.values["port0_tx_sent"] > 50
        check(start)


def test_frames_that_a_line_could_not_bring_are_refused() -> None:
    with pytest.raises(ValueError, match="1537 ticks don't hold the slot"):
        EmulatorProbe(directions=1).offer_back([(60, False), (1514, False)], 1537)


def test_only_a_probe_of_one_direction_has_the_registers_of_the_way_back() -> None:
    names = [{name for name in EmulatorProbe(directions=n).map["csr_registers"] if "port0_tx" in name} for n in (1, 2)]
    assert names[0] == {f"port0_tx_{name}" for name in (*NAMES, "management_sent", "management_dropped", "link_up")}
    assert "port0_tx_full" not in names[1] and "port0_tx_stop" in names[1]


# Looks while frames go on ------------------------------------------------------------------------------


class RestlessLink(FakeLink):
    """A link in whose reads time goes on from word to word, by a few or by many ticks."""

    chance, most = Random(36), 0

    def read_scattered(self, addresses: Sequence[int]) -> Words:
        if not self.most:
            return super().read_scattered(addresses)
        return np.array([self._late(address) for address in addresses], np.uint32)

    def read(self, address: int, count: int) -> Words:
        return self.read_scattered([address + 4 * number for number in range(count)])

    def _late(self, address: int) -> int:
        self.model.advance(self.chance.randint(0, self.most))
        return self.model.read(address)


@pytest.mark.parametrize(("most", "length"), [(30, 60), (30, 1514), (300, 60)])
def test_a_look_says_what_could_be_at_one_instant(tmp_path: Path, most: int, length: int) -> None:
    model = EmulatorProbe()
    link = RestlessLink(model, tmp_path)
    model.offer(0, REST, length, length + 30)
    model.offer(1, REST, length, 4 * length)
    way = Direction(
        5 * 10**8, classes=[TrafficClass(delay_ns=30_000, loss=Bernoulli(0.1), duplicate=0.2, queue=Queue(8))]
    )
    with Probe(link) as probe, probe.emulate(Network(way, way)) as emulation:
        link.most = most
        for _ in range(15):
            for one in (each.classes[0] for each in emulation.look().directions):
                counts, binned = one.counts, sum(one.delays.counts)
                assert counts.sent - counts.duplicated + counts.dropped + one.queue.frames <= counts.arrived
                assert (
                    binned <= counts.sent and counts.duplicated <= counts.arrived and counts.corrupted <= counts.arrived
                )
                assert (one.delays.least_ns is not None) == (binned > 0) and one.queue.frames <= one.queue.most
                if most <= length:  # As on a bus: not more than a frame comes while a few words are read.
                    octets = (counts.arrived_octets, counts.sent_octets)
                    assert octets == (length * counts.arrived, length * counts.sent)
                    # One may leave it and one come between two words.
                    assert abs(one.queue.octets - length * one.queue.frames) <= length
        link.most = 0
