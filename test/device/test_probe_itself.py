# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe reports itself, its clock and its link, over a model of it."""

from pathlib import Path

import pytest

from liteprobe.host.base.errors import ProbeError, UsageError
from liteprobe.host.probe import Probe
from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.trains import ModelProbe


@pytest.fixture
def own(tmp_path: Path) -> tuple[Probe, FakeLink]:
    link = FakeLink(ModelProbe(), tmp_path)
    return Probe(link), link


def test_info_gives_what_the_probe_is(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    info = probe.info()
    assert (info["ports"], info["record_depth"], info["ticks_per_second"], info["data_width"]) == (
        2,
        1024,
        125_000_000,
        32,
    )
    assert (info["tick_ns"], info["clock_state"], info["port1_link_up"]) == (8.0, "free-running", True)
    assert info["map_hash"] == f"{link.model.values['probe_map_hash']:08x}"


def test_clock_is_set_adjusted_and_trimmed(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    probe.timebase.set_time(10**18)
    assert 0 <= probe.timebase.now_ns - 10**18 < 20_000
    before, tick = link.model.now(), link.model.tick
    probe.timebase.adjust(-1000.5)
    assert link.model.now() - before == 8 * (link.model.tick - tick) - 1001  # Whole ns, rounded down.
    probe.timebase.increment = (8 << 40) + 1
    assert (probe.timebase.increment, probe.timebase.tick_ns) == ((8 << 40) + 1, 8 + 2**-40)
    with pytest.raises(UsageError, match="increment 0 is out of range"):
        probe.timebase.increment = 0
    ticks = probe.timebase.ticks
    assert 0 < ticks <= link.model.tick


def test_leaving_the_context_closes_the_link(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    with probe:
        assert not link.is_closed
    assert link.is_closed


def test_probe_of_another_build_closes_the_link(tmp_path: Path) -> None:
    model = ModelProbe()
    model.values["probe_map_hash"] ^= 1
    link = FakeLink(model, tmp_path)
    with pytest.raises(ProbeError, match="is the map of another build"):
        Probe(link)
    assert link.is_closed


def test_waiting_is_in_the_probes_time(own: tuple[Probe, FakeLink]) -> None:
    probe, link = own
    tick = link.model.tick
    probe.wait(0.001)
    assert link.model.tick - tick == 125_000
