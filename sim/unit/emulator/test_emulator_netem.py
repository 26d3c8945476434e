# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Netem and the reference side by side; `./run bench emulator netem` has the figures."""

from collections.abc import Iterator

import numpy as np
import pytest

from liteprobe.sim.drivers.emulator.netem import netem
from liteprobe.sim.drivers.emulator.netem.netem import (
    CONFIGURATIONS, Asked, Configuration, Passed, Summary, Tells, ours, summary,
)
from liteprobe.sim.drivers.tools.figures import Figure, ROOT, row

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
    reason = netem.lacking()
    if reason:
        pytest.skip(reason)
    (found,) = netem.measure([Asked("delay", "delay 20ms", 100, 2000, 60)])
    assert found.order.tolist() == list(range(100))
    delays = found.received_ns - found.sent_ns
    assert delays.min() >= 20_000_000 and np.median(delays) < 25_000_000


# Side by side -------------------------------------------------------------------------------------

FOLDER = ROOT / "build" / "bench"
HEAD = (
    "| configuration | of | delay: median error us | deviation us | greatest us | reordered | loss: correlation | burst | lost % "
    "| intervals: deviation us | same twice % |\n|---|---|" + "--:|" * 9
)


def line(one: Configuration, of: str, found: Summary) -> str:
    """Return a line of the table; what the configuration tells nothing of is "-"."""
    columns = [
        *((one.tells is Tells.DELAY, text) for text in delays(found)),
        *((one.tells is Tells.LOSS, text) for text in (f"{found.correlation:.4f}", f"{found.burst:.2f}")),
        (one.tells is not Tells.DELAY, f"{100 * found.lost:.3f}"),
        (one.tells is Tells.INTERVAL, f"{found.gap_us:.3f}"),
        (True, f"{100 * found.same:.2f}"),
    ]
    cells = [one.asked.netem or "nothing", of, *(text if is_known else "-" for is_known, text in columns)]
    return f"| {' | '.join(cells)} |"


def delays(found: Summary) -> tuple[str, ...]:
    """Return the columns of delays."""
    return f"{found.median_us:.1f}", f"{found.deviation_us:.1f}", f"{found.most_us:.1f}", str(found.reordered)


@row("emulator")
def test_netem() -> Iterator[Figure]:
    """Errors of delays, correlation of losses, and what is the same again: netem of a user-mode kernel, and the reference.

    Both get the same frames at the same times, twice. netem's times are those of a kernel that runs as a process of this
    machine: how far they are off depends on what else it does. Ours is held to figures;
    build/bench/emulator-netem.md has both.
    """
    reason = netem.lacking()
    if reason:
        print(f"netem skipped: {reason}")
        return
    twice = [one.asked for one in CONFIGURATIONS for _ in range(2)]
    passed = netem.measure(twice)
    lines = [HEAD]
    of_ours: dict[str, Summary] = {}
    of_netem: dict[str, Summary] = {}
    for one, first, second in zip(CONFIGURATIONS, passed[::2], passed[1::2], strict=True):
        name = one.asked.name
        of_netem[name] = summary(one, first, second)
        # The same frames twice: those of netem's first run.
        of_ours[name] = summary(one, *(ours(one, first.sent_ns, seed=1) for _ in range(2)))
        lines += [line(one, "netem", of_netem[name]), line(one, "ours", of_ours[name])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "emulator-netem.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    yield Figure("netem_delay_error", of_ours["delay"].most_us, "us", 0)
    yield Figure("netem_jitter_reordered", of_ours["jitter"].reordered, "frames", 0)
    yield Figure("netem_same_twice", 100 * min(one.same for one in of_ours.values()), "%", 100, is_least=True)
    yield Figure("netem_gemodel_correlation_off", abs(of_ours["gemodel"].correlation - 0.89), "", 0.02)
    yield Figure("netem_gemodel_loss_off", 100 * abs(of_ours["gemodel"].lost - 1 / 11), "%", 1.5)
    yield Figure("netem_rate_interval", of_ours["rate"].gap_us, "us", 0)
