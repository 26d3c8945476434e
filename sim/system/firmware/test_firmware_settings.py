# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Settings that the firmware keeps in the flash at the pins of the simulated SoC, over a reset with RAM full of garbage.

Needs Zephyr (ZEPHYR_BASE, or build/zephyr) and its tools; skipped where there is no Zephyr.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.cores.formats import ClockError, ClockState
from liteprobe.host.device.firmware import load, read_image
from liteprobe.sim.drivers.system.firmware_run import PROMPT, Running, boot


@pytest.fixture(scope="module")
def running(own: Path, image: Path) -> Iterator[Running]:
    """One simulation for all tests of this file, which is what takes time; they go in their order."""
    with boot(own, image) as booted:
        booted.receiver.has_sentences = True
        booted.console.follow(0.05, PROMPT)
        yield booted


def reset(running: Running, image: Path) -> None:
    """Switch the probe off and on again, as far as its processor is concerned: its RAM holds anything."""
    registers = running.probe.registers
    registers.write("ctrl_reset", 2)
    registers.write_memory("sram", 0, [0x5A5A5A5A] * 1024)
    load(registers, read_image(image))
    running.console.follow(0.05, PROMPT)


def kept(running: Running) -> list[str]:
    """Return what the shell says of what is kept, a line each, behind the echo of the command."""
    lines = running.shell("settings").splitlines()
    return [line for line in lines[lines.index("settings") + 1 :] if line and "~$" not in line]


def test_a_blank_flash_gives_what_the_image_was_built_with(running: Running) -> None:
    assert "as built" in running.shell("settings")
    assert "profile timing xo" in running.shell("settings")


def test_what_is_set_outlives_a_reset(running: Running, image: Path) -> None:
    running.until({ClockState.LOCKED}, periods=10)
    running.shell("clock profile navigation tcxo")
    said = ""
    for _ in range(4):  # The end of a line may still be on its way.
        running.wait(1)
        said += running.console.read().decode()
    assert "acquiring again" in said
    running.shell("train address 02:00:00:00:00:0a 10.1.2.3 02:00:00:00:00:0b 10.1.2.4")
    running.shell("train every 3600 10 60 0 0 1")
    running.shell("clock leap 38")
    running.wait(12)  # Three sentences, then it is sure until the end of the half year.
    before = kept(running)
    assert before == [
        "kept in flash",
        "TAI - UTC 38 s, sure until 1782864000 (POSIX)",
        "profile navigation tcxo",
        "train every 3600 10 60 0 0 1",
        "from 02:00:00:00:00:0a 10.1.2.3",
        "to 02:00:00:00:00:0b 10.1.2.4",
    ]
    reset(running, image)
    assert kept(running) == before
    running.until({ClockState.LOCKED}, periods=12)
    running.wait(8)
    assert (running.status().tai_utc_s, running.status().errors) == (38, ClockError.NONE)
    assert "every 3600 s: 10 frames of 60 octets" in running.shell("train status")


def test_trains_leave_and_come_back_with_the_addresses_that_are_kept(running: Running) -> None:
    running.shell("train send 10 60")
    running.wait(4)
    assert "sent 10 (0 late), received 10, lost 0" in running.shell("train last")


def test_what_is_forgotten_is_as_built_after_the_next_reset(running: Running, image: Path) -> None:
    running.shell("settings forget")
    running.wait(4)
    reset(running, image)
    said = running.shell("settings")
    assert "profile timing xo" in said and "train every" not in said and "from" not in said


def test_names_that_are_none_are_refused(running: Running) -> None:
    assert "there is no 'sundial'" in running.shell("clock profile sundial xo")
    assert "an address is none" in running.shell("train address 1 2 3 4")
