# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""PHYs as they are at power-up, and desks that nobody has tidied: what a probe makes of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from liteprobe.cores.formats import EEE_ADVERTISEMENT, EEE_BITS, EEE_FEATURE, NEGOTIATION, PhyStatus, mmd_write
from liteprobe.host import Probe, ProbeError, TrainProgram, UsageError
from liteprobe.host.base.errors import NoProbeError
from liteprobe.host.device.link.etherbone import EtherboneLink, Patience
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.device.phy import Carriers, Phys, PhyState
from liteprobe.host.suites.eye import sweep
from liteprobe.sim.drivers.system.harness import Harness
from liteprobe.sim.pins.test_pins import DELAY_NS

CABLE = "cable?delay=1us"
TRAIN = TrainProgram(length=300, count=20)
PAUSE_NS = 1_000_000
WAKE_NS = 2062 * 8  # 16.5 us.


@contextmanager
def probe_on(
    board: Path, monkeypatch: pytest.MonkeyPatch, desk: str = "", files: Path | None = None
) -> Iterator[Probe]:
    """A board among PHYs and cables such as ``peer=100`` (sim/pins/phy.h)."""
    monkeypatch.setenv("LITEPROBE_PHY", desk)
    with Probe(sim_url(CABLE, build=board, link="shared")) as probe:
        yield probe


def phys_of(probe: Probe) -> Phys:
    return Phys(probe.registers, probe.link.wait)


