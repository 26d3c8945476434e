# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Two probes of one simulation, held against arithmetic and against the pins."""

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from liteprobe.host import Probe, TrainProgram
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.fleet.experiment import Experiment
from liteprobe.host.fleet.plan import ExperimentPlan, mesh
from liteprobe.host.fleet.probes import PlannedProbe
from liteprobe.host.run.trains import Route
from liteprobe.host.suites.owd import OneWay
from liteprobe.host.suites.owd import row
from liteprobe.host.traffic.train import schedule
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import Client, Harness, frame
from liteprobe.sim.drivers.system.pair import open_pair

PPM = (20.0, -30.0)
TICK_PS = tuple(8000 / (1 + ppm * 1e-6) for ppm in PPM)
DELAY_TICKS, LATE_PS = 125, (3000, 5000)
PPS_PORTS = (255, 254)
CONTENT = bytes(range(60))


def pair(folder: Path, *options: str) -> Harness:
    """A pair on a cable of 1 us whose lines to a and b are later by 3 and by 5 ns."""
    wire = ("--wire", "cable?delay=1us") if "--wire" not in options else ()
    return Harness(folder, *wire, "--oscillators", "20,-30", "--phase", "3000,5000", *options)


def test_frames_cross_in_the_ticks_of_their_sender(own: Path, tmp_path: Path) -> None:
    """A frame of a is at b 125 of a's ticks later, one of b at a 125 of b's."""
    path = tmp_path / "truth"
    url = sim_url("pair?delay=1us", build=own, truth=path)
    with Probe(f"{url}&probe=a") as a, Probe(f"{url}&probe=b") as b:
        for sender, program in ((a, TrainProgram(60, 5)), (b, TrainProgram(1514, 3))):
            port = sender.ports[1].transmit
            port.load(program, schedule(program, 8 << 40))
            port.arm()
            sender.wait(20e-6)
            sender.registers.write("probe_start", 2)
            sender.wait(200e-6)
        assert [probe.ports[1].receive.counters()["all_frames"] for probe in (a, b)] == [3, 5]
        assert isinstance(a.link, SimLink)
        a.link.sync()
    rows = truth.read_truth(path)
    for sender, port, count in ((0, 17, 5), (1, 1, 3)):
        came = truth.frames_in(rows, port)
        assert len(came) == count and set(came["fate"]) == {truth.DELIVERED}
        ticks = came["origin_tick"] / TICK_PS[sender]
        assert np.abs(ticks - np.rint(ticks)).max() < 1e-3  # It left on a tick of its sender,
        delays = truth.delays_ns(came) / truth.TICK_NS
        assert np.abs(delays - DELAY_TICKS * TICK_PS[sender]).max() <= 1  # and was as long under way, to a ps.


