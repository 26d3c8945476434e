# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts and sums in a memory, and a second memory that shows them all as of one instant."""

from collections import namedtuple

from migen import *

from litex.gen import *

from liteprobe.cores.measure.snapshot import SnapshotReader

WORD_BITS = 32

# What is tallied ----------------------------------------------------------------------------------

Event = namedtuple("Event", "name addend bits words", defaults=(1,))
Event.__doc__ = """Adds ``addend`` in every cycle; ``bits`` must hold what comes in one pass (see `Tally`).

Of the shortest frames at line rate one word counts 48 minutes, two count 390,000 years.
"""

Entry = namedtuple("Entry", "name value replace", defaults=(None,))
Entry.__doc__ = """Adds ``value`` for each frame; or, with ``replace``, becomes it where that is 1 and stays where not."""

def words_of(item):
    """Return how many words an event or entry takes."""
    return item.words if isinstance(item, Event) else -(-len(item.value)//WORD_BITS)

# Tally --------------------------------------------------------------------------------------------

class Tally(LiteXModule):
    """Adds up frames and events, one word a cycle.

    A frame's entries are added one word after the other. In the cycles between, a pass goes over the words of the
    events: it takes what has come since the last pass, all in one cycle, and adds it word by word. ``latch`` makes the
    next pass go over all words, and what it reads is written to a second memory too, as is every later sum. The pass
    after it starts where no frame is under way: that is the instant of the snapshot. It still adds what it took, and
    then the second memory is let alone.

    Parameters
    ----------
    events : list of Event
    entries : list of Entry

    Attributes
    ----------
    start : Signal(), in
        One cycle: adds the entries, one word in each of the next cycles, in their order. From ``cycles`` apart.
    latch : Signal(), in
        One cycle: takes a snapshot, of an instant between this cycle and the end of ``busy``.
    clear : Signal(), in
        One cycle: all is 0, a frame under way is forgotten, and so are the events of this cycle. The snapshot stays
        unless ``busy``: then it is taken anew.
    is_first : Signal(), out
        The next frame, or the one under way, is the first since ``clear``.
    busy : Signal(), out
        A snapshot is taken; the bus waits meanwhile.
    cycles : int
        Words of all entries.
    layout : dict of name to (first word, words)
        Where the bus finds each; the highest word first.
    bus : wishbone.Interface, slave
        The snapshot; 0 before the first ``latch``. ``words`` words of 32 bits.

    Limits: a pass of all words must find a free cycle for each. The words of events can be visited in each cycle that
    has no step of a frame; those of entries not in the two cycles behind a frame either. So where frames come n cycles
    apart, a snapshot takes up to words of entries / (n - cycles - 2) + 2 * words of events / (n - cycles) frames, and
    three more.

    Widths of events: from one taking to the next pass at most words + 1 + (cycles + 2) * f cycles, where f frames have
    steps in that time. In a port (35 words, 15 cycles) with r = 125/45 octets a cycle a frame takes 66 octets of the
    wire or more, and holds a pass up for 17 r = 48: so the most garbage comes without frames, but for one that began
    before. In r (36 + 17) = 148 octet times come 19 SFDs (eight apart), 74 carriers of an octet that are refused, a
    giant, and one or two of each that a crossing held; without a snapshot less. The widths hold three times as much.
    """
    words = 64

    def __init__(self, events, entries):
        self.start    = Signal()
        self.latch    = Signal()
        self.clear    = Signal()
        self.is_first = Signal(reset=1)
        self.busy     = Signal()
        self.cycles   = sum(map(words_of, entries))
        self.layout   = {}

        # # #

        first = 0
        for item in [*events, *entries]:
            self.layout[item.name] = (first, words_of(item))
            first += words_of(item)
        assert first < self.words
        event_words = first - self.cycles

        # Which step.
        # -----------
        self.step     = Signal(max=max(self.cycles, 1) + 1)          # Of a frame, from 1; 0: none.
        self.place    = Signal(max=self.words, reset=self.words - 1) # Of the pass; it starts at the highest.
        self.is_fresh = Signal(reset=1)                              # The first pass since ``clear``.
        self.sweep    = Signal()                                     # The pass goes on.
        self.take     = Signal()                                     # It starts.
        self.shows    = Signal()                                     # Writes the second memory too.
        self.add_order(event_words, first)

        # What it adds.
        # -------------
        self.address = Signal(max=self.words)
        self.operand = Signal(WORD_BITS)
        self.forget  = Signal() # Add to 0, not to what is there.
        self.carries = Signal() # With the carry of the step before.
        self.comb += [
            self.address.eq(self.place),
            self.forget.eq(Mux(self.place < event_words, self.is_fresh, self.is_first)),
        ]
        self.add_events(events)
        self.add_entries(entries)

        # Memories.
        # ---------
        self.add_sum()

    def add_order(self, event_words, all_words):
        """Let frames go first, and passes in between."""
        step, place, sweep = self.step, self.place, self.sweep
        settled  = Signal(2)
        is_event = Signal()
        self.fsm = fsm = FSM(reset_state="IDLE")
        copies, ends = fsm.ongoing("COPY"), fsm.ongoing("END")
        self.comb += [
            is_event.eq((place < event_words) | (place == self.words - 1)),
            sweep.eq((step == 0) & (is_event | (settled == 0b11))),
            self.take.eq(sweep & (place == self.words - 1)),
            self.shows.eq(copies | (ends & (step == 0))),
            # The last word is written in the second cycle of IDLE; the bus reads one in the third.
            self.busy.eq(~fsm.ongoing("IDLE")),
        ]
        self.sync += [
            settled.eq(Cat(step == 0, settled[0] & (step == 0))),
            If(step == self.cycles, step.eq(0), self.is_first.eq(0)).Elif(step != 0, step.eq(step + 1)),
            If(self.start, step.eq(1)),
            # Downwards, because a carry goes from the lowest word of a count to the highest, which comes first in the memory.
            If(sweep,
                place.eq(place - 1),
                If(self.take, place.eq(Mux(fsm.ongoing("WAIT"), all_words - 1, event_words - 1))),
                If(place == 0, place.eq(self.words - 1), self.is_fresh.eq(0)),
            ),
            If(self.clear,
                step.eq(0), place.eq(self.words - 1), self.is_first.eq(1), self.is_fresh.eq(1),
            ),
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
        self.comb += If(self.step == 0, Case(self.place, {**cases, "default": []}))

    def add_entries(self, entries):
        """Add to, or replace, the words of each entry, the lowest first."""
        cases, number = {}, 1
        for entry in entries:
            high, words = self.layout[entry.name]
            for word in range(words):
                value = entry.value[WORD_BITS*word:WORD_BITS*(word + 1)]
                cases[number] = [self.address.eq(high + words - 1 - word)]
                if entry.replace is None:
                    cases[number] += [self.operand.eq(value), self.carries.eq(int(word > 0))]
                else:
                    cases[number] += [If(entry.replace, self.operand.eq(value), self.forget.eq(1))]
                number += 1
        self.comb += If(self.step != 0, self.forget.eq(self.is_first), Case(self.step, {**cases, "default": []}))

    def add_sum(self):
        """Read a word, add, and write it two cycles later."""
        live, shown = Memory(WORD_BITS, self.words), Memory(WORD_BITS, self.words)
        read, show  = live.get_port(mode=READ_FIRST), shown.get_port(mode=READ_FIRST)
        writes      = [memory.get_port(write_capable=True, mode=READ_FIRST) for memory in (live, shown)]
        self.specials += live, shown, read, show, *writes
        self.reader = SnapshotReader(show)
        self.bus    = self.reader.bus
        self.comb  += self.reader.wait.eq(self.busy | self.latch)

        is_frame = Signal()
        operand  = Signal(WORD_BITS, reset_less=True)
        forget   = Signal()
        carries  = Signal()
        total    = Signal(WORD_BITS, reset_less=True)
        # A frame may come between the words of a pass.
        carry    = Array(Signal(name=f"carry_of_{name}") for name in ("counts", "frame"))
        sum_     = Signal(WORD_BITS + 1)
        address      = Signal(max=self.words)
        writes_live  = Signal()
        writes_shown = Signal()
        last         = [Signal.like(one, name=f"last_{name}") for name, one in [
            ("address", address), ("writes_live", writes_live), ("writes_shown", writes_shown)]]
        self.comb += [
            read.adr.eq(self.address),
            sum_.eq(Mux(forget, 0, read.dat_r) + operand + (carries & Mux(is_frame, carry[1], carry[0]))),
        ]
        self.sync += [
            is_frame.eq(self.step != 0),
            operand.eq(self.operand), forget.eq(self.forget), carries.eq(self.carries),
            address.eq(self.address),
            # What a clear finds under way is written still: the first sum of each word afterwards forgets it, and a
            # snapshot that was taken before needs it.
            writes_live.eq((self.step != 0) | (self.sweep & ~self.take)),
            writes_shown.eq(self.shows),
            total.eq(sum_),
            If(writes_live, If(is_frame, carry[1].eq(sum_[-1])).Else(carry[0].eq(sum_[-1]))),
            last[0].eq(address), last[1].eq(writes_live), last[2].eq(writes_shown),
        ]
        for port, enable in zip(writes, (last[1], last[1] & last[2])):
            self.comb += [port.adr.eq(last[0]), port.dat_w.eq(total), port.we.eq(enable)]
