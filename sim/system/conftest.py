# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated probes that the system tests share; each is built once and cached by content."""

from pathlib import Path

import pytest

from liteprobe.sim.system.build import HERE, Design, build, build_probe, content_key, harness_defines, harness_files


@pytest.fixture(scope="session")
def stand_in() -> Path:
    """The harness around a copier: what is injected on port 2 leaves ports 0 and 1 a tick later."""

    def make() -> Design:
        from liteprobe.sim.system.board import Board
        from liteprobe.sim.system.stand_in import StandIn

        soc = StandIn(Board())
        soc.finalize()
        return Design(soc, harness_defines("own"))

    return build(content_key("stand-in", [*harness_files(), HERE / "stand_in.py"], "own"), make)


@pytest.fixture(scope="session")
def own() -> Path:
    """The whole probe, with Etherbone on a port of its own."""
    return build_probe("own")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The whole probe, with Etherbone in band on test port 0."""
    return build_probe("shared")


@pytest.fixture(scope="session")
def uart() -> Path:
    """The whole probe, reached through its serial port."""
    return build_probe("uart")
