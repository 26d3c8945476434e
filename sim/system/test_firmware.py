# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware on the simulated SoC: it boots, locks to a PPS of known rate, holds over, and measures by itself.

Needs Zephyr (ZEPHYR_BASE) and a compiler; skipped where there is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from liteprobe.cores.formats import ClockError, ClockMode, ClockState
from liteprobe.host import Probe, ProbeError, UsageError
from liteprobe.host.firmware import Console, load, read_image
from liteprobe.host.firmware_build import build as build_firmware
from liteprobe.host.firmware_build import find_tools
from liteprobe.sim.system.build import (
    HERE,
    MAIN_RAM_BYTES,
    ROOT,
    Design,
    build,
    content_key,
    harness_defines,
    harness_files,
)

pytestmark = [pytest.mark.xdist_group("firmware"), pytest.mark.timeout(1800)]

NOMINAL_NS = 10_000_000
PERIOD_TICKS = 1_250_063  # The oscillator is 50.4 ppm fast.
RATE_PPB = 50_400
PROMPT = b"~$ "
CLOCK = ("state", "uncertainty", "offset", "rate", "edges", "rejected", "holdover", "error", "updates", "alive")


@pytest.fixture(scope="session")
def pulsed() -> Path:
    """The whole probe with a PPS inside."""

    def make() -> Design:
        from liteprobe.sim.system.pulsed import PulsedBoard
        from liteprobe.soc.config import ProbeConfig
        from liteprobe.soc.probe import ProbeSoC

        config = ProbeConfig(link="own", with_discipline=True, main_ram_bytes=MAIN_RAM_BYTES)
        soc = ProbeSoC(PulsedBoard(PERIOD_TICKS), config)
        soc.finalize()
        return Design(soc, harness_defines("own"))

    sources = [path for folder in ("cores", "soc") for path in (ROOT / folder).rglob("*.py")]
    return build(content_key("pulsed", [*sources, *harness_files(), HERE / "pulsed.py"], "own"), make)


@pytest.fixture(scope="session")
def image(pulsed: Path) -> Path:
    """The firmware for it."""
    try:
        tools = find_tools()
    except ProbeError as error:
        pytest.skip(str(error))
    return build_firmware(pulsed / "csr.json", tools).path


@dataclass
class Running:
    """A probe whose firmware runs."""

    probe: Probe
    console: Console

    def clock(self) -> dict[str, int]:
        """Return what any host reads of the clock; signed where it is."""
        values = self.probe.registers.read_many(f"clock_{name}" for name in CLOCK)
        found = {name.removeprefix("clock_"): value for name, value in values.items()}
        for name in ("offset", "rate"):
            found[name] -= (found[name] >> 31) << 32
        return found

    def until(self, states: set[ClockState], periods: int) -> dict[str, int]:
        """Wait for one of some states, for up to so many periods."""
        for _ in range(periods):
            found = self.clock()
            if found["state"] in states:
                return found
            self.probe.wait(NOMINAL_NS / 1e9)
        raise AssertionError(f"still {self.clock()}")

    def shell(self, line: str) -> str:
        """Type a command, and return what it answers."""
        self.console.write(line.encode() + b"\n")
        return self.console.follow(0.5, PROMPT).decode()


@pytest.fixture(scope="module")
def running(pulsed: Path, image: Path) -> Iterator[Running]:
    """One simulation for all tests of this file, which is what takes time; they go in their order."""
    with Probe(f"sim://cable?delay=1us&build={pulsed}") as probe:
        probe.registers.write_many({"pps_period": NOMINAL_NS})
        load(probe.registers, read_image(image))
        yield Running(probe, Console(probe.registers))


def test_boots_to_its_prompt_and_publishes(running: Running) -> None:
    banner = running.console.follow(0.05, PROMPT).decode()
    assert re.search(
        rf"LiteProbe \S+ on liteprobe on simulated, gateware {running.probe.registers.map_hash:08x}", banner
    )
    assert banner.endswith("liteprobe:~$ ")
    found = running.clock()
    assert (found["alive"], found["updates"] > 0) == (1, True)


def test_locks_to_a_pps_of_known_rate(running: Running) -> None:
    running.until({ClockState.LOCKED}, periods=10)
    running.probe.wait(6 * NOMINAL_NS / 1e9)
    found = running.clock()
    assert (found["state"], found["rejected"]) == (ClockState.LOCKED, 0)
    assert abs(found["rate"] / 256 - RATE_PPB) < 100
    # The edge is on a tick of 8 ns, and the servo takes it for the middle of it.
    assert abs(found["offset"] / 256) < 12
    assert not found["error"] & (ClockError.NO_PPS | ClockError.WRONG_GATEWARE)
    assert found["error"] & ClockError.NO_NMEA


