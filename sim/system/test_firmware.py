# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware on the simulated SoC: it boots, locks to a receiver of known rate and second, holds over, and measures by
itself; whatever goes wrong, a host learns it.

Needs Zephyr (ZEPHYR_BASE, or build/zephyr) and its tools; skipped where there is no Zephyr.
"""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from liteprobe.cores.formats import ClockError, ClockMode, ClockState
from liteprobe.host import Probe, ProbeError, UsageError
from liteprobe.host.firmware import Console, Image, load, read_image
from liteprobe.host.firmware_build import build as build_firmware
from liteprobe.host.firmware_build import Tools, find_tools
from liteprobe.host.link.sim import SimLink
from liteprobe.sim.models.receiver import rmc, utc_of

pytestmark = [pytest.mark.xdist_group("firmware"), pytest.mark.timeout(1800)]

NOMINAL_NS = 10_000_000
PERIOD_NS = 10_000_504  # In the simulation's time, which is the oscillator's: it is 50.4 ppm fast.
RATE_PPB = 50_400
FIRST_NS = 25_000_000
UTC_OF_FIRST = 1_796_000_000
TAI_UTC = 37
SENTENCE_AFTER_NS = 4_500_000
CHUNK, CHUNK_NS = 16, 400_000  # 40 octets a millisecond: the FIFO has 64, and is emptied each millisecond.
SYS_NS = 16
CYCLES_MS = 50_000  # Of a processor at 50 MHz.
PROMPT = b"~$ "
CLOCK = (
    "state",
    "uncertainty",
    "offset",
    "rate",
    "edges",
    "rejected",
    "holdover",
    "tai_utc",
    "error",
    "updates",
    "alive",
)


class Receiver:
    """A receiver of the simulated probe: a "second" is a period, and sentences follow their pulses by 0.45 of one."""

    def __init__(self, link: SimLink) -> None:
        self.link = link
        self.number = 0  # Of the next pulse.
        self.has_pulses = True
        self.has_sentences = False
        self.is_garbled = False
        self.ahead_s = 0  # Of the true second.

    def give(self, ahead: int) -> None:
        """Make sure that what comes in the next periods is known to the simulation."""
        now_ns = self.link.now_ns()
        self.number = max(self.number, math.ceil((now_ns + 1000 - FIRST_NS) / PERIOD_NS))
        while FIRST_NS + self.number * PERIOD_NS < now_ns + ahead * PERIOD_NS:
            at_ns = FIRST_NS + self.number * PERIOD_NS
            if self.has_pulses:
                self.link.receive(f"pps {at_ns} 8000")
            if self.has_sentences:
                self._say(at_ns + SENTENCE_AFTER_NS)
            self.number += 1

    def _say(self, at_ns: int) -> None:
        octets = rmc(utc_of(UTC_OF_FIRST + self.number + self.ahead_s))
        if self.is_garbled:
            octets = octets.replace(b"A", b"B", 1)
        for first in range(0, len(octets), CHUNK):
            self.link.receive(f"gnss {at_ns} {octets[first : first + CHUNK].hex()}")
            at_ns += CHUNK_NS


@dataclass
class Running:
    """A probe whose firmware runs."""

    probe: Probe
    console: Console
    receiver: Receiver
    boot_cycles: int  # From the jump into the image to the first publication, and one look more.

    def clock(self) -> dict[str, int]:
        """Return what any host reads of the clock; signed where it is."""
        values = self.probe.registers.read_many(f"clock_{name}" for name in CLOCK)
        return {name.removeprefix("clock_"): value for name, value in values.items()}

    def edge(self) -> tuple[int, int]:
        """Return what the clock showed at the last edge: whole periods, and nanoseconds from there (either way).

        The edge is at the beginning of its tick, which the stamp tells; the servo takes it for the middle of the tick, so
        the clock is 4 ns behind at the edge.
        """
        registers = self.probe.registers
        registers.write("pps_latch", 1)
        now = registers.read("pps_now")
        number = (now + NOMINAL_NS // 2) // NOMINAL_NS
        return number, now - number * NOMINAL_NS

    def tai(self) -> int:
        """Return the second that the last pulse began, which the receiver knows."""
        at_ns = self.receiver.link.now_ns()
        return UTC_OF_FIRST + TAI_UTC + (at_ns - FIRST_NS) // PERIOD_NS

    def wait(self, periods: float) -> None:
        """Let periods pass, pulses and sentences among them."""
        while periods > 0:
            self.receiver.give(ahead=3)
            self.probe.wait(min(periods, 1) * PERIOD_NS / 1e9)
            periods -= 1

    def until(self, states: set[ClockState], periods: int) -> dict[str, int]:
        """Wait for one of some states, for up to so many periods."""
        for _ in range(periods):
            found = self.clock()
            if found["state"] in states:
                return found
            self.wait(1)
        raise AssertionError(f"still {self.clock()}")

    def until_error(self, bit: ClockError, is_set: bool, periods: int) -> dict[str, int]:
        """Wait until a bit of the errors is as wanted, for up to so many periods."""
        for _ in range(periods):
            found = self.clock()
            if bool(found["error"] & bit) == is_set:
                return found
            self.wait(1)
        raise AssertionError(f"still {self.clock()}")

    def shell(self, line: str) -> str:
        """Type a command, and return what it answers."""
        self.receiver.give(ahead=5)
        self.console.write(line.encode() + b"\n")
        said = b""
        for _ in range(60):
            self.receiver.give(ahead=3)
            said += self.console.follow(PERIOD_NS / 1e9, PROMPT)
            if PROMPT in said:
                return said.decode()
        raise AssertionError(f"no prompt after {said!r}")


@pytest.fixture(scope="session")
def tools() -> Tools:
    """What Zephyr is built with; who has set ZEPHYR_BASE wants to hear what else is missing."""
    try:
        return find_tools()
    except ProbeError as error:
        if "ZEPHYR_BASE" in os.environ:
            raise
        pytest.skip(f"firmware isn't tested: {error}")


@pytest.fixture(scope="module")
def image(tools: Tools, own: Path) -> Path:
    """The firmware for the simulated probe."""
    return build_firmware(own / "csr.json", tools).path


@pytest.fixture(scope="module")
def running(tools: Tools, own: Path, image: Path) -> Iterator[Running]:
    """One simulation for all tests of this file, which is what takes time; they go in their order."""
    with Probe(f"sim://cable?delay=1us&build={own}") as probe:
        link = probe.registers.link
        assert isinstance(link, SimLink)
        probe.registers.write_many({"pps_period": NOMINAL_NS})
        load(probe.registers, read_image(image))
        began_ns = link.now_ns()
        while not probe.registers.read("clock_updates") and link.now_ns() < began_ns + 20_000_000:
            probe.wait(20e-6)
        boot_cycles = (link.now_ns() - began_ns) // SYS_NS
        yield Running(probe, Console(probe.registers), Receiver(link), boot_cycles)


def other_image(image: Path, folder: Path) -> Image:
    """Return an image that says that it is for another gateware."""
    octets = bytearray(image.read_bytes())
    octets[octets.index(b"LiteProbe image\0") + 20] ^= 1
    (folder / "other.bin").write_bytes(octets)
    return read_image(folder / "other.bin")


def test_boots_to_its_prompt_and_publishes(running: Running) -> None:
    banner = running.console.follow(0.05, PROMPT).decode()
    assert re.search(
        rf"LiteProbe \S+ on liteprobe on simulated, gateware {running.probe.registers.map_hash:08x}", banner
    )
    assert banner.endswith("liteprobe:~$ ")
    found = running.clock()
    assert (found["alive"], found["updates"] > 0) == (1, True)
    print(f"boot: {running.boot_cycles} cycles, {running.boot_cycles / CYCLES_MS:.2f} ms at 50 MHz")
    assert running.boot_cycles < 5 * CYCLES_MS


def test_locks_to_a_pps_of_known_rate(running: Running) -> None:
    running.until({ClockState.LOCKED}, periods=10)
    running.wait(6)
    found = running.clock()
    assert (found["state"], found["rejected"]) == (ClockState.LOCKED, 0)
    assert abs(found["rate"] / 256 - RATE_PPB) < 100
    # The edge is on a tick of 8 ns, and the servo takes it for the middle of it.
    assert abs(found["offset"] / 256) < 12
    assert not found["error"] & (ClockError.NO_PPS | ClockError.WRONG_GATEWARE)
    assert found["error"] & ClockError.NO_NMEA


def test_clock_shows_whole_periods_at_the_edges(running: Running) -> None:
    for _ in range(3):
        running.wait(1)
        assert -8 <= running.edge()[1] <= 0


def test_sentences_name_the_second(running: Running) -> None:
    assert running.edge()[0] < 1000
    running.receiver.has_sentences = True
    running.until_error(ClockError.NO_NMEA, is_set=False, periods=8)
    running.wait(6)  # Three sentences, and a pulse at which the clock is set.
    found = running.clock()
    assert (found["state"], found["error"], found["tai_utc"]) == (ClockState.LOCKED, 0, TAI_UTC)
    number, off = running.edge()
    assert number == running.tai() and -8 <= off <= 0


def test_sentences_of_a_wrong_second_are_told_and_move_nothing(running: Running) -> None:
    running.receiver.ahead_s = 3
    running.until_error(ClockError.WRONG_SECOND, is_set=True, periods=6)
    assert running.edge()[0] == running.tai()
    running.receiver.ahead_s = 0
    running.until_error(ClockError.WRONG_SECOND, is_set=False, periods=6)


def test_garbage_and_silence_of_the_receiver_are_told_and_move_nothing(running: Running) -> None:
    running.receiver.is_garbled = True
    found = running.until_error(ClockError.BAD_NMEA, is_set=True, periods=6)
    assert found["state"] == ClockState.LOCKED
    running.receiver.has_sentences = running.receiver.is_garbled = False
    found = running.until_error(ClockError.NO_NMEA, is_set=True, periods=8)
    assert found["state"] == ClockState.LOCKED and running.edge()[0] == running.tai()
    running.receiver.has_sentences = True
    running.until_error(ClockError.NO_NMEA, is_set=False, periods=6)
    assert running.edge()[0] == running.tai()


def test_shell_tells_what_the_registers_tell(running: Running) -> None:
    assert "state        locked" in running.shell("clock")
    assert f"0x{running.probe.registers.map_hash:08x}" in running.shell("regs read probe_map_hash")
    assert "there is no register 'nix'" in running.shell("regs read nix")


def test_an_edge_takes_3_ms_at_most_of_a_processor_at_50_mhz(running: Running) -> None:
    """With block RAM, other threads among it: of the 5 ms that an edge may take, the rest is for RAM that is slower."""
    said = re.search(r"(\d+) us an edge, at most (\d+) us", running.shell("clock"))
    assert said
    usual, most = (int(us) * 1000 // SYS_NS for us in said.groups())
    print(f"edge: {usual} cycles, {usual / CYCLES_MS:.2f} ms at 50 MHz; at most {most}, {most / CYCLES_MS:.2f} ms")
    assert 0 < usual <= 2 * CYCLES_MS and usual <= most <= 3 * CYCLES_MS


def test_probe_measures_a_train_by_itself(running: Running) -> None:
    said = running.shell("train send 100 1514 20000")
    assert "sent 100 (0 late), received 100, lost 0, duplicated 0, reordered 0" in said
    found = re.search(r"delay min (\d+) mean (\d+) max (\d+) ns", said)
    assert found and {int(value) for value in found.groups()} <= {999, 1000, 1001}
    assert re.search(r"deviation 0\.\d\d ns", said)
    rate = re.search(r"rate (\d+) b/s", said)
    assert rate and abs(int(rate[1]) / (8 * 1538 * 1e9 / 20000) - 1) < 1e-4
    assert "there is no port 0, or no port 7" in running.shell("train send 10 60 0 0 7")


def test_holds_over_when_the_pulses_end_and_locks_again(running: Running) -> None:
    running.receiver.has_pulses = False
    found = running.until({ClockState.HOLDOVER}, periods=12)
    running.wait(1)
    assert running.clock()["error"] & ClockError.NO_PPS
    running.wait(4)
    later = running.clock()
    assert later["edges"] == found["edges"] and later["uncertainty"] > found["uncertainty"]
    running.receiver.has_pulses = True
    running.until({ClockState.LOCKED}, periods=12)
    running.wait(2)
    number, off = running.edge()
    assert number == running.tai() and -8 <= off <= 0


def test_host_has_the_clock_left_alone_and_acquired_again(running: Running) -> None:
    registers = running.probe.registers
    registers.write("clock_mode", ClockMode.LEAVE_ALONE)
    running.until({ClockState.FREE_RUNNING}, periods=3)
    increment = registers.read("timebase_increment")
    running.wait(3)
    assert registers.read("timebase_increment") == increment
    registers.write("clock_mode", ClockMode.REACQUIRE)
    running.until({ClockState.LOCKED}, periods=20)
    assert registers.read("clock_mode") == ClockMode.DISCIPLINE


def test_image_of_another_gateware_is_refused_by_the_loader(running: Running, image: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was built for another gateware"):
        load(running.probe.registers, other_image(image, tmp_path))
    running.wait(1)
    assert running.clock()["alive"] == 1


def test_host_learns_that_the_firmware_crashed(running: Running, image: Path) -> None:
    """All its instructions become illegal ones, under its feet."""
    registers = running.probe.registers
    registers.write_many({"clock_watchdog": 30})
    running.wait(2)  # Taken with the next update.
    assert running.clock()["alive"] == 1
    words = -(-len(read_image(image).octets) // 4)
    for first in range(0, words, 1024):
        registers.write_memory("main_ram", first, [0] * min(1024, words - first))
    before = running.clock()["updates"]
    running.wait(4)
    found = running.clock()
    assert (found["alive"], found["state"], found["updates"]) == (0, ClockState.UNKNOWN, before)


def test_firmware_itself_refuses_another_gateware(running: Running, image: Path, tmp_path: Path) -> None:
    """Past the loader, as after a fault of its own: nothing is published, nothing written."""
    registers = running.probe.registers
    other = other_image(image, tmp_path)
    registers.map_hash, own = other.map_hash, registers.map_hash
    try:
        before = running.clock()["updates"]
        registers.write_many({"pps_control": 0})
        load(registers, other)
        running.wait(3)
        found = running.clock()
        assert (found["updates"], found["alive"], registers.read("pps_control")) == (before, 0, 0)
    finally:
        registers.map_hash = own


def test_a_crashed_probe_runs_again_when_it_is_loaded_again(running: Running, image: Path) -> None:
    load(running.probe.registers, read_image(image))
    running.wait(2)
    assert running.clock()["alive"] == 1
    running.until({ClockState.LOCKED}, periods=10)
