# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A simulated probe is found like any other: it says what it is without its map being known."""

import json
from pathlib import Path

from liteprobe.host.device.discover import discover, places
from liteprobe.host.device.link.sim import SimOptions, start


def test_a_simulated_probe_that_listens_is_found(own: Path) -> None:
    process, (map_file, _) = start(SimOptions(build=own))
    try:
        (port,) = process.udp_ports
        asked, _ = places([f"127.0.0.1:{port}"])
        (found,) = discover(asked, 0.5)
    finally:
        process.close()
    constants = json.loads(map_file.read_text())["constants"]
    assert (found.identifier, found.preset, found.ports, found.answers) == (
        constants["config_identifier"],
        "train",
        2,
        1,
    )
    assert found.map_hash > 0
