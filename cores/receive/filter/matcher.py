# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Decides whether a frame passes the filter: looks its addresses up, then goes through the tables that go round."""

from migen import *

from litex.gen import *

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import *
from liteprobe.cores.receive.filter.layouts import access_layout
from liteprobe.cores.receive.unified.key import key_layout

# Address Match ------------------------------------------------------------------------------------

class AddressMatch(LiteXModule):
    """Collects what the rows that match say.

    Parameters
    ----------
    row : Record(row_layout())
        The row that is compared; its terms and channel come a cycle later.
    compared, number : Signal(5), Signal(5)
        Its number, then and then.

    Attributes
    ----------
    rows, layer3 : Signal(32), Signal(2), in
        Of the frame: rows whose prefix it has, as of `PrefixVectors`.
    begins, runs : Signal(), in
        The first row of a frame, or any, was compared in the last cycle.
    match : Signal(), out
        It matches.
    seen : Signal(8), out
        Terms of all rows that match. Like all below, a cycle after the row was.
    found, first : Signal(), Signal(5), out
        A row matches; the lowest of them.
    names, channel : Signal(), Signal(3), out
        A row that matches names a channel; that of the lowest of them.
    """
    def __init__(self, row, compared, number):
        self.rows    = Signal(FILTER_ROWS)
        self.layer3  = Signal(2)
        self.begins  = Signal()
        self.runs    = Signal()
        self.match   = Signal()
        self.seen    = Signal(8, reset_less=True)
        self.found   = Signal(reset_less=True)
        self.first   = Signal(5, reset_less=True)
        self.names   = Signal(reset_less=True)
        self.channel = Signal(3, reset_less=True)

        # # #

        # Compare.
        # --------
        has_prefix = Signal()
        is_alike   = Signal()
        fits       = Signal(reset_less=True)
        self.comb += [
            has_prefix.eq(self.rows >> compared),
            is_alike.eq((self.layer3 != Layer3.NONE) & (row.is_ipv4 == (self.layer3 != Layer3.IPV6))),
            self.match.eq(self.runs & fits),
        ]
        self.sync += fits.eq(has_prefix & is_alike & row.is_used)

        # Collect.
        # --------
        # Rows go round: those of the second lap, from row 0 on, are lower than all of the first.
        is_fresh = Signal()
        stays     = Signal()
        self.comb += [
            is_fresh.eq(self.begins | (number == 0)),
            stays.eq(~self.begins),
        ]
        self.sync += self.seen.eq((Replicate(stays, 8) & self.seen) | (Replicate(self.match, 8) & row.terms))
        for takes, found, to, value in [
            (self.match,             self.found, self.first,   number),
            (self.match & row.names, self.names, self.channel, row.channel),
        ]:
            in_lap = Signal(reset_less=True) # One was found in this lap.
            self.sync += [
                found.eq((stays & found) | takes),
                in_lap.eq((~is_fresh & in_lap) | takes),
                If(takes & (is_fresh | ~in_lap), to.eq(value)),
            ]

# Prefix Vectors -----------------------------------------------------------------------------------

class PrefixVectors(LiteXModule):
    """Looks an address up, an octet a cycle.

    A word says which rows may match, by what half an octet of the address is: those that match are left when all words are
    and'ed. Two block RAMs, of high and low halves, hold the words. (T. Ganegedara, V. K. Prasanna: StrideBV: Single chip 400G+
    packet classification, HPSR 2012; stride 4.)

    Parameters
    ----------
    table : int
        Of source addresses (0) or destination addresses (1).

    Attributes
    ----------
    access : Record(access_layout()), in
        Words are written; the bus reads a copy (`FilterSets`).
    address : Signal(128), in
        As on the wire, the first octet in the lowest bits; all of it counts, so where it has but four octets, words of
        the others say that all rows may match.
    octet : Signal(4), in
        Which octet is looked up: from 0 to 15.
    rows : Signal(32), out
        A bit a row. Right two cycles after the last octet has been asked for.
    """
    def __init__(self, table):
        self.access  = access = Record(access_layout())
        self.address = Signal(128)
        self.octet   = Signal(4)
        self.rows    = Signal(FILTER_ROWS, reset_less=True)

        # # #

        value = Signal(8)
        self.comb += Case(self.octet, {octet: value.eq(self.address[8*octet:8*octet + 8]) for octet in range(16)})

        found = []
        for is_low, half in enumerate([value[4:], value[:4]]):
            memory = Memory(FILTER_ROWS, 256)
            memory.attr = {("ram_style", "block")}
            writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
            self.specials += memory, writer, reader
            self.comb += [
                writer.we.eq(access.write & (access.address[9:] == FILTER_VECTORS[table] >> 9) & (access.address[4] == is_low)),
                writer.adr.eq(Cat(access.address[:4], access.address[5:9])),
                writer.dat_w.eq(access.data),
                reader.adr.eq(Cat(half, self.octet)),
            ]
            found.append(reader.dat_r)

        is_first = Signal()
        self.sync += [
            is_first.eq(self.octet == 0),
            self.rows.eq(found[0] & found[1] & (self.rows | Replicate(is_first, FILTER_ROWS))),
        ]

