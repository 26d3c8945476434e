# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""How much room the rings of the store have."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.kept import lut_ports
from liteprobe.cores.emulate.layouts import LANE_BITS, POSITION_BITS, RING_BITS
from liteprobe.cores.formats.emulate import LANES

# Ring Rooms ---------------------------------------------------------------------------------------

class RingRooms(LiteXModule):
    """Counts the words that are promised to frames of each lane, and those that are free again.

    After a reset its counts must be cleared, lane by lane.

    Attributes
    ----------
    lane, words : Signal(4), Signal(POSITION_BITS), in
        Of the frame that is asked for.
    position : Signal(22), out
        Where its words would go.
    fits : Signal(), out
        They find room. A cycle after ``lane`` and ``words``; free words may be known some cycles late.
    take : Signal(), in
        They are promised.
    clear, bits : Signal(), Signal(5), in
        The ring of ``lane`` is empty, and has 2^bits words.
    freed, freed_lane, freed_words : Signal(), Signal(4), Signal(POSITION_BITS), in
        Words of a lane are free again; not in the cycle after another ``freed``, nor with ``clear``.
    """
    def __init__(self):
        self.lane        = Signal(LANE_BITS)
        self.words       = Signal(POSITION_BITS)
        self.position    = Signal(POSITION_BITS)
        self.fits        = Signal()
        self.take        = Signal()
        self.clear       = Signal()
        self.bits        = Signal(RING_BITS)
        self.freed       = Signal()
        self.freed_lane  = Signal(LANE_BITS)
        self.freed_words = Signal(POSITION_BITS)

        # # #

        put_write, put            = lut_ports(self, "promised", POSITION_BITS, LANES)
        got_write, got, got_freed = lut_ports(self, "free", POSITION_BITS, LANES, readers=2)
        set_size, size            = lut_ports(self, "sizes", RING_BITS, LANES)
        used  = Signal(POSITION_BITS)
        after = Signal(POSITION_BITS + 1)
        least = Signal(POSITION_BITS + 1)
        self.comb += [
            put.adr.eq(self.lane), got.adr.eq(self.lane), size.adr.eq(self.lane),
            self.position.eq(put.dat_r),
            used.eq(put.dat_r - got.dat_r),
            after.eq(used + self.words),
            least.eq(1 << size.dat_r),
            put_write.adr.eq(self.lane),
            put_write.we.eq(self.take | self.clear),
            put_write.dat_w.eq(Mux(self.clear, 0, put.dat_r + self.words)),
            set_size.adr.eq(self.lane),
            set_size.we.eq(self.clear),
            set_size.dat_w.eq(self.bits),
            got_freed.adr.eq(self.freed_lane),
            got_write.adr.eq(Mux(self.clear, self.lane, self.freed_lane)),
            got_write.we.eq(self.freed | self.clear),
            got_write.dat_w.eq(Mux(self.clear, 0, got_freed.dat_r + self.freed_words)),
        ]
        self.sync += self.fits.eq(after <= least)
