# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The firmware is built for gateware that no other test runs it on, and fits its RAM.

Needs Zephyr, as test_firmware.py does.
"""

from pathlib import Path

import pytest

from liteprobe.boards import board
from liteprobe.host.device.firmware_build import Tools, build, ram_of
from liteprobe.sim.drivers.tools.compiled import apart
from liteprobe.sim.system.board import Board
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import write_map
from liteprobe.soc.probe import ProbeSoC

EMULATOR = {"preset": "emulator", "link": "own", "store": "block", "store_words": 1 << 13, "main_ram_bytes": 128 << 10}


def write_map_of(name: str, fields: dict[str, str | int], path: Path) -> None:
    soc = ProbeSoC(Board() if name == "simulated" else board(name), ProbeConfig(**fields))
    soc.finalize()
    write_map(soc, path)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "fields", "keeps_settings"),
    [("versa_ecp5", {}, True), ("versa_ecp5", {"preset": "generator"}, False), ("simulated", EMULATOR, True)],
)
def test_firmware_is_built_and_fits_the_ram(
    name: str, fields: dict[str, str | int], keeps_settings: bool, tools: Tools, tmp_path: Path
) -> None:
    apart(write_map_of, name, fields, tmp_path / "csr.json")
    image = build(tmp_path / "csr.json", tools, tmp_path / "out")
    free = ram_of(tmp_path / "csr.json") - (image.end - image.start)
    print(f"{name} {fields}: {image.end - image.start} bytes, {free} free")
    assert free >= 0
    settings = (tmp_path / "out" / "zephyr" / "zephyr" / ".config").read_text().splitlines()
    assert ("CONFIG_LITEPROBE_SETTINGS=y" in settings) == keeps_settings
