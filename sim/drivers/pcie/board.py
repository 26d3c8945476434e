# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated board with PCIe, whose PHY's pins are streams of TLPs, and pins that blocks may come from, for cocotb."""

from migen import *

from litex.gen import *

from litex.build.generic_platform import Pins, Subsignal
from litex.soc.interconnect import stream

from litepcie.common import get_bar_mask, msi_layout, phy_layout

from liteprobe.sim.system import board

# PHY ----------------------------------------------------------------------------------------------

DATA_WIDTH = 64

pcie_pins = ("pcie", 0,
    Subsignal("rx_valid",         Pins(1)),
    Subsignal("rx_ready",         Pins(1)),
    Subsignal("rx_last",          Pins(1)),
    Subsignal("rx_dat",           Pins(DATA_WIDTH)),
    Subsignal("rx_be",            Pins(DATA_WIDTH//8)),
    Subsignal("tx_valid",         Pins(1)),
    Subsignal("tx_ready",         Pins(1)),
    Subsignal("tx_last",          Pins(1)),
    Subsignal("tx_dat",           Pins(DATA_WIDTH)),
    Subsignal("tx_be",            Pins(DATA_WIDTH//8)),
    Subsignal("msi_valid",        Pins(1)),
    Subsignal("id",               Pins(16)),
    Subsignal("max_payload_size", Pins(16)),
    Subsignal("max_request_size", Pins(16)),
)

class PinsPhy(LiteXModule):
    """Gives LitePCIe what `S7PCIEPHY` gives it, from pins that a model of the root complex drives.

    Parameters
    ----------
    pads : Record, `pcie_pins`
        ``rx_*`` are TLPs for the probe, ``tx_*`` from it: words in the order of the hard block of the 7 series.
    bar0_size : int, octets
    """
    endianness    = "big"
    qword_aligned = False
    def __init__(self, pads, bar0_size):
        self.sink             = sink   = stream.Endpoint(phy_layout(DATA_WIDTH))
        self.source           = source = stream.Endpoint(phy_layout(DATA_WIDTH))
        self.msi              = stream.Endpoint(msi_layout())
        self.data_width       = DATA_WIDTH
        self.bar0_size        = bar0_size
        self.bar0_mask        = get_bar_mask(bar0_size)
        self.id               = Signal(16)
        self.max_request_size = Signal(16)
        self.max_payload_size = Signal(16)

        # # #

        self.comb += [
            source.valid.eq(pads.rx_valid),
            source.last.eq(pads.rx_last),
            source.dat.eq(pads.rx_dat),
            source.be.eq(pads.rx_be),
            pads.rx_ready.eq(source.ready),
            pads.tx_valid.eq(sink.valid),
            pads.tx_last.eq(sink.last),
            pads.tx_dat.eq(sink.dat),
            pads.tx_be.eq(sink.be),
            sink.ready.eq(pads.tx_ready),
            pads.msi_valid.eq(self.msi.valid),
            self.msi.ready.eq(1),
            self.id.eq(pads.id),
            self.max_request_size.eq(pads.max_request_size),
            self.max_payload_size.eq(pads.max_payload_size),
        ]


# Board --------------------------------------------------------------------------------------------

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
