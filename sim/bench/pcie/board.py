# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated board with PCIe, and pins that blocks may come from, for cocotb."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from litex.build.generic_platform import Pins, Subsignal

from liteprobe.sim.bench.pcie.phy import PinsPhy, pcie_pins
from liteprobe.sim.system import board

# Board --------------------------------------------------------------------------------------------

block_pins = ("block", 0,
    Subsignal("is_used", Pins(1)), # 1: blocks come from here, not from the capture.
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

# Blocks -------------------------------------------------------------------------------------------

class CaptureOrPins(LiteXModule):
    """A capture, in whose place pins may give blocks.

    Parameters
    ----------
    capture : Capture
    pins : Record
        As ``block_pins`` names them.

    Attributes
    ----------
    block, send, channels, bus
        As those of `Capture`.
    """
    def __init__(self, capture, pins):
        self.block    = block = stream.Endpoint(capture.block.description)
        self.send     = Signal(len(capture.send))
        self.channels = capture.channels
        self.bus      = capture.bus

        # # #

        self.comb += If(pins.is_used,
            *[getattr(block, name).eq(getattr(pins, name)) for name in ("valid", "last", "data", "channel")],
            pins.ready.eq(block.ready),
        ).Else(
            capture.block.connect(block),
            capture.send.eq(self.send),
        )
