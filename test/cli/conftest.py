# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Probes that several tests of commands have."""

from pathlib import Path

import people
import pytest

from liteprobe.sim.drivers.system.fake_link import FakeLink
from liteprobe.sim.models.probe.streams import TrafficProbe
from liteprobe.sim.models.probe.trains import ModelProbe, cable


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each command has a new probe, whose ports are joined by a cable of 37 ticks: of trains, or with preset=tester of streams."""

    def link(url: str) -> FakeLink:
        is_tester = "tester" in url
        made = TrafficProbe(lambda one: [(1 - one.port, 37, one)]) if is_tester else ModelProbe(cable(37))
        return FakeLink(made, tmp_path)

    monkeypatch.setattr("liteprobe.host.probe.open_link", link)
    monkeypatch.chdir(tmp_path)
    people.write_files(tmp_path)
