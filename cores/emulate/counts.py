# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Counts what happens to the frames of each class of a direction."""

from enum import IntEnum
from typing import NamedTuple

from migen import *
from migen.fhdl.structure import _Value

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.emulate.layouts import CLASS_BITS, counted_layout, late_layout, sent_layout
from liteprobe.cores.formats.emulate import (
    CLASSES, COUNTER_WORDS, HISTOGRAM_BINS, HISTOGRAM_WORD, ClassCounter, ClassGauge, Outcome,
)
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory

class CountChange(IntEnum):
    """Names the ways in which a word changes."""
    ADD   = 0
    SET   = 1
    MOST  = 2
    LEAST = 3

class Count(NamedTuple):
    """Names a word that a message changes.

    Attributes
    ----------
    word : of the class
    change : CountChange
    value : value, up to 32 bits
    condition : value; it changes only then
    """
    word: _Value
    change: CountChange
    value: _Value
    condition: _Value = 1

# Direction Counts ---------------------------------------------------------------------------------

def highest_bit(value):
    """Return whether a bit of a value of 2^n bits is set, and the number of the highest one: a tree of n steps, so a short path."""
    if len(value) == 1:
        return value[0], None
    half = len(value)//2
    low, high = highest_bit(value[:half]), highest_bit(value[half:])
    return low[0] | high[0], Cat(Mux(high[0], high[1], low[1]), high[0]) if half > 1 else high[0]

