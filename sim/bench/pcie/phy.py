# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A PHY of LitePCIe whose pins are the streams of TLPs, in place of the hard block of an FPGA."""

from migen import *

from litex.gen import *

from litex.build.generic_platform import Pins, Subsignal
from litex.soc.interconnect import stream

from litepcie.common import get_bar_mask, msi_layout, phy_layout

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