def fails(condition, is_in):
    """Return whether a condition of two bits (`FilterCondition`) doesn't hold."""
    return (condition[0] & ~is_in) | (condition[1] & is_in)

# MAC Ranges ---------------------------------------------------------------------------------------

class MacRanges(LiteXModule):
    """Compares the MACs of a frame with the limits as they pass: 16 bits a cycle, the lowest first.

    Attributes
    ----------
    source, destination : Signal(48), in
    step, limit : Signal(4), Signal(16), in
        Which part of which limit; the part itself comes a cycle later. Four steps each: source's least, most,
        destination's least, most.
    in_source, in_destination : Signal(), out
        Not below the least, nor above the most. Right 20 cycles after a MAC has changed.
    """
    def __init__(self):
        self.source         = Signal(48)
        self.destination    = Signal(48)
        self.step           = Signal(4)
        self.limit          = Signal(16)
        self.in_source      = Signal()
        self.in_destination = Signal()

        # # #

        part  = Signal(16, reset_less=True)
        step  = Signal(4)
        parts = {
            4*is_destination + place: part.eq(mac[16*place:16*place + 16])
            for is_destination, mac in enumerate([self.source, self.destination]) for place in range(3)
        }
        self.sync += [
            step.eq(self.step),
            Case(Cat(self.step[:2], self.step[3]), {**parts, "default": part.eq(self.source[:16])}),
        ]

        # Below the least; and, with a borrow to begin with, not above the most.
        borrow     = Signal()
        difference = Signal(18)
        is_less    = Signal(4, reset_less=True)
        self.comb += difference.eq(Cat(Constant(0, 1), part) - Cat(Mux(step[:2] == 0, step[2], borrow), self.limit))
        self.sync += [
            borrow.eq(difference[17]),
            If(step[:2] == 2,
                Case(step[2:], {number: is_less[number].eq(difference[17]) for number in range(4)})
            ),
        ]
        self.comb += [
            self.in_source.eq(~is_less[0] & is_less[1]),
            self.in_destination.eq(~is_less[2] & is_less[3]),
        ]

# Term Conditions ----------------------------------------------------------------------------------

class TermConditions(LiteXModule):
    """Says which terms are enabled and hold, but for addresses.

    Parameters
    ----------
    feed : Record(feed_layout())
    port : int

    Attributes
    ----------
    held : Record(key_layout()), in
    in_vlans, in_source_ports, in_destination_ports, in_protocols : Signal(), Signal(), Signal(), Signal(8), in
    holds : Signal(8), out
        Right nine cycles after all that it depends on has changed for the last time.
    """
    def __init__(self, feed, port):
        self.held                 = held = Record(key_layout())
        self.in_vlans             = Signal()
        self.in_source_ports      = Signal()
        self.in_destination_ports = Signal()
        self.in_protocols         = Signal(8)
        self.holds                = Signal(8, reset_less=True)

        # # #

        self.macs = macs = MacRanges()
        self.comb += [
            macs.source.eq(held.source_mac),
            macs.destination.eq(held.destination_mac),
            *copied(macs, feed, "step", "limit"),
        ]

        # A field that the frame hasn't is in no set.
        is_ip       = held.layer3[1]
        in_protocol = Signal()
        self.comb  += Case(feed.term, {term: in_protocol.eq(self.in_protocols[term]) for term in range(FILTER_TERMS)})
        sets = {
            "protocol"         : in_protocol & is_ip,
            "source_port"      : self.in_source_ports & held.has_ports,
            "destination_port" : self.in_destination_ports & held.has_ports,
            "vlan"             : self.in_vlans & held.has_tag,
            "source_mac"       : macs.in_source & held.has_macs,
            "destination_mac"  : macs.in_destination & held.has_macs,
        }
        failing = Signal(len(sets))
        for number, (name, is_in) in enumerate(sets.items()):
            bit = FILTER_CONDITIONS[name]
            self.comb += failing[number].eq(fails(feed.word[bit:bit + 2], is_in))
        of_kind = Signal()
        holds   = Signal()
        self.comb += [
            Case(held.layer3, {kind: of_kind.eq(feed.word[FILTER_KINDS_BIT + kind]) for kind in range(4)}),
            holds.eq(feed.word[FILTER_ENABLED_BIT] & feed.word[FILTER_PROBE_PORTS_BIT + port] & of_kind & (failing == 0)),
        ]
        self.sync += Case(feed.term, {term: self.holds[term].eq(holds) for term in range(FILTER_TERMS)})