class DirectionCounts(LiteXModule):
    """Counts what happens to the frames of each class: counters, gauges, a histogram of delays.

    After a reset all is cleared, which takes some 512 cycles; meanwhile nothing is taken.

    Attributes
    ----------
    counted, sent, late : Endpoint(counted_layout), Endpoint(sent_layout), Endpoint(late_layout), in
        A message takes three cycles and one for each word that it may change: ``counted`` of a frame 10, of a background frame 5,
        of what leaves the queue 3; ``sent`` 5, ``late`` 2.
    bus : wishbone.Interface, slave
        COUNTER_WORDS words of each class, `ClassCounter` and `ClassGauge`.
    """
    words = CLASSES*COUNTER_WORDS

    def __init__(self):
        self.counted = stream.Endpoint(counted_layout)
        self.sent    = stream.Endpoint(sent_layout)
        self.late    = stream.Endpoint(late_layout)

        # # #

        self.first  = Signal(4) # Step with which a message of the queue begins.
        self.memory = memory = EngineMemory(self.words)
        self.bus    = memory.bus
        messages = [(self.counted, self.counts_of_queue()), (self.sent, self.counts_of_sent()), (self.late, self.counts_of_late())]
        # One after the other, each for as many steps as it has words.
        self.step   = step = Signal(max=max(len(counts) for _, counts in messages) + 1)
        number      = Signal(CLASS_BITS)
        word        = Signal(max=COUNTER_WORDS)
        change      = Signal(2)
        value       = Signal(32)
        asks        = Signal() # For the word of this step.
        self.fsm = fsm = FSM(reset_state="CLEAR")
        place = Signal(max=self.words)
        fsm.act("CLEAR",
            word.eq(place[:len(word)]),
            number.eq(place[len(word):]),
            change.eq(int(CountChange.SET)),
            # The least delay begins at its greatest.
            value.eq(Replicate(place[:len(word)] == ClassGauge.DELAY_LEAST, 32)),
            asks.eq(1),
            NextValue(place, place + 1),
            If(place == self.words - 1, NextState("REST")),
        )
        choice = None
        for index, (sink, counts) in enumerate(messages):
            go     = [NextValue(step, 0 if index else self.first), NextState(f"COUNT_{index}")]
            choice = If(sink.valid, *go) if choice is None else choice.Elif(sink.valid, *go)
            is_last = step == len(counts) - 1
            fsm.act(f"COUNT_{index}",
                number.eq(sink.number),
                Case(step, {n: [word.eq(one.word), change.eq(int(one.change)), value.eq(one.value), asks.eq(one.condition)]
                    for n, one in enumerate(counts)}),
                NextValue(step, step + 1),
                If(is_last,
                    sink.ready.eq(1),
                    NextState("REST"),
                ),
            )
        fsm.act("IDLE", choice)
        # What was read is written two cycles later: nothing is read in between that is written still.
        fsm.act("REST",   NextState("REST_2"))
        fsm.act("REST_2", NextState("IDLE"))
        self.add_changes(Cat(word, number), change, value, asks)

    def add_changes(self, address, change, value, asks):
        """Read, change and write words, one a cycle, two cycles from read to write."""
        memory  = self.memory
        waiting = [
            (Signal(name=f"waits_{age}"), Signal.like(memory.read_adr, name=f"waiting_address_{age}"),
                Signal(2, name=f"waiting_change_{age}"), Signal(32, name=f"waiting_value_{age}"))
            for age in range(2)
        ]
        before  = (asks, address, change, value)
        for later in waiting:
            self.sync += [new.eq(old) for new, old in zip(later, before)]
            before = later
        is_due, at, how, operand = before
        old     = memory.values[0]
        is_more = Signal()
        writes  = Signal() # Else it stays what it is.
        self.comb += [
            memory.read.eq(asks),
            memory.read_adr.eq(address),
            is_more.eq(operand > old),
            Case(how, {
                int(CountChange.MOST):  writes.eq(is_more),
                int(CountChange.LEAST): writes.eq(~is_more),
                "default":         writes.eq(1),
            }),
            memory.writes[0].eq(is_due & writes),
            memory.write_adr.eq(at),
            memory.write_dat[0].eq(Mux(how == CountChange.ADD, old + operand, operand)),
        ]

    def counts_of_queue(self):
        """Return what a message of the queue changes."""
        message = self.counted
        is_out  = message.outcome != Outcome.SENT
        leaves  = message.arrives == message.background
        drop    = Signal(max=COUNTER_WORDS)
        of_outcome = ClassCounter.DISCARDED - Outcome.DISCARDED + message.outcome
        self.comb += drop.eq(Mux(message.background, ClassCounter.BACKGROUND_DROPPED,
            Mux(message.marked, ClassCounter.MARKED, of_outcome)))
        of_frame = [
            Count(ClassCounter.ARRIVED,        CountChange.ADD, 1),
            Count(ClassCounter.ARRIVED_OCTETS, CountChange.ADD, message.length),
            Count(ClassCounter.DUPLICATED,     CountChange.ADD, 1, message.twice),
            Count(ClassCounter.CORRUPTED,      CountChange.ADD, 1, message.corrupt),
            Count(ClassCounter.HELD_BACK,      CountChange.ADD, 1, message.held),
        ]
        of_background = [
            Count(ClassCounter.BACKGROUND,         CountChange.ADD, 1, message.background),
            Count(ClassGauge.QUEUE_MOST,       CountChange.MOST, message.frames),
        ]
        of_all = [
            Count(drop,                        CountChange.ADD, 1, is_out | message.marked),
            Count(ClassGauge.QUEUE_FRAMES,     CountChange.SET, message.frames),
            Count(ClassGauge.QUEUE_OCTETS,     CountChange.SET, message.octets),
        ]
        # What leaves the queue, or is a background frame, has fewer words.
        before = len(of_frame)
        self.comb += self.first.eq(Mux(leaves, before + len(of_background), Mux(message.arrives, 0, before)))
        return of_frame + of_background + of_all

    def counts_of_sent(self):
        """Return what the settled departure of a frame changes."""
        message = self.sent
        bin_ = Signal(max=HISTOGRAM_BINS)
        # A message is there for two cycles, at least, before its bin is asked for.
        is_some, highest = highest_bit(message.delay)
        self.sync += bin_.eq(Mux(is_some, Mux(highest >= HISTOGRAM_BINS - 1, HISTOGRAM_BINS - 1, highest + 1), 0))
        return [
            Count(ClassCounter.SENT,        CountChange.ADD, Mux(message.twice, 2, 1)),
            Count(ClassCounter.SENT_OCTETS, CountChange.ADD, Mux(message.twice, message.length << 1, message.length)),
            Count(HISTOGRAM_WORD + bin_,    CountChange.ADD, 1),
            Count(ClassGauge.DELAY_LEAST,   CountChange.LEAST, message.delay),
            Count(ClassGauge.DELAY_MOST,    CountChange.MOST, message.delay),
        ]

    def counts_of_late(self):
        """Return what a frame that left after its tick changes."""
        message = self.late
        return [
            Count(Mux(message.waited, ClassCounter.WAITED, ClassCounter.LATE), CountChange.ADD, 1),
            Count(ClassGauge.LATE_MOST, CountChange.MOST, message.ticks, ~message.waited),
        ]
