# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tables of the filter, once for all ports of a probe, and their way to the bus."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr import CSRField, CSRStorage

from liteprobe.cores.formats import FILTER_ROW_HITS, FILTER_WORDS
from liteprobe.cores.receive.filter.hits import FilterHits
from liteprobe.cores.receive.filter.layouts import access_layout, feed_layout, slot_layout
from liteprobe.cores.receive.filter.matcher import FilterMatcher
from liteprobe.cores.receive.filter.rows import FilterRows, FilterWords
from liteprobe.cores.receive.filter.sets import FilterSets

# Filter Tables ------------------------------------------------------------------------------------

class FilterTables(LiteXModule):
    """Holds rules for all ports, and counts what they hit.

    Parameters
    ----------
    ports : int
        One or two.

    Attributes
    ----------
    matchers : list of FilterMatcher
        One a port.
    enable, drop : Signal(), Signal(), in
        The filter is in force; what matches is dropped, else what doesn't. A frame passes unless ``enable`` is 1 from its
        ``start`` to its ``done``, so tables that are changed meanwhile do nothing by halves.
    bus : wishbone.Interface, slave
        ``words`` words of 32 bits, whole words only; addresses in cores/formats. What was written is read, and counters.
        Answers within 12 cycles; a write to a counter within 132.

    Counters wrap. What the bus reads of a row is up to 132 cycles old, but a write sets it to that very value.
    """
    words = FILTER_WORDS

    def __init__(self, ports=2):
        assert ports in (1, 2)
        self.enable = Signal()
        self.drop   = Signal()
        self.bus    = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        self.feed = feed = Record(feed_layout(), reset_less=True)
        self.comb += [
            feed.enable.eq(self.enable),
            feed.drop.eq(self.drop),
        ]
        self.matchers = [FilterMatcher(feed, port) for port in range(ports)]
        for port, matcher in enumerate(self.matchers):
            self.add_module(name=f"matcher{port}", module=matcher)

        self.rows  = rows  = FilterRows(feed)
        self.terms = terms = FilterWords(feed, self.matchers)
        self.sets  = sets  = FilterSets(self.matchers)
        self.hits  = hits  = FilterHits(self.matchers)

        # Whose turn it is.
        # -----------------
        slot = Record(slot_layout())
        lap  = Signal(2)
        self.comb += [
            slot.number.eq(rows.hit_number),
            slot.kind.eq(rows.hit_number[:2] ^ lap),
            terms.number.eq(rows.hit_number),
            sets.slot.raw_bits().eq(slot.raw_bits()),
            hits.slot.raw_bits().eq(slot.raw_bits()),
        ]
        self.sync += lap.eq(lap + (rows.hit_number == 31))

        vectors = [side for matcher in self.matchers for side in (matcher.source_vectors, matcher.destination_vectors)]
        self.add_access(slot, [rows, terms, sets, hits, *vectors])

    def add_access(self, slot, memories):
        """Let the bus read and write a word in its turn: words of counters in theirs."""
        bus, sets, hits = self.bus, self.sets, self.hits
        access  = Record(access_layout())
        asks    = Signal()
        writes  = Signal()
        goes    = Signal()
        step    = Signal(2)
        is_hits = Signal()
        self.comb += [
            is_hits.eq(access.address[11:] == FILTER_ROW_HITS[0] >> 11),
            goes.eq(asks & Mux(is_hits & writes, hits.is_turn, slot.kind == 3)),
            hits.address.eq(access.address),
            *[getattr(memory.access, name).eq(getattr(access, name)) for memory in memories for name in ("address", "data")],
            hits.access.write.eq(goes & writes),
            # A cycle later: what decides on ``goes`` is far from all of these.
            *[memory.access.write.eq(access.write) for memory in memories if memory is not hits],
            # Of the memories, all but one are silent.
            *[mute.eq(step[0] & ~writes & (access.address[11:] != region))
                for region, mute in enumerate([*sets.mute, hits.mute])],
        ]
        self.sync += [
            access.address.eq(bus.adr),
            access.data.eq(bus.dat_w),
            access.write.eq(goes & writes),
            writes.eq(bus.we),
            asks.eq(bus.cyc & bus.stb & ~goes & (step == 0) & ~bus.ack),
            step.eq(Cat(goes, step[0]) & Replicate(bus.cyc & bus.stb, 2)),
            bus.ack.eq(step[1] & bus.cyc & bus.stb),
            If(step[1], bus.dat_r.eq(sets.read | hits.read)),
        ]

    def add_csr(self):
        """Give it a register."""
        self._control = CSRStorage(2, name="control", description="Filter.", fields=[
            CSRField("enable", size=1, description="In force; else every frame passes. 0 while tables are changed."),
            CSRField("drop",   size=1, description="Drops what matches, else what doesn't."),
        ])
        self.comb += [
            self.enable.eq(self._control.fields.enable),
            self.drop.eq(self._control.fields.drop),
        ]
