# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Two ports of the whole simulated probe joined by emulated networks, where clocks drift, links drop and hosts are killed."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from liteprobe.cores.formats import TransmitState
from liteprobe.cores.formats.emulate import ClassCounter, ClassFlag
from liteprobe.cores.formats.probe import LEASE_UNIT_BITS
from liteprobe.host.base.errors import BusyError, LeaseLostError
from liteprobe.host.device.link.sim import SimLink
from liteprobe.host.device.link.url import sim_url
from liteprobe.host.probe import Probe
from liteprobe.host.traffic.network import Network
from liteprobe.host.traffic.network.document import read_network
from liteprobe.sim.drivers.frames.truth import CUT, OUT, read_truth
from liteprobe.sim.drivers.system.emulator import NOWHERE, bank, emulating, packets, rings
from liteprobe.sim.drivers.system.harness import free_running
from liteprobe.sim.drivers.system.senders import Packet, write
from liteprobe.sim.models.emulator.settings import Settings
from liteprobe.sim.drivers.tools.processes import LIMIT_S, wait_for

WORDS = 1 << 15
ALL = 2**32 - 1
FRAMES = 150
DRAIN_S = 1.2e-3


def outcomes(chance: random.Random) -> dict[int, dict[str, int]]:
    """Return random classes in which what becomes of a frame doesn't depend on when it comes."""

    def share() -> int:
        return chance.choice([0, 1, ALL // 50, ALL // 5, ALL // 2])

    return {
        number: {
            "flags": chance.choice([0, ClassFlag.MENDED, ClassFlag.LOSS_LATE, ClassFlag.JITTER]),
            "loss_enter": share(),
            "loss_leave": share(),
            "loss_good": share(),
            "loss_bad": chance.choice([0, ALL]),
            "duplicate": share(),
            "corrupt": share(),
            "frame_seed_low": chance.randint(1, ALL),
            "frame_seed_high": chance.getrandbits(32),
        }
        for number in range(8)
    }


def network(seed: int, is_timed: bool = True) -> Settings:
    """Return a random network whose frames find space in the store; ``is_timed``: queues, a rate, background, reordering."""
    chance = random.Random(seed)
    classes, link = outcomes(chance), {}
    if is_timed:
        for number in range(8):
            classes[number] |= {"limit_frames": chance.randint(1, 20), "limit_octets": 1514 if number == 7 else 3000}
            classes[number] |= {"service_weight": chance.randint(1, 4)}
        classes[chance.randrange(8)] |= {"reorder": ALL // 4, "reorder_ticks": chance.randint(1, 3000)}
        classes[chance.randrange(8)] |= {  # Half of the link at the most: all that waits must leave in the end.
            "background": chance.randint(1, 4),
            "background_ticks": chance.randint(5000, 9000),
            "background_length": chance.randint(60, 1514),
            "background_burst": chance.choice([chance.randint(1, 9), ALL // 5]),
            "background_pause": chance.randint(5000, 20_000),
        }
        link = {"octet": chance.randint(80_000, 100_000), "service": chance.randint(0, 1)}
    delays = sorted(chance.randint(0, 1000) for _ in range(1024))
    lanes = rings(dict.fromkeys(range(7), 12) | {7: 11, 8: 11}, WORDS)
    return Settings(bank(classes, link, lanes, chance.randint(3000, 4000)), delays)


@pytest.mark.parametrize("seed", [1, *[pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3, None)]])
def test_what_a_random_network_does_is_what_the_reference_does(
    emulator_build: Path, tmp_path: Path, seed: int | None
) -> None:
    seed = random.SystemRandom().getrandbits(32) if seed is None else seed
    settings = [network(seed), network(seed + 1)]
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start(dict(enumerate(settings)))
        emulated.play({port: packets(FRAMES, seed + port, 0.6) for port in range(2)}, DRAIN_S)
        assert [emulated.compare(number, one) for number, one in enumerate(settings)] == [[], []], f"seed {seed}"
        lacking = [
            emulated.total(number, one) for number in range(2) for one in (ClassCounter.NO_STORE, ClassCounter.LATE)
        ]
        assert lacking == [0] * 4, f"seed {seed}"


@pytest.mark.parametrize("ppm", ["200,-200,0", pytest.param("-100,100,0", marks=pytest.mark.full)])
def test_receive_clocks_of_another_rate_cost_a_tick_and_no_frame(
    emulator_build: Path, tmp_path: Path, ppm: str
) -> None:
    settings = [network(11, is_timed=False), network(12, is_timed=False)]
    with emulating(emulator_build, tmp_path, clocks=f"--ppm {ppm}") as emulated:
        emulated.name_classes()
        emulated.start(dict(enumerate(settings)))
        emulated.play({port: packets(FRAMES, 7 + port, 0.4) for port in range(2)}, 200e-6)
        assert [emulated.compare(number, one, slip=1) for number, one in enumerate(settings)] == [[], []]
        assert [emulated.total(number, ClassCounter.ARRIVED) for number in range(2)] == [FRAMES, FRAMES]


@pytest.mark.parametrize("port", [0, pytest.param(1, marks=pytest.mark.full)])
def test_a_link_that_drops_in_mid_run_costs_what_comes_by_it_meanwhile_and_no_more(
    emulator_build: Path, tmp_path: Path, port: int
) -> None:
    settings, made, path = network(21), packets(FRAMES, 5, 1.0), tmp_path / "dropped.pcap"
    write(path, made)
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start({0: settings})
        assert emulated.link.play(0, path, emulated.link.now_ns() + 5000) == FRAMES
        emulated.probe.wait(303e-6)  # In the middle of a frame.
        emulated.link.set_link(port, False)
        emulated.probe.wait(50e-6)
        emulated.link.set_link(port, True)
        emulated.probe.wait((made[-1].time_ns - made[0].time_ns) * 1e-9 + DRAIN_S)
        assert emulated.compare(0, settings) == []
        came = emulated.pins(0, "in")
        # Port 1 goes on sending where nobody listens. Of port 0 one frame is cut, and the next ones don't come at all.
        assert sum(seen.is_bad for seen in came) == emulated.read(0, "damaged") == (port == 0)
        lost = sum(one.octets not in {seen.octets for seen in came} for one in made)
        assert lost == (10 if port == 0 else 0)
        assert emulated.total(0, ClassCounter.ARRIVED) == FRAMES - lost


def test_a_network_goes_on_when_its_host_is_killed(emulator_build: Path, tmp_path: Path) -> None:
    settings = network(31)
    with emulating(emulator_build, tmp_path) as emulated:
        registers = emulated.probe.registers
        unit_s = 2**LEASE_UNIT_BITS / registers.constant("config_clock_frequency")
        emulated.name_classes()
        emulated.start({0: settings})
        registers.write("probe_lease_timeout", 0)  # The unit that has begun.
        emulated.probe.lease._stop_beats()  # As a host that is killed, or unplugged.
        with pytest.raises(LeaseLostError):
            for _ in range(8):
                emulated.probe.wait(unit_s / 8)
                registers.read("probe_lease_expired")
        assert registers.read("probe_lease_expired") == 1
        emulated.play({0: packets(FRAMES, 9, 0.6)}, DRAIN_S)
        assert registers.read("port1_tx_state") == TransmitState.RUNNING
        assert emulated.compare(0, settings) == []


def test_links_of_both_sides_drop_and_return_again_and_again_and_nothing_is_sent_twice(
    emulator_build: Path, tmp_path: Path
) -> None:
    settings = {number: network(41 + number) for number in range(2)}
    made = {port: packets(FRAMES, 15 + port, 1.0) for port in range(2)}
    with emulating(emulator_build, tmp_path) as emulated:
        emulated.name_classes()
        emulated.start(settings)
        emulated.play(made, -1.0e-3)
        for port in (0, 1, 1, 0, 1):
            emulated.link.set_link(port, False)
            emulated.probe.wait(37e-6)
            emulated.link.set_link(port, True)
            emulated.probe.wait(81e-6)
        emulated.probe.wait(1e-3 + DRAIN_S)
        for number in range(2):
            assert emulated.compare(number, settings[number]) == []
            came = emulated.pins(number, "in")
            assert sum(seen.is_bad for seen in came) == emulated.read(number, "damaged") > 0
            assert emulated.total(number, ClassCounter.ARRIVED) == sum(not seen.is_bad for seen in came) < FRAMES
        assert [emulated.total(number, ClassCounter.NO_STORE) for number in range(2)] == [0, 0]


def test_a_host_that_is_killed_leaves_a_network_that_the_next_one_takes_over(
    emulator_build: Path, tmp_path: Path
) -> None:
    (tmp_path / "wan.yaml").write_text("both: {rate: 100Mbit, queue: 20}\n")
    running = [TransmitState.RUNNING] * 2
    with free_running(emulator_build, NOWHERE) as port:
        url, register_map = f"etherbone://127.0.0.1:{port}?timeout=20", emulator_build / "csr.json"
        command = [sys.executable, "-m", "liteprobe.host.cli", "emulate", "wan.yaml", "--probe", url]
        host = subprocess.Popen([*command, "--map", str(register_map)], cwd=tmp_path)
        try:
            with Probe(url, register_map) as probe:

                def states() -> list[int]:
                    return [probe.registers.read(f"port{one}_tx_state") for one in range(2)]

                wait_for(lambda: states() == running)
                with pytest.raises(BusyError, match=r"in use by .* \(pid \d+\).*--steal"):
                    probe.emulate(Network())
                host.kill()  # SIGKILL.
                assert host.wait(timeout=LIMIT_S) == -9
                assert states() == running
            with Probe(url, register_map, steal=True) as probe:
                emulation = probe.emulate()
                first, second = emulation.look(), emulation.look()
                assert second.there.seconds > first.there.seconds > 0
                assert {way: list(classes) for way, classes in emulation.counts.items()} == {
                    "there": ["rest"],
                    "back": ["rest"],
                }
                emulation.stop()
                assert states() == [TransmitState.IDLE] * 2
        finally:
            host.kill()
            host.wait()


# Links that a network takes down ------------------------------------------------------------------

NETWORK = "changes: [{at: 500us, both: {link: down}}, {at: 900us, both: {link: up}}]"
EVERY_NS = 10_000


def test_no_frame_comes_or_leaves_while_a_link_is_down(emulator_build: Path, tmp_path: Path) -> None:
    url = sim_url(NOWHERE, build=emulator_build, link="own", pcap=tmp_path / "pins", truth=tmp_path / "truth")
    frames = [Packet(10**18 + EVERY_NS * n, b"\x02" + n.to_bytes(2, "big") + bytes(57)) for n in range(150)]
    write(tmp_path / "play.pcap", frames)
    with Probe(url) as probe, probe.emulate(read_network(NETWORK)) as emulation:
        link = probe.link
        assert isinstance(link, SimLink)
        for port in range(2):
            link.play(port, tmp_path / "play.pcap", link.now_ns() + 5000)
        seen: list[tuple[float, bool]] = []
        emulation.wait(1.6e-3, lambda look: seen.append((look.there.seconds, look.there.is_link_up)), 50e-6)
        arrived = [way["rest"].arrived for way in emulation.counts.values()]
        link.sync()
        rows = read_truth(tmp_path / "truth")
    down = [at for at, is_up in seen if not is_up]
    assert 0.5e-3 <= min(down) and max(down) < 1.2e-3
    # Down for 0.4 ms: 40 of 150; the host sees to it after each tick, within a look.
    for port, count in enumerate(arrived):
        assert 100 <= count <= 125, count
        left = rows[(rows["port"] == port) & (rows["direction"] == OUT)]
        ticks = left["sfd_tick"][left["fate"] == CUT]
        assert len(ticks) <= 30  # While one of both is down: the host takes one after the other.
        assert len(left) == arrived[1 - port]
