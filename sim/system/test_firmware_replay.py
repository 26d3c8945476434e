# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware in the SDRAM that a replay streams through, which has a clock of its own: it boots, locks, and keeps its time.

Needs Zephyr, as test_firmware.py does.
"""

from collections.abc import Iterator

import pytest

from liteprobe.cores.formats import BootState, ClockState, Part
from liteprobe.host.device.firmware import boot_state, load
from liteprobe.host.device.firmware_build import Tools
from liteprobe.sim.bench.system import servo_beside
from liteprobe.sim.bench.system.firmware_run import CYCLES_MS, PROMPT, Work
from liteprobe.sim.bench.system.servo_beside import LOOPED, Clock


@pytest.fixture(scope="module")
def locked(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clock]:
    """A probe whose clock is locked; the tests go in their order."""
    with servo_beside.locked(tools, tmp_path_factory.mktemp("replay")) as clock:
        yield clock


def test_firmware_boots_in_the_sdram_and_locks(locked: Clock) -> None:
    running = locked.running
    registers = running.probe.registers
    assert running.probe.parts & Part.REPLAY
    assert registers.memory("main_ram").words == 1 << 20  # The SDRAM.
    assert boot_state(registers) == BootState.STARTED
    found = running.clock()
    assert (found["state"], found["error"], found["rejected"]) == (ClockState.LOCKED, 0, 0)
    number, off = running.edge()
    assert number == running.tai() and -8 <= off <= 0


def test_an_edge_takes_5_ms_at_most_beside_a_replay_and_every_octet_is_the_file_s(locked: Clock) -> None:
    """Both ports, back to back from their rings: they read as much as a port that is streamed to writes and reads."""
    found = servo_beside.beside(locked, {0: LOOPED, 1: LOOPED}, pulses=4)
    last, most = found.work
    print(
        f"edge beside a replay: {last} cycles, {last / CYCLES_MS:.2f} ms at 50 MHz; at most {most}, {most / CYCLES_MS:.2f} ms"
    )
    print(f"{found.edges} edges, {found.sustained:.3f} % of the line")
    assert found.edges >= 2
    assert 0 < last <= most <= 5 * CYCLES_MS
    assert ([port.underruns for port in found.ports], found.is_locked) == ([0, 0], True)
    made = [packet.octets for packet in servo_beside.packets(0, LOOPED)]
    assert len(found.frames) > len(made)
    assert found.frames == (made * (len(found.frames) // len(made) + 1))[: len(found.frames)]


def test_firmware_that_is_loaded_again_knows_nothing_of_before(locked: Clock) -> None:
    """Nor in the processor's own RAM, which no reset clears."""
    running = locked.running
    assert running.work().most > 0
    running.receiver.has_pulses = running.receiver.has_sentences = False
    running.wait(6)  # What was told to the simulation before.
    load(running.probe.registers, locked.image)
    assert running.console.follow(0.05, PROMPT).endswith(PROMPT)
    assert running.work() == Work(0, 0)
