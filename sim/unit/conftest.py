# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Cores are simulated by Migen, their statements as Python functions."""

import logging

import pytest

from liteprobe.sim.drivers.tools import compiled_simulation

compiled_simulation.install()


@pytest.fixture
def quiet():
    """Keep what LiteX tells of each step to itself."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)
