# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Plain pins of a bench that is compiled."""

from migen import *

from litex.gen import *

BUS_BITS = 16 # Of ``adr`` that each bus has; those above choose the bus.

# Pinned Bench -------------------------------------------------------------------------------------

class PinnedBench(LiteXModule):
    """A bench with pins ``sys_clk``, ``sys_rst`` and those that are added.

    Attributes
    ----------
    pins : set of Signal
        As `write_module` takes them.
    """
    def __init__(self):
        self.cd_sys = ClockDomain("sys")
        self.pins   = {self.cd_sys.clk, self.cd_sys.rst}

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

    def add_bus(self, buses):
        """Bring the buses to one: pins ``adr``, ``stb``, ``we``, ``dat_w``, ``ack``, ``dat_r``."""
        adr        = self.add_pin("adr", BUS_BITS + bits_for(len(buses) - 1))
        stb, we    = self.add_pin("stb", 1), self.add_pin("we", 1)
        dat_w      = self.add_pin("dat_w", 32)
        ack, dat_r = self.add_pin("ack", 1), self.add_pin("dat_r", 32)
        for n, bus in enumerate(buses):
            is_chosen = adr[BUS_BITS:] == n
            self.comb += [
                bus.adr.eq(adr[:BUS_BITS]),
                bus.stb.eq(stb & is_chosen),
                bus.cyc.eq(stb & is_chosen),
                bus.we.eq(we),
                bus.sel.eq(15),
                bus.dat_w.eq(dat_w),
                If(is_chosen, ack.eq(bus.ack), dat_r.eq(bus.dat_r)),
            ]
