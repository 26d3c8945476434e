# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Receivers and their wires against a clock: outages, missing and false pulses, another rate, another receiver, noise."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from liteprobe.sim.drivers.clock.clock_runs import KINDS, NO_NMEA, OFFSET_PPM, WRONG, Feed, changed, table
from liteprobe.sim.drivers.clock.virtual_time import FREE_RUNNING, HOLDOVER, LOCKED, Run, Timing, events, run_servo
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import pulses, rmc, tim_tp

CRYSTAL = OscillatorSpec(offset_ppm=OFFSET_PPM)
START_S = 900
AFTER_S = 120
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def inside(run: Run, from_s: float, to_s: float) -> float:
    """Return the share of looks at which the error is inside its bound."""
    within = (run.time_s > from_s) & (run.time_s <= to_s)
    return float(np.mean(np.abs(run.error_ns[within]) <= run.bound_ns[within]))


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
