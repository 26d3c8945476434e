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

        put_write, put   = lut_ports(self, "promised", POSITION_BITS, LANES)
        room_write, room = lut_ports(self, "room", POSITION_BITS, LANES)
        # What was freed is counted when nothing else changes the rooms.
        is_freed = Signal()
        lane     = Signal(LANE_BITS, reset_less=True)
        words    = Signal(POSITION_BITS, reset_less=True)
        counts   = Signal()
        size     = Signal(POSITION_BITS)
        change   = Signal(POSITION_BITS)
        self.comb += [
            put.adr.eq(self.lane),
            self.position.eq(put.dat_r),
            put_write.adr.eq(self.lane),
            put_write.we.eq(self.take | self.clear),
            put_write.dat_w.eq(Mux(self.clear, 0, put.dat_r + self.words)),
            counts.eq(is_freed & ~self.take),
            room.adr.eq(Mux(counts, lane, self.lane)),
            room_write.adr.eq(room.adr),
            room_write.we.eq(self.take | self.clear | counts),
            size.eq(1 << self.bits),
            change.eq(Mux(counts, words, ~self.words)),
            room_write.dat_w.eq(Mux(self.clear, size, room.dat_r + change + (counts == 0))),
        ]
        self.sync += [
            If(self.freed,
                is_freed.eq(1),
                lane.eq(self.freed_lane),
                words.eq(self.freed_words),
            ).Elif(counts,
                is_freed.eq(0),
            ),
            If(~counts, self.fits.eq(self.words <= room.dat_r)),
        ]
