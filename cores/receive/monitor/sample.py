# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which frames are kept of many alike: every so many, or those that all probes choose."""

from migen import *

from litex.gen import *

# Sampler ------------------------------------------------------------------------------------------

shift_max = 4 # One frame in 16.

class Sampler(LiteXModule):
    """Chooses one frame in 2^``shift``: by count, the first of each; or by the hash of the packet.

    Attributes
    ----------
    shift : Signal(3), in
        Up to 4; more is taken for 4.
    by_hash : Signal(), in
        By the hash, not by count.
    hash : Signal(32), in
        Of the packet: those below 2^(32 - ``shift``) are chosen.
    frame : Signal(), in
        There is one to choose from.
    clear : Signal(), in
        The next frame is the first of a count.
    is_chosen : Signal(), out
        With ``frame``.
    """
    def __init__(self):
        self.shift     = Signal(3)
        self.by_hash   = Signal()
        self.hash      = Signal(32)
        self.frame     = Signal()
        self.clear     = Signal()
        self.is_chosen = Signal()

        # # #

        count     = Signal(shift_max)
        looked_at = Signal(shift_max)
        bits      = Signal(shift_max)
        self.comb += [
            # The highest bit of the hash counts first, the lowest of the count.
            bits.eq(Mux(self.by_hash, Cat(*reversed(self.hash[-shift_max:])), count)),
            looked_at.eq(Cat(*[self.shift > place for place in range(shift_max)])),
            self.is_chosen.eq((bits & looked_at) == 0),
        ]
        self.sync += [
            If(self.frame, count.eq(count + 1)),
            If(self.clear, count.eq(0)),
        ]
