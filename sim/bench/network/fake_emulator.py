# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""A probe with an emulator, for tests of the host: the model of its registers behind a link."""

from pathlib import Path

from liteprobe.sim.bench.system.fake_link import FakeLink
from liteprobe.sim.models.probe.emulator import EmulatorProbe


def fake_emulator(folder: Path, model: EmulatorProbe | None = None) -> tuple[EmulatorProbe, FakeLink]:
    """Return a model, and a link to it; the map is written to a folder."""
    found = model or EmulatorProbe()
    return found, FakeLink(found, folder)
