# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the servo that can't be are refused, and the limits themselves are taken."""

import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.clock.servo import Servo, ServoConfig

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


def servo(name: str, value: int) -> Servo:
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
            servo(name, value)
        limits = "1 ms to 1.4 s (--period)" if name == "period_ns" else f"{least} to {most}"
        assert str(refused.value) == f"the servo's {name} can't be {value}: give {limits}"


@pytest.mark.parametrize("name", RANGES)
def test_a_setting_at_its_limit_is_taken(name: str) -> None:
    for value in RANGES[name]:
        assert getattr(servo(name, value).config, name) == value
