# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Faults of a receiver, as the firmware on the simulated SoC meets them, wire by wire; a host learns each.

A garbled sentence, a wrong second and pulses that end are in test_firmware.py.
Needs Zephyr (ZEPHYR_BASE, or build/zephyr) and its tools; skipped where there is no Zephyr.
"""

import random
from calendar import timegm
from collections.abc import Iterator
from pathlib import Path

import pytest

from liteprobe.cores.formats import ClockError, ClockState, TransmitState
from liteprobe.host import ProbeError, TrainProgram
from liteprobe.host.clock import leap
from liteprobe.host.clock.clock import FAULTS
from liteprobe.host.traffic.train import schedule
from liteprobe.sim.drivers.system.firmware_run import NOMINAL_NS, TAI_UTC, Running, boot
from liteprobe.sim.models.clock.receiver import sentence

SETTLE = 7  # Periods: two that the simulation knows already, and 3.5 until the firmware misses what should have come.
FREE, LOCKED, NONE = ClockState.FREE_RUNNING, ClockState.LOCKED, ClockError.NONE
UNKNOWN = ClockError.SECOND_UNKNOWN
# What receivers say that see no sky since they were switched on.
VOID = sentence("GNRMC,,V,,,,,,,,,,N")
SEED = 7


@pytest.fixture(scope="module")
def running(own: Path, image: Path) -> Iterator[Running]:
    """One simulation for all tests of this file, which is what takes time; they go in their order."""
    with boot(own, image) as booted:
        booted.receiver.has_pulses = False
        yield booted


def told(running: Running) -> tuple[ClockState, ClockError]:
    """Return what a host reads of the clock; each fault is reported in words, too."""
    status = running.status()
    assert status.is_alive
    assert status.faults == [text for bit, text in FAULTS.items() if bit in status.errors]
    return status.state, status.errors


def test_no_receiver_at_all_is_told(running: Running) -> None:
    running.wait(2)
    assert told(running) == (FREE, ClockError.NO_PPS | ClockError.NO_NMEA | UNKNOWN)
    assert running.status().uncertainty_ns is None


def test_sentences_without_pulses_set_no_clock(running: Running) -> None:
    running.receiver.has_sentences = True
    running.wait(4)
    assert told(running) == (FREE, ClockError.NO_PPS | UNKNOWN)
    assert running.probe.timebase.now_ns < 10**9


def test_no_antenna_is_not_taken_for_a_wire_that_is_cut(running: Running) -> None:
    """Before its first fix a receiver sends empty sentences; most send pulses, too, which are not a second."""
    running.receiver.instead = VOID
    running.wait(SETTLE)
    assert told(running) == (FREE, ClockError.NO_PPS | ClockError.NO_FIX | UNKNOWN)
    running.receiver.has_pulses = True
    running.until({LOCKED}, periods=10)
    assert told(running) == (LOCKED, ClockError.NO_FIX | UNKNOWN)
    assert running.edge()[0] < 1000


def test_pulses_without_sentences_are_followed(running: Running) -> None:
    running.receiver.has_sentences = False
    running.wait(SETTLE)
    assert told(running) == (LOCKED, ClockError.NO_NMEA | UNKNOWN)
    assert running.edge()[0] < 1000


def test_noise_on_the_uart_is_told_and_moves_nothing(running: Running) -> None:
    running.receiver.has_sentences, running.receiver.instead = True, None
    running.wait(7)  # Three sentences, and a pulse at which the clock is set.
    assert told(running) == (LOCKED, NONE)
    print("seed", SEED)
    running.receiver.instead = b"$GN" + random.Random(SEED).randbytes(80) + b"\n"
    running.wait(SETTLE)
    assert told(running) == (LOCKED, ClockError.NO_NMEA | ClockError.BAD_NMEA)
    running.receiver.instead = None
    running.wait(13)  # A bad sentence is reported for ten seconds.
    assert told(running) == (LOCKED, NONE)
    number, off = running.edge()
    assert number == running.tai() and -8 <= off <= 0


def begin_train(running: Running, program: TrainProgram, state: TransmitState) -> None:
    probe = running.probe
    transmit = probe.ports[0].transmit
    transmit.load(program, schedule(program, probe.timebase.increment))
    transmit.arm()
    running.wait(0.1)
    probe.registers.write("probe_start", 1)
    assert transmit.look()[0] == state
    with pytest.raises(ProbeError, match="port 0 runs a train"):
        probe.set_time(0)


def test_a_step_is_slewed_while_a_train_runs(running: Running) -> None:
    """Somebody moves the clock by 60 us: 10 us a period are slewed away, the rest is stepped after the train."""
    probe = running.probe
    begin_train(running, TrainProgram(60, 1_000_000, interval_ns=100_000), TransmitState.RUNNING)
    steps = running.status().steps
    probe.timebase.adjust(60_000)
    running.wait(2)
    assert told(running) == (ClockState.ACQUIRING, ClockError.STEP_REFUSED)
    status, off = running.status(), running.edge()[1]
    assert off > 35_000 and status.steps == steps
    assert status.uncertainty_ns is not None and status.uncertainty_ns > off - 12_000  # Of the period after that edge.
    running.wait(2)
    assert running.edge()[1] < off - 15_000
    probe.ports[0].transmit.stop()
    running.wait(3)
    assert told(running) == (LOCKED, NONE)
    number, off = running.edge()
    assert number == running.tai() and -20 <= off <= 12 and running.status().steps == steps + 1


def test_a_train_that_waits_does_not_keep_the_second_from_being_set(running: Running) -> None:
    """A host has armed a train for a time of the true clock, and somebody puts it back by 1000 periods and 10 us."""
    probe = running.probe
    begin_train(
        running, TrainProgram(60, 2, start_time_ns=probe.timebase.now_ns + 100 * NOMINAL_NS), TransmitState.WAITING
    )
    probe.timebase.set_time(probe.timebase.now_ns - 1000 * NOMINAL_NS + 10_000)
    running.wait(4)
    assert told(running) == (LOCKED, NONE)
    number, off = running.edge()
    assert number == running.tai() and -20 <= off <= 12
    assert probe.ports[0].transmit.look()[0] == TransmitState.WAITING
    probe.ports[0].transmit.stop()


def test_a_leap_second_moves_utc_and_not_the_clock(running: Running) -> None:
    """The receiver says 23:59:59, 23:59:60, 00:00:00; each pulse begins the next second of TAI."""
    receiver = running.receiver
    receiver.has_pulses, receiver.has_sentences = True, False
    running.wait(4)
    end = timegm((2027, 1, 1, 0, 0, 0))
    running.shell(f"clock leap {TAI_UTC}")  # Forgets the second, which is another from here on.
    running.shell(f"clock leap {TAI_UTC} {end} {TAI_UTC + 1}")  # Announces the leap second.
    receiver.leap = receiver.number + 14
    receiver.utc_of_first = end - receiver.leap
    receiver.has_sentences = True
    running.wait(10)
    assert told(running) == (LOCKED, NONE)
    assert (running.status().tai_utc_s, running.edge()[0]) == (TAI_UTC, running.tai())
    before = running.edge()[0]
    assert before < receiver.utc_of_first + TAI_UTC + receiver.leap
    for _ in range(14):
        running.wait(1)
        number, off = running.edge()
        assert number == running.tai() and -8 <= off <= 0
    assert number > receiver.utc_of_first + TAI_UTC + receiver.leap + 3
    assert told(running) == (LOCKED, NONE)
    assert running.status().tai_utc_s == TAI_UTC + 1


def test_a_reference_that_jumps_is_told_and_both_readings_are_in_the_bound(running: Running) -> None:
    """Its pulses come 20 us later from one period on: a receiver that has found another position."""
    assert running.status().jumps == 0
    running.receiver.late_ns = 20_000
    running.wait(5)
    state, errors = told(running)
    assert ClockError.REFERENCE_JUMPED in errors and state != FREE
    running.wait(6)
    status = running.status()
    assert (status.jumps, running.edge()[1] + 20 > 0) == (1, True)
    assert status.uncertainty_ns is not None and 20_000 <= status.uncertainty_ns < 20_200


def test_pulses_that_last_longer_than_their_pauses_are_told(running: Running) -> None:
    """A PPS that is the wrong way round is taken at its falling edge."""
    running.receiver.has_pulses = True
    running.receiver.width_ns = 9_000_000
    running.wait(5)
    assert ClockError.PPS_INVERTED in told(running)[1]
    running.receiver.width_ns = 8000
    running.wait(5)
    assert ClockError.PPS_INVERTED not in told(running)[1]


def test_a_host_announces_a_leap_second_and_withdraws_it(running: Running) -> None:
    """By the list of leap seconds: the firmware's shell takes it, and the clock stays."""
    known = running.status().tai_utc_s
    leap.tell(running.console, leap.LeapSeconds(known, timegm((2027, 7, 1, 0, 0, 0)), known + 1))
    leap.tell(running.console, leap.LeapSeconds(known, timegm((2027, 6, 28, 0, 0, 0)), known))
    with pytest.raises(ProbeError, match="more than a leap second"):
        leap.tell(running.console, leap.LeapSeconds(known, timegm((2027, 6, 28, 0, 0, 0)), known + 3))
    assert running.status().tai_utc_s == known
