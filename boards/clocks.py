# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clocks that every ECP5 board gives: ``sys``, ``timebase`` and, where it is asked for, its double, from one PLL."""

from migen import *

from litex.gen import *

from litex.soc.cores.clock import ECP5PLL

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

    Outputs of the PLL that are whole ratios of each other rise together: LiteX gives all of them phase 0.
    """
    def __init__(self, clock, clock_freq, sys_clk_freq, timebase_freq=125e6, reset=0):
        self.rst         = Signal()
        self.cd_sys      = ClockDomain()
        self.cd_timebase = ClockDomain()
        self.timebase_freq = timebase_freq

        # # #

        self.pll = pll = ECP5PLL()
        self.comb += pll.reset.eq(self.rst | reset)
        pll.register_clkin(clock, clock_freq)
        pll.create_clkout(self.cd_sys,      sys_clk_freq,  margin=0)
        pll.create_clkout(self.cd_timebase, timebase_freq, margin=0)

    def add_double(self):
        """Add the domain ``timebase2x``: twice the frequency of ``timebase``, whose every edge is one of its own. No reset."""
        self.cd_timebase2x = ClockDomain(reset_less=True)
        output = ClockDomain("timebase2x_pll", reset_less=True) # Of the PLL.

        # # #

        self.pll.create_clkout(output, 2*self.timebase_freq, margin=0, with_reset=False)
        # A few registers are too few for nextpnr to take a global net by itself, and another net would be late.
        self.specials += Instance("DCCA", i_CLKI=output.clk, i_CE=1, o_CLKO=self.cd_timebase2x.clk)
