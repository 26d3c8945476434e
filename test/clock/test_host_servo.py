# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""The firmware's servo on the host: the answers of its own test program, ranges and profiles of its settings."""

import ctypes
import re

import numpy as np
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.clock.servo import (
    LIBRARY,
    OF_PROFILE,
    Servo,
    ServoConfig,
    ServoEdge,
    ServoOutput,
    ServoStamp,
    profile,
)
from liteprobe.sim.drivers.clock import clock_runs, virtual_time
from liteprobe.sim.drivers.clock.clock_runs import KINDS, OFFSET_PPM, SETTLED_S
from liteprobe.sim.models.clock.oscillator import Oscillator, OscillatorSpec
from liteprobe.sim.models.clock.receiver import pulses

START_NS = virtual_time.START_NS


def test_the_servo_is_the_one_of_the_firmware() -> None:
    """The fields of its structures are where ctypes takes them to be: rate and increments come out as in C alone."""
    seed, count = 9, 40
    print("seed", seed)
    kind = KINDS["timing_qerr"]
    received = pulses(kind.receiver, count, seed)
    table = virtual_time.events(
        Oscillator(OscillatorSpec(offset_ppm=OFFSET_PPM), count + 2, seed), received, count, seed=seed
    )
    wanted = virtual_time.run_servo(table, kind.config).edges
    servo = Servo(10**9)
    found, increments = [], []
    for event in table[table["kind"] == virtual_time.EDGE]:
        ticks = int(event["ticks"]) - 1  # The event has the end of the tick, an edge is stamped by its beginning.
        # What is estimated is the oscillator: a clock that nobody steers gives the same.
        stamp = ServoStamp(now=START_NS + 8 * ticks, fraction=0, ticks=ticks)
        out = servo.edge(
            ServoEdge(
                stamp=stamp,
                latency=int(event["latency"]) + 1,
                early_ps=int(event["fraction"]),
                has_qerr=True,
                qerr_ps=int(event["qerr_ps"]),
            )
        )
        found.append((out.rate, out.drift, out.rejected, out.is_used))
        increments.append(out.increment / 2**43)
    names = ("rate", "drift", "rejected", "is_used")
    assert found == [tuple(int(answer[name]) for name in names) for answer in wanted]
    assert len(found) == count and found[-1][0] == pytest.approx(256e3 * OFFSET_PPM, abs=256 * 300)
    assert max(abs(increment - 1) for increment in increments) < 1e-3


@pytest.mark.parametrize("structure", [ServoConfig, ServoStamp, ServoEdge, ServoOutput])
def test_structures_have_the_fields_of_the_header(structure: type[ctypes.Structure]) -> None:
    """In its order, with its types: bool, int, or a width and a sign."""
    name = "lp_" + re.sub(r"(?<!^)([A-Z])", r"_\1", structure.__name__).lower()
    body = re.search(rf"struct {name} {{(.*?)\n}};", (LIBRARY / "servo" / "servo.h").read_text(), re.DOTALL)
    assert body
    types = {"bool": ctypes.c_bool, "enum lp_servo_state": ctypes.c_int, "struct lp_servo_stamp": ServoStamp}
    types |= {f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (32, 64)}
    declared = re.findall(r"^\t((?:enum |struct )?\w+) (\w+);", body[1], re.MULTILINE)
    assert [(field[0], field[1]) for field in structure._fields_] == [(n, types[kind]) for kind, n in declared]


def test_a_period_that_no_servo_follows_is_refused() -> None:
    with pytest.raises(UsageError, match="1 ms to 1.4 s"):
        Servo(999_999)


