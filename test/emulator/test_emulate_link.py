# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Links that go down in an emulated network: the power of PHYs behind a model of MDIO, whatever ends the network."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from liteprobe.cores.formats import BMCR, BMSR, MDIO_WRITE, PHYID1, PHYID2, MdioAnswer
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.base.interrupt import Interrupted
from liteprobe.host.probe import Probe
from liteprobe.host.run.emulate import Emulation
from liteprobe.host.traffic.network.document import read_network, write_network
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.emulator import EmulatorProbe
from liteprobe.sim.models.probe.trains import registers

Run = Callable[..., tuple[int, str, str]]
IDENTIFIER = 0x001CC910  # Of an RTL8211F.
POWER_DOWN, RESTART = 0x0800, 0x1340  # Bits of the control register: IEEE 802.3, 22.2.4.1.
MS = 125_000
FLAP = "changes: [{at: 50ms, both: {link: down}}, {at: 80ms, both: {link: up}}]"


class PhysProbe(EmulatorProbe):
    """An emulator whose PHYs answer on MDIO, at addresses 0 to ``phys`` - 1; ``powers``: tick, PHY and power of each change."""

    def __init__(self, phys: int = 2) -> None:
        super().__init__()
        self.extend("phy", registers("command:27 answer:18 status:16 delay:6"), ("command", "delay"))
        self.control = [RESTART] * phys
        self.powers: list[tuple[int, int, bool]] = []

    def is_on(self, port: int) -> bool:
        return not self.control[port] & POWER_DOWN

    def _act(self, name: str, word: int) -> None:
        if name != "phy_command":
            super()._act(name, word)
            return
        address, register = word >> 21 & 31, word >> 16 & 31
        if address >= len(self.control):
            self.values["phy_answer"] = MdioAnswer.SILENT | 0xFFFF
        elif word & MDIO_WRITE and register != BMCR:
            assert register in (13, 14)  # The way to clause 45.
        elif word & MDIO_WRITE:
            before, self.control[address] = self.is_on(address), word & 0xFFFF
            if before != self.is_on(address):
                self.powers.append((self.tick, address, self.is_on(address)))
            self.values[f"port{address}_tx_link_up"] = int(self.is_on(address))
        else:
            status = 0x7949 | self.is_on(address) << 2
            known = {BMCR: self.control[address], BMSR: status, PHYID1: IDENTIFIER >> 16}
            known[PHYID2] = IDENTIFIER & 0xFFFF
            self.values["phy_answer"] = known.get(register, 0)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PhysProbe:
    """A probe whose PHYs answer; every URL leads to it."""
    found = PhysProbe()
    monkeypatch.setattr("liteprobe.host.probe.open_link", lambda url: FakeLink(found, tmp_path))
    return found


def test_a_link_goes_down_and_up_at_the_times_of_its_changes(model: PhysProbe, tmp_path: Path) -> None:
    """Each within a round trip of its tick, which is after the look that follows."""
    seen = []
    with Probe(FakeLink(model, tmp_path)) as probe, probe.emulate(read_network(FLAP)) as emulation:
        start = model.running[0].start if model.running[0] else 0
        emulation.wait(0.12, lambda look: seen.append((look.there.seconds, look.there.is_link_up)), 0.01)
    assert [(phy, is_on) for _, phy, is_on in model.powers] == [(1, False), (0, False), (1, True), (0, True)]
    for (tick, _, _), at in zip(model.powers, (50, 50, 80, 80), strict=True):
        assert at * MS <= tick - start < (at + 1) * MS
    down = [at for at, is_up in seen if not is_up]
    assert down and min(down) >= 0.05 and max(down) < 0.081 and len(down) < len(seen)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(8))
