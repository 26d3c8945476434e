# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Edits a header by a configuration set."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import (
    SET_FIELD_OCTETS, SET_PLACES, SET_SUMMED, SET_TEMPLATE_WORDS, STREAM_FIELDS, SetField,
)
from liteprobe.cores.transmit.sources.edits import HALFWORD_BITS
from liteprobe.cores.transmit.sources.length import field
from liteprobe.cores.transmit.sources.set_parser import FIELDS, HALF_BITS, SLOT_BITS, SLOTS
from liteprobe.cores.transmit.sources.templates import TemplateUser

# Field of each halfword of a set.
FIELD_OF_SLOT = {
    slot + n: name
    for name, slot in SLOTS.items()
    for n in range(max(SET_FIELD_OCTETS[name])//2)
}


class SetEdits(LiteXModule):
    """Writes the fields of a set into the header, one halfword a cycle, those that it lacks as they were before.

    Attributes
    ----------
    start : Signal(), in
        Pulse; 18 cycles later all is done.
    fields, named : Signal(6), in
        Fields that sets may have, and those that this one has, while it is read.
    read_slot, read_half : Signal(4), Signal(16), out and in
        As of `SetQueue`.
    places, template : Signal(48), list of four Signal(32), in
        As of `SetsSource`.
    user : TemplateUser
        Its ``edit``, ``half``, ``in_ipv4`` and ``in_seed`` come from here.
    is_done : Signal(), out
        Pulse: ``start`` may come again in the next cycle.
    first_half : Signal(16), out
        The halfword of slot 0: the length. Behind the third cycle.
    """
    def __init__(self):
        self.start      = Signal()
        self.fields     = Signal(len(FIELDS))
        self.named      = Signal(len(FIELDS))
        self.read_slot  = Signal(SLOT_BITS)
        self.read_half  = Signal(HALF_BITS)
        self.places     = Signal(8*(len(SET_PLACES) + 1))
        self.template   = [Signal(32, name=f"template_{n}") for n in range(SET_TEMPLATE_WORDS)]
        self.user       = TemplateUser()
        self.is_done    = Signal()
        self.first_half = Signal(HALF_BITS, reset_less=True)

        # # #

        # A halfword is read, then chosen, then added up and written.
        # -----------------------------------------------------------
        self.autocsr_exclude = {"memory"}
        steps     = Signal(3)
        chosen    = Signal(SLOT_BITS, reset_less=True)
        is_named  = Signal()
        self.memory = memory = Memory(HALF_BITS, 2**SLOT_BITS, name="set_before")
        keep      = memory.get_port(write_capable=True)
        before    = memory.get_port(async_read=True)
        self.specials += memory, keep, before
        self.half = half = Signal(HALF_BITS, reset_less=True)
        self.last = Signal(HALF_BITS, reset_less=True)
        self.slot = Signal(SLOT_BITS, reset_less=True)
        self.is_step  = steps[2]
        self.halfword = Signal(HALFWORD_BITS, reset_less=True) # Of the header.
        value     = Signal(HALF_BITS)
        self.comb += [
            Case(chosen, {slot: is_named.eq(self.named[FIELDS.index(name)]) for slot, name in FIELD_OF_SLOT.items()}),
            before.adr.eq(chosen),
            value.eq(Mux(is_named, self.read_half, before.dat_r)),
            keep.adr.eq(chosen),
            keep.dat_w.eq(value),
            keep.we.eq(steps[1]),
            self.is_done.eq(steps == 0b100),
        ]
        self.sync += [
            If(self.start, steps[0].eq(1)),
            If(steps[0],
                self.read_slot.eq(self.read_slot + 1),
                If(self.read_slot == 2**SLOT_BITS - 1, steps[0].eq(0)),
            ),
            steps[1:].eq(steps[:2]),
            chosen.eq(self.read_slot),
            half.eq(value),
            self.last.eq(half),
            self.slot.eq(chosen),
            If(steps[1] & (chosen == 0), self.first_half.eq(value)),
            Case(chosen, {
                **{SLOTS[name]: self.halfword.eq(self.places[8*n + 1:8*n + 7]) for n, name in enumerate(SET_PLACES)},
                "default": self.halfword.eq(self.halfword + 1),
            }),
        ]
        self.add_edit()

    def setting(self, name):
        """Return a field of the template's description."""
        return field(self.template[STREAM_FIELDS[name].word], name)

    def add_edit(self):
        """Edit two halfwords at once, or the one of a tag, and add up each."""
        user, edit, slot, halfword = self.user, self.user.edit, self.slot, self.halfword
        summed    = self.places[8*SET_SUMMED:]
        is_used   = Signal()
        is_single = Signal()
        def is_in(first, end):
            return (halfword >= first[1:7]) & (halfword < end[1:7])
        self.comb += [
            Case(slot, {
                n: is_used.eq(self.is_step & self.fields[FIELDS.index(name)])
                for n, name in FIELD_OF_SLOT.items() if name != SetField.LENGTH
            }),
            is_single.eq(slot >= SLOTS[SetField.TAG]),
            edit.valid.eq(is_used & (slot[0] | is_single)),
            edit.stream.eq(0),
            If(is_single,
                edit.halfword.eq(halfword),
                edit.writes.eq(0b10),
                edit.window.eq(Cat(self.last, self.half)),
            ).Else(
                edit.halfword.eq(halfword - 1),
                edit.writes.eq(0b11),
                edit.window.eq(Cat(self.half, self.last)),
            ),
            user.half.eq(self.half),
            user.in_ipv4.eq(is_used & self.setting("ipv4_write") & is_in(
                self.setting("network_base"), self.setting("transport_offset"))),
            user.in_seed.eq(is_used & self.setting("checksum_enable") & is_in(summed, self.setting("payload_offset"))),
        ]
