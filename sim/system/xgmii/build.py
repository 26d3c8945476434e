# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds the simulated probe of 10 Gb/s: the harness of 1 Gb/s, behind pins of XGMII; cached by content, as others are."""

import argparse
import sys
from pathlib import Path
from typing import Any

from migen import *

from litex.build.generic_platform import Pins, Subsignal

from liteprobe.cores.formats import DEFAULT_PRESET
from liteprobe.host.base.errors import ProbeError
from liteprobe.sim.system import board
from liteprobe.sim.system.build import ROOT, Design, build, content_key, harness_files, write_verilog
from liteprobe.sim.system.variant import harness_variant
from liteprobe.sim.system.xgmii.memory import RingMemory

MODEL = Path(__file__).with_name("model.cpp")
TEST_PORTS = 2
#: By preset: period of ``sys`` in ticks of the harness, which are octets of the line here. Histograms take more of its cycles.
SYS_TICKS = {"train": 16, "generator": 8, "replay": 8}
#: And its parts, where they are not those of the same preset at 1 Gb/s.
PARTS = {"replay": {"preset": "generator", "with_streams": False, "with_replay": True, "with_sets": False}}
OCTETS_PER_SECOND = 1.25e9

_xgmii = [
    (
        "xgmii",
        port,
        Subsignal("tx_data", Pins(64)),
        Subsignal("tx_control", Pins(8)),
        Subsignal("rx_data", Pins(64)),
        Subsignal("rx_control", Pins(8)),
    )
    for port in range(TEST_PORTS)
]


class Board(board.Board):
    """Gives a SoC what it may ask of the simulated board, whose test ports are of XGMII; port 2 is of GMII, for management."""

    name = "simulated 10 Gb/s"

    def __init__(self, sys_ticks):
        board.Board.__init__(self)
        self.sys_clk_freq = OCTETS_PER_SECOND / sys_ticks
        self.platform.add_extension(_xgmii)

    def ring_memory(self, ports, words):
        """Return the memory of the rings of ports that replay, 32-bit words."""
        return RingMemory(ports, words)

    def xgmii(self, port):
        """Return the pads of a test port, and its receive clock."""
        return self.platform.request("xgmii", port), getattr(self.clocks, f"eth_rx{port}")


def make_soc(preset: str = DEFAULT_PRESET) -> Any:
    """Return the SoC of the probe, finalized."""
    from liteprobe.soc.config import ProbeConfig
    from liteprobe.soc.tengig import TenGigabitSoC

    parts = {"preset": preset, **PARTS.get(preset, {})}
    config = ProbeConfig(**parts, link="own", with_cpu=False, with_discipline=False)
    soc = TenGigabitSoC(Board(SYS_TICKS[preset]), config)
    soc.finalize()
    return soc


def build_probe(preset: str = DEFAULT_PRESET) -> Path:
    """Return the folder with ``liteprobe-sim`` and ``csr.json`` of the probe of 10 Gb/s with a preset of `SYS_TICKS`."""
    files = [path for folder in ("cores", "soc") for path in (ROOT / folder).rglob("*.py")]
    own = [*sorted(Path(__file__).parent.glob("*.py")), MODEL]

    def make() -> Design:
        soc = make_soc(preset)
        variant = harness_variant("own", soc.probe_config.ip_address, sys_half_ticks=2 * SYS_TICKS[preset])
        return Design(soc, variant, write_verilog, (MODEL,))

    return build(content_key("10g-own-no-cpu", [*files, *own, *harness_files()], preset), make)


def main() -> int:
    """Build the probe and print its folder."""
    parser = argparse.ArgumentParser(prog="python -m liteprobe.sim.system.xgmii.build", description=main.__doc__)
    parser.add_argument("--preset", choices=list(SYS_TICKS), default=DEFAULT_PRESET, help="default: train")
    try:
        print(build_probe(parser.parse_args().preset))
    except (ValueError, RuntimeError, OSError, ProbeError) as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
