# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sets that are parsed before their frames are due, so that a table that answers late doesn't stop the line."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import SET_FIELD_OCTETS, SETS_AHEAD, SetField
from liteprobe.cores.transmit.sources.sets.set_parser import HALF_BITS, SLOT_BITS, SLOTS

AHEAD_BITS = log2_int(SETS_AHEAD)
INDEX_BIT  = list(SET_FIELD_OCTETS).index(SetField.INDEX)


class SetQueue(LiteXModule):
    """Keeps the halfwords of up to 16 sets, and puts the entry of the table in the place of its index.

    Parameters
    ----------
    table : SdramTable or BlockTable
        Asked for one entry at a time, in the order of the sets.

    Attributes
    ----------
    write, slot, half, push, control, has_room
        As of `SetParser`, in, and the last one out.
    clear : Signal(), in
        Pulse, while ``is_idle``: it is empty.
    is_idle : Signal(), out
        No entry is to come.
    is_there, head : Signal(), Signal(8), out
        The first set is complete, with its entry; its control octet.
    read_slot, read_half : Signal(4), Signal(16), in and out
        Reads a halfword of the first set; it is there in the next cycle.
    pop : Signal(), in
        The first set is read.
    """
    def __init__(self, table):
        self.write     = Signal()
        self.slot      = Signal(SLOT_BITS)
        self.half      = Signal(HALF_BITS)
        self.push      = Signal()
        self.control   = Signal(8)
        self.has_room  = Signal()
        self.clear     = Signal()
        self.is_idle   = Signal()
        self.is_there  = Signal()
        self.head      = Signal(8)
        self.read_slot = Signal(SLOT_BITS)
        self.read_half = Signal(HALF_BITS)
        self.pop       = Signal()

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {"memory", "controls", "requests"}
        self.put   = Signal(AHEAD_BITS + 1) # Set that is coming,
        self.known = Signal(AHEAD_BITS + 1) # the first one that may lack its entry,
        self.taken = Signal(AHEAD_BITS + 1) # and the first one.
        self.left  = Signal(2)              # Halfwords of an entry that are not written.
        self.entry = Signal(2*HALF_BITS, reset_less=True)
        self.memory   = memory   = Memory(HALF_BITS, SETS_AHEAD << SLOT_BITS, name="set_fields")
        self.controls = controls = Memory(8, SETS_AHEAD, name="set_controls")
        write = memory.get_port(write_capable=True, mode=READ_FIRST)
        read  = memory.get_port(mode=READ_FIRST)
        begun = controls.get_port(write_capable=True)
        first = controls.get_port(async_read=True)
        self.specials += memory, write, read, controls, begun, first
        self.comb += [
            self.has_room.eq(self.put - self.taken != SETS_AHEAD),
            self.is_there.eq(self.known != self.taken),
            begun.adr.eq(self.put),
            begun.we.eq(self.push),
            begun.dat_w.eq(self.control),
            first.adr.eq(self.taken),
            self.head.eq(first.dat_r),
            read.adr.eq(Cat(self.read_slot, self.taken[:AHEAD_BITS])),
            self.read_half.eq(read.dat_r),
            write.we.eq(self.write | (self.left != 0)),
            If(self.write,
                write.adr.eq(Cat(self.slot, self.put[:AHEAD_BITS])),
                write.dat_w.eq(self.half),
            ).Else(
                write.adr.eq(Cat(self.left[0], Constant(SLOTS[SetField.INDEX] >> 1, SLOT_BITS - 1), self.known[:AHEAD_BITS])),
                write.dat_w.eq(self.entry[HALF_BITS:]),
            ),
        ]
        self.sync += [
            If(self.push, self.put.eq(self.put + 1)),
            If(self.pop,  self.taken.eq(self.taken + 1)),
        ]
        self.add_lookup(table)
        self.sync += If(self.clear, *[pointer.eq(0) for pointer in (self.put, self.known, self.taken)])

    def add_lookup(self, table):
        """Ask for the entries of sets that have an index, one after the other."""
        self.requests = requests = Memory(HALF_BITS + 1, SETS_AHEAD, name="set_requests")
        put = requests.get_port(write_capable=True)
        get = requests.get_port(async_read=True)
        self.specials += requests, put, get
        is_new  = Signal()
        asks    = Signal() # An entry is needed, and the table is free to be asked.
        waits   = Signal()
        is_done = Signal()
        lacks   = Signal()
        self.comb += [
            # An index is the last of its set.
            put.adr.eq(self.put),
            put.we.eq(self.push),
            put.dat_w.eq(Cat(self.half, self.control[INDEX_BIT])),
            get.adr.eq(self.known),
            is_new.eq(self.known != self.put),
            lacks.eq(is_new & get.dat_r[-1]),
            asks.eq(lacks & ~waits & (self.left == 0)),
            table.sink.valid.eq(asks),
            table.sink.index.eq(get.dat_r),
            is_done.eq(Mux(lacks, (self.left == 1) & ~self.write, is_new)),
            self.is_idle.eq(~lacks & ~waits),
        ]
        self.sync += [
            If(asks & table.sink.ready, waits.eq(1)),
            If(table.gives,
                waits.eq(0),
                self.entry.eq(table.data),
                self.left.eq(2),
            ),
            If((self.left != 0) & ~self.write,
                self.left.eq(self.left - 1),
                self.entry.eq(Cat(self.entry[:HALF_BITS], self.entry[:HALF_BITS])),
            ),
            If(is_done, self.known.eq(self.known + 1)),
        ]
