# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives boards of an Artix-7 what they share: clocks, two RGMII PHYs, four samples a tick of the PPS, a flash and an SDRAM."""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litex.build.generic_platform import Misc
from litex.build.io import DDROutput, SDROutput, SDRTristate
from litex.soc.cores.clock import S7PLL, S7IDELAYCTRL

from litedram.phy import GENSDRPHY

from liteeth.phy.s7rgmii import LiteEthPHYRGMIITX

from liteprobe.boards.ecp5 import DdrSamples, ProbeClocks
from liteprobe.boards.family import LateDataPin, LatePin, RgmiiBoard, make_fast, replaced_pins
from liteprobe.boards.io_timing import taps_of
from liteprobe.boards.rgmii import RgmiiPort, RgmiiReceive

IDELAY_CLK_FREQ = 200e6
# A tap of IDELAYE2 is 1/(32*2*200 MHz): 3.125 of the taps of 25 ps that `formats` knows.
LAST_TAP = 31
TAP_SHARE, TAP_SHIFT = 41, 7 # 41/128 is 0.3203.

# Clocks -------------------------------------------------------------------------------------------

class ArtixClocks(ProbeClocks):
    """Makes the clocks of `ProbeClocks` by PLLs of an Artix-7, and ``idelay``, which the delays of pins are kept by.

    Source: Xilinx UG472 (clocking), UG471 (IDELAYCTRL).
    """
    def __init__(self, *arguments, **options):
        ProbeClocks.__init__(self, *arguments, **options)
        self.cd_idelay = ClockDomain()
        self.pll.create_clkout(self.cd_idelay, IDELAY_CLK_FREQ, margin=0)
        self.idelayctrl = S7IDELAYCTRL(self.cd_idelay)

    def new_pll(self):
        """Return a PLL of the oscillator."""
        pll = S7PLL(speedgrade=-1)
        self.comb += pll.reset.eq(self.is_reset)
        pll.register_clkin(*self.oscillator)
        return pll

    def add_global(self, domain, freq, phase=0, pll=None):
        """Clock ``domain`` by an output of a PLL, the first one by default, on a global net."""
        (pll or self.pll).create_clkout(domain, freq, phase=phase, margin=0, with_reset=False)

# Pins ---------------------------------------------------------------------------------------------

def ddr_input(clk, i, o1, o2):
    """Return the register that samples ``i`` with the rising edge and the falling one behind it, and gives both together.

    That is what an IDDRX1F of an ECP5 does; LiteX's own on a 7-series gives the falling edge before the rising one.

    Source: Xilinx UG471, IDDR, mode SAME_EDGE_PIPELINED.
    """
    return Instance("IDDR", p_DDR_CLK_EDGE="SAME_EDGE_PIPELINED", i_C=clk, i_CE=1, i_S=0, i_R=0, i_D=i, o_Q1=o1, o_Q2=o2)

class ArtixSamples(DdrSamples):
    """Samples a pin each quarter of a tick (2 ns), as `DdrSamples` does."""
    def add_input(self, pad, pair):
        """Add the register of the pin."""
        self.specials += ddr_input(ClockSignal("timebase2x"), pad, pair[0], pair[1])

class ArtixDataPin(LateDataPin):
    """Drives a data pin with the falling edge, and reads it, as `LateDataPin` does."""
    def buffer(self, io, output, disabled, input):
        """Return the buffer of a pin that goes both ways."""
        return Instance("IOBUF", io_IO=io, i_I=output, i_T=disabled, o_O=input)

class ArtixReceive(RgmiiReceive):
    """Turns RGMII into octets as `RgmiiReceive` does, behind delays of an Artix-7.

    ``delay`` moves all pins, in steps of 25 ps as on an ECP5, of which 78 ps are one step of these delays; from 2.4 ns on it
    stays there. It is sampled by ``sys``.

    Source: Xilinx UG471, IDELAYE2, mode VAR_LOAD.
    """
    def __init__(self, pads, rx_delay):
        start     = taps_of(rx_delay)
        self.step = Signal(7, reset=start) # Of 25 ps.
        self.taps = Signal(5, reset=min(start*TAP_SHARE >> TAP_SHIFT, LAST_TAP))
        self.first_taps = self.taps.reset.value
        RgmiiReceive.__init__(self, pads, rx_delay)

        # # #

        delay = Signal(3)
        moved = Signal()
        share = Signal(7)
        self.specials += MultiReg(self.delay, delay, "sys")
        load, move, down = delay
        self.comb += share.eq(self.step*TAP_SHARE >> TAP_SHIFT)
        self.sync.sys += [
            moved.eq(move),
            If(load,
                self.step.eq(start)
            ).Elif(moved & ~move,
                If(down & (self.step != 0), self.step.eq(self.step - 1)),
                If(~down & (self.step != 127), self.step.eq(self.step + 1)),
            ),
            self.taps.eq(Mux(share > LAST_TAP, LAST_TAP, share)),
        ]

    def add_input(self, pad, rising, falling):
        """Add the delay of a pin, and its samples of a rising edge and of the falling one behind it, which come together."""
        delayed = Signal()
        self.specials += [
            Instance("IDELAYE2",
                p_IDELAY_TYPE      = "VAR_LOAD",
                p_IDELAY_VALUE     = self.first_taps,
                p_REFCLK_FREQUENCY = IDELAY_CLK_FREQ/1e6,
                i_C           = ClockSignal("sys"),
                i_LD          = 1,
                i_CE          = 0,
                i_INC         = 0,
                i_LDPIPEEN    = 0,
                i_REGRST      = 0,
                i_CINVCTRL    = 0,
                i_CNTVALUEIN  = self.taps,
                i_IDATAIN     = pad,
                o_DATAOUT     = delayed,
            ),
            ddr_input(ClockSignal("eth_rx"), delayed, rising, falling),
        ]