def test_clock_shows_whole_periods_at_the_edges(running: Running) -> None:
    probe = running.probe
    for _ in range(3):
        probe.wait(NOMINAL_NS / 1e9)
        probe.registers.write("pps_latch", 1)
        stamp = probe.registers.read("pps_now") % NOMINAL_NS
        assert min(stamp, NOMINAL_NS - stamp) <= 20


def test_shell_tells_what_the_registers_tell(running: Running) -> None:
    assert "state        locked" in running.shell("clock")
    assert f"0x{running.probe.registers.map_hash:08x}" in running.shell("regs read probe_map_hash")
    assert "there is no register 'nix'" in running.shell("regs read nix")


def test_probe_measures_a_train_by_itself(running: Running) -> None:
    said = running.shell("train send 100 1514 20000")
    assert "sent 100 (0 late), received 100, lost 0, duplicated 0, reordered 0" in said
    found = re.search(r"delay min (\d+) mean (\d+) max (\d+) ns", said)
    assert found and {int(value) for value in found.groups()} <= {999, 1000, 1001}
    rate = re.search(r"rate (\d+) b/s", said)
    assert rate and abs(int(rate[1]) / (8 * 1538 * 1e9 / 20000) - 1) < 1e-4
    assert "there is no port 0, or no port 7" in running.shell("train send 10 60 0 0 7")


def test_holds_over_when_the_pulses_end_and_locks_again(running: Running) -> None:
    registers = running.probe.registers
    before = running.clock()
    registers.write("pps_control", 0)
    found = running.until({ClockState.HOLDOVER}, periods=12)
    assert found["error"] & ClockError.NO_PPS
    assert found["edges"] - before["edges"] <= 1
    running.probe.wait(4 * NOMINAL_NS / 1e9)
    assert running.clock()["uncertainty"] > found["uncertainty"]
    registers.write("pps_control", 1)
    running.until({ClockState.LOCKED}, periods=12)


def test_host_has_the_clock_left_alone_and_acquired_again(running: Running) -> None:
    registers = running.probe.registers
    registers.write("clock_mode", ClockMode.LEAVE_ALONE)
    running.until({ClockState.FREE_RUNNING}, periods=60)
    increment = registers.read("timebase_increment")
    running.probe.wait(3 * NOMINAL_NS / 1e9)
    assert registers.read("timebase_increment") == increment
    registers.write("clock_mode", ClockMode.REACQUIRE)
    running.until({ClockState.LOCKED}, periods=20)
    assert registers.read("clock_mode") == ClockMode.DISCIPLINE


def test_image_of_another_gateware_is_refused_by_the_loader(running: Running, image: Path, tmp_path: Path) -> None:
    octets = bytearray(image.read_bytes())
    octets[octets.index(b"LiteProbe image\0") + 20] ^= 1
    (tmp_path / "other.bin").write_bytes(octets)
    with pytest.raises(UsageError, match="was built for another gateware"):
        load(running.probe.registers, read_image(tmp_path / "other.bin"))
    assert running.clock()["alive"] == 1


def test_host_learns_that_the_firmware_is_gone(running: Running) -> None:
    registers = running.probe.registers
    registers.write_many({"clock_watchdog": 30})
    running.probe.wait(2 * NOMINAL_NS / 1e9)  # Taken with the next update.
    assert running.clock()["alive"] == 1
    registers.write("ctrl_reset", 2)
    running.probe.wait(0.04)
    assert (running.clock()["alive"], running.clock()["state"]) == (0, ClockState.UNKNOWN)


def test_firmware_itself_refuses_another_gateware(running: Running, image: Path, tmp_path: Path) -> None:
    """Past the loader, as after a fault of its own: nothing is published."""
    registers = running.probe.registers
    octets = bytearray(image.read_bytes())
    octets[octets.index(b"LiteProbe image\0") + 20] ^= 1
    (tmp_path / "other.bin").write_bytes(octets)
    other = read_image(tmp_path / "other.bin")
    registers.map_hash, own = other.map_hash, registers.map_hash
    try:
        before = running.clock()["updates"]
        load(registers, other)
        running.probe.wait(0.03)
        assert (running.clock()["updates"], running.clock()["alive"]) == (before, 0)
    finally:
        registers.map_hash = own
