# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""PPS, GNSS receiver and line clocks of the whole probe, held against what stood on its pins."""

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.cores.formats import PPS_EARLY_BIT, PPS_SPURIOUS, PpsControl
from liteprobe.host import Probe, TrainProgram
from liteprobe.host.analysis import line_clock
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import probe_of

PERIOD_NS = 100_000
PIN_PORT = 255  # Of the rows of pulses.
COUNT_AHEAD = 1  # The tick counter has counted the edge that begins tick 0; ``now`` is still 0 there.


def enable(probe: Probe, period_ns: int = PERIOD_NS, min_width: int = 16, window_ns: int = 0) -> None:
    for name, value in [("period", period_ns), ("min_width", min_width), ("window", window_ns)]:
        probe.registers.write(f"pps_{name}", value)
    probe.registers.write("pps_control", PpsControl.ENABLE)


def last_edge(probe: Probe) -> dict[str, int]:
    probe.registers.write("pps_latch", 1)
    names = ("count", "now", "now_fraction", "ticks", "width", "flags")
    return {name: probe.registers.read(f"pps_{name}") for name in names}


def counts(probe: Probe) -> dict[str, int]:
    return {name: probe.registers.read(f"pps_{name}") for name in ("glitches", "missing", "spurious", "present")}


def pulses(path: Path, direction: int) -> NDArray[np.void]:
    rows = truth.read_truth(path)
    return rows[(rows["port"] == PIN_PORT) & (rows["direction"] == direction)]


# PPS input ----------------------------------------------------------------------------------------