class ArtixPort(RgmiiPort):
    """A PHY as a port sees it, at the pins of an Artix-7."""
    def new_transmit(self, pads):
        """Return what sends octets, in ``eth_tx``."""
        return LiteEthPHYRGMIITX(pads)

    def new_receive(self, pads, rx_delay):
        """Return what receives octets, in ``eth_rx``."""
        return ArtixReceive(pads, rx_delay)

    def received_clock(self, pad):
        """Return the clock of received data, on a global net."""
        clock = Signal()
        self.specials += Instance("BUFG", i_I=pad, o_O=clock)
        return clock

    def add_transmit_clock(self, pad, tx_delay):
        """Send the clock of ``timebase``: the PHY delays it."""
        if tx_delay:
            raise ValueError(f"a delay of {tx_delay} ns is not in reach: pins of an Artix-7 delay nothing that is sent")
        self.specials += DDROutput(clk=ClockSignal("timebase"), i1=1, i2=0, o=pad)

class ArtixFlashPins(LiteXModule):
    """Pads of the configuration flash, whose clock pin belongs to the configuration.

    Attributes
    ----------
    clk, cs_n, mosi : Signal(), in
    miso : Signal(), out

    Limits: the pin does not show the first three periods after the configuration.
    Source: Xilinx UG470, STARTUPE2.
    """
    def __init__(self, pads):
        self.clk  = Signal()
        self.cs_n = pads.cs_n
        self.mosi = pads.mosi
        self.miso = pads.miso

        # # #

        self.specials += Instance("STARTUPE2",
            i_CLK=0, i_GSR=0, i_GTS=0, i_KEYCLEARB=0, i_PACK=0, i_USRDONEO=1, i_USRDONETS=1,
            i_USRCCLKO=self.clk, i_USRCCLKTS=0,
        )

def renew(platform, *resources):
    """Give ``platform`` resources of its number in place of its own, and all its fast pins the attribute that Vivado knows."""
    manager = platform.constraint_manager
    named   = [resource[:2] for resource in resources]
    kept    = [resource for resource in manager.available if resource[:2] not in named]
    manager.available[:] = [
        tuple(Misc("SLEW=FAST") if getattr(part, "misc", None) == "SLEWRATE=FAST" else part for part in resource)
        for resource in [*kept, *resources]
    ]

# Board --------------------------------------------------------------------------------------------

class Artix7Board(RgmiiBoard):
    """Gives a board of an Artix-7 its clocks, PHYs, SDRAM and flash.

    I/O margins are Vivado's to tell: they depend on where it puts clocks, and its data sheet has no figures of a pin's way alone.
    """
    clocks_kind   = ArtixClocks
    port_kind     = ArtixPort
    rx_delay      = 2.0 # LiteX's target has it; both ports were seen to work with it (litex-boards, 502 and 739).
    eye_clk_freqs = None
    with_openxc7  = True

    def crg(self):
        """Return the clocks and resets."""
        clocks = RgmiiBoard.crg(self)
        self.unrelated = []
        self.add_unrelated(clocks.cd_sys.clk)
        self.add_unrelated(clocks.cd_timebase.clk)
        return clocks

    def add_unrelated(self, clk):
        """Let no path be timed from or to a clock but its own: all crossings are those of cores/crossing.py."""
        for other in self.unrelated:
            self.platform.add_false_path_constraints(other, clk)
        self.unrelated.append(clk)

    def phy(self, port):
        """Return the PHY of one port; the PHY delays both clocks."""
        phy  = RgmiiBoard.phy(self, port)
        pad  = self.platform.lookup_request("eth_clocks", port).rx
        self.platform.add_period_constraint(pad, 1e9/phy.rx_clk_freq)
        self.add_unrelated(getattr(phy, f"cd_eth_rx{port}").clk)
        return phy

    def pps_samples(self):
        """Return a module with four samples a tick of the PPS input; after ``crg()``."""
        self.clocks.add_double()
        return ArtixSamples(self.pps())

    def sdram(self, has_clock=False):
        """Return the PHY of the SDRAM, in ``memory`` where ``has_clock``, and the frequency of its times; after ``crg()``.

        LiteX's pins have input, output and enable in registers of the I/O here.
        """
        clocks = self.clocks
        freq   = self.memory_clk_freq if has_clock else self.sys_clk_freq
        make_fast(self.platform, "sdram_clock", 0, "SLEW=FAST")
        phy    = GENSDRPHY(self.platform.request("sdram"), freq, cl=2)
        if has_clock:
            clocks.add_memory(freq, self.memory_clock_phase)
            self.add_unrelated(clocks.cd_memory.clk)
            phy.submodules += replaced_pins(phy, SDROutput, LatePin)
            phy.submodules += replaced_pins(phy, SDRTristate, ArtixDataPin)
            phy.settings.read_latency += 2
        else:
            clocks.add_sdram(self.sdram_clock_phase)
        phy.specials += DDROutput(i1=1, i2=0, o=self.platform.request("sdram_clock"), clk=ClockSignal("sdram"))
        return ClockDomainsRenamer("memory")(phy) if has_clock else phy, freq

    def flash(self):
        """Return the pads of the SPI flash."""
        return ArtixFlashPins(self.platform.request("spiflash"))
