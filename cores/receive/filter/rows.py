# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Tables that go round without end: rows of addresses, words of terms, limits of MACs."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import *
from liteprobe.cores.receive.filter.layouts import access_layout

block_ram = ("ram_style", "block")

# Filter Rows --------------------------------------------------------------------------------------

class FilterRows(LiteXModule):
    """Reads a row of both tables of addresses a cycle.

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

        # Numbers of the row that is asked for, and of those on their way: one that is compared, ``feed.number``, one whose
        # hits are counted.
        row, *later = numbers = [Signal(5) for _ in range(5)]
        self.compared = later[1]
        self.sync += [row.eq(row + 1), *[to.eq(number) for number, to in zip(numbers, later)]]
        self.comb += [
            feed.number.eq(later[2]),
            self.hit_number.eq(later[3]),
        ]
        self.writes = Signal() # A word of the tables.
        self.comb += self.writes.eq(self.access.write & (self.access.address[9:] == FILTER_PREFIXES[0] >> 9))

        for table, fed in enumerate([feed.source, feed.destination]):
            self.add_prefixes(table, fed, row)
        self.add_lengths([feed.source, feed.destination], row)

    def add_memory(self, width, address, write, row, **kwargs):
        """Return what the next cycle reads of a memory of 32 rows."""
        memory = Memory(width, FILTER_ROWS)
        memory.attr = {block_ram}
        writer = memory.get_port(write_capable=True, mode=READ_FIRST, **kwargs)
        reader = memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        self.comb += [
            writer.we.eq(write),
            writer.adr.eq(address),
            reader.adr.eq(row),
        ]
        return writer.dat_w, reader.dat_r

    def add_prefixes(self, table, fed, row):
        """Add the prefixes of a table; they are compared in the second cycle."""
        address = self.access.address
        for word in range(4):
            is_here = self.writes & ~address[8] & (address[7] == table) & (address[:2] == word)
            data, prefix = self.add_memory(32, address[2:7], is_here, row)
            self.comb += data.eq(self.access.data)
            self.sync += fed.prefix[32*word:32*word + 32].eq(prefix)

    def add_lengths(self, feds, row):
        """Add the rest of the rows, read a cycle earlier; what is not compared comes a cycle later."""
        access  = self.access
        ahead   = Signal(5, reset=1)
        is_here = [self.writes & (access.address[5:9] == (FILTER_LENGTHS[table] >> 5 & 15)) for table in range(2)]
        data, read = self.add_memory(32, access.address[:5], Cat(*is_here), ahead, we_granularity=16)
        self.sync += ahead.eq(ahead + 1)
        self.comb += data.eq(Cat(access.data[:16], access.data[:16]))
        for table, fed in enumerate(feds):
            length, terms, early = Signal(8), Signal(8), Signal(8)
            self.sync += [
                Cat(length, terms).eq(read[16*table:16*table + 16]),
                early.eq(terms),
                fed.terms.eq(early),
                fed.is_used.eq(terms != 0),
            ]
            self.add_octets(fed, length)
            channels = Memory(4, FILTER_ROWS)
            writer, reader = channels.get_port(write_capable=True), channels.get_port(async_read=True)
            self.specials += channels, writer, reader
            self.comb += [
                writer.we.eq(is_here[table]),
                writer.adr.eq(access.address[:5]),
                writer.dat_w.eq(access.data[16:20]),
                reader.adr.eq(self.compared),
            ]
            self.sync += Cat(fed.channel, fed.names).eq(reader.dat_r)

    def add_octets(self, fed, length):
        """Turn a length into octets and bits."""
        is_ipv4, octets, bits = Signal(), Signal(5), length[:3]
        self.comb += [
            is_ipv4.eq(length[6] & length[7]),
            octets.eq(Cat(length[3:6], length[6] & ~length[7], length[7] & ~length[6])),
        ]
        self.sync += [
            fed.is_ipv4.eq(is_ipv4),
            *[fed.whole[octet].eq(octets > octet) for octet in range(16)],
            *[fed.some[octet].eq((octets > octet) | ((octets == octet) & (bits != 0))) for octet in range(16)],
            *[fed.bits[bit].eq(bits > bit) for bit in range(7)],
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
