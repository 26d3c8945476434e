# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lists of descriptors in one memory: any number of queues share its entries."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.emulate.kept import lut_ports

# Free Entries -------------------------------------------------------------------------------------

class FreeEntries(LiteXModule):
    """Gives numbers of entries that nobody uses.

    Parameters
    ----------
    entries : int
        A power of two.

    Attributes
    ----------
    number : Signal, out
        Of a free one, while ``is_free``.
    is_free : Signal(), out
        Falls for two cycles after ``take`` where what is next isn't known yet.
    take : Signal(), in
        ``number`` is used from now on.
    give, given : Signal(), Signal, in
        An entry is used no more.
    """
    def __init__(self, entries):
        self.number  = Signal(max=entries)
        self.is_free = Signal()
        self.take    = Signal()
        self.give    = Signal()
        self.given   = Signal(max=entries)

        # # #

        # Those that were never used come first, so nothing has to be filled at the start.
        fresh    = Signal(max=entries + 1)
        is_fresh = Signal()
        self.used = used = stream.SyncFIFO([("number", len(self.number))], entries, buffered=True)
        self.comb += [
            is_fresh.eq(~fresh[-1]),
            self.is_free.eq(is_fresh | used.source.valid),
            self.number.eq(Mux(is_fresh, fresh, used.source.number)),
            used.source.ready.eq(self.take & ~is_fresh),
            used.sink.valid.eq(self.give),
            used.sink.number.eq(self.given),
        ]
        self.sync += If(self.take & is_fresh, fresh.eq(fresh + 1))

# Entry Lists --------------------------------------------------------------------------------------

class EntryLists(LiteXModule):
    """Queues entries, each list first in, first out.

    Parameters
    ----------
    layout : list
        Of an entry.
    entries, lists : int
        A power of two; how many lists.

    Attributes
    ----------
    number : Signal, in
        Of the list that is dealt with.
    put, entry : Signal(), Record(layout), in
        ``entry`` goes behind the others of the list. Only with ``has_room``, three cycles apart.
    has_room : Signal(), out
    head : Record(layout), out
        Of the list, from two cycles after ``number``, ``put`` or ``drop`` were given.
    drop : Signal(), in
        The head leaves the list; not within two cycles after a ``put``, a ``drop`` or a change of ``number``.
    is_there : Signal(lists), out
        Which lists have an entry.
    """
    def __init__(self, layout, entries, lists):
        self.number   = Signal(max=lists)
        self.put      = Signal()
        self.entry    = Record(layout)
        self.has_room = Signal()
        self.head     = Record(layout)
        self.drop     = Signal()
        self.is_there = Signal(lists)

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {"memory", "links"}
        bits        = log2_int(entries)
        self.free   = free  = FreeEntries(entries)
        self.memory = memory = Memory(len(self.entry.raw_bits()), entries, name="entries")
        self.links  = links = Memory(bits, entries, name="links")
        write, read = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        link,  next = links.get_port(write_capable=True, mode=READ_FIRST), links.get_port(mode=READ_FIRST)
        self.specials += memory, links, write, read, link, next
        put_first, first = lut_ports(self, "heads", bits, lists)
        put_last,  last  = lut_ports(self, "tails", bits, lists)
        is_empty = Signal()
        is_only  = Signal()
        self.comb += [
            is_empty.eq(~(self.is_there >> self.number)[0]),
            is_only.eq(first.dat_r == last.dat_r),
            self.has_room.eq(free.is_free),
            free.take.eq(self.put),
            write.adr.eq(free.number),
            write.dat_w.eq(self.entry.raw_bits()),
            write.we.eq(self.put),
            link.adr.eq(last.dat_r),
            link.dat_w.eq(free.number),
            link.we.eq(self.put & ~is_empty),
            read.adr.eq(first.dat_r),
            next.adr.eq(first.dat_r),
            self.head.raw_bits().eq(read.dat_r),
            first.adr.eq(self.number),
            last.adr.eq(self.number),
            put_first.adr.eq(self.number),
            put_last.adr.eq(self.number),
            put_first.dat_w.eq(Mux(self.put, free.number, next.dat_r)),
            put_first.we.eq((self.put & is_empty) | (self.drop & ~is_only)),
            put_last.dat_w.eq(free.number),
            put_last.we.eq(self.put),
            free.give.eq(self.drop),
            free.given.eq(first.dat_r),
        ]
        for n in range(lists):
            self.sync += If(self.number == n,
                If(self.put, self.is_there[n].eq(1)),
                If(self.drop & is_only, self.is_there[n].eq(0)),
            )
