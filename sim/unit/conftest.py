# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Cores are simulated by Migen, their statements as Python functions."""

from liteprobe.sim.drivers.tools import compiled_simulation

compiled_simulation.install()
