# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware on the simulated SoC: it boots, locks to a receiver of known rate and second, holds over, and measures by
itself; whatever goes wrong, a host learns it.

Needs Zephyr (ZEPHYR_BASE, or build/zephyr) and its tools; skipped where there is no Zephyr.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.cores.formats import ClockError, ClockMode, ClockState
from liteprobe.host import UsageError
from liteprobe.host.cli.commands.firmware import talk
from liteprobe.host.device.firmware import Image, load, read_image
from liteprobe.host.device.firmware_build import Tools, build
from liteprobe.host.device.registers import Registers, load_map
from liteprobe.sim.drivers.system.firmware_run import CYCLES_MS, PROMPT, RATE_PPB, TAI_UTC, Running, boot
from liteprobe.sim.system.build import build_probe


@pytest.fixture(scope="module")
def running(own: Path, image: Path) -> Iterator[Running]:
    """One simulation for all tests of this file, which is what takes time; they go in their order."""
    with boot(own, image) as booted:
        yield booted


def other_image(image: Path, folder: Path) -> Image:
    """Return an image that says that it is for another gateware."""
    octets = bytearray(image.read_bytes())
    octets[octets.index(b"LiteProbe image\0") + 20] ^= 1
    (folder / "other.bin").write_bytes(octets)
    return read_image(folder / "other.bin")


def ram_bytes(registers: Registers, name: str) -> int:
    """Return the size of a memory."""
    return int(load_map(Path(registers.source))["memories"][name]["size"])


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
    print(f"locked: at pulse {running.until({ClockState.LOCKED}, periods=10)['edges']}")
    running.wait(6)
    found = running.clock()
    assert (found["state"], found["rejected"]) == (ClockState.LOCKED, 0)
    assert abs(found["rate"] / 256 - RATE_PPB) < 100
    # The edge is on a tick of 8 ns, and the servo takes it for the middle of it.
    assert abs(found["offset"] / 256) < 12
    assert not found["error"] & (ClockError.NO_PPS | ClockError.WRONG_GATEWARE)
    assert found["error"] & ClockError.NO_NMEA


def test_clock_shows_whole_periods_at_the_edges(running: Running) -> None:
    offsets = []
    for _ in range(3):
        running.wait(1)
        offsets.append(running.edge()[1])
    print(f"offset of now at the pulses: {offsets} ns")
    assert all(-2 <= off <= 0 for off in offsets)


def test_sentences_name_the_second(running: Running) -> None:
    assert running.edge()[0] < 1000
    first = running.receiver.number
    running.receiver.has_sentences = True
    running.until_error(ClockError.NO_NMEA, is_set=False, periods=8)
    for _ in range(6):  # Three sentences, and a pulse at which the clock is set.
        if running.edge()[0] == running.tai():
            break
        running.wait(1)
    print(f"second: set by {running.pulses() - first} pulses after the first with a sentence")
    found = running.clock()
    assert (found["state"], found["error"], found["tai_utc"]) == (ClockState.LOCKED, 0, TAI_UTC)
    number, off = running.edge()
    assert number == running.tai() and -8 <= off <= 0


def test_sentences_of_a_wrong_second_are_told_and_move_nothing(running: Running) -> None:
    running.wait(8)  # Six pulses agree by then: a contradiction of a younger second is told until sixty do.
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


def test_ten_lines_are_typed_at_the_prompt_within_a_tenth_of_a_second_each(running: Running) -> None:
    """As ``firmware console --type LINE`` does, at a shell whose prompt has gone by."""
    link = running.receiver.link
    running.receiver.give(ahead=20)
    began_ns = link.now_ns()
    talk(running.console, 10 * ["version"], 0, runs_already=True)
    print(f"ten lines: {(link.now_ns() - began_ns) / 1e6:.0f} ms of the probe's time")
    assert link.now_ns() - began_ns < 10 * 100_000_000


def test_an_edge_takes_4_ms_at_most_of_a_processor_at_50_mhz(running: Running) -> None:
    """With block RAM, other threads among it: of the 5 ms that an edge may take, the rest is for RAM that is slower."""
    usual, most = running.work()
    print(f"edge: {usual} cycles, {usual / CYCLES_MS:.2f} ms at 50 MHz; at most {most}, {most / CYCLES_MS:.2f} ms")
    assert 0 < usual <= 3.5 * CYCLES_MS and usual <= most <= 4 * CYCLES_MS


