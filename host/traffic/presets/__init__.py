# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Networks by name, each a document in this folder, which says where its figures come from."""

from pathlib import Path

from liteprobe.host.base.errors import UsageError, nearest
from liteprobe.host.base.validate import validated
from liteprobe.host.traffic.network.document import read_network
from liteprobe.host.traffic.network.network import Network

FOLDER = Path(__file__).parent
PRESETS = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


@validated
def preset(name: str) -> Network:
    """Return a network by name; UsageError when there is none of that name."""
    if name not in PRESETS:
        raise UsageError(f"there is no preset '{name}': {nearest(name, PRESETS)}")
    path = FOLDER / f"{name}.yaml"
    return read_network(path.read_text(encoding="utf-8"), path.name, FOLDER)
