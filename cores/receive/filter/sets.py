# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sets of ports, protocols and VLANs in block RAM; ports of the probe ask one after the other."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import *
from liteprobe.cores.receive.filter.layouts import access_layout, slot_layout

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
