# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A board at its RGMII pins: frames that it sends and measures, against what stood there."""

import random
from pathlib import Path

import numpy as np
import pytest

from liteprobe.cores.formats import PPS_EARLY_BIT, PpsControl
from liteprobe.host import Probe, TrainProgram
from liteprobe.host.device.link.url import sim_url
from liteprobe.sim.drivers.frames import truth
from liteprobe.sim.drivers.system.harness import probe_of
from liteprobe.sim.drivers.system.senders import run, slots
from liteprobe.sim.drivers.tools.wire import is_full

CABLE_NS = 1000
SENT_NS = -8  # The model of a PHY brings an octet to the wire a tick after its first half stood at the FPGA's pins.
RECEIVED_NS = 6  # It shows an octet to the FPGA a tick after it came, and 2 ns before the clock that takes it.
REST_NS = 2  # Of a stamp, which counts whole ticks: those 2 ns.
DELAY_NS = CABLE_NS - SENT_NS + RECEIVED_NS + REST_NS
LENGTHS = (60, 64, 512, 1514, 4600, 9000)
BETWEEN = (64, 512, 4600)  # They wait for --full: shorter and longer ones are in every run.
TRAINS = ["train_board", pytest.param("artix_board", marks=pytest.mark.full)]
BOARDS = [*TRAINS, pytest.param("tester_board", marks=pytest.mark.full)]


@pytest.fixture(params=BOARDS)
def board(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize(
    ("length", "transmit"),
    [
        pytest.param(length, n % 2, marks=[pytest.mark.full] if length in BETWEEN else [])
        for n, length in enumerate(LENGTHS)
    ],
)
def test_trains_are_exact_at_the_pins(board: Path, tmp_path: Path, length: int, transmit: int) -> None:
    count = 50 if is_full() else 15
    program = TrainProgram(length=length, count=count, repeats=2, gap_ns=20_000)
    made = run(board, f"cable?delay={CABLE_NS}ns", program, tmp_path, link="shared", transmit=transmit)
    assert (made.result.sent, made.result.late, made.result.complete) == (2 * count, 0, True)
    assert list(np.diff(made.sent()["sfd_tick"].astype(int))) == slots(program)
    records, sent, received = made.result.records, made.sent(), made.received(1 - transmit)
    assert list(records["sequence"]) == list(sent["sequence"]) == list(received["sequence"]) == list(range(2 * count))
    # The time at the pins and that of the harness differ by a constant: when the PLL let the timebase go.
    at_pins = 8 * sent["sfd_tick"].astype(int) + SENT_NS
    (start,) = set((records["tx_stamp"].astype(int) - at_pins).tolist())
    at_pins = 8 * received["sfd_tick"].astype(int) + RECEIVED_NS
    assert set((records["rx_stamp"].astype(int) - at_pins).tolist()) == {start + REST_NS}
    assert {key: made.result.counters[key] for key in ("fcs_errors", "symbol_errors", "lost", "duplicated")} == {
        "fcs_errors": 0, "symbol_errors": 0, "lost": 0, "duplicated": 0,
    }  # fmt: skip


def test_both_ports_send_and_see_at_once(board: Path, tmp_path: Path) -> None:
    path = tmp_path / "truth"
    count = 100 if is_full() else 40
    programs = {port: TrainProgram(length=1514 - port, count=count, gap_ns=0, stream_id=port + 1) for port in (0, 1)}
    with Probe(sim_url(f"cable?delay={CABLE_NS}ns", build=board, truth=path, link="shared")) as probe:
        found = probe.trains([(program, port, 1 - port) for port, program in programs.items()])
    rows = truth.read_truth(path)
    for port, result in enumerate(found):
        assert (result.sent, result.late, result.complete, len(result.records)) == (count, 0, True, count)
        sent = truth.frames_out(rows, port)
        assert list(np.diff(sent["sfd_tick"].astype(int))) == slots(programs[port])
    # Management comes to port 0, too, and keeps frames waiting on the wire; port 1 has the wire for itself.
    records = found[0].records
    assert set((records["rx_stamp"].astype(int) - records["tx_stamp"].astype(int)).tolist()) == {DELAY_NS}


@pytest.mark.parametrize("board", TRAINS, indirect=True)
def test_the_link_is_what_the_phy_says_in_band(board: Path) -> None:
    with probe_of(board) as (harness, probe):
        assert [port.receive.is_link_up for port in probe.ports] == [True, True]
        harness.command("link 1 down")
        harness.run(10_000)
        assert [port.receive.is_link_up for port in probe.ports] == [True, False]
        harness.command("link 1 up")
        harness.run(10_000)
        assert [port.receive.is_link_up for port in probe.ports] == [True, True]


@pytest.mark.parametrize("board", TRAINS, indirect=True)
def test_words_of_the_sdram_are_those_that_were_written(board: Path) -> None:
    rng = random.Random(5)
    with probe_of(board) as (harness, probe):
        harness.run(500_000)  # The chip takes 375 us to start.
        ram = probe.registers.memory("main_ram")
        places = [rng.randrange(ram.words) for _ in range(200)]
        words = {place: rng.getrandbits(32) for place in places}
        for place, word in words.items():
            probe.link.write(ram.address + 4 * place, [word])
        assert {place: int(probe.link.read(ram.address + 4 * place)[0]) for place in words} == words


@pytest.mark.parametrize("board", TRAINS, indirect=True)
def test_edges_of_the_pps_are_stamped_to_two_nanoseconds(board: Path, tmp_path: Path) -> None:
    path, period_ns = tmp_path / "truth", 100_000
    found = []
    spec = f"period=100us&first=4ms&width=3us&jitter=40ns&ppm=17&seed={(seed := 3)}"
    print("seed", seed)
    with probe_of(board, "--truth", str(path), "--pps", spec) as (harness, probe):
        for name, value in [("period", period_ns), ("min_width", 16), ("window", 0)]:
            probe.registers.write(f"pps_{name}", value)
        probe.registers.write("pps_control", PpsControl.ENABLE)
        probe.lease._stop_beats()  # They come by this machine's clock, and take simulated time.
        for n in range(20):
            harness.run(max(0, 4_050_000 + n * period_ns - harness.run(0)))
            probe.registers.write("pps_latch", 1)
            early = probe.registers.read("pps_flags") >> PPS_EARLY_BIT & 3
            found.append(probe.registers.read("pps_now") + 2 * (3 - early))
        harness.command("sync")
    rows = truth.read_truth(path)
    rows = rows[(rows["port"] == 255) & (rows["direction"] == truth.IN)][: len(found)]
    late_ns = np.array(found) - rows["origin_tick"].astype(float) / 1000
    # But for when the PLL let the timebase go, whole ticks: from 2 ns before the edge to the edge.
    whole = set(np.ceil(late_ns / 8).tolist())
    assert len(whole) == 1 and set(np.ceil(late_ns / 2 - 4 * whole.pop()).tolist()) == {0}, late_ns
