# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware with SDRAM as main RAM, as boards have it: it starts from flash with no host, locks, and keeps its time.

Needs Zephyr, as test_firmware.py does.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.cores.formats import BootState, ClockState
from liteprobe.host import Probe
from liteprobe.host.device.firmware import Console, boot_state, pack, read_image
from liteprobe.host.device.firmware_build import Tools
from liteprobe.host.device.firmware_build import build as build_firmware
from liteprobe.host.device.link.sim import SimLink
from liteprobe.sim.drivers.system.firmware_run import CYCLES_MS, NOMINAL_NS, PROMPT, SYS_NS, Receiver, Running

SLOWEST_BOOT_NS = 1_000_000_000


@pytest.fixture(scope="module")
def running(tools: Tools, sdram: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A probe that nobody has loaded anything into."""
    image = read_image(build_firmware(sdram / "csr.json", tools).path)
    flash = tmp_path_factory.mktemp("flash") / "firmware.flash"
    flash.write_bytes(pack(image))
    with Probe(f"sim://cable?delay=1us&build={sdram}&flash={flash}") as probe:
        link = probe.registers.link
        assert isinstance(link, SimLink)
        probe.registers.write_many({"pps_period": NOMINAL_NS})
        while boot_state(probe.registers) == BootState.NOTHING and link.now_ns() < SLOWEST_BOOT_NS:
            probe.wait(1e-3)
        began_ns = link.now_ns()
        print(f"from power-up to the jump: {began_ns / 1e6:.0f} ms, {len(image.octets)} octets")
        while not probe.registers.read("clock_updates") and link.now_ns() < began_ns + 20_000_000:
            probe.wait(20e-6)
        yield Running(probe, Console(probe.registers), Receiver(link), (link.now_ns() - began_ns) // SYS_NS)


def test_firmware_in_flash_boots_with_no_host(running: Running) -> None:
    assert boot_state(running.probe.registers) == BootState.STARTED_FROM_FLASH
    assert running.console.follow(0.05, PROMPT).decode().endswith("liteprobe:~$ ")
    assert running.clock()["alive"] == 1


def test_it_locks_and_an_edge_takes_5_ms_at_most_of_a_processor_at_50_mhz(running: Running) -> None:
    running.until({ClockState.LOCKED}, periods=10)
    running.receiver.has_sentences = True
    running.wait(16)
    assert running.clock()["state"] == ClockState.LOCKED
    number, off = running.edge()
    assert number == running.tai() and -8 <= off <= 0
    usual, most = running.work()
    print(f"edge: {usual} cycles, {usual / CYCLES_MS:.2f} ms at 50 MHz; at most {most}, {most / CYCLES_MS:.2f} ms")
    assert 0 < usual <= most <= 5 * CYCLES_MS
