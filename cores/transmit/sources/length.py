# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Draws the length of the next frame of a stream."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAM_FIELDS, LengthKind
from liteprobe.cores.transmit.frames import LENGTH_BITS

INDEX_BITS = STREAM_FIELDS["list_index"].bits

def field(word, name, fields=STREAM_FIELDS):
    """Return the part of a word that is a field of its name."""
    return word[fields[name].low:fields[name].high]

class LengthDraw(LiteXModule):
    """Chooses the length of a frame from the words of its stream, as they are read: random state, length, length state.

    Attributes
    ----------
    word : Signal(32), in
        What is read; one of the next three says which word it is.
    is_random, is_length, is_state : Signal(), in
        In this order.
    drawn : Signal(16), in
        With ``is_random``: a random number.
    kind, list_drawn : Signal(2), Signal(), in
        From before ``is_random`` until ``length`` is there.
    uses_random : Signal(), out
        The stream uses up a random number.
    next_state, uses_state : Signal(32), Signal(), out
        With ``is_state``: what it is then, if it changes.
    list_read, list_adr : Signal(), Signal(9), out
        Reads a list, in the cycle in which ``list_grant`` is 1, too; its word is there two cycles later.
    list_grant : Signal(), in
    list_word : Signal(32), in
    length : Signal(14), out
        Four cycles after ``is_state``, and one for each cycle without ``list_grant``; until the next ``is_length``.
    """
    def __init__(self, list_bits):
        self.word        = Signal(32)
        self.is_random   = Signal()
        self.is_length   = Signal()
        self.is_state    = Signal()
        self.drawn       = Signal(16)
        self.kind        = Signal(2)
        self.list_drawn  = Signal()
        self.uses_random = Signal()
        self.next_state  = Signal(32)
        self.uses_state  = Signal()
        self.list_read   = Signal()
        self.list_adr    = Signal(list_bits)
        self.list_grant  = Signal()
        self.list_word   = Signal(32)
        self.length      = Signal(LENGTH_BITS, reset_less=True)

        # # #

        is_list   = Signal()
        is_picked = Signal() # By a random number.
        self.comb += [
            is_list.eq(self.kind == LengthKind.LIST),
            is_picked.eq((self.kind == LengthKind.RANDOM) | (is_list & self.list_drawn)),
            self.uses_random.eq(is_picked),
            self.uses_state.eq((self.kind == LengthKind.STEPPED) | (is_list & ~self.list_drawn)),
        ]

        # What the words say.
        # -------------------
        drawn        = Signal(16, reset_less=True)
        self.least   = least   = Signal(LENGTH_BITS, reset_less=True) # Or first of the list.
        most         = Signal(LENGTH_BITS, reset_less=True) # Or how many there are.
        self.current = current = Signal(LENGTH_BITS, reset_less=True)
        self.product = product = Signal(16 + LENGTH_BITS, reset_less=True)
        self.sync += [
            If(self.is_random, drawn.eq(self.drawn)),
            If(self.is_length,
                least.eq(field(self.word, "length_least")),
                most.eq(field(self.word, "length_range")),
            ),
            If(self.is_state,
                current.eq(field(self.word, "length_next")),
                product.eq(drawn*most),
            ),
        ]

        # State.
        # ------
        stepped = Signal(LENGTH_BITS + 1)
        index   = Signal(INDEX_BITS + 1)
        self.comb += [
            stepped.eq(field(self.word, "length_next") + field(self.word, "length_step")),
            index.eq(field(self.word, "list_index") + 1),
            self.next_state.eq(self.word),
            If(is_list,
                self.next_state[:INDEX_BITS].eq(Mux(index == most[:INDEX_BITS + 1], 0, index)),
            ).Else(
                self.next_state[:LENGTH_BITS].eq(Mux(stepped > most, least, stepped)),
            ),
        ]
        self.add_length(is_list, is_picked)

    def add_length(self, is_list, is_picked):
        """Choose the length, and read the list where it is there."""
        offset = Signal(LENGTH_BITS)
        chosen = Signal(LENGTH_BITS)
        step   = Signal(4)
        self.comb += [
            If(is_picked, offset.eq(self.product[16:])).Elif(is_list, offset.eq(self.current[:INDEX_BITS])),
            chosen.eq(self.least + offset),
            self.list_adr.eq(chosen),
            self.list_read.eq(step[0] & is_list),
        ]
        self.sync += [
            step.eq(Cat(self.is_state | (self.list_read & ~self.list_grant), self.list_read & self.list_grant, step[1], step[2])),
            If(step[0], self.length.eq(Mux(self.kind == LengthKind.STEPPED, self.current, chosen))),
            If(step[2], self.length.eq(self.list_word)),
        ]
