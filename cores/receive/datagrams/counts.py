# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts the datagrams to each ring, and keeps the position up to which they came."""

from migen import *

from litex.gen import *

# What is counted of each ring; ACCEPTED is the position up to which words came, REFUSED all that were not accepted, NOTHING is 0.
ACCEPTED, DATAGRAMS, REPEATED, EARLY, FULL, REFUSED, STRANGE, NOTHING = range(8)
COUNTS = 8 # Words of each ring.

class DatagramCounts(LiteXModule):
    """Keeps 32-bit numbers of each ring in LUT RAM, and adds to one of them at a time.

    Parameters
    ----------
    rings, first : int, int
        ``first``: what ACCEPTED is cleared to.

    Attributes
    ----------
    kind, ring : Signal(3), Signal, in
        Which number.
    uses : Signal(), in
        ``sum`` is of this number in this cycle. Else others may read.
    adds : Signal(9), in
        Is added; 0 in the other cases.
    subtracts, position : Signal(), Signal(32), in
        ``position`` is subtracted.
    sum : Signal(32), out
    write, clear : Signal(), in
        The number becomes the sum, or 0; with ``uses``.
    read_kind, read_ring, can_read, data : Signal(3), Signal, Signal(), Signal(32), in, in, out, out
        For answers and the bus: number COUNTS*ring + kind.
    """
    def __init__(self, rings, first=0):
        bits = len(Signal(max=max(rings, 2)))
        self.kind      = Signal(max=COUNTS)
        self.ring      = Signal(bits)
        self.uses      = Signal()
        self.adds      = Signal(9)
        self.subtracts = Signal()
        self.position  = Signal(32)
        self.sum       = Signal(32)
        self.write     = Signal()
        self.clear     = Signal()
        self.read_kind = Signal(max=COUNTS)
        self.read_ring = Signal(bits)
        self.can_read  = Signal()
        self.data      = Signal(32)

        # # #

        memory = Memory(32, COUNTS << bits)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        read   = memory.get_port(async_read=True)
        place  = Cat(self.kind, self.ring)
        total   = Signal(33) # Bit 0 is the carry.
        operand = Signal(32)
        borrows = Signal()
        self.autocsr_exclude = {"memory"}
        self.specials += memory, write, read
        self.comb += [
            self.can_read.eq(~self.uses),
            read.adr.eq(Mux(self.uses, place, Cat(self.read_kind, self.read_ring))),
            self.data.eq(read.dat_r),
            # One LUT a bit: what is subtracted comes inverted, with a carry; and a number less itself is 0.
            borrows.eq(self.subtracts | self.clear),
            operand.eq(self.adds | (Replicate(self.subtracts, 32) & ~self.position) | (Replicate(self.clear, 32) & ~read.dat_r)),
            total.eq(Cat(borrows, read.dat_r) + Cat(borrows, operand)),
            self.sum.eq(total[1:]),
            write.adr.eq(place),
            write.dat_w.eq(self.sum),
            write.we.eq(self.write | self.clear),
        ]
        if first:
            self.comb += If(self.clear & (self.kind == ACCEPTED), write.dat_w.eq(first))
