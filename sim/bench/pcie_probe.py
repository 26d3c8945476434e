# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A probe with PCIe as a Verilog module, whose blocks come from pins, for cocotb."""

from collections.abc import Callable
from pathlib import Path

from migen import *

from litex.gen import *

from litex.build.generic_platform import Pins, Subsignal

from liteprobe.sim.bench.pcie_phy import PinsPhy, pcie_pins
from liteprobe.sim.system import board, build
from liteprobe.soc.config import ProbeConfig
from liteprobe.soc.export import write_map
from liteprobe.soc.probe import ProbeSoC

TOP = build.TOP

block_pins = ("block", 0,
    Subsignal("valid",   Pins(1)),
    Subsignal("ready",   Pins(1)),
    Subsignal("last",    Pins(1)),
    Subsignal("data",    Pins(32)),
    Subsignal("channel", Pins(3)),
    Subsignal("is_open", Pins(8)),
    Subsignal("done",    Pins(8)),
    Subsignal("rewind",  Pins(8)),
)

class Board(board.Board):
    """The simulated board with a PCIe connector, as fast as the one that has it."""
    name         = "simulated_pcie"
    sys_clk_freq = 125e6
    with_pcie    = True

    def __init__(self):
        board.Board.__init__(self)
        self.platform.add_extension([pcie_pins, block_pins])

    def pcie_phy(self, bar0_size):
        """Return the PHY of PCIe."""
        return PinsPhy(self.platform.request("pcie"), bar0_size)

class PcieProbe(ProbeSoC):
    """A probe of one port, without processor, whose DMA takes blocks from pins."""
    def __init__(self, channels):
        ProbeSoC.__init__(self, Board(), ProbeConfig(
            ports           = 1,
            link            = "pcie",
            with_cpu        = False,
            with_discipline = False,
            dma_channels    = channels,
        ))
        pins, dma = self.platform.request("block"), self.capture_dma
        self.comb += [
            dma.sink.valid.eq(pins.valid),
            dma.sink.last.eq(pins.last),
            dma.sink.data.eq(pins.data),
            dma.sink.channel.eq(pins.channel),
            pins.ready.eq(dma.sink.ready),
            pins.is_open.eq(dma.is_open),
            pins.done.eq(dma.done),
            pins.rewind.eq(dma.rewind),
        ]

def writer(channels: int, register_map: Path) -> Callable[[Path], None]:
    """Return a function that writes the probe's Verilog to a path, and its map to ``register_map``."""
    def write_verilog(path: Path) -> None:
        soc = PcieProbe(channels)
        soc.finalize()
        build.write_verilog(soc, path.parent)
        write_map(soc, register_map)
    return write_verilog
