# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Stations with a TCP/IP stack at the pins of the simulated emulator; `./run bench emulator cern_soc` fetches more."""

from pathlib import Path

import pytest

from liteprobe.sim.bench.emulator.cern import Kind, Line, site
from liteprobe.sim.bench.emulator.stations import build as stations
from liteprobe.sim.bench.system.emulator import emulating
from liteprobe.sim.bench.system.stations import Fetch, fetch
from liteprobe.sim.system.build import build_probe

LINE = Line(octet=10, delay=125_000, queue=24)  # 100 Mb/s, 1 ms.
FRAMES = 34


def test_a_site_is_fetched_as_on_the_reference_frame_by_frame(tmp_path: Path) -> None:
    if reason := stations.lacking():
        pytest.skip(reason)
    folder = build_probe("own", with_cpu=False, preset="emulator", store="block", store_words=1 << 15)
    with emulating(folder, tmp_path) as emulated:
        found = fetch(emulated, Fetch(LINE, Kind.EXPONENTIAL, 0.8, site(3, 20_000), is_kept=True), 0.1)
    assert found.differences == []
    assert (found.wrong, found.late, found.lost, found.frames) == (0, 0, 0, FRAMES)
