# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe of preset generator over a model, and some streams: what tests of the host send."""

from collections.abc import Callable
from pathlib import Path

from liteprobe.host.probe import Probe
from liteprobe.host.traffic.intervals import Interval
from liteprobe.host.traffic.lengths import IMIX, Fixed
from liteprobe.host.traffic.stream import Stream
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelFrame, Wire, cable
from liteprobe.sim.models.probe.streams import TrafficFrame, TrafficProbe

DELAY_TICKS = 37
FIXED = Stream("fixed", 1, Fixed(60), Interval(pps=20_000), count=40)
MIXED = Stream("mixed", 2, IMIX, Interval(share=0.2, exponential=True), count=200, fill="prbs")
ENDLESS = Stream("endless", 3, Fixed(128), Interval(rate_bps=10**7))

MakeProbe = Callable[..., tuple[Probe, TrafficProbe, FakeLink]]


def maker(folder: Path) -> MakeProbe:
    """Return what makes a probe whose ports are joined by a wire, by default a cable; its map is written to a folder."""

    def make_probe(wire: Wire | None = None) -> tuple[Probe, TrafficProbe, FakeLink]:
        model = TrafficProbe(wire or cable(DELAY_TICKS))
        link = FakeLink(model, folder)
        return Probe(link), model, link

    return make_probe


def some(keep: Callable[[TrafficFrame], list[tuple[int, ModelFrame]]]) -> Wire:
    """Return a cable that delivers a frame as often, and as late (ticks), as ``keep`` says."""
    return lambda frame: [(1 - frame.port, delay, one) for delay, one in keep(frame)]  # type: ignore[arg-type]
