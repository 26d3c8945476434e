# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Settings of the servo that can't be are refused, and the limits themselves are taken."""

import pytest

from liteprobe.host.clock.servo import Servo
from liteprobe.host.errors import UsageError

PERIOD_NS = 1_000_000_000


@pytest.mark.parametrize(("name", "value"), [("jerk_ppq", 1_000_000_001), ("lock_ns", 0), ("lock_ns", 1_000_001)])
def test_a_setting_out_of_its_range_is_refused(name, value):
    with pytest.raises(UsageError):
        Servo(PERIOD_NS, **{name: value})


@pytest.mark.parametrize(("name", "value"), [("jerk_ppq", 1_000_000_000), ("lock_ns", 1), ("lock_ns", 1_000_000)])
def test_a_setting_at_its_limit_is_taken(name, value):
    assert getattr(Servo(PERIOD_NS, **{name: value}).config, name) == value
