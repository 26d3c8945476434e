# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The preset replay with PCIe, its rings in SDRAM, as a Verilog module for cocotb."""

from collections.abc import Callable
from pathlib import Path

from migen import *

from litex.gen import *

from liteprobe.sim.bench.pcie.board import Board
from liteprobe.sim.system import build
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import write_map
from liteprobe.soc.probe import ProbeSoC

TOP    = build.TOP
PORTS  = 2
CONFIG = ProbeConfig(preset="replay", ports=PORTS, link="pcie", with_cpu=False, with_discipline=False, dma_channels=PORTS)

class PcieReplay(ProbeSoC):
    """A probe of two ports without processor."""
    def __init__(self):
        ProbeSoC.__init__(self, Board(), CONFIG)

def writer(register_map: Path) -> Callable[[Path], None]:
    """Return a function that writes the probe's Verilog to a path, and its map to ``register_map``."""
    def write_verilog(path: Path) -> None:
        soc = PcieReplay()
        soc.finalize()
        build.write_verilog(soc, path.parent)
        write_map(soc, register_map)
    return write_verilog