def test_links_are_up_again_whatever_ends_a_random_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw, model, state, changes = Random(seed), PhysProbe(), {"there": "up", "back": "up"}, []
    wanted: list[tuple[int, int, bool]] = []
    for number in range(1, 9):
        change = {way: draw.choice(["up", "down"]) for way in draw.sample(["there", "back"], draw.randint(1, 2))}
        wanted += [
            (20 * number, port, change[way] == "up")
            for way, port in (("there", 1), ("back", 0))
            if way in change and change[way] != state[way]
        ]
        state |= change
        keys = ", ".join(f"{way}: {{link: {link}}}" for way, link in change.items())
        changes.append(f"{{at: {20 * number}ms, {keys}}}")
    network = read_network(f"changes: [{', '.join(changes)}]")
    assert read_network(write_network(network)) == network
    end_ms, how = draw.uniform(5, 190), draw.choice(["stop", "body", "signal", "link"])

    def passed(look: object) -> None:
        if model.tick - start > end_ms * MS:
            raise {"stop": KeyError, "body": ValueError, "signal": KeyboardInterrupt, "link": ProbeError}[how]("end")

    with Probe(FakeLink(model, tmp_path)) as probe:
        with pytest.raises((KeyError, ValueError, KeyboardInterrupt, ProbeError)), probe.emulate(network) as emulation:
            start = model.running[0].start if model.running[0] else 0
            emulation.wait(1, passed, 0.003)
        assert model.running == [None, None] and model.is_on(0) and model.is_on(1)
    made = [one for one in wanted if one[0] < end_ms - 1]
    found = [(round((tick - start) / MS - 0.5), phy, is_on) for tick, phy, is_on in model.powers]
    assert found[: len(made)] == made


def test_a_signal_while_a_phy_is_written_leaves_no_link_down(
    model: PhysProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = PhysProbe._act

    def interrupted(self: PhysProbe, name: str, word: int) -> None:
        act(self, name, word)
        if name == "phy_command" and word & MDIO_WRITE and word & POWER_DOWN:
            raise Interrupted(2)

    monkeypatch.setattr(PhysProbe, "_act", interrupted)
    with Probe(FakeLink(model, tmp_path)) as probe:
        with pytest.raises(KeyboardInterrupt), probe.emulate(read_network(FLAP)) as emulation:
            emulation.wait(1, None, 0.01)
        assert model.powers and model.is_on(0) and model.is_on(1)


def test_what_cannot_go_down_is_refused_with_what_to_give_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in (EmulatorProbe(), PhysProbe(phys=1)):
        with Probe(FakeLink(model, tmp_path)) as probe:
            with pytest.raises(
                UsageError, match="can't take a link down: .*give 'discard: true' in place of 'link: down'"
            ):
                probe.emulate(read_network(FLAP))
            emulation = Emulation.started(probe, read_network("there: {rate: 1Mbit}"))
            with pytest.raises(UsageError, match="give 'discard: true'"):
                emulation.set("there", link="down")
            assert emulation.look().there.state == 0 and model.running[0]
            emulation.stop()
    monkeypatch.setattr(FakeLink, "is_in_band", True)
    with Probe(FakeLink(PhysProbe(), tmp_path)) as probe:
        with pytest.raises(UsageError, match="'back' leaves by port 0, over which this host reaches the probe"):
            probe.emulate(read_network(FLAP))
        probe.emulate(read_network(FLAP.replace("both", "there"))).stop()


def test_links_are_set_while_it_runs_and_whoever_stops_it_brings_them_up(run: Run, model: PhysProbe) -> None:
    assert run("emulate", "--preset", "dsl", "--detach")[0] == 0
    for link, powers in (("down", [False, False]), ("up", [True, True]), ("down", [False, False])):
        assert run("emulate", "--attach", "--set", f"both.link={link}")[0] == 0
        assert [model.is_on(port) for port in (0, 1)] == powers
    code, out, _ = run("stop")
    again = "stopped, its link was down by a network, and comes up again"
    assert (code, out) == (0, f"port 0: {again}\nport 1: {again}\n") and model.is_on(0) and model.is_on(1)


def test_a_host_that_is_gone_leaves_a_link_down_and_the_next_one_hears_what_to_do(
    run: Run, model: PhysProbe, tmp_path: Path
) -> None:
    model.control[1] |= POWER_DOWN
    model.values["port1_tx_link_up"] = 0
    code, _, err = run("emulate", "--preset", "dsl", "--duration", "10ms")
    assert (
        code == 1 and "the link of port 1 was taken down by a network" in err and "liteprobe stop brings it up" in err
    )
    assert run("stop")[0] == 0 and run("emulate", "--preset", "dsl", "--duration", "10ms")[0] == 0
    (tmp_path / "flap.yaml").write_text(FLAP)
    code, _, err = run("emulate", str(tmp_path / "flap.yaml"), "--detach")
    assert code == 2 and "that its host does: keep this host at it (leave out --detach)" in err
    code, out, _ = run("emulate", str(tmp_path / "flap.yaml"), "--check")
    assert code == 0 and "from 0.05 s, there: link down" in out and "from 0.08 s, back: link up" in out
