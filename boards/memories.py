# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The chips beside an ECP5 that firmware needs: SDRAM, and the flash that also holds the bitstream."""

from migen import *

from litex.gen import *

from litex.build.generic_platform import Misc
from litex.build.io import DDROutput, SDRInput, SDROutput, SDRTristate

from litedram.phy import GENSDRPHY

SDRAM_BYTES = 4*1024*1024 # What a probe uses of any of these chips.

def make_fast(platform, name, number):
    """Give the pins of a resource of ``platform`` fast edges, as the others of its bus have, and as data sheets mean them."""
    manager = platform.constraint_manager
    for position, resource in enumerate(manager.available):
        if resource[:2] == (name, number):
            manager.available[position] = (*resource, Misc("SLEWRATE=FAST"))

class RegisteredPin(LiteXModule):
    """Is a data pin with output, enable and input in registers of the I/O.

    LiteX keeps the enable in a register of the fabric; its way to the pins has no bound, so written data could be late.
    """
    def __init__(self, pin):
        output   = Signal()
        disabled = Signal()
        input    = Signal()
        self.specials += [
            SDROutput(i=pin.o,   o=output,   clk=pin.clk),
            SDROutput(i=~pin.oe, o=disabled, clk=pin.clk),
            SDRInput(i=input,    o=pin.i,    clk=pin.clk),
            Instance("TRELLIS_IO", p_DIR="BIDIR", i_B=pin.io, i_I=output, i_T=disabled, o_O=input),
        ]

def register_pins(phy):
    """Replace the data pins of LiteDRAM's PHY."""
    specials = phy._fragment.specials # Migen has no other way to a special that was added.
    # In the order in which they were made: a set has another one each time.
    for pin in sorted((special for special in specials if isinstance(special, SDRTristate)), key=lambda pin: pin.duid):
        specials.remove(pin)
        phy.submodules += RegisteredPin(pin)

def sdram_phy(platform, sys_clk_freq):
    """Return LiteDRAM's PHY of the SDRAM of ``platform``.

    The chip's clock is that of the domain ``sdram``, which is behind ``sys`` (io_timing.py says how far, and why).
    """
    make_fast(platform, "sdram_clock", 0)
    phy = GENSDRPHY(platform.request("sdram"), sys_clk_freq)
    register_pins(phy)
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
