# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""From octets to words."""

from migen import *

from litex.gen import *

# Word Packer --------------------------------------------------------------------------------------

class WordPacker(LiteXModule):
    """Packs octets into words; keeps each word until it is known whether it is the last.

    Attributes
    ----------
    octet_valid, octet, end : Signal(), Signal(8), Signal(), in
        Octets, and one tick of ``end`` after the last one of each frame.
    source_valid, source_last : Signal(), Signal(), out
        One tick for each word, one tick after the octet or ``end`` that completed it; can't be stalled.
    source_data, source_last_be : Signal(data_width), Signal(data_width//8), out
        The word. ``last_be`` is 0 but with ``last``, and there too for a frame of no octets.
    """
    def __init__(self, data_width):
        self.octet_valid    = Signal()
        self.octet          = Signal(8)
        self.end            = Signal()
        self.source_valid   = Signal()
        self.source_last    = Signal()
        self.source_data    = Signal(data_width)
        self.source_last_be = Signal(data_width//8)

        # # #

        lanes  = data_width//8
        word   = Signal(data_width, reset_less=True)
        newest = Signal(lanes) # One-hot lane of the newest octet; 0 before the first.

        self.sync += [
            self.source_valid.eq(self.end | (self.octet_valid & newest[-1])),
            self.source_last.eq(self.end),
            self.source_data.eq(word),
            self.source_last_be.eq(newest & Replicate(self.end, lanes)),
            If(self.octet_valid,
                newest.eq(Cat(newest[-1] | (newest == 0), newest[:-1])),
            ),
            If(self.end,
                newest.eq(0)
            ),
        ]
        for lane in range(lanes):
            is_next = newest[lane - 1] | ((newest == 0) if lane == 0 else 0)
            self.sync += If(self.octet_valid & is_next, word[8*lane:8*lane + 8].eq(self.octet))