def test_silence_ends_in_holdover_and_free_running() -> None:
    servo = Servo(10**6, sawtooth_ps=0)
    for n in range(1, 30):
        out = servo.edge(ServoEdge(stamp=ServoStamp(now=n * 10**6, fraction=0, ticks=n * 125_000), latency=100))
    assert out.state == 3
    bounds = []
    for n in range(30, 40):
        out = servo.silence(ServoStamp(now=n * 10**6 + 500_000, fraction=0, ticks=n * 125_000 + 62_500), 100)
        bounds.append(out.uncertainty)
    assert out.state == 4 and bounds == sorted(bounds)


# Settings -----------------------------------------------------------------------------------------


PERIOD_NS = 1_000_000_000


RANGES = {
    "period_ns": (1_000_000, 1_400_000_000),
    "increment": (1 << 40, (1 << 47) - 1),
    "quantum_ps": (0, 1_000_000),
    "noise_ps": (0, 10_000_000),
    "sawtooth_ps": (0, 10_000_000),
    "wander_ps": (0, 10_000_000),
    "phase_walk_ps": (0, 1_000_000),
    "rate_walk_ppq": (0, 1_000_000_000),
    "drift_walk_ppq": (0, 1_000_000_000),
    "jerk_ppq": (0, 1_000_000_000),
    "rate_limit_ppm": (0, 1000),
    "lock_ns": (1, 1_000_000),
    "jump_ns": (0, 1_000_000_000),
    "lost_ns": (0, 1_000_000),
}


def servo_with(name: str, value: int) -> Servo:
    return Servo(**({"period_ns": PERIOD_NS} | {name: value}))


def test_each_setting_has_a_range() -> None:
    assert set(RANGES) == {name for name, _ in ServoConfig._fields_}


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_out_of_its_range_is_refused_by_its_name(name: str) -> None:
    """Also beyond 32 or 64 bits: cut off it would be in range."""
    least, most = RANGES[name]
    largest = 1 << (64 if name == "increment" else 32)
    for value in (least - 1, most + 1, -1, largest - 1, largest, largest + least, largest + most):
        with pytest.raises(UsageError) as refused:
            servo_with(name, value)
        limits = "1 ms to 1.4 s (--period)" if name == "period_ns" else f"{least} to {most}"
        assert str(refused.value) == f"the servo's {name} can't be {value}: give {limits}"


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_at_its_limit_is_taken(name: str) -> None:
    for value in RANGES[name]:
        assert getattr(servo_with(name, value).config, name) == value


def test_a_crystal_and_a_timing_receiver_are_the_servo_as_it_is() -> None:
    plain = Servo(10**9).config
    assert profile("timing", "xo") == {name: getattr(plain, name) for name in OF_PROFILE} | {"sawtooth_ps": 21_000}


def test_receivers_and_oscillators_are_put_together() -> None:
    found = profile("navigation", "ocxo")
    assert {name: found[name] for name in ("noise_ps", "wander_ps")} == {"noise_ps": 7000, "wander_ps": 5500}
    assert {name: found[name] for name in OF_PROFILE[3:]} == {
        name: profile("ideal", "ocxo")[name] for name in OF_PROFILE[3:]
    }
    walks = [profile("timing", name)["rate_walk_ppq"] for name in ("xo", "tcxo", "ocxo")]
    assert walks == sorted(walks, reverse=True) and len(set(walks)) == 3


@pytest.mark.parametrize(("receiver", "oscillator"), [("sundial", "xo"), ("timing", "quartz")])
def test_a_name_that_is_none_says_which_there_are(receiver: str, oscillator: str) -> None:
    with pytest.raises(UsageError, match=r"give one of (timing, navigation, ideal|xo, tcxo, ocxo)"):
        profile(receiver, oscillator)


def test_the_profile_of_a_noisy_receiver_bounds_its_errors() -> None:
    config = virtual_time.ServoConfig(**profile("navigation", "xo"))
    run = virtual_time.run_servo(clock_runs.table(KINDS["plain"], 3 * SETTLED_S, 3), config)
    late = run.time_s > SETTLED_S
    assert np.mean(np.abs(run.error_ns[late]) <= run.bound_ns[late]) >= 0.93
