# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clocks that every ECP5 board gives, from one PLL: ``sys``, ``timebase`` and, where asked for, its double and the SDRAM's."""

from migen import *

from litex.gen import *

from litex.soc.cores.clock import ECP5PLL

class LegalPLL(ECP5PLL):
    """Is LiteX's PLL with every output, the one to itself too, at most at half the VCO: 400 MHz, the data sheet's limit.

    Source: FPGA-DS-02012-1.9, table 3.23 (fIN, which is that of CLKFB, too, and fOUT).
    """
    clko_div_range = (2, 128 + 1)

class ProbeClocks(LiteXModule):
    """Makes ``sys`` and ``timebase`` from the oscillator.

    Parameters
    ----------
    clock : Signal, the oscillator; ``clock_freq`` its frequency (Hz).
    sys_clk_freq, timebase_freq : float, Hz
        Must be exact ratios of the oscillator: a rounded timebase would be a wrong rate.
    reset : Signal or 0, active high.

    Attributes
    ----------
    rst : Signal(), in
        Resets everything; driven by the SoC controller.

    Outputs of the PLL that are whole ratios of each other rise together: all have phase 0 but ``sdram``.
    """
    def __init__(self, clock, clock_freq, sys_clk_freq, timebase_freq=125e6, reset=0):
        self.rst         = Signal()
        self.cd_sys      = ClockDomain()
        self.cd_timebase = ClockDomain()
        self.sys_clk_freq  = sys_clk_freq
        self.timebase_freq = timebase_freq

        # # #

        self.pll = pll = LegalPLL()
        self.comb += pll.reset.eq(self.rst | reset)
        pll.register_clkin(clock, clock_freq)
        pll.create_clkout(self.cd_sys,      sys_clk_freq,  margin=0)
        pll.create_clkout(self.cd_timebase, timebase_freq, margin=0)

    def add_double(self):
        """Add the domain ``timebase2x``: twice the frequency of ``timebase``, whose every edge is one of its own. No reset."""
        self.cd_timebase2x = ClockDomain(reset_less=True)
        self.add_global(self.cd_timebase2x, 2*self.timebase_freq)

    def add_sdram(self, phase):
        """Add the domain ``sdram``, of the SDRAM's clock pin alone: ``sys``, ``phase`` degrees later. No reset."""
        self.cd_sdram = ClockDomain(reset_less=True)
        self.add_global(self.cd_sdram, self.sys_clk_freq, phase)

    def add_global(self, domain, freq, phase=0):
        """Clock ``domain`` by an output of the PLL on a global net."""
        output = ClockDomain(f"{domain.name}_pll", reset_less=True)
        self.pll.create_clkout(output, freq, phase=phase, margin=0, with_reset=False)
        # A few registers are too few for nextpnr to take a global net by itself, and another net would be late.
        self.specials += Instance("DCCA", i_CLKI=output.clk, i_CE=1, o_CLKO=domain.clk)
