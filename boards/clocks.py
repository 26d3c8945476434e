# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes the clocks of an ECP5 board: ``sys``, ``timebase`` and, where asked for, its double, the SDRAM's and ``memory``."""

from migen import *

from litex.gen import *

from litex.soc.cores.clock import ECP5PLL

class LegalPLL(ECP5PLL):
    """Keeps every output of LiteX's PLL, the one to itself too, at most at half the VCO: 400 MHz, the data sheet's limit.

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

        self.oscillator = clock, clock_freq
        self.is_reset   = self.rst | reset
        self.pll = pll = self.new_pll()
        pll.create_clkout(self.cd_sys,      sys_clk_freq,  margin=0)
        pll.create_clkout(self.cd_timebase, timebase_freq, margin=0)

    def new_pll(self):
        """Return a PLL of the oscillator."""
        pll = LegalPLL()
        self.comb += pll.reset.eq(self.is_reset)
        pll.register_clkin(*self.oscillator)
        return pll

    def add_double(self):
        """Add the domain ``timebase2x``: twice the frequency of ``timebase``, whose every edge is one of its own. No reset."""
        self.cd_timebase2x = ClockDomain(reset_less=True)
        self.add_global(self.cd_timebase2x, 2*self.timebase_freq)

    def add_sdram(self, phase):
        """Add the domain ``sdram``, of the SDRAM's clock pin alone: ``sys``, ``phase`` degrees later. No reset."""
        self.cd_sdram = ClockDomain(reset_less=True)
        self.add_global(self.cd_sdram, self.sys_clk_freq, phase)

    def add_memory(self, freq, phase):
        """Add the domain ``memory``, and ``sdram``, ``phase`` degrees later, by a PLL of their own: the first has no output left.

        ``memory`` is reset with ``sys``: whatever resets one PLL resets the other.
        """
        self.memory_pll = pll = self.new_pll()
        self.cd_memory  = ClockDomain()
        self.cd_sdram   = ClockDomain(reset_less=True)
        pll.create_clkout(self.cd_memory, freq, margin=0)
        self.add_global(self.cd_sdram, freq, phase, pll)

    def add_global(self, domain, freq, phase=0, pll=None):
        """Clock ``domain`` by an output of a PLL, the first one by default, on a global net."""
        output = ClockDomain(f"{domain.name}_pll", reset_less=True)
        (pll or self.pll).create_clkout(output, freq, phase=phase, margin=0, with_reset=False)
        # A few registers are too few for nextpnr to take a global net by itself, and another net would be late.
        self.specials += Instance("DCCA", i_CLKI=output.clk, i_CE=1, o_CLKO=domain.clk)
