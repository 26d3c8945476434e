# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds what a frame is against the words of the terms as they pass; all conditions but those of addresses."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import *
from liteprobe.cores.receive.unified.key import key_layout

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
        self.comb += difference.eq(
            Cat(Constant(0, 1), part) - Cat(Mux(step[:2] == 0, step[2], borrow), self.limit))
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
            macs.step.eq(feed.step),
            macs.limit.eq(feed.limit),
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
