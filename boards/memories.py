# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The chips beside an ECP5 that firmware needs: SDRAM, and the flash that also holds the bitstream."""

from migen import *

from litex.gen import *

from litex.build.io import DDROutput

from litedram.phy import GENSDRPHY

SDRAM_BYTES = 4*1024*1024 # What a probe uses of any of these chips.

def sdram_phy(platform, sys_clk_freq):
    """Return LiteDRAM's PHY of the SDRAM of ``platform``.

    The chip's clock is the inverse of ``sys``: half a period behind what the FPGA sends, as litex-boards has it on these
    boards. At 50 MHz commands are there 10 ns before the chip takes them, and read words about 8 ns before the FPGA does.
    """
    phy = GENSDRPHY(platform.request("sdram"), sys_clk_freq)
    phy.specials += DDROutput(i1=0, i2=1, o=platform.request("sdram_clock"), clk=ClockSignal("sys"))
    return phy

class FlashPins(LiteXModule):
    """Pads of the configuration flash, whose clock pin belongs to the configuration.

    Attributes
    ----------
    clk, cs_n, mosi : Signal(), in
    miso : Signal(), out
    """
    def __init__(self, pads):
        self.clk  = Signal()
        self.cs_n = pads.cs_n
        self.mosi = pads.mosi
        self.miso = pads.miso

        # # #

        self.specials += Instance("USRMCLK", i_USRMCLKI=self.clk, i_USRMCLKTS=0)
        for name in ("wp", "hold"): # Active low.
            if hasattr(pads, name):
                self.comb += getattr(pads, name).eq(1)
