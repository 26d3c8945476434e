# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Adds up halfwords as the internet checksum does."""

from migen import *

from litex.gen import *

# One's Complement Sum -----------------------------------------------------------------------------

class ComplementSum(LiteXModule):
    """Adds up two halfwords a cycle with the carry around.

    Attributes
    ----------
    a, b : Signal(16), in
    add, begin : Signal(), in
        Add both; begin anew with them.
    initial : Signal(16), in
        And with this.
    total : Signal(16), out
        Of all up to the last cycle; 0xffff or 0 are both nothing.

    Source: RFC 1071.
    """
    def __init__(self):
        self.a     = Signal(16)
        self.b     = Signal(16)
        self.add   = Signal()
        self.begin = Signal()
        self.initial = Signal(16)
        self.total = Signal(16)

        # # #

        kept = Signal(18, reset_less=True)
        once = Signal(17)
        self.comb += [
            once.eq(kept[:16] + kept[16:]),
            self.total.eq(once[:16] + once[16]),
        ]
        self.sync += If(self.add | self.begin,
            kept.eq(Mux(self.begin, self.initial, kept[:16]) + Mux(self.begin, 0, kept[16:]) + self.a + self.b),
        )
