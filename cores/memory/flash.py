# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The board's SPI flash, an octet at a time: enough to read firmware at the start."""

from migen import *

from litex.gen import *

class FlashOctets(LiteXModule):
    """Exchanges an octet with a SPI flash (mode 0, most significant bit first).

    Parameters
    ----------
    pads : ``clk``, ``cs_n``, ``mosi``, ``miso``; ``clk`` is a fourth of the clock of the domain.

    Attributes
    ----------
    send : Signal(9), in
        The octet to send; bit 8 selects the flash, from now on.
    start : Signal(), in
        Sends, and gives up an exchange that runs.
    received : Signal(9), out
        The octet that came; bit 8 is 1 while the exchange runs, 32 cycles.
    """
    def __init__(self, pads):
        self.send     = Signal(9)
        self.start    = Signal()
        self.received = Signal(9)

        # # #

        # A bit takes 4 cycles: at 50 MHz half of one, 40 ns, covers the way out through the configuration's clock pin and
        # back. The clock is a bit of a register, so that it has no glitches.
        bits   = Signal(8)
        cycle  = Signal(6, reset=32)
        is_on  = Signal()
        is_end = cycle[-1]
        self.comb += [
            pads.cs_n.eq(~is_on),
            pads.clk.eq(cycle[1]),
            pads.mosi.eq(bits[-1]),
            self.received.eq(Cat(bits, ~is_end)),
        ]
        self.sync += [
            If(~is_end,
                cycle.eq(cycle + 1),
                If(cycle[:2] == 3, bits.eq(Cat(pads.miso, bits))),
            ),
            If(self.start,
                cycle.eq(0),
                Cat(bits, is_on).eq(self.send),
            ),
        ]
