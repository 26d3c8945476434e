# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Boards at their pins, built once each and cached by content."""

from pathlib import Path

import pytest

from liteprobe.sim.pins.build import build_board


@pytest.fixture(scope="session")
def train_board() -> Path:
    """The 5A-75B as it ships: two ports, management in band, processor, SDRAM."""
    return build_board("colorlight_5a_75b")


@pytest.fixture(scope="session")
def tester_board() -> Path:
    """The i9 as its tester is built: all parts but many streams, which it has no room for."""
    return build_board("colorlight_i9", preset="tester", with_streams=False)


@pytest.fixture(scope="session")
def artix_board() -> Path:
    """The i9+ as it comes: as the 5A-75B, with the cells, delays and clocks of an Artix-7."""
    return build_board("colorlight_i9plus")
