# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Takes the TX stamp of a frame from a field of any of its headers."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import HEAD_OCTETS, PLACE_FIELDS, PLACE_WORDS
from liteprobe.cores.measure.measured import HEADS, measured_layout, passing_layout
from liteprobe.cores.measure.reader import SharedReader
from liteprobe.cores.measure.slots import SlotFinder

# Numbers ------------------------------------------------------------------------------------------

NIBBLE     = 4
NIBBLES    = 64//NIBBLE         # Of a stamp.
HEAD_WORDS = HEAD_OCTETS//4
HEADS_END  = HEADS*HEAD_WORDS   # In the memory; the places follow.
LOOK, LOAD, FETCH = 2, 3, 4     # Cycles after ``valid``: the place is read, taken, and the field's last octet is read.
BEGIN      = FETCH + 1          # The lowest nibble of the stamp.
DONE       = BEGIN + NIBBLES

# Field Delay --------------------------------------------------------------------------------------

class FieldDelay(LiteXModule):
    """Puts the time at which a frame was sent by a field of it into ``tx_stamp``, so that its delay is measured like any.

    The slot of the frame's stream has a place (``formats.StampPlace``): offset and width of the field, and how many of the
    stamp's lowest nibbles it lacks; frames without a probe's header have that of slot 0, and are ``is_bare`` then. What the
    field can't say is taken from the arrival: the latest time before it, or at it, that has these bits. Without a place, or
    where the frame ends before its field does, ``tx_stamp`` stays, and a frame without a probe's header is not ``is_bare``.

    Parameters
    ----------
    slots : int
        Of the meter; a power of two.

    Attributes
    ----------
    passing : Record(passing_layout()), in
        Words of the frames as they arrive.
    measured : Endpoint(measured_layout), in
        ``head`` is the one that ``passing`` said, of one of the last three frames that were classified. Can't be stalled.
    source : Endpoint(measured_layout), out
        The same 22 cycles later. Can't be stalled.
    stream_base : Signal(16), in
        As of `StreamMeter`.
    clear : Signal(), in
        One cycle: the frame on its way is dropped.
    bus : wishbone.Interface, slave
        ``bus_words`` places, a word a slot; read and write, whole words. Waits up to 40 cycles.

    Limits: fields end within the first 256 octets. The memory outlives a reset.
    """
    bus_words = PLACE_WORDS

    def __init__(self, slots):
        self.passing     = Record(passing_layout())
        self.measured    = stream.Endpoint(measured_layout)
        self.source      = stream.Endpoint(measured_layout)
        self.stream_base = Signal(16)
        self.clear       = Signal()
        self.reader      = SharedReader()
        self.bus         = self.reader.bus

        # # #

        # Order.
        # ------
        self.age = age = Signal(max=DONE + 1) # Cycles since ``valid``; 0: idle.
        self.sync += [
            If(age != 0, age.eq(age + 1)),
            If(age == DONE, age.eq(0)),
            If(self.measured.valid, age.eq(1)),
            If(self.clear, age.eq(0)),
        ]
        self.add_memory()
        self.add_place(slots)
        self.add_stamp()

    def add_memory(self):
        """Keep the first octets of frames, and the places, in one block RAM."""
        passing, reader = self.passing, self.reader
        memory = Memory(32, 2*HEADS_END)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.read = read = memory.get_port(mode=READ_FIRST)
        self.specials += memory, write, read
        word  = Signal(max=HEAD_WORDS + 1) # Of the frame that passes.
        place = Cat(reader.bus.adr[:log2_int(PLACE_WORDS)], Constant(HEADS_END//PLACE_WORDS, 4))
        self.address = Signal(len(read.adr)) # In the cycles of the engine.
        self.sync += [
            If(passing.valid & ~word[-1], word.eq(word + 1)),
            If(passing.valid & passing.last, word.eq(0)),
            reader.value.eq(read.dat_r),
        ]
        self.comb += [
            reader.is_free.eq((self.age == 0) & ~passing.valid),
            read.adr.eq(Mux(reader.take, place, self.address)),
            write.adr.eq(Mux(passing.valid, Cat(word[:-1], passing.head), place)),
            write.dat_w.eq(Mux(passing.valid, passing.data, reader.bus.dat_w)),
            write.we.eq(Mux(passing.valid, ~word[-1], reader.take & reader.bus.we)),
        ]

    def add_place(self, slots):
        """Find the place, and walk through the field from its last nibble on."""
        measured, age = self.measured, self.age
        self.finder = finder = SlotFinder(slots)
        self.comb += [
            finder.stream_id.eq(measured.stream_id),
            finder.stream_base.eq(self.stream_base),
        ]
        fields = {}
        for name, (first, bits) in PLACE_FIELDS.items():
            fields[name] = self.read.dat_r[first:first + bits]
        last        = Signal(9)                          # Octet of the field.
        nibble      = Signal(10, reset_less=True)        # Of the frame, the upper one of each octet first.
        left        = Signal(5, reset_less=True)         # Nibbles of the field that are not fetched.
        skipped     = Signal(4, reset_less=True)         # Nibbles of the stamp below the field.
        is_enabled  = Signal(reset_less=True)
        self.is_timed = is_timed = Signal(reset_less=True)
        self.takes  = takes  = Signal()                  # A nibble of the field was fetched.
        picks       = Signal(3, reset_less=True)         # In its word.
        fetches     = Signal()
        self.comb += [
            last.eq(fields["offset"] + fields["octets"]),
            fetches.eq((age >= FETCH) & (skipped == 0) & (left != 0)),
            self.address.eq(Cat(nibble[3:9], measured.head)),
            If(age == LOOK, self.address.eq(HEADS_END + Mux(measured.is_probe, finder.slot, 0))),
        ]
        self.sync += [
            If(age == LOAD,
                nibble.eq(Cat(1, last)),
                left.eq(Cat(0, fields["octets"]) + 2 - fields["nibble"]),
                skipped.eq(fields["shift"]),
                is_enabled.eq(fields["enable"]),
            ),
            If(age == FETCH, is_timed.eq(is_enabled & ~nibble[-1] & (nibble[1:] < measured.length))),
            If((age >= FETCH) & (skipped != 0), skipped.eq(skipped - 1)),
            If(fetches, nibble.eq(nibble - 1), left.eq(left - 1)),
            takes.eq(fetches),
            picks.eq(nibble[:3]),
        ]
        # In a word octet 0 is lowest, and its upper nibble is the first.
        self.value = value = Signal(NIBBLE)
        word = self.read.dat_r
        self.comb += Case(picks, {n: value.eq(word[8*(n//2) + 4*(1 - n%2):][:NIBBLE]) for n in range(8)})

    def add_stamp(self):
        """Put the field into the arrival's stamp, nibble by nibble; where it is more than that has there, borrow above it."""
        measured, source, age = self.measured, self.source, self.age
        work    = Signal(64, reset_less=True) # TX stamp; each cycle takes a nibble away below, and puts one in above.
        arrived = Signal(NIBBLE)
        less    = Signal(NIBBLE)
        rest    = Signal(NIBBLE + 1)
        borrow  = Signal()
        put     = Signal(NIBBLE)
        number  = Signal(max=NIBBLES)
        self.comb += [
            number.eq(age - BEGIN),
            Case(number, {n: arrived.eq(measured.stamp[NIBBLE*n:][:NIBBLE]) for n in range(NIBBLES)}),
            If(self.takes, less.eq(self.value)),
            rest.eq(arrived - less - borrow),
            put.eq(Mux(self.takes, self.value, rest[:NIBBLE])),
            If(~self.is_timed, put.eq(work[:NIBBLE])),
        ]
        self.sync += [
            work.eq(Cat(work[NIBBLE:], put)),
            borrow.eq(rest[-1]),
            If(age == FETCH, work.eq(measured.tx_stamp), borrow.eq(0)),
        ]
        named = [name for name, *_ in measured_layout if name not in ("tx_stamp", "is_bare", "head")]
        self.sync += [
            source.valid.eq((age == DONE) & ~self.clear),
            If(age == DONE,
                *[getattr(source, name).eq(getattr(measured, name)) for name in named],
                source.tx_stamp.eq(work),
                source.is_bare.eq(self.is_timed & ~measured.is_probe),
            ),
        ]
        stream.set_reset_less(source.payload)
