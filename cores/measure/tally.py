# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts events in a memory, and shows them all as of one instant in a second one."""

from collections import namedtuple

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone

# Snapshot Reader ----------------------------------------------------------------------------------

class SnapshotReader(LiteXModule):
    """Lets the bus read a memory, but not while it changes.

    Parameters
    ----------
    port : read port of the memory

    Attributes
    ----------
    bus : wishbone.Interface, slave
        Read only, 32 bits, words; writes are acknowledged and do nothing.
    wait : Signal(), in
        Holds the acknowledge; what is read after it is what is there after it.
    """
    def __init__(self, port):
        self.bus  = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.wait = Signal()

        # # #

        step = Signal(2)
        self.comb += port.adr.eq(bus.adr[:len(port.adr)])
        self.sync += [
            bus.dat_r.eq(port.dat_r),
            step.eq(0),
            bus.ack.eq(0),
            If(bus.cyc & bus.stb & ~self.wait,
                step.eq(Cat((step == 0) & ~bus.ack, step[0])),
                bus.ack.eq(step[1]),
            ),
        ]

WORD_BITS = 32

# What is tallied ----------------------------------------------------------------------------------

Event = namedtuple("Event", "name addend bits words", defaults=(2,))
Event.__doc__ = """Adds ``addend`` in every cycle; ``bits`` must hold what comes in one pass (see `Tally`).

Of the shortest frames at line rate one word counts 48 minutes, two count 390,000 years.
"""

# Tally --------------------------------------------------------------------------------------------

class Tally(LiteXModule):
    """Adds up events, one word a cycle.

    A pass goes over the words again and again: it takes what has come since the last pass, all in one cycle, and adds it
    word by word. ``latch`` makes what the next pass reads go to a second memory too, as every later sum does. The pass
    after it starts in the instant of the snapshot. It still adds what it took, and then the second memory is let alone.

    Parameters
    ----------
    events : list of Event

    Attributes
    ----------
    latch : Signal(), in
        One cycle: takes a snapshot, of an instant between this cycle and the end of ``busy``.
    clear : Signal(), in
        One cycle: all is 0, and the events of this cycle are forgotten. The snapshot stays unless ``busy``: then it is taken
        anew.
    busy : Signal(), out
        A snapshot is taken; the bus waits meanwhile.
    layout : dict of name to (first word, words)
        Where the bus finds each; the highest word first.
    bus : wishbone.Interface, slave
        The snapshot; 0 before the first ``latch``. ``words`` words of 32 bits.

    Widths of events: from one taking to the next it takes words + 1 cycles. With 48 words at 48 MHz these are 128 octet times:
    16 SFDs (eight apart), 64 carriers of an octet that are refused, a giant, and one or two of each that a crossing held.
    """
    words = 64

    def __init__(self, events):
        self.latch  = Signal()
        self.clear  = Signal()
        self.busy   = Signal()
        self.layout = {}

        # # #

        first = 0
        for event in events:
            self.layout[event.name] = (first, event.words)
            first += event.words
        assert first < self.words
        self.place    = Signal(max=self.words, reset=self.words - 1) # Of the pass; it starts at the highest.
        self.is_fresh = Signal(reset=1)                              # The first pass since ``clear``.
        self.take     = Signal()                                     # A pass starts.
        self.shows    = Signal()                                     # Writes the second memory too.
        self.operand  = Signal(WORD_BITS)
        self.carries  = Signal() # With the carry of the step before.
        self.add_order(first)
        self.add_events(events)
        self.add_sum()

    def add_order(self, all_words):
        """Pass over the words, and show those of one instant."""
        place = self.place
        self.fsm = fsm = FSM(reset_state="IDLE")
        self.comb += [
            self.take.eq(place == self.words - 1),
            self.shows.eq(fsm.ongoing("COPY") | fsm.ongoing("END")),
            # The last word is written in the second cycle of IDLE; the bus reads one in the third.
            self.busy.eq(~fsm.ongoing("IDLE")),
        ]
        self.sync += [
            # Downwards, because a carry goes from the lowest word of a count to the highest, which comes first in the memory.
            place.eq(place - 1),
            If(self.take, place.eq(all_words - 1)),
            If(place == 0, place.eq(self.words - 1), self.is_fresh.eq(0)),
            If(self.clear, place.eq(self.words - 1), self.is_fresh.eq(1)),
        ]
        again = If(self.latch | self.clear, NextState("WAIT"))
        fsm.act("IDLE", If(self.latch, NextState("WAIT")))
        fsm.act("WAIT", If(self.take & ~self.latch & ~self.clear, NextState("COPY")))
        fsm.act("COPY", If(self.take, NextState("END")), again)
        fsm.act("END",  If(self.take, NextState("IDLE")), again)

    def add_events(self, events):
        """Collect what comes during a pass, and add what came before it."""
        cases = {}
        for event in events:
            waiting = Signal(event.bits, name=f"{event.name}_waiting")
            taken   = Signal(event.bits, name=f"{event.name}_taken", reset_less=True) # A pass begins with taking.
            self.sync += [
                waiting.eq(Mux(self.take, 0, waiting) + event.addend),
                If(self.take, taken.eq(waiting)),
                If(self.clear, waiting.eq(0)),
            ]
            high, words = self.layout[event.name]
            cases[high + words - 1] = [self.operand.eq(taken)]
            for word in range(high, high + words - 1):
                cases[word] = [self.carries.eq(1)]
        self.comb += Case(self.place, {**cases, "default": []})

    def add_sum(self):
        """Read a word, add, and write it two cycles later."""
        live, shown = Memory(WORD_BITS, self.words), Memory(WORD_BITS, self.words)
        read, show  = live.get_port(mode=READ_FIRST), shown.get_port(mode=READ_FIRST)
        writes      = [memory.get_port(write_capable=True, mode=READ_FIRST) for memory in (live, shown)]
        self.specials += live, shown, read, show, *writes
        self.reader = SnapshotReader(show)
        self.bus    = self.reader.bus
        self.comb  += self.reader.wait.eq(self.busy | self.latch)

        operand = Signal(WORD_BITS, reset_less=True)
        forget  = Signal()
        carries = Signal()
        carry   = Signal()
        total   = Signal(WORD_BITS, reset_less=True)
        sum_    = Signal(WORD_BITS + 1)
        address      = Signal(max=self.words, reset_less=True)
        writes_live  = Signal()
        writes_shown = Signal()
        last         = [Signal.like(one, name=f"last_{name}") for name, one in [
            ("address", address), ("writes_live", writes_live), ("writes_shown", writes_shown)]]
        self.comb += [
            read.adr.eq(self.place),
            sum_.eq(Mux(forget, 0, read.dat_r) + operand + (carries & carry)),
        ]
        self.sync += [
            operand.eq(self.operand), forget.eq(self.is_fresh), carries.eq(self.carries),
            address.eq(self.place),
            # What a clear finds under way is written still: the first sum of each word afterwards forgets it, and a
            # snapshot that was taken before needs it.
            writes_live.eq(~self.take),
            writes_shown.eq(self.shows),
            total.eq(sum_),
            If(writes_live, carry.eq(sum_[-1])),
            last[0].eq(address), last[1].eq(writes_live), last[2].eq(writes_shown),
        ]
        for port, enable in zip(writes, (last[1], last[1] & last[2])):
            self.comb += [port.adr.eq(last[0]), port.dat_w.eq(total), port.we.eq(enable)]