@pytest.mark.parametrize(
    ("board", "name"),
    [("train_board", "RTL8211F"), pytest.param("tester_board", "B50612D", marks=pytest.mark.full)],
)
def test_a_probe_has_set_up_its_phys(
    board: str, name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with probe_on(request.getfixturevalue(board), monkeypatch) as probe:
        states = phys_of(probe).states()
        info = probe.info()
        status = [phys_of(probe).in_band(port) for port in (0, 1)]
    assert states == [PhyState(address, name, True, True, 1000, False, True) for address in (0, 1)]
    assert status == [PhyStatus.LINK | PhyStatus.SPEED_HIGH | PhyStatus.FULL_DUPLEX | PhyStatus.HEARD] * 2
    assert (info["port1_phy"], info["port1_link"], info["port1_eee"]) == (f"{name}, MDIO 1", "1000 Mb/s", "off")


def test_every_register_is_read_and_written(train_board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with probe_on(train_board, monkeypatch) as probe:
        phys = phys_of(probe)
        values = {number: (0x1234 * number ^ 0xA5C3) & 0xFFFF for number in (4, 9, 16, 17, 20, 31)}
        for number, value in values.items():
            phys.write(1, number, value)
            phys.write(0, number, value ^ 0xFFFF)
        assert {number: phys.read(1, number) for number in values} == values
        assert phys.read(5, 2) is None


def delays_after_pauses(board: Path, monkeypatch: pytest.MonkeyPatch, spoil: bool) -> set[int]:
    """Return the delays of three trains, a pause apart, with EEE on again where ``spoil`` (ns)."""
    with probe_on(board, monkeypatch) as probe:
        if spoil:
            phys = phys_of(probe)
            on = [*mmd_write(NEGOTIATION, EEE_ADVERTISEMENT, EEE_BITS), *mmd_write(NEGOTIATION, EEE_FEATURE, 0x8000)]
            for number, value in on:
                phys.write(0, number, value)
            with pytest.raises(ProbeError, match="port 0 sleeps between frames"):
                probe.train(TRAIN)
            monkeypatch.setattr(probe.links, "notes", tuple)
        result = probe.train(TrainProgram(length=300, count=5, repeats=3, gap_ns=PAUSE_NS))
    assert (result.late, len(result.records)) == (0, 15)
    return set((result.records["rx_stamp"].astype(int) - result.records["tx_stamp"].astype(int)).tolist())


@pytest.mark.parametrize("board", ["train_board", pytest.param("tester_board", marks=pytest.mark.full)])
def test_the_first_frame_after_a_pause_is_on_its_tick(
    board: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert delays_after_pauses(request.getfixturevalue(board), monkeypatch, False) == {DELAY_NS}


@pytest.mark.parametrize("board", ["train_board", pytest.param("tester_board", marks=pytest.mark.full)])
def test_a_probe_that_has_not_set_them_up_fails_as_on_the_desk(
    board: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link that sleeps: each train wakes it, and comes as much later as that takes; but management keeps it awake."""
    assert delays_after_pauses(request.getfixturevalue(board), monkeypatch, True) == {DELAY_NS, DELAY_NS + WAKE_NS}


@pytest.mark.parametrize(
    ("desk", "message"),
    [
        ("peer=100", "port 1 is up at 100 Mb/s, and a probe measures at 1 Gb/s full duplex alone"),
        ("peer=10", "port 1 is up at 10 Mb/s"),
        ("peer=0", "port 1 is down: plug in its cable"),
        ("dead=1", "PHY of port 1 gives no receive clock"),
    ],
)
@pytest.mark.parametrize("board", ["train_board", pytest.param("tester_board", marks=pytest.mark.full)])
def test_a_link_that_can_not_be_measured_is_refused_with_the_reason(
    board: str, desk: str, message: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        probe_on(request.getfixturevalue(board), monkeypatch, desk) as probe,
        pytest.raises(ProbeError, match=message),
    ):
        probe.train(TRAIN)


def test_a_board_with_both_ports_dead_says_how_to_know_a_wrong_revision(
    train_board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITEPROBE_PHY", "dead=2")
    with Harness(train_board) as harness:
        link = EtherboneLink("127.0.0.1", harness.udp_port, Patience(timeout_s=0.1, tries=3))
        with pytest.raises(NoProbeError, match="where both ports stay dark then, the board is of another revision"):
            link.read(0)
        harness.process.kill()  # It still waits for an answer, for 20 ms of its time a request.
        harness.process.wait()


@pytest.mark.parametrize(
    ("desk", "note"),
    [
        ("silent=1", "0 of 2 PHYs answer on MDIO"),
        ("id=0x00221622", "the PHY of port 1 is unknown, id 00221622"),
    ],
)
def test_a_phy_that_is_not_known_is_measured_and_named(
    desk: str, note: str, train_board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with probe_on(train_board, monkeypatch, desk) as probe:
        result = probe.train(TRAIN)
    assert (result.sent, result.complete) == (20, True)
    assert any(note in line for line in result.notes)


def test_a_link_that_flaps_in_mid_train_ends_it_with_the_reason(
    train_board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negotiation takes a second or more on a desk, so a look meets it; here 5 ms."""
    with probe_on(train_board, monkeypatch, "down_us=13000") as probe:
        with pytest.raises(ProbeError, match="the link of port 1 went down"):
            probe.train(TrainProgram(length=1514, count=1000, repeats=2))
        probe.wait(6e-3)
        assert probe.train(TRAIN).complete


@pytest.mark.parametrize(("desk", "middle", "clipped"), [
    ("skew_ps=1000", 0, "first"),
    ("early_ps=1000", 80, "last"),
    pytest.param("skew_ps=437", 23, "first", marks=pytest.mark.full),
])  # fmt: skip
def test_the_middle_of_the_eye_is_found_and_kept(
    desk: str, middle: int, clipped: str, train_board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's eye is 2.96 ns wide and its middle is 1 ns, less the skew, behind tap 0 (`./run bench boards`: each tap)."""
    with probe_on(train_board, monkeypatch, desk) as probe:
        eye = sweep(probe, count=4, step=4)
        assert (abs(eye.middle - middle) <= 2, eye.clipped) == (True, clipped), eye
        result = probe.train(TRAIN)
        assert (result.complete, result.counters["fcs_errors"]) == (True, 0)
        with pytest.raises(UsageError, match="management comes through port 0"):
            sweep(probe, port=0, transmit=1)


def test_a_port_that_nothing_comes_to_has_no_eye(train_board: Path) -> None:
    with (
        Probe(sim_url("loopback", build=train_board, link="shared")) as probe,
        pytest.raises(ProbeError, match="no delay brought all 4 frames"),
    ):
        sweep(probe, count=4, step=32)


def test_a_phy_without_power_has_no_link_until_it_is_given_back(
    train_board: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with probe_on(train_board, monkeypatch) as probe:
        links, phys = Carriers(probe.registers, probe.link, 2), phys_of(probe)
        links.set(1, False)
        assert [phys.is_powered(address) for address in (0, 1)] == [True, False]
        assert [state.is_up for state in phys.states()] == [True, False]
        with pytest.raises(ProbeError, match="port 1 was taken down by a network .* liteprobe stop brings it up again"):
            probe.train(TRAIN)
        assert [probe.links.restore(port) for port in (0, 1)] == [False, True]
        probe.wait(50e-6)  # As long as the model negotiates: seconds on a desk.
        assert [state.is_up for state in phys.states()] == [True, True]
        assert probe.train(TRAIN).late == 0
