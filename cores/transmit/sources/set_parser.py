# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Parses configuration sets, octet by octet."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import (
    MAX_LENGTH, MIN_LENGTH, SET_END, SET_FIELD_OCTETS, SET_NOTHING, SET_REPEAT, SET_RUN, SetError, SetField,
)

FIELDS    = list(SET_FIELD_OCTETS) # Field n is bit n of a control octet.
HALF_BITS = 16
SLOT_BITS = 4

# First halfword of each field in its set; more of them follow. A SET_REPEAT has its number in the place of the length, and an
# index stands in the place of its entry until that one is there.
SLOTS = {
    SetField.LENGTH:     0,
    SetField.ADDRESS4:   2,
    SetField.ADDRESS6:   4,
    SetField.INDEX:     12,
    SetField.TAG:       14,
    SetField.INNER_TAG: 15,
}


class SetParser(LiteXModule):
    """Takes an octet a cycle and emits the halfwords of each set, and then the set; of each SET_REPEAT and of the end likewise.

    Parameters
    ----------
    entries : int
        Of the table, up to 2^16.

    Attributes
    ----------
    sink : Endpoint([("data", 32)]), in
        Taken from ``clear`` on, to the word in which SET_END or an error is.
    clear : Signal(), in
        Pulse: a program begins, with a whole word.
    stop : Signal(), in
        Pulse: nothing is taken any more.
    fields : Signal(6), in
        `SetField`: those that sets may have, and that the first one has.
    has_space : Signal(), in
        One more set may begin.
    write, slot, half : Signal(), Signal(4), Signal(16), out
        A halfword of the set that is coming, by SLOTS; each second cycle at most.
    push, control : Signal(), Signal(8), out
        It is complete, after ``write`` or with it; it began with this octet. An error is a SET_END.
    error, is_ended : Signal(3), Signal(), out
        `SetError`; the end was there. Both after ``push`` and until ``clear``.
    """
    def __init__(self, entries):
        self.sink     = sink = stream.Endpoint([("data", 32)])
        self.clear    = Signal()
        self.stop     = Signal()
        self.fields   = Signal(len(FIELDS))
        self.has_space = Signal()
        self.write    = Signal()
        self.slot     = Signal(SLOT_BITS, reset_less=True)
        self.half     = Signal(HALF_BITS)
        self.push     = Signal()
        self.control  = Signal(8)
        self.error    = Signal(max=max(SetError) + 1)
        self.is_ended = Signal()

        # # #

        # Words come from a block RAM, late in the cycle, and what comes of an octet is long: a register is between them.
        place     = Signal(2) # In its word, of the octet that comes into the register next.
        loads     = Signal()
        has_octet = Signal()
        is_open   = Signal()
        has_rest  = Signal() # The end's word has octets behind it.
        self.octet     = Signal(8, reset_less=True)
        self.high      = Signal(8, reset_less=True) # The octet before.
        self.takes     = Signal()
        self.todo      = Signal(len(FIELDS))        # Fields that are not through,
        self.number    = Signal()                   # or the number of a SET_REPEAT or SET_RUN isn't.
        self.run       = Signal(HALF_BITS)          # Sets that are to come without a control octet.
        self.is_next   = Signal()                   # The first octet of one of these comes.
        self.is_inside = Signal()                   # Either; else a control octet comes.
        self.is_first  = Signal()                   # No set was there yet.
        self.half_done = Signal()
        self.wrong     = Signal.like(self.error)
        self.ends      = Signal()
        self.comb += [
            loads.eq(sink.valid & is_open & (~has_octet | self.takes)),
            self.is_inside.eq((self.todo != 0) | self.number),
            self.takes.eq(has_octet & is_open & ((self.is_inside & ~self.is_next) | self.has_space)),
            self.half.eq(Cat(self.octet, self.high)),
            self.ends.eq(self.takes & ((self.wrong != 0) | (~self.is_inside & (self.octet == SET_END)))),
            sink.ready.eq((loads & (place == 3)) | has_rest),
        ]
        self.sync += [
            If(loads,
                place.eq(place + 1),
                Case(place, {n: self.octet.eq(sink.data[8*n:8*n + 8]) for n in range(4)}),
            ),
            has_octet.eq(loads | (has_octet & ~self.takes)),
            If(self.takes, self.high.eq(self.octet)),
            # Its last octet comes in this cycle, or the one before, where it ends with the third or the fourth.
            has_rest.eq(self.ends & ((place == 1) | (place == 2))),
            If(self.ends,
                is_open.eq(0),
                self.is_ended.eq(1),
                self.error.eq(self.wrong),
            ),
            If(self.stop, is_open.eq(0)),
            If(self.clear,
                place.eq(0),
                has_octet.eq(0),
                is_open.eq(1),
                self.is_ended.eq(0),
                self.error.eq(0),
            ),
        ]
        self.add_fields()
        self.add_checks(entries)

    def add_fields(self):
        """Walk the halfwords of the fields that a control octet names."""
        named    = Signal(8, reset_less=True) # Control octet.
        rest    = Signal(3, reset_less=True) # Halfwords of the field after this one.
        is_low  = Signal()                   # The second octet of the halfword comes.
        is_set  = Signal()
        is_done = Signal()                   # The field is through,
        is_last = Signal()                   # and it is the last one of a set.
        after   = Signal(len(FIELDS))        # Fields after this octet,
        todo    = Signal(len(FIELDS))        # with those of the next set of a run.
        self.comb += [
            is_set.eq(~self.octet[6] & ~self.octet[7]),
            self.half_done.eq(self.is_inside & is_low),
            is_done.eq(self.half_done & (rest == 0)),
            If(self.is_inside,
                after.eq(self.todo & (self.todo - 1)),
                self.control.eq(named),
            ).Else(
                after.eq(Mux(is_set, self.octet, 0)),
                self.control.eq(self.octet),
            ),
            is_last.eq(is_done & ~self.number & (after == 0)),
            todo.eq(Mux(is_last & (self.run != 0), named, after)),
            If(self.ends, self.control.eq(SET_END)),
            self.write.eq(self.takes & self.half_done),
            self.push.eq(self.ends | (self.takes & Mux(self.is_inside,
                is_last | (is_done & self.number & (named == SET_REPEAT)),
                is_set & (after == 0)))),
        ]
        self.add_walk(named, rest, is_low, is_done, is_last, todo)

    def add_walk(self, named, rest, is_low, is_done, is_last, todo):
        """Go on with each octet, to the next field and the next set of a run."""
        is_set = ~self.octet[6] & ~self.octet[7]
        begin  = self.begin(SetField.LENGTH, rest) # Of a number, too.
        for n, field in reversed(list(enumerate(FIELDS))):
            begin = [If(todo[n], *self.begin(field, rest)).Else(*begin)]
        self.sync += [
            If(self.takes,
                If(self.is_inside,
                    is_low.eq(~is_low),
                    If(self.half_done,
                        self.slot.eq(self.slot + 1),
                        rest.eq(rest - 1),
                    ),
                ).Else(
                    named.eq(self.octet),
                    self.number.eq((self.octet == SET_REPEAT) | (self.octet == SET_RUN)),
                    If(is_set, self.is_first.eq(0)),
                ),
                If(~self.is_inside | is_done, self.todo.eq(todo), *begin),
                self.is_next.eq(is_last & (self.run != 0)),
                If(is_last & (self.run != 0), self.run.eq(self.run - 1)),
                If(is_done & self.number,
                    self.number.eq(0),
                    If(named == SET_RUN, self.run.eq(self.half)),
                ),
            ),
            If(self.clear,
                self.todo.eq(0),
                self.number.eq(0),
                self.run.eq(0),
                self.is_next.eq(0),
                self.is_first.eq(1),
                is_low.eq(0),
            ),
        ]

    def begin(self, field, rest):
        """Return what begins with a field."""
        return [self.slot.eq(SLOTS[field]), rest.eq(SET_FIELD_OCTETS[field][0]//2 - 1)]

    def add_checks(self, entries):
        """Find what no frame can be made of."""
        octet, is_special = self.octet, Signal()
        self.comb += [
            is_special.eq(Reduce("OR", [octet == special for special in (SET_REPEAT, SET_RUN, SET_END, SET_NOTHING)])),
            If(self.half_done & ~self.number,
                If((self.slot == SLOTS[SetField.LENGTH]) & ((self.half < MIN_LENGTH) | (self.half > MAX_LENGTH)),
                    self.wrong.eq(int(SetError.LENGTH)),
                ),
                If((self.slot == SLOTS[SetField.INDEX]) & (self.half >= entries), self.wrong.eq(int(SetError.INDEX))),
            ).Elif(~self.is_inside & ~is_special,
                If((octet[6:] != 0) | ((octet == 0) & (self.run != 0)),
                    self.wrong.eq(int(SetError.CONTROL)),
                ).Elif((octet[:6] & ~self.fields) != 0,
                    self.wrong.eq(int(SetError.FIELD)),
                ).Elif(self.is_first & ((self.fields & ~octet[:6]) != 0),
                    self.wrong.eq(int(SetError.INCOMPLETE)),
                ),
            ),
        ]