def test_every_edge_is_stamped_with_its_tick_at_any_phase(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    seed = 11
    print("seed", seed)
    spec = f"period={PERIOD_NS // 1000}us&first=250us&width=3us&jitter=40ns&ppm=17&seed={seed}"
    edges = []
    with probe_of(own, "--truth", str(path), "--pps", spec) as (harness, probe):
        harness.run(205_000 - harness.run(0))  # Enabled earlier, it would miss an edge half a period later.
        enable(probe)
        start = harness.run(0)
        for n in range(40):
            harness.run(max(0, 250_000 + n * PERIOD_NS + 50_000 - harness.run(0)))
            edges.append(last_edge(probe))
        assert start < 250_000
        assert counts(probe) == {"glitches": 0, "missing": 0, "spurious": 0, "present": 1}
        harness.command("sync")
    rows = pulses(path, truth.IN)[: len(edges)]
    assert [edge["count"] for edge in edges] == list(range(1, 41))
    assert [edge["now"] for edge in edges] == [8 * int(row["sfd_tick"]) for row in rows]
    assert [edge["ticks"] for edge in edges] == [int(row["sfd_tick"]) + COUNT_AHEAD for row in rows]
    assert [edge["width"] for edge in edges] == [int(row["length"]) for row in rows]
    # The pin's own truth, in picoseconds: an edge lies in the tick of its stamp, wherever in it.
    phases = np.array([int(row["origin_tick"]) - 1000 * edge["now"] for edge, row in zip(edges, rows, strict=True)])
    assert (phases >= 0).all() and (phases < 8000).all()
    assert phases.std() == pytest.approx(8000 / 12**0.5, rel=0.25)


def test_pulses_of_a_receiver_are_counted_for_what_they_are(own: Path, tmp_path: Path) -> None:
    """Edges, a glitch, a spurious edge, two missing ones, and a pulse of 70,000 ticks, at times from a file."""
    script = tmp_path / "receiver"
    lines = ["# a receiver", *[f"pps {300_000 + n * PERIOD_NS}.125 1000" for n in range(3)]]
    lines += ["pps 540000 120", "pps 560000 128"]  # 15 ticks, then 16.
    lines += [f"pps {300_000 + n * PERIOD_NS} 1000" for n in (5, 6)]  # 3 and 4 don't come.
    lines += ["pps 1000000 560000"]
    script.write_text("\n".join(lines) + "\n")
    with probe_of(own, "--receiver", str(script)) as (harness, probe):
        enable(probe, window_ns=1000)
        harness.run(580_000 - harness.run(0))
        assert last_edge(probe) | {"now_fraction": 0} == {
            "count": 4, "now": 560_000, "now_fraction": 0, "ticks": 70_000 + COUNT_AHEAD, "width": 16,
            "flags": PPS_SPURIOUS | 3 << PPS_EARLY_BIT,
        }  # fmt: skip
        assert {**counts(probe), "missing": 0} == {"glitches": 1, "missing": 0, "spurious": 1, "present": 1}
        harness.run(920_000 - harness.run(0))
        # 300 us: the enabling was a period before, less or more; then two periods were missed.
        missing = counts(probe)["missing"]
        assert last_edge(probe)["count"] == 6 and counts(probe)["present"] == 1
        harness.run(1_580_000 - harness.run(0))
        edge = last_edge(probe)
        assert (edge["count"], edge["now"], edge["width"], edge["flags"]) == (7, 1_000_000, 70_000, 3 << PPS_EARLY_BIT)
        # At 1.15, 1.25, ... 1.55 ms.
        assert counts(probe) == {"glitches": 1, "missing": missing + 5, "spurious": 1, "present": 0}
        probe.registers.write("pps_clear", 1)
        assert counts(probe) == {"glitches": 0, "missing": 0, "spurious": 0, "present": 0}


def test_an_edge_is_an_event_until_it_is_cleared(own: Path) -> None:
    with probe_of(own, "--pps", "period=100us&first=300us&width=2us") as (harness, probe):
        enable(probe)
        harness.run(250_000 - harness.run(0))
        assert probe.registers.read("pps_ev_pending") == 0
        harness.run(310_000 - harness.run(0))
        assert probe.registers.read("pps_ev_pending") == 1
        probe.registers.write("pps_ev_pending", 1)
        assert probe.registers.read("pps_ev_pending") == 0


def test_pulses_can_be_given_while_it_runs_and_wrong_ones_are_refused(own: Path) -> None:
    with probe_of(own) as (harness, probe):
        enable(probe)
        now = harness.run(0)
        at = now + 50_000
        assert harness.command(f"pps {at} 500") == "ok"
        assert harness.command(f"pps {at + 100} 500").startswith("error pps")
        assert harness.command("pps 8").startswith("error pps 8 is not after")
        assert harness.command("pps 1.2345").startswith("error pps=1.2345 is not understood")
        assert harness.command("gnss 0 4").startswith("error gnss wants an even number")
        harness.run(100_000)
        assert last_edge(probe)["now"] == at // 8 * 8


# PPS output ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ppm", [0, 50, -50])
def test_the_pps_output_is_within_a_tick_of_now(own: Path, tmp_path: Path, ppm: int) -> None:
    path = tmp_path / "truth"
    first, period, width = 5_000_300_000, 50_003, 100
    with probe_of(own, "--truth", str(path)) as (harness, probe):
        increment = (8 << 40) + round((8 << 40) * ppm * 1e-6)
        probe.registers.write("timebase_increment", increment)
        probe.registers.write("timebase_set_time", 5_000_000_000)
        probe.registers.write("timebase_set", 1)
        probe.registers.write("pps_out_next", first)
        probe.registers.write("pps_out_period", period)
        probe.registers.write("pps_out_width", width)
        probe.registers.write("pps_out_arm", 1)
        probe.registers.write("timebase_latch", 1)
        ticks, now = probe.registers.read("timebase_ticks"), probe.registers.read("timebase_now")
        harness.run(900_000)
        assert probe.registers.read("pps_out_late") == 0
    rows = pulses(path, truth.OUT)
    assert len(rows) >= 10 and {int(row["length"]) for row in rows[:-1]} == {width}
    for number, row in enumerate(rows):
        at_edge = now + (int(row["sfd_tick"]) + COUNT_AHEAD - ticks) * increment / (1 << 40)
        assert -1 <= at_edge - (first + number * period) < 9  # ``now`` itself is cut to whole nanoseconds.


# Trains -------------------------------------------------------------------------------------------


def test_a_train_starts_on_a_pps(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    with probe_of(own, "--truth", str(path), "--pps", "period=500us&first=300.4us&width=10us") as (harness, probe):
        enable(probe, period_ns=500_000)
        harness.run(350_000 - harness.run(0))
        start = last_edge(probe)["now"] + 3 * 500_000  # The host wants a millisecond at least.
        program = TrainProgram(length=60, count=3, start_time_ns=start)
        result = probe.train(program, transmit=0, receive=0)
        assert (result.sent, result.late) == (3, 0)
        harness.command("sync")
    edge = next(row for row in pulses(path, truth.IN) if int(row["origin_tick"]) > 1000 * (start - 500))
    sent = truth.frames_out(truth.read_truth(path), 0)
    assert 8 * int(sent[0]["sfd_tick"]) == start == 8 * int(edge["sfd_tick"])


# Line clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ppm", [20, -20])
def test_the_line_clock_is_fitted_to_half_a_nanosecond(own: Path, ppm: int) -> None:
    seed = 3
    print("seed", seed)
    rng = random.Random(seed)
    phase_ps = {20: 3_100, -20: 5_200}[ppm]
    found = []
    with probe_of(own, "--ppm", f"{ppm},{-ppm},0", "--phase", f"{phase_ps},0,0") as (harness, probe):
        for _ in range(100):
            harness.run(rng.randrange(4_000, 16_000))
            probe.registers.write("port0_rx_line_latch", 1)
            found.append([probe.registers.read(f"port0_rx_line_{name}") for name in ("count", "now")])
    latches = np.array(found, np.int64)
    line = line_clock.fit(latches[:, 0], latches[:, 1])
    assert line.is_resolved and line.points == 100
    assert line.rate_ppm == pytest.approx(ppm, abs=0.5)
    # The harness's own clock: its first edge comes 8 ns and the phase after the start, and then one a period. `now` is of an
    # SFD in the tick before the one that is counted.
    period_ns = 2 * round(4_000_000 / (1 + ppm * 1e-6)) / 1e6
    edges_ns = 8 + phase_ps / 1000 + period_ns * (latches[:, 0].astype(float) - 1)
    errors = line.at(latches[:, 0]) + line.origin_ns - edges_ns
    errors -= period_ns * np.round(errors.mean() / period_ns)  # Ticks before the count began.
    rms = float(np.sqrt(np.mean(errors**2)))
    print("rms", rms)
    assert rms < 0.5


def test_a_train_has_the_stamps_of_the_line_clock(own: Path) -> None:
    """Clocks in step: the latched tick and the stamps of frames are of one grid, with no error at all."""
    with probe_of(own) as (harness, probe):
        pairs = []
        for _ in range(5):
            harness.run(1_000)
            probe.registers.write("port0_rx_line_latch", 1)
            pairs.append([probe.registers.read(f"port0_rx_line_{name}") for name in ("count", "now")])
    assert len({now - 8 * count for count, now in pairs}) == 1


# GNSS receiver ------------------------------------------------------------------------------------

SENTENCE = b"$GPRMC,120000.00,A,4807.038,N,01131.000,E,0.0,0.0,211126,,,A*7C\r\n"


def test_octets_of_the_receiver_come_through_the_uart_both_ways(own: Path) -> None:
    with probe_of(own) as (harness, probe):
        registers = probe.registers
        now = harness.run(0)
        assert harness.command(f"gnss {now + 1000} {SENTENCE[:40].hex()}") == "ok"
        harness.run(150_000)
        got = bytearray()
        while not registers.read("gnss_rxempty"):
            got.append(registers.read("gnss_rxtx"))
            registers.write("gnss_ev_pending", 2)  # Takes the octet out of the FIFO.
        assert bytes(got) == SENTENCE[:40]
        for octet in b"\xb5\x62\x06\x00":
            registers.write("gnss_rxtx", octet)
        harness.run(20_000)
        assert harness.command("gnss") == "ok b5620600"
        assert harness.command("gnss").strip() == "ok"


# Status -------------------------------------------------------------------------------------------


def test_the_status_dies_with_the_firmware_that_feeds_it(own: Path) -> None:
    with probe_of(own) as (harness, probe):
        registers = probe.registers
        assert (registers.read("clock_state"), registers.read("clock_alive")) == (0, 0)
        registers.write("clock_watchdog", 1)
        registers.write("clock_state", 3)
        registers.write("clock_offset", -300)
        assert registers.read("clock_state") == 0
        probe.lease._stop_beats()  # They come by this machine's clock, and take simulated time.
        registers.write("clock_update", 1)
        assert (registers.read("clock_state"), registers.read("clock_alive")) == (3, 1)
        assert registers.read("clock_offset") == -300
        harness.run(950_000)
        assert registers.read("clock_state") == 3
        harness.run(50_000)
        assert (registers.read("clock_state"), registers.read("clock_alive")) == (0, 0)
        assert (registers.read("clock_offset"), registers.read("clock_updates")) == (-300, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pps", "period=1ms&colour=red"], "pps option 'colour' is unknown"),
        (["--pps", "period=1us&width=1us"], "makes no pulses"),
        (["--pps", "period=1"], "pps option period=1 is not understood"),
        (["--receiver", "nowhere"], "can't read nowhere"),
    ],
)
def test_a_wrong_option_is_refused_with_the_culprit(own: Path, options: list[str], message: str) -> None:
    done = subprocess.run([str(own / "liteprobe-sim"), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr
