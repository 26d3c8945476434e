# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated probes that the system tests share; each is built once and cached by content."""

import os
from pathlib import Path

import pytest

from liteprobe.host import ProbeError
from liteprobe.host.device.firmware_build import Tools
from liteprobe.host.device.firmware_build import build as build_firmware
from liteprobe.sim.drivers.emulator.stations import build as stations
from liteprobe.sim.drivers.system.firmware_run import simulated_tools
from liteprobe.sim.system.build import HERE, Design, build, build_probe, content_key, harness_files, write_verilog
from liteprobe.sim.system.variant import harness_variant


@pytest.fixture(scope="session")
def stand_in() -> Path:
    """The harness around a copier: what is injected on port 2 leaves ports 0 and 1 a tick later."""

    def make() -> Design:
        from liteprobe.sim.system.board import Board
        from liteprobe.sim.system.stand_in import StandIn

        soc = StandIn(Board())
        soc.finalize()
        return Design(soc, harness_variant("own"), write_verilog)

    return build(content_key("stand-in", [*harness_files(), HERE / "stand_in.py"], "own"), make)


@pytest.fixture(scope="session")
def own() -> Path:
    """The whole probe, with Etherbone on a port of its own."""
    return build_probe("own")


@pytest.fixture(scope="session")
def monitor_build() -> Path:
    """The monitor without processor, with Etherbone on a port of its own."""
    return build_probe("own", with_cpu=False, preset="monitor")


@pytest.fixture(scope="session")
def tester() -> Path:
    """The tester without processor, with Etherbone in band on port 0."""
    return build_probe("shared", with_cpu=False, preset="tester")


@pytest.fixture(scope="session")
def replay_build() -> Path:
    """The probe that replays, without processor, with Etherbone on a port of its own."""
    return build_probe("own", with_cpu=False, preset="replay")


@pytest.fixture(scope="session")
def emulator_build() -> Path:
    """The emulator without processor, its frames and traces in block RAM, with Etherbone on a port of its own."""
    return build_probe("own", with_cpu=False, preset="emulator", store="block", store_words=1 << 15, trace_entries=64)


@pytest.fixture(scope="session")
def sdram() -> Path:
    """The whole probe, with SDRAM as main RAM, as boards have it."""
    return build_probe("own", main_ram="sdram")


@pytest.fixture(scope="session")
def uart() -> Path:
    """The probe without processor and discipline of its clock, reached through its serial port."""
    return build_probe("uart", with_cpu=False, with_discipline=False)


@pytest.fixture
def stack() -> None:
    """The TCP/IP stack of simulated stations; a test without it is skipped."""
    if reason := stations.lacking():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def tools() -> Tools:
    """Find what Zephyr is built with; who has set ZEPHYR_BASE wants to hear what else is missing."""
    try:
        return simulated_tools()
    except ProbeError as error:
        if "ZEPHYR_BASE" in os.environ:
            raise
        pytest.skip(f"firmware isn't tested: {error}")


@pytest.fixture(scope="session")
def image(tools: Tools, own: Path) -> Path:
    """The firmware for the simulated probe."""
    return build_firmware(own / "csr.json", tools).path
