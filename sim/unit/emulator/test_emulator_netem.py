# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""What is said of netem and of the reference beside each other; `./run bench emulator netem` has the figures."""

import numpy as np
import pytest

from liteprobe.sim.bench.emulator.netem import netem
from liteprobe.sim.bench.emulator.netem import netem as kernel
from liteprobe.sim.bench.emulator.netem.netem import CONFIGURATIONS
from liteprobe.sim.bench.emulator.netem.netem import Asked, Passed

NAMED = {one.asked.name: one for one in CONFIGURATIONS}

def test_a_summary_is_what_its_frames_say() -> None:
    sent = np.arange(6) * 1_000_000
    received = np.array([20_010_000, -1, -1, 23_000_000, 24_030_000, 25_000_000])
    other = np.array([20_010_400, -1, 22_000_000, 23_002_000, 24_030_000, 25_000_000])
    found = netem.summary(
        NAMED["delay"], Passed(sent, received, np.array([0, 4, 3, 5])), Passed(sent, other, np.array([0, 2, 3, 4, 5]))
    )
    assert (found.median_us, found.most_us, found.reordered) == (5.0, 30.0, 1)
    assert (found.lost, found.burst, found.same) == (2 / 6, 2.0, 4 / 6)
    assert found.correlation == pytest.approx(np.corrcoef([0, 1, 1, 0, 0], [1, 1, 0, 0, 0])[0, 1])

def test_a_burst_through_a_rate_is_what_arithmetic_says() -> None:
    one = NAMED["rate"]
    found = netem.ours(one, np.zeros(400, np.int64), seed=1)
    # Frames follow each other in 1274 ticks, services in 125,000: one begins while 98 or 99 frames come, and 100 wait at most.
    served = [number for number in range(400) if found.received_ns[number] >= 0]
    assert served == [*range(102), 197, 295, 393]
    assert found.received_ns[served].tolist() == [1_000_000 * (n + 1) for n in range(len(served))]

@pytest.mark.full
def test_netem_delays_by_what_it_is_asked_for_at_least() -> None:
    reason = kernel.lacking()
    if reason:
        pytest.skip(reason)
    (found,) = kernel.measure([Asked("delay", "delay 20ms", 100, 2000, 60)])
    assert found.order.tolist() == list(range(100))
    delays = found.received_ns - found.sent_ns
    assert delays.min() >= 20_000_000 and np.median(delays) < 25_000_000