def test_probe_measures_a_train_by_itself(running: Running) -> None:
    assert "begun" in running.shell("train send 100 1514 20000")
    assert "a train is being sent" in running.shell("train send 100 1514") + running.shell("train status")
    running.wait(4)
    assert "no train is being sent, 1 done" in running.shell("train status")
    said = running.shell("train last")
    assert re.search(r"clock locked, within \d+\.\d\d ns", said) and "stepped" not in said
    assert "sent 100 (0 late), received 100, lost 0, duplicated 0, reordered 0" in said
    found = re.search(r"delay min (\d+) mean (\d+) max (\d+) ns", said)
    assert found and {int(value) for value in found.groups()} <= {999, 1000, 1001}
    assert re.search(r"deviation 0\.\d\d ns", said)
    rate = re.search(r"rate (\d+) b/s", said)
    assert rate and abs(int(rate[1]) / (8 * 1538 * 1e9 / 20000) - 1) < 1e-4
    assert "port 0 or port 7 does not exist" in running.shell("train send 10 60 0 0 7")


def test_a_train_is_stopped_and_the_last_ones_are_a_table(running: Running) -> None:
    running.shell("train send 1000000 60 20000")
    running.wait(2)
    assert "a train is being sent, 1 done" in running.shell("train status")
    running.shell("train stop")
    running.wait(4)
    stopped = re.search(
        r"train 2 at \d+ ns, stopped.*sent (\d+) \(0 late\), received (\d+)", running.shell("train last"), re.S
    )
    assert stopped and stopped[1] == stopped[2] and 1000 < int(stopped[1]) < 100_000
    table = running.shell("train last 100").splitlines()
    assert [line.split()[0] for line in table if re.match(r" +\d", line)] == ["1", "2"]


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


def test_what_the_clock_says_on_the_console_keeps_nobody_waiting(running: Running) -> None:
    """Nobody reads: the two FIFOs on the way have 32 octets, which the first line of the log fills, and the second finds full."""
    running.console.follow(0.02)
    registers = running.probe.registers
    registers.write("clock_mode", ClockMode.LEAVE_ALONE)
    running.until({ClockState.FREE_RUNNING}, periods=3)
    registers.write("clock_mode", ClockMode.REACQUIRE)
    since_ns = running.receiver.link.now_ns()
    while registers.read("clock_mode") != ClockMode.DISCIPLINE:
        running.probe.wait(0.2e-3)
        assert running.receiver.link.now_ns() - since_ns < 6_000_000  # A quarter of a period, and some.
    said = running.console.follow(0.05).decode()
    assert "left alone, by the host" in said and "acquiring again, by the host" in said
    running.until({ClockState.LOCKED}, periods=20)


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


def test_a_crashed_probe_runs_again_whatever_its_ram_holds(running: Running, image: Path) -> None:
    """RAM that kept anything, even all of the processor's own: what must be 0 at the start is."""
    registers = running.probe.registers
    registers.write("ctrl_reset", 2)
    for name in ("sram", "main_ram"):
        words = ram_bytes(running.probe.registers, name) // 4
        for first in range(0, words, 1024):
            registers.write_memory(name, first, [0xA5A5A5A5] * min(1024, words - first))
    load(registers, read_image(image))
    running.wait(2)
    assert running.clock()["alive"] == 1
    found = running.until({ClockState.LOCKED}, periods=10)
    assert found["edges"] < 10 and found["rejected"] == 0
    assert (running.status().jumps, running.status().steps) == (0, 1)
    assert ", 0 lost," in running.shell("clock") and "no train yet" in running.shell("train last")


def test_monitor_disciplines_its_clock(tools: Tools) -> None:
    """It has no trains, and no commands of them; the clock is the same."""
    monitor = build_probe("own", preset="monitor")
    with boot(monitor, build(monitor / "csr.json", tools).path) as running:
        assert running.console.follow(0.05, PROMPT).decode().endswith("liteprobe:~$ ")
        running.until({ClockState.LOCKED}, periods=10)
        running.wait(6)
        found = running.clock()
        assert (found["state"], found["rejected"]) == (ClockState.LOCKED, 0)
        assert abs(found["rate"] / 256 - RATE_PPB) < 100
        assert "locked" in running.shell("clock") and "command not found" in running.shell("train status")
