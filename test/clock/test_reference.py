# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A reference that moves: it is told within three pulses, and the bound covers both readings until it is decided."""

import numpy as np
import pytest

from liteprobe.sim.drivers.clock.clock_runs import KINDS, OFFSET_PPM, changed, table
from liteprobe.sim.drivers.clock.virtual_time import BUSY, LOCKED, START_NS, Run, Timing, events, run_servo
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import pulses

CALM = OscillatorSpec(offset_ppm=OFFSET_PPM, thermal_ppb=20)
JUMP_S = 700.5  # Between two pulses.
SETTLED_S = 600
LONG_S = 900
JUDGED = 60


def jumped(size_ns: float, back_s: float = np.inf, kind: str = "timing_qerr") -> Run:
    """Run with pulses that are ``size_ns`` late from JUMP_S on, until ``back_s``; the truth stays where it was."""
    came = pulses(KINDS[kind].receiver, LONG_S, 1)
    came.late_ns[(came.time_s > JUMP_S) & (came.time_s < back_s)] += size_ns
    found = events(Oscillator(CALM, LONG_S + 2, 1), came, LONG_S, Timing(), 1)
    return run_servo(found, KINDS[kind].config, sanitize=True)


def inside(run: Run, from_s: float, to_s: float, late_ns: float = 0.0) -> float:
    """Return the share of looks at which the second of pulses that are ``late_ns`` late is inside the bound."""
    within = (run.time_s > from_s) & (run.time_s < to_s)
    return float(np.mean(np.abs(run.error_ns[within] + late_ns) <= run.bound_ns[within]))


SIZES = [40, -40, 300, -300, 10_000, 1_000_000, -1_000_000]


@pytest.mark.parametrize("size_ns", SIZES)
def test_a_lasting_jump_is_reported_within_three_pulses_and_counted_once(size_ns: float) -> None:
    run = jumped(size_ns)
    assert not run.edges["has_jumped"][SETTLED_S:700].any()
    told = run.edges["has_jumped"][700:]
    assert told[:3].any() and told[1:JUDGED].all() and not told[JUDGED + 10 :].any()
    assert set(run.edges["jumps"][:700]) == {0} and run.edges["jumps"][-1] == 1


@pytest.mark.parametrize("size_ns", SIZES)
def test_the_bound_has_both_readings_until_it_is_decided(size_ns: float) -> None:
    """From the first pulse that shows it on: where the clock was, and where its pulses are."""
    run = jumped(size_ns)
    assert inside(run, 701.1, 700 + JUDGED) >= 0.93
    assert inside(run, 701.1, 700 + JUDGED, size_ns) >= 0.93
    assert inside(run, 780, LONG_S, size_ns) >= 0.93
    late = run.time_s > 700 + JUDGED + 10
    assert run.bound_ns[late].max() < 20 and set(run.state[late]) == {LOCKED}


def test_pulses_that_come_back_are_within_the_bound_all_the_time() -> None:
    run = jumped(300, back_s=730.5)
    assert inside(run, 701.1, 800) >= 0.93
    assert run.edges["jumps"][-1] == 2


def test_a_jump_that_lasts_two_pulses_moves_nothing() -> None:
    run = jumped(300, back_s=702.5)
    assert run.edges["jumps"][-1] == 0
    assert run.edges["has_jumped"][699:703].tolist() == [0, 0, 1, 0]
    assert np.abs(run.error_ns[run.time_s > 700]).max() < 15


@pytest.mark.parametrize("kind", ["timing_qerr", "timing"])
def test_one_percent_of_false_pulses_is_no_jump(kind: str) -> None:
    with_outliers = changed(kind, outliers=0.01, missing=0.1, spurious=0.02)
    run = run_servo(table(with_outliers, 3600, 4, CALM), with_outliers.config, sanitize=True)
    assert run.edges["jumps"][-1] == 0
    assert run.edges["has_jumped"][SETTLED_S:].mean() < 0.01
    assert inside(run, SETTLED_S, 3600) >= 0.93


def test_a_jump_under_a_train_is_reported_too() -> None:
    """The step to the new pulses is refused."""
    came = pulses(KINDS["timing_qerr"].receiver, LONG_S, 1)
    came.late_ns[came.time_s > JUMP_S] += 1_000_000
    found = events(Oscillator(CALM, LONG_S + 2, 1), came, LONG_S, Timing(), 1)
    found["flags"] |= np.where(found["value"] > START_NS + SETTLED_S * 1e9, BUSY, 0).astype(np.uint32)
    run = run_servo(found, KINDS["timing_qerr"].config, sanitize=True)
    assert run.edges["jumps"][-1] == 1 and not run.edges["has_adjust"][SETTLED_S:].any()
    assert inside(run, 701.1, 760) >= 0.93 and inside(run, 701.1, 760, 1_000_000) >= 0.93
    assert inside(run, 780, LONG_S, 1_000_000) >= 0.93
