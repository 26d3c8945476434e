# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A suite through the whole tester and a simulated switch: figures against arithmetic, and a link that flaps in the midst."""

from fractions import Fraction
from pathlib import Path

import pytest

from liteprobe.host.base.errors import ProbeError
from liteprobe.host.device.link.sim import SimLink, SimOptions
from liteprobe.host.probe import Probe
from liteprobe.host.suites.rfc2544 import Rfc2544, Rfc2544Request
from liteprobe.host.suites.search import Goal
from liteprobe.host.suites.suite import SuiteLook
from liteprobe.host.suites.trials import Journal

LENGTH, QUEUE, LATENCY = 1514, 4, 375
REQUEST = Rfc2544Request(
    tests=("throughput", "latency", "back-to-back"), sizes=("1518",), ways=((1, 0),), goal=Goal(seconds=0.0005, width=0.02),
    latency_s=0.0005, latency_repeats=1, burst_s=0.0005, burst_repeats=1, pause_s=0.0001,
)  # fmt: skip


def probe(build: Path) -> Probe:
    """Return a tester with a switch of 600 Mb/s between its ports."""
    wire = f"switch?rate=600M&queue={QUEUE}&latency=3us"
    return Probe(SimLink(SimOptions(wire, "shared", with_cpu=False, preset="tester", build=build)))


def longest_burst() -> int:
    """Return the longest burst that fits: all times in ticks; a frame can wait while it has not started to leave."""
    slot, each, frames = LENGTH + 24, Fraction(LENGTH + 24) * 10 / 6, 1
    while sum(each * number > slot * frames for number in range(frames)) < QUEUE:
        frames += 1
    return frames


@pytest.mark.full
def test_a_suite_comes_to_what_the_switch_has_though_a_link_flaps(tester: Path, tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    head = {"request": REQUEST.to_dict()}
    with probe(tester) as one, Journal(path, head) as journal:

        def flap(look: SuiteLook) -> None:
            if look.done == 2:
                one.link.set_link(1, False)  # type: ignore[attr-defined]

        with pytest.raises(ProbeError, match="the link of port 1 went down while streams ran"):
            Rfc2544(one, REQUEST, journal, flap).run()
        assert len(journal.trials) == 2
    with probe(tester) as one, Journal(path, head, resume=True) as journal:
        found = Rfc2544(one, REQUEST, journal).run()
    figures = found["1518"]
    assert figures.share is not None
    assert (
        figures.share.bounds.least * (1 - 2e-4)
        <= 0.6
        <= figures.share.bounds.most
        <= figures.share.bounds.least / 0.979
    )
    # Two hops: each takes the frame whole, at 600 Mb/s and at the line's rate; a part of a tick is lost between them.
    delay_ns = 8 * (LENGTH + 12 + LATENCY + float(Fraction(LENGTH + 12) * 10 / 6))
    (way,) = figures.latency
    assert delay_ns - 16 <= way.least <= delay_ns + 16  # Others may wait for a request of this host, in band on port 0.
    assert figures.back_to_back is not None
    assert figures.back_to_back.bursts == (longest_burst(),)
