# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds frames until their departure, once it is settled."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.emulate.layouts import (
    CLASS_BITS, DUE_BITS, KEPT_FIELDS, LANE_BITS, LENGTH_BITS, POSITION_BITS, departure_layout, kept_layout, narrowed,
    sent_layout, served_layout, words_of,
)
from liteprobe.cores.emulate.memories import EntryLists, SpilledLists, lut_ports
from liteprobe.cores.formats.emulate import LANES

FIELDS = (*KEPT_FIELDS, "gone", "number", "length")

entry_layout = kept_layout + [
    ("due",    DUE_BITS),
    ("gone",   1),
    ("number", CLASS_BITS),
    ("length", LENGTH_BITS),
]

class DelayLanes(LiteXModule):
    """Keeps frames of each lane in their order, and hands on the one that is due first when it is due soon.

    Parameters
    ----------
    entries : int
        Frames; a power of two. Nobody may give more, but where they spill.
    spills : bool
        More than them wait in the memory: ``lists`` is a `SpilledLists`, whose ends are to be connected.
    longest : int
        Octets of a frame: of fewer an entry takes less block RAM.
    lead : int
        Ticks before a frame is due at which it is handed on: by then every frame that is due before must have come.

    Attributes
    ----------
    now : Signal(32), in
        Ticks, modulo.
    sink : Endpoint(served_layout), in
    source : Endpoint(departure_layout), out
    sent : Endpoint(sent_layout), out
        Of each frame that comes and isn't dropped: its delay.
    left : Signal(), out
        Pulse: a frame was handed on.

    A frame that comes takes 4 cycles, one that is handed on 8 and one more for each lane in use; one after the other.

    Source: docs/design/emulator.md, "Departure" and "Line".
    """
    def __init__(self, entries, lead, spills=False, longest=2**LENGTH_BITS - 1):
        self.now    = Signal(DUE_BITS)
        self.sink   = sink   = stream.Endpoint(served_layout)
        self.source = source = stream.Endpoint(departure_layout)
        self.sent   = sent   = stream.Endpoint(sent_layout)
        self.left   = Signal()

        # # #

        self.lead_ticks = lead
        self.lists  = lists = (SpilledLists if spills else EntryLists)(narrowed(entry_layout, longest), entries, LANES)
        self.fsm    = fsm   = FSM(reset_state="CLEAR")
        self.number  = Signal(LANE_BITS) # Of the lane at hand.
        self.to_scan = Signal(LANES)     # Lanes to look at.
        self.is_any  = Signal()          # One was found,
        self.best    = Signal(DUE_BITS, reset_less=True) # whose first frame is due then.
        due      = Signal(DUE_BITS, reset_less=True) # Of the frame that comes.
        lag      = Signal(DUE_BITS)
        is_empty = Signal()
        entry    = lists.entry
        self.add_memories()
        self.comb += [
            lists.number.eq(self.number),
            is_empty.eq(~(lists.is_there >> self.number)[0]),
            lag.eq(sink.due - self.last.dat_r),
            *[getattr(entry, name).eq(getattr(sink, name)) for name in FIELDS],
            entry.due.eq(due),
            *copied(sent, sink, "number", "length", "twice"),
            sent.delay.eq(due - sink.arrival),
        ]
        fsm.act("CLEAR",
            self.clears.eq(1),
            NextValue(self.number, self.number + 1),
            If(self.number == LANES - 1, NextState("WAIT")),
        )
        fsm.act("WAIT",
            lists.idle.eq(1),
            If(lists.calls,
                NextState("WAIT"),
            ).Elif(sink.valid,
                NextValue(self.number, sink.lane),
                NextState("COME"),
            ).Elif(lists.is_there != 0,
                NextValue(self.to_scan, lists.is_there),
                NextValue(self.is_any, 0),
                NextState("SCAN"),
            ),
        )
        fsm.act("COME", NextState("SETTLE"))
        fsm.act("SETTLE",
            # Behind the last one, if that still waits: else it left before this one was settled.
            NextValue(due, Mux(~is_empty & lag[-1], self.last.dat_r, sink.due)),
            NextState("PUT"),
        )
        fsm.act("PUT",
            sent.valid.eq(lists.accepts & ~sink.gone),
            If(lists.accepts & (sent.ready | sink.gone),
                lists.put.eq(1),
                self.puts_first.eq(is_empty),
                self.first_due.eq(due),
                sink.ready.eq(1),
                NextState("WAIT"),
            ),
        )
        self.buffer = buffer = stream.Buffer(departure_layout)
        self.comb  += buffer.source.connect(source)
        self.add_scan(fsm)
        self.add_leave(fsm, buffer.sink)

    def add_memories(self):
        """Keep the due tick of the first and of the last frame of each lane, and where their octets are."""
        self.puts_first = Signal()
        self.clears     = Signal()
        self.first_due = Signal(DUE_BITS)
        self.looked    = Signal(LANE_BITS)
        self.passes    = Signal()
        self.words     = Signal(POSITION_BITS)
        put_first, self.first       = lut_ports(self, "firsts", DUE_BITS, LANES)
        put_last, self.last         = lut_ports(self, "lasts", DUE_BITS, LANES)
        put_position, self.position = lut_ports(self, "positions", POSITION_BITS, LANES)
        self.comb += [
            self.first.adr.eq(self.looked),
            self.position.adr.eq(self.number),
            self.last.adr.eq(self.number),
            put_last.adr.eq(self.number),
            put_last.we.eq(self.lists.put),
            put_last.dat_w.eq(self.lists.entry.due),
            put_first.adr.eq(self.number),
            put_first.we.eq(self.puts_first),
            put_first.dat_w.eq(self.first_due),
            put_position.adr.eq(self.number),
            put_position.we.eq(self.passes | self.clears),
            put_position.dat_w.eq(Mux(self.clears, 0, self.position.dat_r + self.words)),
        ]

    def add_scan(self, fsm):
        """Find the lane whose first frame is due first, the lowest on a tie; then look whether it is due soon."""
        to_scan, is_any, best = self.to_scan, self.is_any, self.best
        lowest = Signal(LANE_BITS)
        lead   = Signal(DUE_BITS)
        self.comb += [
            *[If(to_scan[n], lowest.eq(n)) for n in reversed(range(LANES))],
            lead.eq(self.first.dat_r - best),
        ]
        fsm.act("SCAN",
            self.looked.eq(lowest),
            NextValue(to_scan, to_scan & (to_scan - 1)),
            If(to_scan == 0,
                NextState("LOOK"),
            ).Elif(~is_any | lead[-1],
                NextValue(is_any, 1),
                NextValue(best, self.first.dat_r),
                NextValue(self.number, lowest),
            )
        )

    def add_leave(self, fsm, source):
        """Hand on the frame that was found, once it is due soon; what comes meanwhile is looked at first."""
        head  = self.lists.head
        ahead = Signal(DUE_BITS, reset_less=True)
        is_soon = Signal()
        self.comb += [
            # At most ``lead``: this compares few bits where that is a power of two.
            is_soon.eq(ahead[-1] | (ahead[:-1] < self.lead_ticks) | (ahead == self.lead_ticks)),
            *[getattr(source, name).eq(getattr(head, name)) for name in FIELDS],
            source.due.eq(head.due),
            source.lane.eq(self.number),
            source.position.eq(self.position.dat_r),
            self.words.eq(words_of(head.length)),
        ]
        fsm.act("LOOK", NextValue(ahead, self.best - self.now), NextState("JUDGE"))
        fsm.act("JUDGE",
            If(is_soon & source.ready,
                NextState("LEAVE"),
            ).Elif(self.sink.valid | self.lists.calls,
                NextState("WAIT"),
            ).Else(
                NextState("LOOK"),
            ),
        )
        fsm.act("LEAVE",
            source.valid.eq(1),
            self.left.eq(1),
            self.passes.eq(1),
            self.lists.drop.eq(1),
            NextState("FETCH"),
        )
        fsm.act("FETCH",   NextState("FETCHED"))
        fsm.act("FETCHED", NextState("NEXT"))
        fsm.act("NEXT",
            If(self.lists.lacks,
                self.lists.idle.eq(1),
                If(self.lists.fills, NextState("FETCH")),
            ).Else(
                self.puts_first.eq(1),
                self.first_due.eq(head.due),
                NextState("WAIT"),
            ),
        )
