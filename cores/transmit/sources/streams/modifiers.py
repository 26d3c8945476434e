# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Modifies a header from frame to frame of a stream."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import LIST_WORDS, MODIFIER_FIELDS, MODIFIER_WORDS, MODIFIERS, STREAMS, ModifierOp
from liteprobe.cores.transmit.sources.edits import HALFWORD_BITS, STREAM_BITS, edit_description, window, window_adrs
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory
from liteprobe.cores.transmit.sources.length import field
from liteprobe.cores.prbs import xorshift

WORD_BITS  = 32
INDEX_BITS = 6
COUNT_BITS = 7 # Of the entries of a list.
BANKS      = 2
PAIRS      = [0, 2, 3, 1] # Words {0, 1}, {4, 5}, {6, 7}, {2, 3}, in the order in which they are read.
LAST_PHASE = 4

VALUE_PAIR, RANDOM_PAIR = MODIFIER_FIELDS["value"].word//BANKS, MODIFIER_FIELDS["random"].word//BANKS

class ModifierEngine(LiteXModule):
    """Applies the modifiers of a stream to its header, one every five cycles, and writes their state.

    A modifier takes two intervals of five cycles, the second one while the next one is in its first. In the first its words
    are read, in the second its value and what stands in the header. The first modifier waits between them for ``may_edit``.

    Attributes
    ----------
    start, stream : Signal(), Signal(4), in
        Begins with the modifiers of this stream, for one frame.
    is_idle : Signal(), out
        All are done, from two cycles after ``start`` on; the last half is added in the first idle cycle.
    may_edit : Signal(), in
        The frame before is done with edits and sums.
    memory : EngineMemory
        Words of modifiers, in two banks.
    list_read, list_adr, list_word : Signal(), Signal(9), Signal(32), out, out and in
        Reads a list; the word is there two cycles later.
    header_read, header_adrs, header_word : Signal(), list of two Signal(9), Signal(32), out, out and in
        As of `TemplateStore`.
    edit : Endpoint(edit_description()), out
        To be taken at once.
    half : Signal(16), out
        A halfword of the header as it will be.
    in_ipv4, in_seed : Signal(), out
        It enters these sums, in this cycle.
    """
    def __init__(self):
        self.start         = Signal()
        self.stream        = Signal(STREAM_BITS)
        self.is_idle       = Signal()
        self.may_edit      = Signal()
        self.memory        = EngineMemory(STREAMS*MODIFIERS*MODIFIER_WORDS, BANKS)
        self.list_read     = Signal()
        self.list_adr      = Signal(log2_int(LIST_WORDS))
        self.list_word     = Signal(WORD_BITS)
        self.header_read   = Signal()
        self.header_adrs   = []
        self.header_word   = Signal(WORD_BITS)
        self.edit          = stream.Endpoint(edit_description())
        self.half          = Signal(16)
        self.in_ipv4       = Signal()
        self.in_seed       = Signal()

        # # #

        self.phases    = [Signal(name=f"is_phase_{n}") for n in range(LAST_PHASE + 1)]
        self.number    = Signal(log2_int(MODIFIERS))
        self.of_stream = Signal(STREAM_BITS, reset_less=True)
        self.has_first = Signal() # A modifier is in its first interval,
        self.has_next  = Signal() # or in its second one.
        self.is_late   = Signal() # The cycle after the first interval.
        self.go        = Signal() # The next interval begins.
        self.add_phases()
        self.add_words()
        self.add_state()
        self.add_header()

    def add_phases(self):
        """Go from modifier to modifier."""
        memory = self.memory
        phase  = Signal(3)
        waits  = Signal() # Between two intervals.
        is_one = Signal() # It is the first modifier of the frame that is in its first interval.
        more   = Signal() # There is one.
        pair   = Signal(2)
        self.op = Signal(3, reset_less=True)
        self.comb += [
            *[is_phase.eq((phase == n) & ~waits) for n, is_phase in enumerate(self.phases)],
            self.is_idle.eq(~self.has_first & ~self.has_next),
            more.eq(self.has_first & (self.op != ModifierOp.NONE)),
            self.go.eq((self.phases[LAST_PHASE] | waits) & (~more | ~is_one | self.may_edit)),
            Case(phase, {**{n: pair.eq(which) for n, which in enumerate(PAIRS)}, "default": pair.eq(PAIRS[-1])}),
            memory.read.eq(self.has_first & (phase != LAST_PHASE)),
            memory.read_adr.eq(Cat(pair, self.number, self.of_stream)),
        ]
        self.sync += [
            self.is_late.eq(self.phases[LAST_PHASE] & self.has_first),
            waits.eq((self.phases[LAST_PHASE] | waits) & ~self.go),
            If(phase != LAST_PHASE, phase.eq(phase + 1)),
            If(self.go,
                phase.eq(0),
                is_one.eq(0),
                self.number.eq(self.number + 1),
                self.has_next.eq(more),
                If(~more | (self.number == MODIFIERS - 1), self.has_first.eq(0)),
            ),
            If(self.start,
                phase.eq(0),
                is_one.eq(1),
                self.number.eq(0),
                self.of_stream.eq(self.stream),
                self.has_first.eq(1),
            ),
        ]

    def add_words(self):
        """Keep the words of a modifier as they come."""
        even, odd = self.memory.values
        phases    = self.phases
        self.is_step    = Signal()
        self.is_picked  = Signal() # By a random number: it is one, or a list's entry is.
        self.is_listed  = Signal()
        self.mask       = Signal(WORD_BITS, reset_less=True)
        self.halfword   = Signal(HALFWORD_BITS, reset_less=True)
        self.flags      = Signal(4, reset_less=True) # From high_in_ipv4 on.
        self.count      = Signal(WORD_BITS, reset_less=True)
        self.is_bounded = Signal(reset_less=True)
        self.value      = Signal(WORD_BITS, reset_less=True)
        self.random     = Signal(WORD_BITS)
        self.base       = Signal(len(self.list_adr), reset_less=True)
        self.product    = Signal(16 + COUNT_BITS, reset_less=True)
        first_flag      = MODIFIER_FIELDS["high_in_ipv4"].low
        self.comb += [
            self.is_step.eq(self.op == ModifierOp.STEP),
            self.is_picked.eq((self.op == ModifierOp.RANDOM) | (self.op == ModifierOp.DRAWN)),
            self.is_listed.eq((self.op == ModifierOp.LIST)   | (self.op == ModifierOp.DRAWN)),
            self.random.eq(xorshift(odd)),
        ]
        self.sync += [
            If(phases[2],
                self.op.eq(field(even, "op", MODIFIER_FIELDS)),
                self.halfword.eq(field(even, "halfword", MODIFIER_FIELDS)),
                self.flags.eq(even[first_flag:first_flag + 4]),
                self.mask.eq(odd),
            ),
            If(phases[3],
                self.count.eq(even),
                self.is_bounded.eq(even != 0),
                self.value.eq(odd),
            ),
            If(phases[4] & self.is_picked, self.value.eq(self.random)),
            If(self.is_late,
                self.base.eq(odd),
                self.product.eq(self.value[16:]*self.count[:COUNT_BITS]),
            ),
        ]

    def add_state(self):
        """Write what the modifier is for the next frame, and read its list."""
        memory    = self.memory
        even, odd = memory.values
        is_one    = Signal() # Its last value before the first again.
        wraps     = Signal()
        is_again  = Signal()
        index     = Signal(INDEX_BITS + 1)
        after     = Signal(WORD_BITS)
        adr       = Signal(len(self.number) + STREAM_BITS, reset_less=True)
        self.comb += [
            is_one.eq((even[1:] == 0) & even[0]),
            wraps.eq(is_one & self.is_bounded),
            memory.write_dat[0].eq(Mux(wraps, self.count, even - 1)),
            index.eq(self.value[:INDEX_BITS] + 1),
            If(self.is_step,
                after.eq(Mux(is_again, odd, self.value + even)),
            ).Elif(index != self.count[:COUNT_BITS],
                after.eq(index[:INDEX_BITS]),
            ),
            memory.write_dat[1].eq(Mux(self.is_late, after, self.random)),
            memory.write_adr.eq(Cat(Mux(self.is_late, Constant(VALUE_PAIR, 2), Constant(RANDOM_PAIR, 2)), adr)),
            memory.writes[0].eq(self.phases[4] & self.has_first & self.is_step),
            memory.writes[1].eq(
                (self.phases[4] & self.has_first & self.is_picked) |
                (self.is_late & (self.is_step | (self.op == ModifierOp.LIST)))),
            self.list_read.eq(self.phases[1] & self.has_next & self.is_listed),
            self.list_adr.eq(self.base + Mux(self.is_picked, self.product[16:], self.value[:INDEX_BITS])),
        ]
        self.sync += [
            adr.eq(Cat(self.number, self.of_stream)),
            is_again.eq(wraps),
        ]

    def add_header(self):
        """Put the value into what stands in the header."""
        edit      = self.edit
        halfword  = Signal(HALFWORD_BITS, reset_less=True) # Of the modifier in its second interval.
        mask      = Signal(WORD_BITS, reset_less=True)
        flags     = Signal(4, reset_less=True)
        is_listed = Signal(reset_less=True)
        wanted    = Signal(WORD_BITS)
        changed   = Signal(WORD_BITS, reset_less=True)
        low_flags = Signal(2)
        self.comb += [
            self.header_read.eq(self.phases[1] & self.has_next),
            wanted.eq(Mux(is_listed, self.list_word, self.value)),
            edit.valid.eq(self.phases[4] & self.has_next),
            edit.stream.eq(self.of_stream),
            edit.halfword.eq(halfword),
            edit.writes.eq(Cat(mask[:16] != 0, mask[16:] != 0)),
            edit.window.eq(changed),
            # High half, then low half.
            self.half.eq(Mux(edit.valid, changed[16:], changed[:16])),
            self.in_ipv4.eq(Mux(edit.valid, flags[0], low_flags[0])),
            self.in_seed.eq(Mux(edit.valid, flags[2], low_flags[1])),
        ]
        self.header_adrs += window_adrs(self.of_stream, halfword)
        self.sync += [
            If(self.go,
                halfword.eq(self.halfword),
                mask.eq(self.mask),
                flags.eq(self.flags),
                is_listed.eq(self.is_listed),
            ),
            If(self.phases[3], changed.eq((window(self.header_word, halfword[0]) & ~mask) | (wanted & mask))),
            low_flags.eq(0),
            If(edit.valid, low_flags.eq(Cat(flags[1], flags[3]))),
        ]