def test_a_phase_makes_a_line_longer_by_less_than_a_tick(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with pair(own, "--truth", str(path)) as harness:
        harness.inject(0, frame(CONTENT))  # Into a; it has no line to come from, but takes its ticks.
        assert harness.command(f"b inject 1 {frame(CONTENT).hex()}") == "ok"
        harness.run(20_000)
    rows = truth.read_truth(path)
    for port, source in ((0, 1), (17, 0)):
        (came,) = rows[(rows["port"] == port) & (rows["direction"] == truth.IN)]
        tick = (int(came["sfd_tick"]) - LATE_PS[1 - source]) / TICK_PS[source]
        assert abs(tick - round(tick)) < 2e-3


def test_each_oscillator_counts_its_own_ticks_and_may_change(own: Path) -> None:
    with pair(own) as harness:
        clients = [Client(port) for port in harness.ports]
        registers = json.loads((own / "csr.json").read_text())["csr_registers"]

        def ticks(client: Client) -> int:
            client.write(registers["timebase_latch"]["addr"], [1])
            high, low = client.read(registers["timebase_ticks"]["addr"], 2)
            return high << 32 | low

        def rate(index: int, span_ns: int) -> float:
            start = ticks(clients[index]), harness.run(0)
            harness.run(span_ns)
            end = ticks(clients[index]), harness.run(0)
            return ((end[0] - start[0]) * 8 / (end[1] - start[1]) - 1) * 1e6

        harness.run(1_000_000)  # Until the processors have looked into their flash, and stay off the bus.
        # A look is good to some 8 ns at either end: 20 ppm of a millisecond.
        for index, ppm in enumerate(PPM):
            assert rate(index, 1_000_000) == pytest.approx(ppm, abs=17)
        assert harness.command("b rate 190") == "ok"
        assert rate(1, 1_000_000) == pytest.approx(190, abs=17)
        assert rate(0, 1_000_000) == pytest.approx(20, abs=17)
        assert harness.command("a rate 300").startswith("error rate 300")


def test_pulses_are_true_time_for_both(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with pair(own, "--truth", str(path), "--pps", "period=100us&width=3us&first=70us") as harness:
        harness.run(1_000_000)
    rows = truth.read_truth(path)
    for index, port in enumerate(PPS_PORTS):
        pulses = rows[(rows["port"] == port) & (rows["direction"] == truth.IN)]
        assert pulses["origin_tick"].tolist() == [1000 * (70_000 + 100_000 * n) for n in range(10)]
        early = pulses["origin_tick"].astype(np.int64) - pulses["sfd_tick"].astype(np.int64)
        assert (early >= 0).all() and (early <= TICK_PS[index]).all()
        ticks = pulses["sfd_tick"] / TICK_PS[index]
        assert np.abs(ticks - np.rint(ticks)).max() < 1e-3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--wire", "loopback"), "cable or a switch"),
        (("--ppm", "10,0,0"), "leave --ppm out"),
        (("--phase", "7950,0,0"), "up to 7900"),
        (("--pps", "period=1ms", "--pps", "period=1ms", "--pps", "period=1ms"), "more probes than there are"),
        (("--oscillators", "300,0"), "from -200 to 200"),
    ],
)
def test_what_no_pair_can_be_is_refused(own: Path, options: tuple[str, ...], said: str) -> None:
    command = [str(own / "liteprobe-sim"), "--wire", "cable", "--oscillators", "20,-30", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_one_way_delay_is_true_to_the_bound_that_is_told(own: Path, tmp_path: Path) -> None:
    """Both ways at once, on one PPS, after 16 periods: what is measured less what stood on the pins."""
    with open_pair(tmp_path / "truth", build=own) as bench:
        assert bench.a.timebase.clock_state == "free-running"
        with pytest.raises(ProbeError, match="free-running, so a delay would be what the clocks differ"):
            OneWay([Route(TrainProgram(60, 1), bench.a, bench.b)])
        bench.settle(16)
        program = TrainProgram(60, 40, interval_ns=10_000.0)
        ways = [Route(program, bench.a, bench.b), Route(program, bench.b, bench.a, 1, 1)]
        there, back = OneWay(ways, tend=bench.tend).measure()
        for way, receiver, port in ((there, 1, 0), (back, 0, 1)):
            figures = row(way)
            assert (figures["sent"], figures["received"], figures["lost"], figures["notes"]) == (40, 40, 0, [])
            assert (figures["clock_state"], way.train.complete) == ("locked", True)
            errors = bench.errors_ns(way, receiver, port)
            assert np.abs(errors).max() < figures["uncertainty_ns"] + 8  # An unresolved tick is off by half of one.
            assert np.sqrt(np.mean(errors**2)) < 8
            # Of two receivers little is known yet: each may wander by 14 ns, a poor sky.
            assert figures["uncertainty_ns"] < 1.96 * 14 * 2**0.5 + 5
        assert there.start_time_ns == back.start_time_ns and there.start_time_ns % 10**6 == 0
        # Each began on its own tick, within its clock's error of the true PPS.
        rows = truth.read_truth(bench.truth)
        for port in (0, 17):
            (first,) = truth.frames_out(rows, port)[:1]
            assert abs(int(first["sfd_tick"]) / 1e3 - there.start_time_ns) < 50
        with pytest.raises(UsageError, match="probe a of this pair is open already"):
            Probe(bench.a.url)


def test_an_experiment_starts_at_one_instant_and_its_delays_are_true_to_their_bounds(own: Path, tmp_path: Path) -> None:
    """Both probes in lock-step, each with a crystal, a PPS and a servo of its own."""
    with open_pair(tmp_path / "truth", build=own) as bench:
        bench.settle(16)
        probes = [PlannedProbe("a", "0"), PlannedProbe("b", "1")]
        pairs = mesh(probes, TrainProgram(60, 40, interval_ns=10_000.0))
        plan = ExperimentPlan(tuple(probes), pairs, start_in_ns=Fraction(4_000_000))
        experiment = Experiment(plan, bench.tend, opener=lambda one: {"a": bench.a, "b": bench.b}[one.name])
        experiment.open()
        there, back = experiment.run().pairs
        assert isinstance(bench.a.link, SimLink)
        bench.a.link.sync()
        rows = truth.read_truth(bench.truth)
        for one, receiver, sender in ((there, 16, 0), (back, 0, 16)):
            assert (one.count("sent"), one.count("lost"), one.why, one.note) == (40, 0, "", "")
            true_ns = truth.delays_ns(truth.frames_in(rows, receiver)).astype(np.float64) / 1e3 / truth.TICK_NS
            assert one.delays and one.bound_ns and len(true_ns) == 40
            assert abs(one.delays["mean"] - true_ns.mean()) < one.bound_ns
            (first,) = truth.frames_out(rows, sender)[:1]
            assert one.start_time_ns and abs(int(first["sfd_tick"]) / 1e3 - one.start_time_ns) < 50
        assert there.start_time_ns == back.start_time_ns


@pytest.mark.parametrize(
    ("build", "settings"), [("own", {}), pytest.param("tester", {"link": "shared"}, marks=pytest.mark.full)]
)
def test_what_is_lost_or_too_late_is_counted_by_the_waiting_time(
    build: str, settings: dict[str, str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A switch that loses some frames and keeps others back for 40 us: T_max decides what is lost, by either kind of record."""
    wire = "pair?wire=switch&latency=2us&loss=0.2&reorder=0.3&reorder_by=40us&seed=3"
    with open_pair(tmp_path / "truth", wire, request.getfixturevalue(build), **settings) as bench:
        bench.settle(4)
        program = TrainProgram(60, 60, interval_ns=50_000.0)
        found = OneWay([Route(program, bench.a, bench.b)], 20_000, bench.tend).measure()[0]
        figures = row(found, 20_000)
        assert isinstance(bench.a.link, SimLink)
        bench.a.link.sync()
        rows = truth.read_truth(bench.truth)
        lost = int((truth.frames_out(rows, 0)["fate"] == truth.LOST).sum())
        delays_ps = truth.delays_ns(truth.frames_in(rows, 16)) // truth.TICK_NS
        late = int((delays_ps > 20_000_000).sum())
        assert lost > 0 and late > 0
        assert (figures["lost"], figures["expired"], figures["received"]) == (lost + late, late, 60 - lost - late)
