# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts the hits of all rows and terms in one block RAM."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import *
from liteprobe.cores.receive.filter.layouts import access_layout, slot_layout

class FilterHits(LiteXModule):
    """Counts hits of rows and terms.

    In a lap a row is hit once by each port at most. So hits wait beside the block RAM, four bits a row, and are added every
    fourth lap, when the row passes in its turn. Each port's last term waits for its turn, too.

    Parameters
    ----------
    matchers : list of FilterMatcher

    Attributes
    ----------
    access : Record(access_layout()), in
        A word for one of the counters is written in its turn alone: see ``is_turn``.
    slot : Record(slot_layout()), in
    address : Signal(13), in
        What the bus is to write next,
    is_turn : Signal(), out
        and whether it may in this cycle.
    enable : Signal(), in
    mute : Signal(), in
        What is read in the last cycle is 0.
    read : Signal(32), out
        What was read two cycles ago.
    """
    def __init__(self, matchers):
        self.access  = access = Record(access_layout())
        self.slot    = slot = Record(slot_layout())
        self.address = address = Signal(13)
        self.is_turn = Signal()
        self.enable  = Signal()
        self.mute    = Signal()
        self.read    = Signal(32, reset_less=True)

        # # #

        is_mine = Signal()
        writes  = Signal()
        self.comb += [
            is_mine.eq(access.address[11:] == FILTER_ROW_HITS[0] >> 11),
            writes.eq(access.write & is_mine),
            # Terms of the ports are added in the second and the last of four groups; the bus's turn is between them.
            self.is_turn.eq((slot.kind == address[5:7]) &
                Mux(address[6], slot.number[2:4] == 2, slot.number == address[:5])),
        ]

        # What waits.
        # -----------
        adds   = Signal()
        place  = Signal(7)
        addend = Signal(4)
        self.comb += place.eq(access.address)
        for table, name in enumerate(["source_hit", "destination_hit"]):
            self.add_rows(table, sum(getattr(matcher, name) for matcher in matchers), adds, place, addend)
        for port, matcher in enumerate(matchers):
            waits = Signal()
            takes = Signal()
            self.comb += [
                takes.eq((slot.kind == 2) & (slot.number[2:4] == 2*port + 1)),
                If(takes,
                    adds.eq(waits),
                    place.eq(FILTER_TERM_HITS & 127 | matcher.term),
                    addend.eq(1),
                ),
            ]
            self.sync += waits.eq((waits & ~takes) | matcher.term_hit)

        # Add.
        # ----
        # Read; what was read; sum; write. What the bus writes is added to 0.
        memory = Memory(32, 512)
        memory.attr = {("ram_style", "block")}
        writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        places     = [place] + [Signal(7, name=f"place_{age}_ago") for age in (1, 2, 3)]
        is_writing = [adds | writes] + [Signal(name=f"is_writing_{age}_ago") for age in (1, 2, 3)]
        is_bus     = Signal()
        early      = Signal(4)
        operand    = Signal(32, reset_less=True)
        total      = Signal(32, reset_less=True)
        self.comb += [
            reader.adr.eq(place),
            writer.adr.eq(places[3]),
            writer.we.eq(is_writing[3]),
            writer.dat_w.eq(total),
        ]
        self.sync += [
            *[to.eq(value) for value, to in zip(places, places[1:])],
            *[to.eq(value) for value, to in zip(is_writing, is_writing[1:])],
            is_bus.eq(writes),
            early.eq(addend),
            self.read.eq(reader.dat_r & Replicate(~is_bus & ~self.mute, 32)),
            operand.eq(Mux(is_bus, access.data, early)),
            total.eq(self.read + operand),
        ]

    def add_rows(self, table, hits, adds, place, addend):
        """Let hits of a table's rows wait."""
        waiting = Memory(4, FILTER_ROWS)
        writer, reader = waiting.get_port(write_capable=True), waiting.get_port(async_read=True)
        self.specials += waiting, writer, reader
        takes = Signal()
        total = Signal(4)
        self.comb += [
            takes.eq(self.slot.kind == table),
            total.eq(reader.dat_r + hits),
            reader.adr.eq(self.slot.number),
            writer.adr.eq(self.slot.number),
            writer.we.eq(1),
            writer.dat_w.eq(Mux(takes, 0, total)),
            If(takes,
                adds.eq(1),
                place.eq(Cat(self.slot.number, table)),
                addend.eq(total),
            ),
        ]