# The octets of an address have been asked for, and the last of them answered.
found_age = 17

# Filter Matcher -----------------------------------------------------------------------------------

class FilterMatcher(LiteXModule):
    """Finds which rows and terms a frame's key matches.

    Addresses are looked up in 16 cycles; then the rows go by, for 32 cycles from whatever row comes next. Meanwhile the next
    frame's addresses are looked up.

    Made by `FilterTables`, which gives it ``feed`` and the answers of the sets.

    Parameters
    ----------
    feed : Record(feed_layout())
        Of the tables.
    port : int
        Number of the port.

    Attributes
    ----------
    key : Record(key_layout()), in
        Taken at ``start``.
    start : Signal(), in
        One cycle. From 32 cycles apart; sooner, the frame before gets no ``done``.
    done : Signal(), out
        One cycle, 54 after ``start``. All below hold until the next one.
    matched : Signal(), out
        A term holds, or none is enabled, or the filter is not.
    passed : Signal(), out
        What matches, or with ``drop`` what doesn't; everything where the filter is not enabled.
    rule : Signal(8), out
        What matched: first source row, else 32 + first destination row, else 64 + lowest term. 255 where none is enabled,
        none holds, or what matches is dropped.
    names_channel, channel : Signal(), Signal(3), out
        Of the first source row that matches and names one, else destination row, else of the lowest term that holds.
    held : Record(key_layout()), out
        To the tables: the key.
    source_vectors, destination_vectors : PrefixVectors
        Written by the tables.
    in_vlans, in_source_ports, in_destination_ports, in_protocols : Signal(), Signal(), Signal(), Signal(8), in
        From the tables: which sets hold it, protocols a bit a term; within 20 cycles of ``start``.
    source_hit, destination_hit : Signal(), out
        To the tables: the row whose ``number`` was there a cycle ago matches.
    term_hit, term : Signal(), Signal(3), out
        To the tables, with ``done``: the lowest term that holds.
    lowest, term_channel : Signal(3), out, Signal(4), in
        A term, and what its word says: whether it names a channel (bit 0), and which.
    """
    def __init__(self, feed, port=0):
        self.key                  = Record(key_layout())
        self.start                = Signal()
        self.done                 = Signal()
        self.matched              = Signal()
        self.passed               = Signal()
        self.rule                 = Signal(8)
        self.names_channel        = Signal()
        self.channel              = Signal(3)
        self.held                 = Record(key_layout(), reset_less=True)
        self.in_vlans             = Signal()
        self.in_source_ports      = Signal()
        self.in_destination_ports = Signal()
        self.in_protocols         = Signal(8)
        self.source_hit           = Signal()
        self.destination_hit      = Signal()
        self.term_hit             = Signal()
        self.term                 = Signal(3)
        self.lowest               = Signal(3)
        self.term_channel         = Signal(4)

        # # #

        self.feed = feed
        self.age      = Signal(5, reset_less=True) # Cycles that a key has been held,
        self.is_young = Signal()                   # if that is less than 32.
        self.is_found = Signal() # Rows whose prefix the addresses have are known.
        # ``begins``, ``runs``: what came of a comparison is there; ``counts``, while the filter is in force.
        self.is_last = Signal()
        self.begins  = Signal()
        self.runs    = Signal()
        self.counts  = Signal()
        self.ends    = Signal(3) # Behind the last row: a cycle, two, three.
        self.is_on   = Signal()  # The filter is enabled, and has been since the frame's start:
        self.was_on  = Signal()  # of one whose rows go by; of the last one.
        self.add_cycles()
        self.add_laps()
        self.add_conditions(port)
        self.add_terms()
        self.add_answer()

    def add_cycles(self):
        """Hold a key for 32 cycles."""
        self.is_on_yet = Signal()
        self.comb += self.is_found.eq(self.is_young & (self.age == found_age))
        self.sync += [
            self.age.eq(self.age + 1),
            If(self.age == 31, self.is_young.eq(0)),
            self.is_on_yet.eq(self.is_on_yet & self.feed.enable),
            If(self.start,
                self.held.eq(self.key),
                self.age.eq(0),
                self.is_young.eq(1),
                self.is_on_yet.eq(self.feed.enable),
            ),
        ]

    def add_laps(self):
        """Let rows go by for 32 cycles."""
        is_last, enable = self.is_last, self.feed.enable
        count    = Signal(5, reset_less=True)
        compares = Signal()
        is_first = Signal()
        self.comb += is_last.eq(compares & (count == 31))
        self.sync += [
            count.eq(count + 1),
            If(is_last, compares.eq(0)),
            self.is_on.eq(self.is_on & enable),
            If(self.is_found, count.eq(0), compares.eq(1), self.is_on.eq(self.is_on_yet & enable)),
            is_first.eq(self.is_found),
            self.begins.eq(is_first),
            self.runs.eq(compares),
            self.counts.eq(compares & self.is_on),
            self.ends.eq(Cat(is_last, self.ends)),
            If(is_last, self.was_on.eq(self.is_on & enable)),
        ]

    def add_conditions(self, port):
        """Hold the key against rows, and against all that terms ask besides."""
        feed, held = self.feed, self.held
        layer3 = Signal(2, reset_less=True)
        self.sync += If(self.is_found, layer3.eq(held.layer3))
        for table, name in enumerate(["source", "destination"]):
            vectors = PrefixVectors(table)
            match   = AddressMatch(getattr(feed, name), feed.compared, feed.number)
            setattr(self, f"{name}_vectors", vectors)
            setattr(self, name, match)
            self.comb += [
                vectors.address.eq(getattr(held, name)),
                vectors.octet.eq(self.age),
                match.layer3.eq(layer3),
                *copied(match, self, "begins", "runs"),
            ]
            self.sync += [
                If(self.is_found, match.rows.eq(vectors.rows)),
                getattr(self, f"{name}_hit").eq(match.match & self.counts),
            ]
        self.terms = terms = TermConditions(feed, port)
        self.comb += terms.held.raw_bits().eq(self.held.raw_bits())
        for name in ("in_vlans", "in_source_ports", "in_destination_ports", "in_protocols"):
            self.comb += getattr(terms, name).eq(getattr(self, name))

    def add_terms(self):
        """Keep which terms hold, and what the rows say, before the next frame's rows are collected."""
        feed, source, destination = self.feed, self.source, self.destination
        others           = Signal(FILTER_TERMS, reset_less=True)
        self.holds       = Signal(FILTER_TERMS, reset_less=True)
        self.row_found   = Signal(reset_less=True)
        self.row         = Signal(6, reset_less=True)
        self.row_names   = Signal(reset_less=True)
        self.row_channel = Signal(3, reset_less=True)
        self.sync += [
            If(self.age == 31, others.eq(self.terms.holds)),
            If(self.ends[1],
                self.row_found.eq(source.found | destination.found),
                self.row.eq(Mux(source.found, source.first, Cat(destination.first, 1))),
                self.row_names.eq(source.names | destination.names),
                self.row_channel.eq(Mux(source.names, source.channel, destination.channel)),
                *[self.holds[term].eq(others[term]
                    & ~fails(feed.asks[4*term:4*term + 2], source.seen[term])
                    & ~fails(feed.asks[4*term + 2:4*term + 4], destination.seen[term])) for term in range(FILTER_TERMS)],
            ),
        ]

    def add_answer(self):
        """Say what becomes of the frame."""
        feed      = self.feed
        in_force  = Signal()
        holds_any = Signal()
        matched   = Signal()
        self.comb += [
            in_force.eq(self.was_on & feed.enable), # ``drop`` may change when ``enable`` does.
            holds_any.eq(in_force & (self.holds != 0)),
            matched.eq(~in_force | ~feed.asked | holds_any),
            *[If(self.holds[term], self.lowest.eq(term)) for term in reversed(range(FILTER_TERMS))],
        ]
        self.sync += [
            self.done.eq(self.ends[2]),
            self.term_hit.eq(self.ends[2] & holds_any),
            If(self.ends[2],
                self.matched.eq(matched),
                self.passed.eq(~in_force | (matched ^ feed.drop)),
                self.rule.eq(NO_RULE),
                If(holds_any & ~feed.drop, self.rule.eq(Mux(self.row_found, self.row, TERM_RULES + self.lowest))),
                self.names_channel.eq(in_force & (self.row_names | (holds_any & self.term_channel[0]))),
                self.channel.eq(Mux(self.row_names, self.row_channel, self.term_channel[1:])),
                self.term.eq(self.lowest),
            ),
        ]
