# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds the tables of the filter, once for all ports of a probe, and gives them to the bus."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr import CSRField, CSRStorage

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import *
from liteprobe.cores.receive.filter.hits import FilterHits
from liteprobe.cores.receive.filter.layouts import access_layout, feed_layout, slot_layout
from liteprobe.cores.receive.filter.matcher import FilterMatcher
from liteprobe.cores.receive.filter.rows import FilterRows, FilterWords

# Filter Sets --------------------------------------------------------------------------------------

class FilterSets(LiteXModule):
    """Asks the sets for each matcher, again and again: ports every 7 cycles or sooner, protocol and VLAN every 11.

    The memory of protocols and VLANs holds a copy of all rows and prefixes, too, for the bus to read.

    Parameters
    ----------
    matchers : list of FilterMatcher

    Attributes
    ----------
    access : Record(access_layout()), in
    slot : Record(slot_layout()), in
    mute : Signal(3), in
        What is read in the last cycle is 0: of source ports, destination ports, all else.
    read : Signal(32), out
        What was read two cycles ago in any of them, or'd.
    """
    def __init__(self, matchers):
        self.access = Record(access_layout())
        self.slot   = slot = Record(slot_layout())
        self.mute   = Signal(3)
        self.read   = Signal(32)

        # # #

        self.matchers = matchers
        # What was asked for two cycles ago: port, and whether VLAN or protocol.
        kinds = [slot.kind, *(Signal(2, name=f"kind_{age}_ago") for age in (1, 2))]
        ids   = [slot.number[2], *(Signal(name=f"is_id_{age}_ago") for age in (1, 2))]
        self.sync += [
            *[to.eq(kind) for kind, to in zip(kinds, kinds[1:])],
            *[to.eq(is_id) for is_id, to in zip(ids, ids[1:])],
        ]
        self.kind, self.is_id = kinds[2], ids[2]

        found = []
        for side, name in enumerate(["source_port", "destination_port"]):
            numbers = [getattr(matcher.held, name) for matcher in matchers]
            word    = self.add_memory(side, 2048, FILTER_PORTS[side] >> 11, [number[5:] for number in numbers])
            is_in   = Signal()
            self.comb += is_in.eq(word >> self.ask([number[:5] for number in numbers], self.kind))
            self.answer(f"in_{name}s", is_in)
            found.append(word)

        # VLANs and protocols.
        addresses = [Mux(ids[0],
            FILTER_VLANS & 2047 | matcher.held.vlan[5:],
            FILTER_PROTOCOLS & 2047 | matcher.held.protocol[2:]) for matcher in matchers]
        word      = self.add_memory(2, 2048, FILTER_PROTOCOLS >> 11, addresses)
        octets    = Array([word[8*octet:8*octet + 8] for octet in range(4)])
        is_in     = Signal()
        protocols = Signal(8)
        self.comb += [
            is_in.eq(word >> self.ask([matcher.held.vlan[:5] for matcher in matchers], self.kind)),
            protocols.eq(octets[self.ask([matcher.held.protocol[:2] for matcher in matchers], self.kind)]),
        ]
        self.answer("in_vlans", is_in, self.is_id)
        self.answer("in_protocols", protocols, ~self.is_id)
        self.comb += self.read.eq(found[0] | found[1] | word)

    def ask(self, values, kind):
        """Return the value of the matcher whose turn it is."""
        return values[0] if len(values) == 1 else Mux(kind[0], values[1], values[0])

    def answer(self, name, value, condition=1):
        """Tell the matcher that has asked."""
        for port, matcher in enumerate(self.matchers):
            self.sync += If(condition & (self.kind == port), getattr(matcher, name).eq(value))

    def add_memory(self, number, words, region, addresses):
        """Return what a memory held two cycles ago at the address whose turn it was."""
        memory = Memory(32, words)
        memory.attr = {("ram_style", "block")}
        writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        bits = log2_int(words)
        word = Signal(32, reset_less=True)
        self.comb += [
            writer.we.eq(self.access.write & (self.access.address[bits:] == region)),
            writer.adr.eq(self.access.address),
            writer.dat_w.eq(self.access.data),
            reader.adr.eq(Mux(self.slot.kind[1], self.access.address[:bits], self.ask(addresses, self.slot.kind))),
        ]
        self.sync += word.eq(reader.dat_r & Replicate(~self.mute[number], 32))
        return word

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
        self.comb += copied(feed, self, "enable", "drop")
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
        self.comb += copied(self, self._control.fields, "enable", "drop")
