# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Decides whether a frame passes the filter, from the tables that go round."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FILTER_TERMS, NO_RULE, TERM_RULES
from liteprobe.cores.receive.filter.addresses import AddressMatch
from liteprobe.cores.receive.filter.terms import TermConditions, fails
from liteprobe.cores.receive.unified.key import key_layout

# Filter Matcher -----------------------------------------------------------------------------------

class FilterMatcher(LiteXModule):
    """Holds a frame's key against the rows and terms that go round, for 32 cycles from whatever row comes next.

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
        One cycle, 36 after ``start``. All below hold until the next one.
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
        To the tables: the key that is compared.
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
        # ``begins``, ``runs``: what came of a comparison is there; ``counts``, while the filter is in force.
        self.is_last, self.begins, self.runs, self.counts = [Signal() for _ in range(4)]
        self.ends   = Signal(3) # Behind the last row: a cycle, two, three.
        self.is_on  = Signal()  # The filter is enabled, and has been since the frame's start;
        self.was_on = Signal()  # all the time that the last frame was compared.
        self.add_cycles()
        self.add_conditions(port)
        self.add_terms()
        self.add_answer()

    def add_cycles(self):
        """Compare rows for 32 cycles."""
        feed, is_last = self.feed, self.is_last
        count, compares, is_first = Signal(5, reset_less=True), Signal(), Signal()
        self.comb += is_last.eq(compares & (count == 31))
        self.sync += [
            count.eq(count + 1),
            If(is_last, compares.eq(0)),
            self.is_on.eq(self.is_on & feed.enable),
            If(self.start, self.held.eq(self.key), count.eq(0), compares.eq(1), self.is_on.eq(feed.enable)),
            is_first.eq(self.start),
            self.begins.eq(is_first),
            self.runs.eq(compares),
            self.counts.eq(compares & self.is_on),
            self.ends.eq(Cat(is_last, self.ends)),
            If(is_last, self.was_on.eq(self.is_on & feed.enable)),
        ]

    def add_conditions(self, port):
        """Hold the key against rows, and against all that terms ask besides."""
        feed = self.feed
        self.source, self.destination = sides = [AddressMatch(row, feed.number) for row in (feed.source, feed.destination)]
        addresses = (self.held.source, self.held.destination)
        for match, address, hit in zip(sides, addresses, (self.source_hit, self.destination_hit)):
            self.comb += [
                match.address.eq(address),
                match.layer3.eq(self.held.layer3),
                match.begins.eq(self.begins),
                match.runs.eq(self.runs),
            ]
            self.sync += hit.eq(match.match & self.counts)
        self.terms = terms = TermConditions(feed, port)
        self.comb += terms.held.raw_bits().eq(self.held.raw_bits())
        for name in ("in_vlans", "in_source_ports", "in_destination_ports", "in_protocols"):
            self.comb += getattr(terms, name).eq(getattr(self, name))

    def add_terms(self):
        """Keep which terms hold, and what the rows say, before the next frame's rows are collected."""
        feed, source, destination = self.feed, self.source, self.destination
        others = Signal(FILTER_TERMS, reset_less=True)
        self.holds = Signal(FILTER_TERMS, reset_less=True)
        self.row_found, self.row         = Signal(reset_less=True), Signal(6, reset_less=True)
        self.row_names, self.row_channel = Signal(reset_less=True), Signal(3, reset_less=True)
        self.sync += [
            If(self.is_last, others.eq(self.terms.holds)),
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
        feed = self.feed
        in_force, holds_any, matched = Signal(), Signal(), Signal()
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
