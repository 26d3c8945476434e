# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps when each stream is due, and finds the one that is due first."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import HORIZON, STREAMS

DUE_BITS    = 64
OFFSET_BITS = 33 # Signed.
STREAM_BITS = log2_int(STREAMS)

class DueSearch(LiteXModule):
    """Keeps the tick at which each stream is due, and finds the first one, the lowest number on a tie.

    Attributes
    ----------
    elapsed : Signal((64, True)), in
        Ticks since the start of the program.
    start : Signal(), in
        Looks at all candidates but ``stream`` while ``is_changing``, one a cycle from the next one on; ``is_looking`` meanwhile.
    candidates : Signal(16), in
    stream : Signal(4), in
        The one whose due tick changes; it must not change in a look.
    is_changing : Signal(), in
        Its due tick is not known yet: it is looked at by ``renew``.
    shows_zero, shows_elapsed : Signal(), Signal(), in
        While nothing is looked at: `add` in the next cycle is to 0, or to ``elapsed``, else to the due tick of ``stream``.
    add : Signal(), in
        The due tick of ``stream`` becomes ``offset`` and ``carry`` after that. Neither in a look, nor in the cycle after one or
        after another ``add``.
    offset, carry : Signal((33, True)), Signal(), in
    renew : Signal(), in
        The cycle after ``add``, or later: ``stream`` is looked at, too.
    done : Signal(), out
        Pulse, two cycles after a look, or after ``renew``; from then on:
    found, number, due : Signal(), Signal(4), Signal((64, True)), out
        The first of those looked at.
    is_near : Signal(), out
        It is due in fewer than HORIZON ticks; two cycles after ``shows_elapsed``, at the earliest in the one after ``done``.
    """
    def __init__(self):
        self.elapsed       = Signal((DUE_BITS, True))
        self.start         = Signal()
        self.is_looking    = Signal()
        self.candidates    = Signal(STREAMS)
        self.stream        = Signal(STREAM_BITS)
        self.is_changing   = Signal()
        self.shows_zero    = Signal()
        self.shows_elapsed = Signal()
        self.add           = Signal()
        self.offset        = Signal((OFFSET_BITS, True), reset_less=True)
        self.carry         = Signal()
        self.renew         = Signal()
        self.done          = Signal()
        self.found         = Signal()
        self.number        = Signal(STREAM_BITS, reset_less=True)
        self.due           = Signal((DUE_BITS, True), reset_less=True)
        self.is_near       = Signal()

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        self.memory = memory = Memory(DUE_BITS, STREAMS, name="dues")
        read        = memory.get_port(async_read=True)
        write       = memory.get_port(write_capable=True)
        self.specials += memory, read, write

        self.tick      = Signal((DUE_BITS, True), reset_less=True) # Of a candidate; of ``stream`` in no look; now.
        self.who       = Signal(STREAM_BITS, reset_less=True)
        self.is_chosen = Signal()
        self.add_look(read)
        self.add_first()
        self.comb += [
            write.adr.eq(self.stream),
            write.dat_w.eq(self.tick + self.offset + self.carry),
            write.we.eq(self.add),
        ]

    def add_look(self, read):
        """Look at the candidates, one a cycle."""
        index     = Signal(STREAM_BITS)
        which     = Signal(STREAM_BITS)
        is_last   = Signal()
        looks     = Signal(2)
        self.comb += [
            which.eq(Mux(self.is_looking, index, self.stream)),
            read.adr.eq(which),
            is_last.eq(index == STREAMS - 1),
            self.done.eq(looks[1]),
        ]
        self.sync += [
            looks.eq(Cat((self.is_looking & is_last) | self.renew, looks[0])),
            index.eq(index + 1),
            If(is_last, self.is_looking.eq(0)),
            If(self.start,
                index.eq(0),
                self.is_looking.eq(1),
            ),
            self.tick.eq(Mux(self.shows_elapsed, self.elapsed, read.dat_r)),
            If(self.shows_zero, self.tick.eq(0)),
            self.who.eq(which),
            self.is_chosen.eq(Array(self.candidates)[which] &
                Mux(self.is_looking, ~self.is_changing | (index != self.stream), self.renew)),
        ]

    def add_first(self):
        """Keep the first one, and tell whether it is due soon."""
        # One more in the comparison: of two that are due at once, the lower number wins. And of now and the first one's tick:
        # then the difference is the complement of the ticks until then.
        is_lower = Signal()
        was_now  = Signal()
        wide     = Signal((DUE_BITS + 2, True))
        less     = wide[1:]
        horizon  = log2_int(HORIZON)
        self.comb += [
            is_lower.eq((self.who < self.number) | was_now),
            wide.eq(Cat(Constant(0, 1), self.tick, self.tick[-1]) - Cat(is_lower, self.due, self.due[-1])),
        ]
        self.sync += [
            was_now.eq(self.shows_elapsed),
            self.is_near.eq(~less[-1] | (less[horizon:-1] == 2**(DUE_BITS - horizon) - 1)),
            If(self.is_chosen & (wide[-1] | ~self.found),
                self.due.eq(self.tick),
                self.number.eq(self.who),
                self.found.eq(1),
            ),
            If(self.start, self.found.eq(0)),
        ]
