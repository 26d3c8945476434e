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

class LatePin(LiteXModule):
    """Is an output in a DDR register of the I/O, which changes with the falling edge behind that of a register."""
    def __init__(self, pin):
        before = Signal()
        self.sync     += before.eq(pin.i)
        self.specials += DDROutput(i1=before, i2=pin.i, o=pin.o, clk=pin.clk)

class LateDataPin(LiteXModule):
    """Is a data pin whose output changes with the falling edge; its input is in a register of the I/O, and in one behind it.

    The enable, in a register of the I/O, begins half a cycle before the output and ends with it or half a cycle later.
    """
    def __init__(self, pin):
        before   = Signal()
        enabled  = Signal()
        output   = Signal()
        disabled = Signal()
        input    = Signal()
        taken    = Signal()
        self.sync += [before.eq(pin.o), enabled.eq(pin.oe), pin.i.eq(taken)]
        self.specials += [
            DDROutput(i1=before, i2=pin.o, o=output, clk=pin.clk),
            SDROutput(i=~(pin.oe | enabled), o=disabled, clk=pin.clk),
            SDRInput(i=input, o=taken, clk=pin.clk),
            Instance("TRELLIS_IO", p_DIR="BIDIR", i_B=pin.io, i_I=output, i_T=disabled, o_O=input),
        ]

def replace_pins(phy, kind, by):
    """Replace the pins of a kind of LiteDRAM's PHY."""
    specials = phy._fragment.specials # Migen has no other way to a special that was added.
    # In the order in which they were made: a set has another one each time.
    for pin in sorted((special for special in specials if isinstance(special, kind)), key=lambda pin: pin.duid):
        specials.remove(pin)
        phy.submodules += by(pin)

def sdram_phy(platform, clk_freq, is_late=False):
    """Return LiteDRAM's PHY of the SDRAM of ``platform``.

    The chip's clock is that of the domain ``sdram``, which is behind ``sys`` (io_timing.py says how far, and why). ``is_late``:
    what goes to the chip changes with the falling edge, and words that are read come two cycles later, for a faster clock.
    """
    make_fast(platform, "sdram_clock", 0)
    phy = GENSDRPHY(platform.request("sdram"), clk_freq, cl=2)
    if is_late:
        replace_pins(phy, SDROutput, LatePin)
        replace_pins(phy, SDRTristate, LateDataPin)
        phy.settings.read_latency += 2
    else:
        replace_pins(phy, SDRTristate, RegisteredPin)
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
