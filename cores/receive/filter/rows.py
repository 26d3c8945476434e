# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Shows the tables round and round: rows of addresses, words of terms, limits of MACs."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import *
from liteprobe.cores.receive.filter.layouts import access_layout

block_ram = ("ram_style", "block")

# Filter Rows --------------------------------------------------------------------------------------

class FilterRows(LiteXModule):
    """Reads a row of both tables of addresses a cycle, but for its prefix.

    Parameters
    ----------
    feed : Record(feed_layout())
        Where rows go.

    Attributes
    ----------
    access : Record(access_layout()), in
    hit_number : Signal(5), out
        Of the row, a cycle after ``feed.number``: when matchers have found whether it matches.
    """
    def __init__(self, feed):
        self.access     = Record(access_layout())
        self.hit_number = Signal(5)

        # # #

        # Number of the row that is asked for, and of those on their way.
        row, *later = numbers = [Signal(5, name=f"row_{age}_ago" if age else "row") for age in range(5)]
        self.sync += [row.eq(row + 1), *[to.eq(number) for number, to in zip(numbers, later)]]
        self.comb += [
            feed.compared.eq(later[1]),
            feed.number.eq(later[2]),
            self.hit_number.eq(later[3]),
        ]

        # Both rows of that number, 16 bits each.
        memory = Memory(32, FILTER_ROWS)
        memory.attr = {block_ram}
        writer = memory.get_port(write_capable=True, mode=READ_FIRST, we_granularity=16)
        reader = memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        self.comb += [
            writer.we.eq(Cat(*[self.access.write & (self.access.address[5:] == first >> 5) for first in FILTER_ROW_WORDS])),
            writer.adr.eq(self.access.address),
            writer.dat_w.eq(Replicate(self.access.data[:16], 2)),
            reader.adr.eq(row),
        ]
        for table, fed in enumerate([feed.source, feed.destination]):
            word = Signal(FILTER_ROW_IPV4_BIT + 1, reset_less=True)
            self.sync += [
                word.eq(reader.dat_r[16*table:16*table + 16]),
                Cat(fed.terms, fed.channel, fed.names).eq(word),
            ]
            self.comb += [
                fed.is_used.eq(word[:FILTER_TERMS] != 0),
                fed.is_ipv4.eq(word[FILTER_ROW_IPV4_BIT]),
            ]

# Filter Words -------------------------------------------------------------------------------------

class FilterWords(LiteXModule):
    """Reads the word of a term and a part of a MAC's limit a cycle.

    Parameters
    ----------
    feed : Record(feed_layout())
    matchers : list of FilterMatcher

    Attributes
    ----------
    access : Record(access_layout()), in
    number : Signal(4), in
        Which of them; counts.
    """
    def __init__(self, feed, matchers):
        self.access = access = Record(access_layout())
        self.number = Signal(4)

        # # #

        is_term  = access.write & (access.address[3:] == FILTER_TERM_WORDS >> 3)
        is_limit = access.write & (access.address[4:] == FILTER_MACS[0][0] >> 4)
        word,    = self.add_memory(27, FILTER_TERMS, is_term, access.data, [self.number[:3]])
        limit,   = self.add_memory(16, 16, is_limit, access.data, [self.number])
        self.sync += [
            feed.term.eq(self.number[:3]),
            feed.word.eq(word),
            feed.limit.eq(limit),
        ]
        self.comb += feed.step.eq(self.number)

        channels = access.data[FILTER_NAMES_BIT:FILTER_CHANNEL_BIT + 3]
        found    = self.add_memory(4, FILTER_TERMS, is_term, channels, [matcher.lowest for matcher in matchers])
        self.comb += [matcher.term_channel.eq(channel) for matcher, channel in zip(matchers, found)]

        # Of all terms at a time: their conditions of addresses, and whether any is enabled.
        enabled = Signal(FILTER_TERMS)
        self.sync += [
            Case(feed.term, {term: [
                enabled[term].eq(feed.word[FILTER_ENABLED_BIT]),
                feed.asks[4*term:4*term + 4].eq(feed.word[:4]),
            ] for term in range(FILTER_TERMS)}),
            feed.asked.eq(enabled != 0),
        ]

    def add_memory(self, width, depth, write, data, addresses):
        """Return what a LUT RAM holds at each of the addresses."""
        memory = Memory(width, depth)
        writer = memory.get_port(write_capable=True)
        self.specials += memory, writer
        self.comb += [
            writer.we.eq(write),
            writer.adr.eq(self.access.address),
            writer.dat_w.eq(data),
        ]
        found = []
        for address in addresses:
            reader = memory.get_port(async_read=True)
            self.specials += reader
            self.comb += reader.adr.eq(address)
            found.append(reader.dat_r)
        return found
