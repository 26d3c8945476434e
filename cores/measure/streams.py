# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Accumulators of a port and of its streams, in a block RAM, a word a cycle."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import (
    BinKind, DAMAGE, PORT_ACCUMULATORS, STREAM_ACCUMULATORS, STREAM_SLOTS, STREAM_SLOT_WORDS, STREAM_WINDOW, UnifiedFlag
)
from liteprobe.cores.measure.banks import Banks
from liteprobe.cores.measure.measured import measured_layout, sample_layout
from liteprobe.cores.measure.reader import SharedReader
from liteprobe.cores.measure.square import DelaySquare
from liteprobe.cores.measure.window import SequenceWindow

PORT_STEPS  = 8               # Words of the port come first.
DELAY_STEPS = (28, 29)        # The delay once more, for the histogram of slot 0; no word.
LAST_STEP   = DELAY_STEPS[-1]
FAULTS      = int(DAMAGE) | int(UnifiedFlag.LENGTH_ERROR)

def steps_of(name, words=STREAM_ACCUMULATORS):
    """Return the steps of an accumulator, which are its words."""
    return list(range(words[name].first, words[name].first + words[name].words))

# Stream Meter -------------------------------------------------------------------------------------

class StreamMeter(LiteXModule):
    """Counts and adds up every frame of a port, and of each stream loss, duplication, reordering and delay.

    Slot 0 has the accumulators of the port (``PORT_ACCUMULATORS``: every frame, damaged or not), and as if it was one stream
    those of the probe frames that are of none (``STREAM_ACCUMULATORS``). Slots 1 to 7 are the streams ``stream_base`` to
    ``stream_base`` + 6. Damaged frames, and those with broken lengths, are in no stream: they count as ``bad_probes``.
    Duplicates and late frames enter counts and delays. Definitions are those of `SequenceTracker` and `DelayMeter`.

    Attributes
    ----------
    measured : Record(measured_layout), in
    stream_base : Signal(16), in
        Modulo 2^16.
    measure_passed : Signal(), in
        Takes only frames that pass the filter.
    latch : Signal(), in
        One cycle: takes a snapshot of one instant, which is at most 32 cycles later; `bus` waits for it.
    clear : Signal(), in
        One cycle: all is 0, and a frame under way leaves no trace. The snapshot stays.
    sample : Record(sample_layout), out
        Values of each frame for `Histograms`: in slot 0 length, time since the frame before, and delay of a good probe
        frame; in the slot of a stream the same. Values of a slot and kind come 32 cycles apart, others two.
    bus : wishbone.Interface, slave
        The snapshot: ``STREAM_SLOT_WORDS`` words a slot, the lowest word of each accumulator first; 0 before the first
        ``latch``. A read waits up to 32 cycles.

    A step reads a word of the memory, and five cycles later writes it: plus A - B, and a carry. B is the word itself where a
    difference to what came before is wanted (``last_stamp``, ``expected``, ``delay_min``, ``delay_max``): then what is
    written is A, and the difference tells the time between frames, the frames in between, and which delay is less.
    """
    def __init__(self):
        self.measured       = measured = Record(measured_layout)
        self.stream_base    = Signal(16)
        self.measure_passed = Signal()
        self.latch          = Signal()
        self.clear          = Signal()
        self.sample         = Record(sample_layout)

        # # #

        # Steps.
        # ------
        self.step    = step    = Signal(max=STREAM_SLOT_WORDS)
        self.running = running = Signal()
        start = Signal()
        self.comb += start.eq(measured.valid & (measured.passed | ~self.measure_passed))
        self.sync += [
            step.eq(step + running),
            If(step == LAST_STEP, running.eq(0)),
            If(start,      step.eq(0), running.eq(1)),
            If(self.clear, running.eq(0)),
        ]

        # Which slot.
        # -----------
        number          = Signal(16, reset_less=True) # From stream_base on.
        self.slot       = Signal(3, reset_less=True)
        self.is_counted = Signal()
        self.is_bad     = Signal()
        has_fault       = Signal()
        self.comb += has_fault.eq((measured.flags & FAULTS) != 0)
        self.sync += [
            number.eq(measured.stream_id - self.stream_base),
            self.slot.eq(Mux(number < STREAM_SLOTS - 1, number[:3] + 1, 0)),
            self.is_counted.eq(measured.is_probe & ~has_fault),
            self.is_bad.eq(    measured.is_probe &  has_fault),
        ]

        # What is added.
        # --------------
        self.delay = Signal((64, True), reset_less=True)
        self.sync += self.delay.eq(measured.stamp - measured.tx_stamp)
        self.square = square = DelaySquare()
        self.comb += [
            square.delay.eq(self.delay),
            square.start.eq(Cat(step == 2, step == 3, step == 4)),
        ]

        # Parts.
        # ------
        self.add_banks()
        self.add_memory()
        self.add_difference()
        self.add_sum()
        self.add_sequence()
        self.add_sample()

    def late(self, signal, cycles=1):
        """Return what ``signal`` was some cycles ago."""
        for _ in range(cycles):
            delayed     = Signal.like(signal, reset_less=True)
            self.sync  += delayed.eq(signal)
            signal      = delayed
        return signal

    def is_step(self, step, *steps):
        """Return whether ``step`` is one of those."""
        return Reduce("OR", [step == number for number in steps])

    def add_banks(self):
        """Take snapshots between frames."""
        self.port    = Banks(1)
        self.streams = Banks(STREAM_SLOTS)
        waiting      = Signal()
        take         = Signal()
        last         = Signal()
        self.settled = Signal() # What was under way at the snapshot is written.
        self.comb += [
            # The banks must stand when a frame starts, a cycle later.
            take.eq(waiting & ~self.running & ~self.measured.valid),
            last.eq(self.running & (self.step == LAST_STEP) & ~self.clear),
            self.port.done.eq(last),
            self.streams.group.eq(self.slot),
            If(last & self.is_counted, self.streams.done.eq(1 << self.slot)),
        ]
        self.comb += [[banks.take.eq(take), banks.clear.eq(self.clear)] for banks in (self.port, self.streams)]
        since = Signal(5)
        self.sync += [
            If(self.latch, waiting.eq(1)).Elif(take, waiting.eq(0)),
            since.eq(Cat(take, since)),
        ]
        self.comb += self.settled.eq(~(self.latch | waiting | (since != 0)))

    def add_memory(self):
        """Read a word in each step, or one for the bus; write it five cycles later."""
        memory = Memory(32, 2*STREAM_SLOTS*STREAM_SLOT_WORDS)
        read   = memory.get_port(mode=READ_FIRST)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, read, write
        self.reader = reader = SharedReader()
        self.bus    = bus    = reader.bus
        port, streams = self.port, self.streams

        is_port = self.step < PORT_STEPS
        slot, read_bank, write_bank, is_fresh = Signal(3), Signal(), Signal(), Signal()
        place   = Cat(self.step, slot)
        asked   = bus.adr[:len(place)]
        is_word = Signal()
        self.comb += [
            If(is_port,
                read_bank.eq(port.read_bank), write_bank.eq(port.write_bank), is_fresh.eq(port.is_fresh),
            ).Else(
                read_bank.eq(streams.read_bank), write_bank.eq(streams.write_bank), is_fresh.eq(streams.is_fresh),
                slot.eq(self.slot),
            ),
            is_word.eq(self.running & (is_port | self.is_counted) & ~self.clear),
            streams.shown.eq(asked[5:]),
            reader.is_free.eq(~self.running & self.settled),
            If(self.running,
                read.adr.eq(Cat(place, read_bank)),
            ).Else(
                read.adr.eq(Cat(asked, Mux(asked[3:5] == 0, port.shown_bank, streams.shown_bank))),
            ),
        ]
        # As they are one and three cycles later.
        self.word     = Signal(32, reset_less=True) # Of the memory, two cycles later.
        self.step_1   = self.late(self.step)
        self.fresh_1  = Signal()
        shown_fresh   = Mux(asked[3:5] == 0, port.shown_fresh, streams.shown_fresh)
        is_word_1     = self.late(is_word)
        self.raw      = read.dat_r
        self.sync += [
            self.fresh_1.eq(Mux(self.running, is_fresh, shown_fresh)),
            self.word.eq(read.dat_r),
            If(self.fresh_1, self.word.eq(0)),
        ]
        self.step_2   = self.late(self.step_1)
        self.step_3   = self.late(self.step_2)
        self.fresh_2  = self.late(self.fresh_1)
        self.fresh_3  = self.late(self.fresh_2)
        self.slot_3   = self.late(slot, 3)
        self.is_word_3 = Signal()
        is_word_2      = Signal()
        self.sync += [
            is_word_2.eq(      is_word_1 & ~self.clear),
            self.is_word_3.eq( is_word_2 & ~self.clear),
        ]
        self.total = Signal(32, reset_less=True)
        self.comb += [
            reader.value.eq(self.word),
            write.adr.eq(Cat(self.late(self.step_3, 2), self.late(self.slot_3, 2), self.late(write_bank, 5))),
            write.dat_w.eq(self.total),
            write.we.eq(self.late(self.is_word_3 & (self.step_3 < DELAY_STEPS[0]), 2)),
        ]

    def add_difference(self):
        """Form A - B of each step, a word of a field less what the memory has."""
        measured, delay, square = self.measured, self.delay, self.square.square
        names   = ("first_stamp", "last_stamp")
        stamps  = [sum((steps_of(name, words) for name in names), []) for words in (PORT_ACCUMULATORS, STREAM_ACCUMULATORS)]
        delays  = [*sum((steps_of(name) for name in ("delay_min", "delay_max", "delay_sum")), []), *DELAY_STEPS]
        squares = steps_of("delay_square_sum")
        octets  = [steps_of("octets", words)[0] for words in (PORT_ACCUMULATORS, STREAM_ACCUMULATORS)]
        sources = [
            (octets,                  measured.length),
            (steps_of("expected"),    measured.sequence),
            (sum(stamps, [])[0::2],   measured.stamp[:32]),
            (sum(stamps, [])[1::2],   measured.stamp[32:]),
            (delays[0::2],            delay[:32]),
            (delays[1::2],            delay[32:]),
            (squares[0:1],            square[:32]),
            (squares[1:2],            square[32:]),
        ]
        differences = [steps_of("last_stamp", PORT_ACCUMULATORS)]
        differences += [steps_of(name) for name in ("last_stamp", "delay_min", "delay_max", "expected")]
        firsts      = steps_of("first_stamp", PORT_ACCUMULATORS) + steps_of("first_stamp")
        select, is_any, is_first, is_difference = Signal(3), Signal(), Signal(), Signal()
        self.sync += [
            Case(self.step, {step: select.eq(n) for n, (steps, _) in enumerate(sources) for step in steps}),
            is_any.eq(       self.is_step(self.step, *[step for steps, _ in sources for step in steps])),
            is_first.eq(     self.is_step(self.step, *firsts)),
            is_difference.eq(self.is_step(self.step, *sum(differences, []))),
        ]
        a, b    = Signal(32, reset_less=True), Signal(32, reset_less=True)
        borrow  = Signal()
        borrows = Signal()
        unused  = Signal()
        self.difference = Signal(32, reset_less=True)
        difference      = Signal(34)
        self.sync += [
            Case(select, {n: a.eq(value) for n, (_, value) in enumerate(sources)}),
            If(~is_any | (is_first & ~self.fresh_1), a.eq(0)),
            b.eq(self.raw),
            If(~is_difference | self.fresh_1, b.eq(0)),
            borrows.eq(self.is_step(self.step_1, *[steps[1] for steps in differences if len(steps) > 1])),
            Cat(unused, self.difference, borrow).eq(difference),
        ]
        # One subtractor: the borrow comes in through an extra lowest bit.
        self.comb += difference.eq(Cat(Constant(0, 1), a, Constant(0, 1)) - Cat(borrow & borrows, b))

        # A delay is less than the one before if its sign says so, or else that of the difference. What is kept of the word
        # is known with the higher one, while the lower one waits.
        is_less, keeps = Signal(), Signal()
        least, most = steps_of("delay_min"), steps_of("delay_max")
        kept_d = Signal()
        self.comb += [
            is_less.eq(Mux(a[-1] ^ b[-1], a[-1], difference[32])),
            keeps.eq(~self.fresh_2 & Mux(self.step_2 == least[1], ~is_less, is_less)),
        ]
        self.sync += kept_d.eq(keeps)
        self.keep = Signal()
        self.comb += [
            If(self.is_step(self.step_3, least[0], most[0]), self.keep.eq(keeps)),
            If(self.is_step(self.step_3, least[1], most[1]), self.keep.eq(kept_d)),
            If(self.step_3 == steps_of("expected")[0],       self.keep.eq(self.difference[-1])),
        ]

    def add_sum(self):
        """Add the difference, and a carry, to the word; or keep the word."""
        addend  = Signal() # Of one, known in the third cycle.
        added   = Signal(32, reset_less=True)
        one     = Signal()
        chains  = Signal()
        carry   = Signal()
        unused  = Signal()
        known   = self.window_known = Signal()
        is_near, is_behind = self.is_near, self.is_behind = Signal(), Signal()
        chained = sum(([*range(item.first + 1, item.first + item.words)]
            for words in (PORT_ACCUMULATORS, STREAM_ACCUMULATORS) for item in words.values()), [])
        ones = [steps_of("frames", PORT_ACCUMULATORS), steps_of("frames")]
        self.comb += Case(self.step_3, {
            **{steps[0]: addend.eq(1) for steps in ones},
            steps_of("bad_probes", PORT_ACCUMULATORS)[0]: addend.eq(self.is_bad),
            steps_of("expected")[0]:                      addend.eq(~self.difference[-1]),
            steps_of("duplicated")[0]:                    addend.eq(is_near & known),
            steps_of("reordered")[0]:                     addend.eq(is_near & ~known),
            steps_of("beyond_window")[0]:                 addend.eq(is_behind & ~is_near),
            "default":                                    addend.eq(0),
        })
        word = self.late(self.word, 2)
        self.sync += [
            one.eq(addend),
            chains.eq(self.is_step(self.step_3, *chained)),
            added.eq(self.difference),
            If(self.keep, added.eq(0)),
            # One adder: the carry comes in through an extra lowest bit.
            Cat(unused, self.total, carry).eq(Cat(Constant(1, 1), word) + Cat(Mux(chains, carry, one), added)),
        ]

    def add_sequence(self):
        """Say of a frame whether it is behind the expected one, how far, and whether it came before."""
        self.window = window = SequenceWindow(STREAM_SLOTS, STREAM_WINDOW)
        place_bits  = log2_int(STREAM_WINDOW)
        self.sync += If(self.step_3 == steps_of("expected")[0],
            self.is_behind.eq(self.difference[-1]),
            self.is_near.eq(self.difference[place_bits:] == 2**(32 - place_bits) - 1), # 1 to ``STREAM_WINDOW`` behind.
        )
        last_use = steps_of("beyond_window")[0] + 4
        self.comb += [
            window.slot.eq(self.slot),
            window.sequence.eq(self.measured.sequence),
            window.clear.eq(self.clear),
            window.commit.eq(self.running & (self.step == last_use) & self.is_counted & ~(self.is_behind & ~self.is_near)
                & ~self.clear),
            self.window_known.eq(window.is_known),
        ]

    def add_sample(self):
        """Hand the values on, as differences."""
        sample = self.sample
        kinds  = [
            (BinKind.LENGTH,  steps_of("octets", PORT_ACCUMULATORS)     + steps_of("octets")),
            (BinKind.ARRIVAL, steps_of("last_stamp", PORT_ACCUMULATORS) + steps_of("last_stamp")),
            (BinKind.DELAY,   steps_of("delay_sum")                     + list(DELAY_STEPS)),
        ]
        is_any  = Signal()
        is_slot = Signal() # Slot 0 has had its values from the port's words.
        self.comb += [
            is_slot.eq((self.step_3 < PORT_STEPS) | (self.step_3 >= DELAY_STEPS[0]) | (self.slot_3 != 0)),
            sample.valid.eq(self.is_word_3 & is_any & is_slot & ~((sample.kind == BinKind.ARRIVAL) & self.fresh_3)),
            # All lie on even words.
            sample.is_high.eq(self.step_3[0]),
            sample.word.eq(self.difference),
            sample.slot.eq(Mux(self.step_3 >= DELAY_STEPS[0], 0, self.slot_3)),
            Case(self.step_3, {step: [is_any.eq(1), sample.kind.eq(kind)] for kind, steps in kinds for step in steps}),
        ]
