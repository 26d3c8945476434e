# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A clock that steps, refuses pulses or loses its state in the middle of a measurement: the result says so."""

import math
from pathlib import Path

import pytest

from liteprobe.cores.formats import CLOCK_JUMPS_BIT, CLOCK_STEPS_BIT, ClockError
from liteprobe.host.analysis import summary
from liteprobe.host.capture import live
from liteprobe.host.cli.tables import _trust
from liteprobe.host.clock.clock import ClockWatch, watch_all
from liteprobe.host.probe import Probe
from liteprobe.host.run.trains import Route
from liteprobe.host.suites.owd import OneWay
from liteprobe.host.traffic.train import TrainProgram, TrainResult
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe, cable

LOCKED = {
    "clock_state": 3, "clock_alive": 1, "clock_updates": 7, "clock_uncertainty": 10 * 256, "clock_edges": 90,
    "clock_rejected": 2, "clock_error": 250 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT,
    "pps_period": 10**6, "pps_control": 1, "pps_present": 1, "pps_missing": 65_535,
}  # fmt: skip
MIDDLE_TICKS = 100_000  # In the middle of the train.
PROGRAM = TrainProgram(60, 20, interval_ns=100_000)
CASES: list[tuple[dict[str, int], str, float | None, str]] = [
    ({}, "locked", 10, ""),
    ({"clock_error": 251 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT}, "locked", None, "was stepped once"),
    ({"clock_error": 4 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT}, "locked", None, "was stepped 10 times"),
    ({"clock_error": 250 << CLOCK_STEPS_BIT | 4 << CLOCK_JUMPS_BIT}, "locked", 10, "the reference of"),
    ({"clock_error": LOCKED["clock_error"] | ClockError.REFERENCE_JUMPED}, "locked", 10, "the reference of"),
    ({"clock_error": LOCKED["clock_error"] | ClockError.STEP_REFUSED}, "locked", 10, "wanted a step"),
    ({"clock_rejected": 5}, "locked", 10, "refused 3 of its pulses"),
    ({"pps_missing": 1}, "locked", 10, "missed 2 pulses"),
    ({"clock_edges": 2}, "locked", None, "began anew"),
    ({"clock_state": 4, "clock_uncertainty": 30 * 256}, "holdover", 30, "was locked at first, holdover at the end"),
    ({"clock_uncertainty": 2**32 - 1}, "locked", None, ""),
    ({"clock_mode": 1}, "locked", 10, "another mode"),
]


def model(values: dict[str, int]) -> ModelProbe:
    """Return a probe on a cable, whose clock changes in the middle of the train."""
    made = ModelProbe(cable(125), with_clock=True)
    made.values |= LOCKED
    made._at(MIDDLE_TICKS, lambda: made.values.update(values))
    return made


def notes_of_clock(notes: tuple[str, ...]) -> list[str]:
    """Return what is said of clocks."""
    return [note for note in notes if "clock" in note]


def train(values: dict[str, int], folder: Path) -> TrainResult:
    """Send a train of 2 ms, in whose middle the clock changes."""
    return Probe(FakeLink(model(values), folder)).train(PROGRAM)


@pytest.mark.parametrize(("values", "state", "bound_ns", "said"), CASES)
def test_a_train_says_what_became_of_its_clock(
    tmp_path: Path, values: dict[str, int], state: str, bound_ns: float | None, said: str
) -> None:
    result = train(values, tmp_path)
    notes = notes_of_clock(result.notes)
    assert [said in note for note in notes] == [True] * bool(said)
    assert result.clock_state == state
    # A step is of unknown size; what isn't known otherwise still has its crystal, which is exact here.
    is_whole = not ("stepped" in said or "anew" in said)
    assert (summary.row(result)["uncertainty_ns"] is not None) == is_whole
    trust = _trust([summary.row(result)])
    assert ("not known" in trust) == (not is_whole) and trust.startswith(f"Clock {state};")


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("values", "state", "bound_ns", "said"), CASES)
def test_one_way_delay_has_the_bounds_of_both_clocks_over_all_of_it(
    tmp_path: Path, which: int, values: dict[str, int], state: str, bound_ns: float | None, said: str
) -> None:
    """Of two probes, whose clocks are watched, one changes."""
    models, probes = [], []
    for name in "ab":
        (tmp_path / name).mkdir()
        models.append(ModelProbe(with_clock=True))
        models[-1].values |= LOCKED
        probes.append(Probe(FakeLink(models[-1], tmp_path / name)))
        probes[-1].url = f"sim://{name}"
    suite = OneWay([Route(PROGRAM, *probes)])
    suite.clocks = watch_all({id(probe): (probe.url, probe.timebase.clock) for probe in probes})
    models[which].values |= values
    verdict = suite.clock_of(suite.jobs[0], {})
    assert [said in note for note in verdict.notes] == [True] * bool(said)
    assert all(f"sim://{'ab'[which]}" in note for note in verdict.notes)
    assert verdict.state == state
    # The other clock's 10 ns, and half a tick: no latches of the line. Two locked clocks of which nothing is said are random.
    together = None if bound_ns is None else bound_ns + 10 if said or state != "locked" else math.hypot(bound_ns, 10)
    assert verdict.bound_ns == (None if together is None else together + 4)


def test_a_gateware_without_a_clock_is_free_running(tmp_path: Path) -> None:
    verdict = ClockWatch(Probe(FakeLink(ModelProbe(), tmp_path)).timebase.clock).end()
    assert (verdict.state, verdict.bound_ns, verdict.is_whole, verdict.notes) == ("free-running", None, True, ())


def test_the_worst_look_between_counts(tmp_path: Path) -> None:
    """Holdover that has come and gone by the end."""
    made = ModelProbe(with_clock=True)
    made.values |= LOCKED
    watch = ClockWatch(Probe(FakeLink(made, tmp_path)).timebase.clock)
    made.values |= {"clock_state": 4, "clock_uncertainty": 500 * 256}
    watch.look()
    made.values |= LOCKED
    verdict = watch.end()
    assert (verdict.state, verdict.bound_ns, verdict.notes) == ("holdover", 500.0, ())


def test_a_capture_ends_with_the_worst_of_its_clock(tmp_path: Path) -> None:
    made = ModelProbe(with_clock=True)
    made.values |= LOCKED
    probe = Probe(FakeLink(made, tmp_path))
    assert live.clock_words(probe) == (
        "Clock of the probe: locked, within 10.0 ns (95 %); a stamp comes up to 8 ns after its SFD"
    )
    watch = ClockWatch(probe.timebase.clock)
    made.values |= {"clock_state": 4, "clock_uncertainty": 300 * 256, "clock_rejected": 4}
    assert live.watched_words(watch) == (
        "Clock of the probe, at its worst: holdover, within 300.0 ns (95 %); a stamp comes up to 8 ns after its SFD; "
        "the clock was locked at first, holdover at the end; the clock refused 2 of its pulses"
    )
    made.values |= {"clock_error": 251 << CLOCK_STEPS_BIT | 3 << CLOCK_JUMPS_BIT}
    assert "at its worst: holdover, error not known" in live.watched_words(watch)
