# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The servo on the host, in a closed loop with a model of the probe whose oscillator is 16 ppm fast."""

from pathlib import Path

import pytest

from liteprobe.cores.formats import ClockError, ClockMode, ClockState, TransmitState
from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.probe import Probe
from liteprobe.host.serve.discipline import Discipline
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe

PERIOD_NS = 10**6
PERIOD_TICKS = 125_002  # 16 ppm more than 1 ms at 8 ns.


class Loop:
    """A probe that gets a pulse at the beginning of every 125002nd tick, and a servo on the host."""

    def __init__(self, folder: Path) -> None:
        self.model = ModelProbe(with_clock=True)
        self.model.values |= {"pps_period": 10**9, "pps_present": 1}
        self.probe = Probe(FakeLink(self.model, folder))
        self.servo = Discipline(self.probe, PERIOD_NS)
        self.number = 0
        self.pulse_moved = 0

    def to_tick(self, tick: int) -> None:
        self.model.advance(tick - self.model.tick)

    def pulse(self) -> int:
        """Let the next pulse come and be taken; return how far off the clock was at its tick (ns)."""
        self.number += 1
        self.to_tick(PERIOD_TICKS * self.number + self.pulse_moved)
        now = self.model.now()
        stamp = {"pps_count": self.number, "pps_now": now, "pps_ticks": self.model.tick, "pps_present": 1}
        self.model.values |= stamp
        assert self.servo.tend() is not None
        return now - PERIOD_NS * self.number

    def silence(self) -> None:
        """Let a period go by without a pulse, looking eight times."""
        self.number += 1
        self.model.values["pps_present"] = 0
        for eighth in range(1, 9):
            self.to_tick(PERIOD_TICKS * (self.number - 1) + PERIOD_TICKS // 2 + eighth * PERIOD_TICKS // 8)
            self.servo.tend()

    @property
    def state(self) -> ClockState:
        return ClockState(self.model.values["clock_state"])

    @property
    def errors(self) -> ClockError:
        return self.probe.timebase.clock.status().errors


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def test_the_middle_of_the_tick_of_an_edge_becomes_the_second(loop: Loop) -> None:
    """An edge is somewhere in the tick that is stamped by its beginning: 4 ns before the second."""
    off = [loop.pulse() for _ in range(60)]
    assert loop.state == ClockState.LOCKED and loop.errors == ClockError.NONE
    assert [abs(each + 4) <= 1 for each in off[30:]] == [True] * 30
    assert loop.model.values["timebase_increment"] / 2**43 == pytest.approx(1 / 1.000016, abs=2e-9)
    status = loop.probe.timebase.clock.status()
    assert status.rate_ppb == pytest.approx(16_000, abs=5) and status.edges == 60
    assert status.uncertainty_ns is not None and 4 <= status.uncertainty_ns < 10
    assert loop.model.values["pps_control"] == 1 and loop.model.values["pps_period"] == PERIOD_NS


def test_silence_is_holdover_and_is_told(loop: Loop) -> None:
    for _ in range(30):
        loop.pulse()
    before = loop.model.values["clock_uncertainty"]
    loop.silence()
    loop.silence()
    assert loop.state == ClockState.HOLDOVER  # At once, half a period after the pulse was due.
    for _ in range(8):
        loop.silence()
    assert (loop.state, loop.errors) == (ClockState.HOLDOVER, ClockError.NO_PPS)
    assert loop.model.values["clock_uncertainty"] > before
    loop.number = loop.model.tick // PERIOD_TICKS
    assert abs(loop.pulse() + 4) < 20
    assert loop.errors == ClockError.NONE


def test_left_alone_it_steers_nothing_and_acquires_anew_when_told(loop: Loop) -> None:
    for _ in range(10):
        loop.pulse()
    clock = loop.probe.timebase.clock
    clock.set_mode(ClockMode.LEAVE_ALONE)
    loop.model.values["timebase_increment"] = increment = 8 << 40
    for _ in range(5):
        loop.pulse()
    assert (loop.model.values["timebase_increment"], loop.state) == (increment, ClockState.FREE_RUNNING)
    clock.set_mode(ClockMode.REACQUIRE)
    loop.pulse()
    assert loop.state == ClockState.ACQUIRING and loop.model.values["clock_mode"] == ClockMode.DISCIPLINE
    for _ in range(20):
        loop.pulse()
    assert loop.state == ClockState.LOCKED


def test_the_clock_is_not_stepped_while_a_train_runs(loop: Loop) -> None:
    loop.model.values["port0_tx_state"] = TransmitState.RUNNING
    loop.model._set_clock(loop.model.now() + 300_000)
    refused, bounds = [], []
    for _ in range(6):
        off = loop.pulse()
        status = loop.probe.timebase.clock.status()
        refused.append(ClockError.STEP_REFUSED in status.errors)
        bounds.append((off, status.uncertainty_ns or 0))
    assert any(refused) and loop.model.values["timebase_adjust"] == 0 and status.steps == 0
    # Slewed by a microsecond a period at most, and in the bound until then.
    assert all(abs(off) - 1000 <= bound for off, bound in bounds[1:]) and 290_000 < bounds[-1][0] < bounds[1][0]
    loop.model.values["port0_tx_state"] = TransmitState.IDLE
    for _ in range(20):
        off = loop.pulse()
    assert abs(off + 4) < 20 and loop.model.values["timebase_adjust"] != 0
    assert loop.probe.timebase.clock.status().steps == 1


def test_a_train_that_waits_for_its_time_gets_the_right_one(loop: Loop) -> None:
    """It has sent nothing yet: a step moves none of its frames."""
    loop.model.values["port0_tx_state"] = TransmitState.WAITING
    loop.model._set_clock(loop.model.now() + 300_000)
    for _ in range(20):
        off = loop.pulse()
    assert abs(off + 4) < 20 and ClockError.STEP_REFUSED not in loop.errors


def test_a_reference_that_jumps_is_reported_to_the_host(loop: Loop) -> None:
    for _ in range(30):
        loop.pulse()
    loop.pulse_moved = 100  # Ticks.
    for _ in range(8):
        loop.pulse()
    status = loop.probe.timebase.clock.status()
    assert status.jumps == 1 and ClockError.REFERENCE_JUMPED in status.errors
    assert status.uncertainty_ns is not None and status.uncertainty_ns >= 800


def test_two_servos_for_one_clock_are_one_too_many(loop: Loop) -> None:
    loop.pulse()
    with pytest.raises(ProbeError, match="disciplines its clock already"):
        Discipline(loop.probe, PERIOD_NS)


def test_a_period_that_no_servo_follows_changes_nothing(tmp_path: Path) -> None:
    model = ModelProbe(with_clock=True)
    model.values["pps_period"] = 10**9
    with pytest.raises(UsageError, match="1 ms to 1.4 s"):
        Discipline(Probe(FakeLink(model, tmp_path)), 1000)
    assert (model.values["pps_period"], model.values["pps_control"]) == (10**9, 0)
