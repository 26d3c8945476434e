# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Decides whether a frame passes the filter: looks its addresses up, then goes through the tables that go round."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FILTER_TERMS, NO_RULE, TERM_RULES
from liteprobe.cores.receive.filter.addresses import AddressMatch
from liteprobe.cores.receive.filter.terms import TermConditions, fails
from liteprobe.cores.receive.filter.vectors import PrefixVectors
from liteprobe.cores.receive.unified.key import key_layout

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
                match.begins.eq(self.begins),
                match.runs.eq(self.runs),
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
