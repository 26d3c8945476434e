# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Named settings of the servo: those of the firmware's library, from the host."""

import numpy as np
import pytest

from liteprobe.host.base.errors import UsageError
from liteprobe.host.clock.servo import OF_PROFILE, Servo, profile
from liteprobe.sim.drivers.clock import clock_runs
from liteprobe.sim.drivers.clock.clock_runs import KINDS, SETTLED_S
from liteprobe.sim.drivers.clock.virtual_time import ServoConfig, run_servo


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
    config = ServoConfig(**profile("navigation", "xo"))
    run = run_servo(clock_runs.table(KINDS["plain"], 3 * SETTLED_S, 3), config)
    late = run.time_s > SETTLED_S
    assert np.mean(np.abs(run.error_ns[late]) <= run.bound_ns[late]) >= 0.93
