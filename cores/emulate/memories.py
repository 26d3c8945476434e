# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps words in LUT RAM, the state of each class, and lists of entries in one block RAM, for the stages of the emulator.

A word in LUT RAM is shown at once, and changed at the end of the cycle.
"""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.layouts import CLASS_BITS
from liteprobe.cores.formats.emulate import CLASSES

def lut_ports(module, name, bits, depth, readers=1):
    """Give ``module`` a memory; return its port to write, then the ports that show a word at once.

    The module doesn't get it as an attribute: LiteX would give it a page of the CSR bus.
    """
    memory = Memory(bits, depth, name=name)
    ports  = [memory.get_port(write_capable=True), *[memory.get_port(async_read=True) for _ in range(readers)]]
    module.specials += memory, *ports
    return ports

# Class State -------------------------------------------------------------------------------------

class ClassState(LiteXModule):
    """Keeps fields of each class, a memory a field: so any of them is read, changed and written in one cycle.

    Parameters
    ----------
    layout : list
        Of the fields.
    name : str
        Of the memories.

    Attributes
    ----------
    reads : dict of Signal(3), in
        Of each field: the class that ``state`` shows.
    state : Record(layout), out
    number : Signal(3), in
        Class that `put` changes.
    """
    def __init__(self, layout, name):
        self.reads  = {field: Signal(CLASS_BITS, name=f"read_{field}") for field, _ in layout}
        self.state  = Record(layout)
        self.number = Signal(CLASS_BITS)

        # # #

        self.puts   = {field: Signal(name=f"puts_{field}")        for field, _    in layout}
        self.values = {field: Signal(bits, name=f"value_{field}") for field, bits in layout}
        for field, bits in layout:
            write, read = lut_ports(self, f"{name}_{field}", bits, CLASSES)
            self.comb += [
                read.adr.eq(self.reads[field]),
                getattr(self.state, field).eq(read.dat_r),
                write.adr.eq(self.number),
                write.dat_w.eq(self.values[field]),
                write.we.eq(self.puts[field]),
            ]

    def put(self, field, value, condition=1):
        """Return the statements that change a field where the condition holds."""
        return [self.puts[field].eq(condition), self.values[field].eq(value)]

# Entry Lists --------------------------------------------------------------------------------------

class EntryLists(LiteXModule):
    """Queues entries, each list first in, first out. Whoever puts them counts them: no more than there are.

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
        ``entry`` goes after the others of the list; not within two cycles after another ``put`` or a ``drop``.
    head : Record(layout), out
        Of the list, from two cycles after ``number``, ``put`` or ``drop`` were given.
    looks_last : Signal(), in
        ``head`` is the last one of the list a cycle later, as long as this is high.
    drop : Signal(), in
        The head leaves the list; not within two cycles after a ``put``, a ``drop`` or a change of ``number``.
    is_there : Signal(lists), out
        Which lists have an entry.
    """
    def __init__(self, layout, entries, lists):
        self.number   = Signal(max=lists)
        self.put      = Signal()
        self.entry    = Record(layout)
        self.head     = Record(layout)
        self.looks_last = Signal()
        self.drop     = Signal()
        self.is_there = Signal(lists)

        # # #

        # Else LiteX gives the memories a page of the CSR bus.
        self.autocsr_exclude = {"memory", "links"}
        bits        = log2_int(entries)
        fresh       = Signal(bits + 1) # Entries from here on were never used, so nothing has to be filled at the start.
        is_fresh    = Signal()
        free        = Signal(bits)     # Those that were, and are free again, are linked from this one on.
        number      = Signal(bits)     # That is used next.
        self.memory = memory = Memory(len(self.entry.raw_bits()), entries, name="entries")
        self.links  = links = Memory(bits, entries, name="links")
        write, read = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        # While nothing is linked the first port shows what is free after ``free``.
        link,  next = links.get_port(write_capable=True, mode=READ_FIRST), links.get_port(mode=READ_FIRST)
        self.specials += memory, links, write, read, link, next
        put_first, first = lut_ports(self, "heads", bits, lists)
        put_last,  last  = lut_ports(self, "tails", bits, lists)
        is_empty = Signal()
        is_only  = Signal()
        self.comb += [
            is_empty.eq(~(self.is_there >> self.number)[0]),
            is_only.eq(first.dat_r == last.dat_r),
            is_fresh.eq(~fresh[-1]),
            number.eq(Mux(is_fresh, fresh, free)),
            write.adr.eq(number),
            write.dat_w.eq(self.entry.raw_bits()),
            write.we.eq(self.put),
            link.adr.eq(free),
            If(self.put, link.adr.eq(last.dat_r)),
            If(self.drop, link.adr.eq(first.dat_r)),
            link.dat_w.eq(Mux(self.drop, free, number)),
            link.we.eq((self.put & ~is_empty) | self.drop),
            read.adr.eq(Mux(self.looks_last, last.dat_r, first.dat_r)),
            next.adr.eq(first.dat_r),
            self.head.raw_bits().eq(read.dat_r),
            first.adr.eq(self.number),
            last.adr.eq(self.number),
            put_first.adr.eq(self.number),
            put_last.adr.eq(self.number),
            put_first.dat_w.eq(Mux(self.put, number, next.dat_r)),
            put_first.we.eq((self.put & is_empty) | (self.drop & ~is_only)),
            put_last.dat_w.eq(number),
            put_last.we.eq(self.put),
        ]
        self.sync += [
            If(self.put & is_fresh, fresh.eq(fresh + 1)),
            If(self.put & ~is_fresh, free.eq(link.dat_r)),
            If(self.drop, free.eq(first.dat_r)),
        ]
        for n in range(lists):
            self.sync += If(self.number == n,
                If(self.put, self.is_there[n].eq(1)),
                If(self.drop & is_only, self.is_there[n].eq(0)),
            )
