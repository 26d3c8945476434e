# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware in the SDRAM that a replay streams through, which has a clock of its own: it boots, locks, and keeps its time.

Needs Zephyr, as test_firmware.py does.
"""

from collections.abc import Iterator

import pytest

from liteprobe.cores.formats import BootState, ClockError, ClockState, Part
from liteprobe.host.clock.clock import ClockReport
from liteprobe.host.device.firmware import boot_state, load
from liteprobe.host.device.firmware_build import Tools
from liteprobe.host.run.streamed import StreamLook
from liteprobe.sim.drivers.system import servo_beside
from liteprobe.sim.drivers.system.firmware_run import CYCLES_MS, PERIOD_NS, PROMPT, Work
from liteprobe.sim.drivers.system.servo_beside import LOOPED, Clock


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


def test_every_octet_is_the_file_s_and_the_clock_stays_locked_beside_a_replay(locked: Clock) -> None:
    """Both ports, back to back from their rings: they read as much as a port that is streamed to writes and reads."""
    found = servo_beside.beside(locked, {0: LOOPED, 1: LOOPED}, pulses=4)
    last, most = found.work
    print(
        f"edge beside a replay: {last} cycles, {last / CYCLES_MS:.2f} ms at 50 MHz; at most {most}, {most / CYCLES_MS:.2f} ms"
    )
    print(f"{found.edges} edges, {found.sustained:.3f} % of the line")
    assert found.edges >= 2
    assert 0 < last <= most
    assert ([port.underruns for port in found.ports], found.is_locked) == ([0, 0], True)
    made = [packet.octets for packet in servo_beside.packets(0, LOOPED)]
    assert len(found.frames) > len(made)
    assert found.frames == (made * (len(found.frames) // len(made) + 1))[: len(found.frames)]


def test_an_edge_takes_5_ms_at_most_beside_a_replay(locked: Clock) -> None:
    """The longest edge since the firmware began, which the test before has run."""
    assert locked.running.work().most <= 5 * CYCLES_MS


def test_a_step_is_slewed_while_a_port_replays_and_made_when_it_has_ended(locked: Clock) -> None:
    """Somebody moves the clock by 60 us: a replay is in the same register as a train, ``tx_state``."""
    running, link = locked.running, locked.running.receiver.link
    running.wait(8)  # What was told to the simulation before: no pulses for some periods.
    running.until({ClockState.LOCKED}, periods=10)
    running.receiver.give(ahead=12)
    before, stepped_ns = running.status(), []
    seen: list[tuple[ClockReport, int]] = []

    def is_over(look: StreamLook) -> bool:
        if not stepped_ns and look.frames[0] > 0:
            running.probe.timebase.adjust(60_000)
            stepped_ns.append(link.now_ns())
        if stepped_ns and link.now_ns() > stepped_ns[0] + 2 * PERIOD_NS:
            seen.append((running.status(), running.edge()[1]))
        return bool(seen)

    servo_beside.replay_until(locked, {0: LOOPED}, is_over)
    ((status, off),) = seen
    assert (before.errors, status.errors, status.steps) == (ClockError.NONE, ClockError.STEP_REFUSED, before.steps)
    assert off > 35_000 and status.uncertainty_ns is not None and status.uncertainty_ns > off - 12_000
    running.wait(20)  # The rate that slewed it is unlearned with the pulses that come.
    status, (number, off) = running.status(), running.edge()
    assert (status.state, status.errors, status.steps) == (ClockState.LOCKED, ClockError.NONE, before.steps + 1)
    assert number == running.tai() and -20 <= off <= 12


def test_firmware_that_is_loaded_again_knows_nothing_of_before(locked: Clock) -> None:
    """Nor in the processor's own RAM, which no reset clears."""
    running = locked.running
    assert running.work().most > 0
    running.receiver.has_pulses = running.receiver.has_sentences = False
    running.wait(6)  # What was told to the simulation before.
    load(running.probe.registers, locked.image)
    assert running.console.follow(0.05, PROMPT).endswith(PROMPT)
    assert running.work() == Work(0, 0)
