# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""References that move, and receivers and wires that fail: outages, false pulses, another rate, another receiver, noise."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from liteprobe.sim.drivers.clock.clock_runs import KINDS, NO_NMEA, OFFSET_PPM, WRONG, Feed, changed, table
from liteprobe.sim.drivers.clock.virtual_time import (
    BUSY,
    FREE_RUNNING,
    HOLDOVER,
    LOCKED,
    START_NS,
    Run,
    Timing,
    events,
    run_servo,
)
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import pulses, rmc, tim_tp

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
    within = (run.time_s > from_s) & (run.time_s <= to_s)
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
    assert run.bound_ns[late].max() < 30 and set(run.state[late]) == {LOCKED}


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


# Receivers and their wires ------------------------------------------------------------------------


CRYSTAL = OscillatorSpec(offset_ppm=OFFSET_PPM)
START_S = 900
AFTER_S = 120
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.mark.parametrize("outage_s", [1, 10, 60, 600, 3600, 36_000])
def test_an_outage_of_any_length_is_bounded_and_got_over(outage_s: int) -> None:
    kind = changed("timing_qerr", outages=((START_S + 0.5, START_S + 0.5 + outage_s),))
    run = run_servo(table(kind, START_S + outage_s + AFTER_S, 7, CRYSTAL), kind.config, sanitize=True)
    assert inside(run, START_S, START_S + outage_s) >= 0.93
    during = set(run.state[(run.time_s > START_S + 2) & (run.time_s < START_S + outage_s)])
    assert during <= {LOCKED, HOLDOVER, FREE_RUNNING} and (outage_s < 10 or HOLDOVER in during)
    late = run.time_s > START_S + outage_s + 60
    assert set(run.state[late]) == {LOCKED}
    assert np.abs(run.error_ns[late]).max() < 15


@pytest.mark.parametrize("kind_name", ["timing_qerr", "timing"])
def test_missing_and_false_pulses_cost_nothing_and_are_counted(kind_name: str) -> None:
    kind = changed(kind_name, missing=0.1, spurious=0.02)
    run = run_servo(table(kind, 3600, 5, CRYSTAL), kind.config, sanitize=True)
    settled = run.time_s > 600
    assert set(run.state[settled]) <= {LOCKED, HOLDOVER}
    assert np.abs(run.error_ns[settled]).max() < 35 and inside(run, 600, 3600) >= 0.93
    came = pulses(kind.receiver, 3600, 5)
    assert run.edges["rejected"][-1] >= came.is_spurious.sum() > 50


def at_rate(rate_hz: int, from_s: int, seconds: int = 180) -> Run:
    """Run with an ideal receiver that sends ``rate_hz`` pulses a second from ``from_s`` on; whole seconds are true."""
    true = pulses(KINDS["ideal"].receiver, seconds, 1)
    more = np.arange(from_s, seconds - 1, 1 / rate_hz)
    more = more[np.abs(more - np.rint(more)) > 1e-6]
    whole = np.maximum(np.floor(more), 1.0)
    came = replace(
        true,
        time_s=np.concatenate([true.time_s, whole]),
        late_ns=np.concatenate([true.late_ns, 1e9 * (more - whole)]),
        qerr_ns=np.concatenate([true.qerr_ns, np.full(len(more), np.nan)]),
        is_spurious=np.concatenate([true.is_spurious, np.ones(len(more), bool)]),
        is_outlier=np.concatenate([true.is_outlier, np.zeros(len(more), bool)]),
    )
    return run_servo(
        events(Oscillator(CRYSTAL, seconds + 2, 1), came, seconds, Timing(), 1), KINDS["ideal"].config, sanitize=True
    )


@pytest.mark.parametrize("rate_hz", [2, 5, 10])
def test_pulses_of_a_higher_rate_are_never_a_lock(rate_hz: int) -> None:
    """From the first one on: no two are a second apart."""
    run = at_rate(rate_hz, 1)
    assert LOCKED not in set(run.state)
    assert (run.bound_ns[(run.time_s > 2) & (run.time_s < 178)] == (2**32 - 1) / 2**8).all()


@pytest.mark.parametrize("rate_hz", [2, 10])
def test_a_receiver_set_to_a_higher_rate_is_followed_at_the_seconds_and_reported(rate_hz: int) -> None:
    run = at_rate(rate_hz, 60)
    late = run.time_s > 62
    assert np.abs(run.error_ns[late]).max() < 15
    assert run.edges["rejected"][-1] == (rate_hz - 1) * 119
    # Several false ones in a row are as good as a reference that has moved: the bound says that nobody knows.
    assert run.edges["has_jumped"][60:].any() == (rate_hz > 2)


# The wire of the sentences ------------------------------------------------------------------------


def second(feed: Feed, number: int, octets: bytes, has_pulse: bool = True, shift_ms: int = 0) -> None:
    """Let a pulse come, and what the UART brings after it."""
    at_ms = 5000 + 1000 * number + shift_ms
    if has_pulse:
        feed.pulse(at_ms)
    feed.octets(at_ms + 150, octets)


def utc(number: int) -> datetime:
    return START + timedelta(seconds=number)


def tai(number: int) -> int:
    return int(START.timestamp()) + 37 + number


def test_a_receiver_is_unplugged_and_another_plugged_in() -> None:
    """The other one has its second elsewhere by 400 ms, as before its fix, no TIM-TP, and then the right one."""
    feed = Feed()
    for number in range(20):
        second(feed, number, rmc(utc(number)) + tim_tp(utc(number + 1), 0, gps_utc=18))
    for number in range(40, 60):
        second(feed, number, rmc(utc(number), is_valid=False), shift_ms=400)
    for number in range(61, 90):
        second(feed, number, rmc(utc(number)))
    last = feed.run()[-1]
    assert (last["is_known"], last["tai"], last["faults"]) == (1, tai(89), 0)


def test_another_baud_rate_is_noise_until_it_is_right_again() -> None:
    """115200 baud at 9600: framing is lost, octets are anything."""
    generator = random.Random(3)
    feed = Feed()
    for number in range(60):
        noise = generator.randbytes(12)
        second(feed, number, noise if 20 <= number < 40 else rmc(utc(number)))
    answers = feed.run()[1::2]
    assert answers["tai"][3:].tolist() == [tai(number) for number in range(3, 60)]
    assert (answers["faults"][25:40] == NO_NMEA).all() and answers["faults"][-1] == 0


@pytest.mark.parametrize("seed", range(3))
def test_garbage_of_ubx_names_no_second(seed: int) -> None:
    """Messages with octets changed, cut short, and with lengths that are made up, among good sentences."""
    generator = random.Random(seed)
    feed = Feed()
    for number in range(400):
        octets = bytearray(tim_tp(utc(number + 1), 0, gps_utc=18))
        for _ in range(generator.choice([1, 2, 5])):
            octets[generator.randrange(len(octets))] = generator.randrange(256)
        second(feed, number, rmc(utc(number)) + bytes(octets[: generator.randrange(2, len(octets) + 1)]) + b"\r\n")
    answers = feed.run()[1::2]
    known = answers["is_known"].astype(bool)
    assert known[60:].all() and not (answers["faults"][60:] & WRONG).all()
    assert all(answers["tai"][number] == tai(number) for number in range(400) if known[number])
