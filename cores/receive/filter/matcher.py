# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Decides whether a frame passes the filter, from the tables that go round."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import FILTER_TERMS, NO_RULE, TERM_RULES
from liteprobe.cores.receive.filter.addresses import AddressMatch
from liteprobe.cores.receive.filter.layouts import key_layout
from liteprobe.cores.receive.filter.terms import TermConditions, fails

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

        # Which cycle.
        # ------------
        # ``compares``: a row, for 32 cycles. ``begins``, ``runs``: what came of it is there, a cycle later. Then all rows
        # have been collected (``ends[1]``), and terms are known (``ends[2]``).
        count    = Signal(5, reset_less=True)
        compares = Signal()
        is_last  = Signal()
        is_first, begins, runs = Signal(), Signal(), Signal()
        ends     = Signal(3)
        # The filter is enabled, and has been since the frame's start.
        is_on, counts, was_on = Signal(), Signal(), Signal()
        self.comb += is_last.eq(compares & (count == 31))
        self.sync += [
            count.eq(count + 1),
            If(is_last, compares.eq(0)),
            is_on.eq(is_on & feed.enable),
            If(self.start, self.held.eq(self.key), count.eq(0), compares.eq(1), is_on.eq(feed.enable)),
            is_first.eq(self.start),
            begins.eq(is_first),
            runs.eq(compares),
            counts.eq(compares & is_on),
            ends.eq(Cat(is_last, ends)),
        ]

        # Conditions.
        # -----------
        self.source, self.destination = sides = [AddressMatch(row, feed.number) for row in (feed.source, feed.destination)]
        addresses = (self.held.source, self.held.destination)
        for match, address, hit in zip(sides, addresses, (self.source_hit, self.destination_hit)):
            self.comb += [
                match.address.eq(address),
                match.layer3.eq(self.held.layer3),
                match.begins.eq(begins),
                match.runs.eq(runs),
            ]
            self.sync += hit.eq(match.match & counts)
        self.terms = terms = TermConditions(feed, port)
        self.comb += terms.held.raw_bits().eq(self.held.raw_bits())
        for name in ("in_vlans", "in_source_ports", "in_destination_ports", "in_protocols"):
            self.comb += getattr(terms, name).eq(getattr(self, name))

        # Terms.
        # ------
        # Which of them hold, and what the rows say, before the next frame's rows are collected.
        others, holds = Signal(FILTER_TERMS, reset_less=True), Signal(FILTER_TERMS, reset_less=True)
        row_found, row         = Signal(reset_less=True), Signal(6, reset_less=True)
        row_names, row_channel = Signal(reset_less=True), Signal(3, reset_less=True)
        source, destination    = sides
        self.sync += [
            If(is_last, others.eq(terms.holds), was_on.eq(is_on & feed.enable)),
            If(ends[1],
                row_found.eq(source.found | destination.found),
                row.eq(Mux(source.found, source.first, Cat(destination.first, 1))),
                row_names.eq(source.names | destination.names),
                row_channel.eq(Mux(source.names, source.channel, destination.channel)),
                *[holds[term].eq(others[term]
                    & ~fails(feed.asks[4*term:4*term + 2], source.seen[term])
                    & ~fails(feed.asks[4*term + 2:4*term + 4], destination.seen[term])) for term in range(FILTER_TERMS)],
            ),
        ]

        # Answer.
        # -------
        in_force, holds_any, matched = Signal(), Signal(), Signal()
        self.comb += [
            in_force.eq(was_on & feed.enable), # ``drop`` may change when ``enable`` does.
            holds_any.eq(in_force & (holds != 0)),
            matched.eq(~in_force | ~feed.asked | holds_any),
            *[If(holds[term], self.lowest.eq(term)) for term in reversed(range(FILTER_TERMS))],
        ]
        self.sync += [
            self.done.eq(ends[2]),
            self.term_hit.eq(ends[2] & holds_any),
            If(ends[2],
                self.matched.eq(matched),
                self.passed.eq(~in_force | (matched ^ feed.drop)),
                self.rule.eq(NO_RULE),
                If(holds_any & ~feed.drop, self.rule.eq(Mux(row_found, row, TERM_RULES + self.lowest))),
                self.names_channel.eq(in_force & (row_names | (holds_any & self.term_channel[0]))),
                self.channel.eq(Mux(row_names, row_channel, self.term_channel[1:])),
                self.term.eq(self.lowest),
            ),
        ]
