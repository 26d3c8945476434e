# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A step of the clock that is refused, since a train runs: it stays in the bound, and is slewed away."""

import numpy as np
import pytest
from numpy.typing import NDArray

from liteprobe.host.clock.servo import Servo, ServoEdge, ServoStamp
from liteprobe.sim.drivers.clock import clock_runs
from liteprobe.sim.drivers.clock.clock_runs import KINDS
from liteprobe.sim.drivers.clock.virtual_time import (
    ACQUIRING,
    BUSY,
    EVENT,
    LOCKED,
    START_NS,
    STEP,
    TRUTH,
    Run,
    ServoConfig,
    run_servo,
)

STEP_S = 200.5  # Between two pulses.
MOST_PPM = 1000


def busy(table: NDArray[np.void], from_s: float, to_s: float) -> NDArray[np.void]:
    """Let a train run from ``from_s`` to ``to_s``."""
    within = (table["value"] >= START_NS + from_s * 1e9) & (table["value"] < START_NS + to_s * 1e9)
    table["flags"] |= np.where(within, BUSY, 0).astype(np.uint32)
    return table


def stepped(step_ns: int, train_s: float) -> Run:
    """Run with an ideal receiver; somebody steps the clock at STEP_S, in the middle of a train that ends ``train_s`` later."""
    table = busy(clock_runs.table(KINDS["ideal"], 600, 2), STEP_S - 10, STEP_S + train_s)
    step = np.zeros(1, EVENT)
    step["kind"], step["value"] = STEP, step_ns
    position = int(np.flatnonzero((table["kind"] == TRUTH) & (table["value"] >= START_NS + STEP_S * 1e9))[0])
    step["ticks"] = table["ticks"][position]
    return run_servo(np.concatenate([table[:position], step, table[position:]]), KINDS["ideal"].config, sanitize=True)


def told(run: Run, from_s: float) -> NDArray[np.bool_]:
    """Return whether the bound held at each look from ``from_s`` on: the pulse must have shown what was done."""
    late = run.time_s >= from_s
    return np.abs(run.error_ns[late]) <= run.bound_ns[late]


@pytest.mark.parametrize("step_ns", [151_000, -151_000, 5_000_000])
def test_a_refused_step_stays_in_the_bound_and_is_slewed(step_ns: int) -> None:
    run = stepped(step_ns, train_s=60)
    assert not run.edges["has_adjust"][150:].any()
    # A pulse more: what is slewed while an increment waits to be written is known to within its jitter.
    done_s = 203.25 + abs(step_ns) / (MOST_PPM * 1e3)
    slews = (run.time_s >= 201.25) & (run.time_s < done_s)
    assert (np.abs(run.error_ns[slews]) <= run.bound_ns[slews]).all()
    assert told(run, done_s).mean() > 0.93
    assert np.abs(run.error_ns[run.time_s > done_s]).max() < 30
    ppm = (run.edges["increment"] / 2**43 - 1) * 1e6
    assert np.abs(ppm).max() <= MOST_PPM
    assert set(run.state[run.time_s > done_s + 2]) == {LOCKED}


def test_a_step_that_no_slew_takes_away_in_time_is_made_when_the_train_ends() -> None:
    """0.3 s takes 307 s to slew; the train lasts for 20."""
    run = stepped(300_000_000, train_s=20)
    during = (run.time_s > 201.5) & (run.time_s < 220)
    # 0.3 s is beyond what the register holds: nobody knows then.
    assert (run.bound_ns[during] == (2**32 - 1) / 2**8).all()
    assert set(run.state[during]) == {ACQUIRING}
    assert run.edges["has_adjust"][150:].sum() == 1
    assert np.abs(run.error_ns[run.time_s > 223]).max() < 30


def test_a_start_under_a_train_is_slewed_too() -> None:
    table = busy(clock_runs.table(KINDS["ideal"], 60, 3), 0, 1000)
    run = run_servo(table, KINDS["ideal"].config, start_ns=2_000_000, sanitize=True)
    assert not run.edges["has_adjust"].any()
    assert told(run, 2.25).all()
    assert np.abs(run.error_ns[run.time_s > 8]).max() < 30


def test_without_a_train_the_same_step_is_made_at_once() -> None:
    run = stepped(151_000, train_s=-9)
    assert run.edges["has_adjust"][150:].sum() == 1
    assert np.abs(run.error_ns[run.time_s > 202]).max() < 10


def test_a_host_refuses_with_the_same_code() -> None:
    """Three pulses of an exact oscillator, `now` 151 us ahead: the second asks for a step, and is refused."""
    servo = Servo(10**9, quantum_ps=0, sawtooth_ps=0)
    edges = [
        ServoEdge(ServoStamp(now=number * 10**9 + 151_000, fraction=0, ticks=number * 125_000_000), latency=0)
        for number in range(1, 3)
    ]
    outs = [servo.edge(edge) for edge in edges]
    assert outs[-1].has_adjust and outs[-1].uncertainty < 100 * 2**8
    out = servo.refuse(outs[-1])
    assert not out.has_adjust
    assert out.uncertainty / 2**8 == pytest.approx(151_000, rel=0.001)
    assert out.increment / 2**43 == pytest.approx(1 - 151e-6, abs=1e-6)


@pytest.mark.parametrize("jump_ns", [1_000_000_001, 2**31, 2**32 - 1])
def test_a_jump_that_no_phase_holds_is_refused(jump_ns: int) -> None:
    with pytest.raises(Exception, match="exit status 2"):
        run_servo(np.zeros(0, EVENT), ServoConfig(jump_ns=jump_ns), sanitize=True)
