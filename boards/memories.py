# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The chips beside an ECP5 that firmware needs: SDRAM, and the flash that also holds the bitstream."""

from migen import *

from litex.gen import *

from litex.build.generic_platform import Misc
from litex.build.io import DDROutput

from litedram.phy import GENSDRPHY

SDRAM_BYTES = 4*1024*1024 # What a probe uses of any of these chips.

def make_fast(platform, name, number):
    """Give the pins of a resource of ``platform`` fast edges, as the others of its bus have, and as data sheets mean them."""
    manager = platform.constraint_manager
    for position, resource in enumerate(manager.available):
        if resource[:2] == (name, number):
            manager.available[position] = (*resource, Misc("SLEWRATE=FAST"))

def sdram_phy(platform, sys_clk_freq):
    """Return LiteDRAM's PHY of the SDRAM of ``platform``.

    The chip's clock is that of the domain ``sdram``, which is behind ``sys`` (io_timing.py says how far, and why).
    """
    make_fast(platform, "sdram_clock", 0)
    phy = GENSDRPHY(platform.request("sdram"), sys_clk_freq)
    phy.specials += DDROutput(i1=1, i2=0, o=platform.request("sdram_clock"), clk=ClockSignal("sdram"))
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
