# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sorts length, delay and time between frames of each slot of a port into histograms."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import BIN_SLOT_WORDS, BINS, BinKind, STREAM_SLOTS
from liteprobe.cores.measure.measured import sample_layout
from liteprobe.cores.measure.reader import SharedReader

GENERATION_BITS = 4

# Bin Finder ---------------------------------------------------------------------------------------

class BinFinder(LiteXModule):
    """Finds the bin of each value; one may come every second cycle.

    Parameters
    ----------
    slots : int
        A power of two.

    Attributes
    ----------
    sample : Record(sample_layout(slots)), in
    origins : dict of `BinKind` to Signal, in
        Signed where they have 64 bits.
    shifts : dict of `BinKind` to Signal(5), in
    clear : Signal(), in
        One cycle: forgets values on their way.
    valid : Signal(), out
        A bin; eight cycles after the value's high word.
    address : Signal, out
        Slot and word of the bin.
    """
    def __init__(self, slots):
        self.sample  = Record(sample_layout(slots))
        self.origins = {
            kind: Signal(bits, name=f"{kind.name.lower()}_origin")
            for kind, bits in [(BinKind.LENGTH, 16), (BinKind.DELAY, 64), (BinKind.ARRIVAL, 32)]
        }
        self.shifts  = {kind: Signal(5, name=f"{kind.name.lower()}_shift") for kind in BINS}
        self.clear   = Signal()
        self.valid   = Signal()
        self.address = Signal(max=slots*BIN_SLOT_WORDS)

        # # #

        self.add_difference()
        self.add_shift()
        self.add_bin()

    def late(self, value):
        """Return what ``value`` was a cycle ago."""
        delayed    = Signal(len(value))
        self.sync += delayed.eq(value)
        return delayed

    def add_difference(self):
        """Form value less origin, a word after the other."""
        sample = self.sample
        cases, shift_of = {}, {}
        origin = Signal(32)
        shift  = Signal(5)
        for kind, value in self.origins.items():
            cases[kind]     = Case(sample.is_high, {n: origin.eq(value[32*n:32*n + 32]) for n in range((len(value) + 31)//32)})
            shift_of[kind]  = shift.eq(self.shifts[kind])
        difference = Signal(34)
        borrow     = Signal()
        self.low      = low      = Signal(32, reset_less=True)
        self.high     = high     = Signal(32, reset_less=True)
        self.is_below = is_below = Signal()
        self.whole    = whole    = Signal()
        self.chosen   = chosen   = Signal(5)
        self.comb += [
            Case(sample.kind, cases),
            Case(sample.kind, shift_of),
            difference.eq(Cat(Constant(0, 1), sample.word, Constant(0, 1)) - Cat(sample.is_high & borrow, origin)),
        ]
        self.sync += [
            borrow.eq(difference[-1]),
            whole.eq(sample.valid & sample.is_high & ~self.clear),
            If(sample.is_high,
                high.eq(difference[1:33]),
                is_below.eq(Mux(sample.word[-1] ^ origin[-1], sample.word[-1], difference[32])),
                chosen.eq(shift),
            ).Else(
                low.eq(difference[1:33]),
            ),
        ]

    def add_shift(self):
        """Shift by halves: what is beyond the bits that are left makes it too much.

        Each level has a register: so it takes LUTs of four inputs.
        """
        left    = 6
        widths  = [left + 2**n - 1 for n in range(6)] # Behind a shift by 2^n: what those after it need.
        value   = Cat(self.low, self.high)
        beyond  = [value[n:n + 4] != 0 for n in range(widths[5], len(value), 4)]
        valid, chosen, is_below = self.whole, self.chosen, self.is_below
        tag     = self.late(Cat(self.sample.kind, self.sample.slot))
        for n in reversed(range(5)):
            is_shifted = chosen[n]
            dropped    = value[widths[n]:widths[n + 1]]
            is_dropped = Reduce("OR", beyond) if n != 4 else Signal()
            # What is beyond of the first is gathered a level later.
            over       = is_dropped | (~is_shifted & (dropped != 0))
            beyond     = [self.late(over)] + ([self.late(term) for term in beyond] if n == 4 else [])
            value      = self.late(Mux(is_shifted, value[2**n:widths[n] + 2**n], value[:widths[n]]))
            valid, tag = self.late(valid & ~self.clear), self.late(tag)
            chosen, is_below = self.late(chosen), self.late(is_below)
        self.shifted = (valid, tag, value, is_below, beyond[0])

    def add_bin(self):
        """Find the word of the bin."""
        valid, tag, value, is_below, is_over = self.shifted
        most  = Signal(6)
        place = Signal(7)
        self.comb += Case(tag[:2], {kind: most.eq(bins.regular) for kind, bins in BINS.items()})
        number = Signal(6)
        base   = Signal(7)
        tag_d  = self.late(tag)
        self.sync += [
            number.eq(value + 1),
            If(is_over | (value >= most), number.eq(most + 1)),
            If(is_below,                  number.eq(0)),
        ]
        self.comb += [
            Case(tag_d[:2], {kind: base.eq(bins.first) for kind, bins in BINS.items()}),
            place.eq(base + number),
        ]
        self.sync += self.address.eq(Cat(place, tag_d[2:]))
        self.comb += self.valid.eq(self.late(self.late(valid & ~self.clear) & ~self.clear))

# Histograms ---------------------------------------------------------------------------------------

class Histograms(LiteXModule):
    """Counts how many values fell into each bin.

    Regular bin k of a histogram has values from origin + k * 2^shift, of ``Bins.regular`` of them; what is below the first or
    above the last is counted in a bin of its own. So all bins of a histogram add up to the values that came.

    Parameters
    ----------
    count_bits : int
        Of a bin.
    slots : int
        A power of two.

    Attributes
    ----------
    sample : Record(sample_layout(slots)), in
        Values of a slot and kind must come eight cycles apart, or farther.
    length_origin, delay_origin, arrival_origin : Signal(16), Signal((64, True)), Signal(32), in
        Octets, ns, ns.
    length_shift, delay_shift, arrival_shift : Signal(5), in
    clear : Signal(), in
        One cycle: all bins are 0. Values that come later are counted, those on their way are not.
    saturated : Signal(), out
        Since the last clear, a value fell into a bin that was full, and stayed so.
    bus : wishbone.Interface, slave
        ``BIN_SLOT_WORDS`` words a slot, ``bus_words`` in all. Each shows what it is when it is read.

    Limits: a clear changes the generation of all words, and free cycles then bring the words up to it. Sixteen clears before
    that is done (a free cycle for each word after a clear) would show old counts.
    """
    def __init__(self, count_bits=32, slots=STREAM_SLOTS):
        self.bus_words      = slots*BIN_SLOT_WORDS
        self.clear          = Signal()
        self.saturated      = Signal()
        self.finder         = finder = BinFinder(slots)
        self.sample         = finder.sample
        self.length_origin, self.delay_origin, self.arrival_origin = finder.origins.values()
        self.length_shift,  self.delay_shift,  self.arrival_shift  = finder.shifts.values()
        self.reader         = reader = SharedReader()
        self.bus            = reader.bus

        # # #

        # Memory.
        # -------
        memory = Memory(count_bits + GENERATION_BITS, self.bus_words)
        read   = memory.get_port(mode=READ_FIRST)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, read, write

        # Generations.
        # ------------
        # A reset leaves the memory as it is, so the generation must outlive it and step.
        generation = Signal(GENERATION_BITS, reset_less=True) # 0 is what the memory holds at power-up.
        was_reset  = Signal(reset=1)
        swept      = Signal(len(read.adr) + 1) # Words that are of this generation, from the first one on.
        sweep      = Signal()
        busy       = Signal(4)
        self.comb += [
            # A word that a value may be about to be written to is swept later.
            sweep.eq(~finder.valid & ~reader.take & (busy == 0) & ~swept[-1]),
            reader.is_free.eq(~finder.valid),
            read.adr.eq(Mux(finder.valid, finder.address, Mux(reader.take, reader.bus.adr[:len(read.adr)], swept))),
            finder.clear.eq(self.clear),
        ]
        self.sync += [
            was_reset.eq(0),
            busy.eq(Cat(finder.valid, busy)),
            swept.eq(swept + sweep),
            If(self.clear | was_reset,
                generation.eq(generation + 1),
                swept.eq(0),
            ),
        ]
        self.add_sum(read, write, sweep, generation)

    def add_sum(self, read, write, sweep, generation):
        """Read; register; add; write."""
        finder, reader = self.finder, self.reader
        count_bits     = len(write.dat_w) - GENERATION_BITS
        stage = [(finder.valid, finder.valid | sweep, read.adr)]
        for _ in range(3):
            late = [Signal.like(signal) for signal in stage[-1]]
            self.sync += [signal.eq(value) for signal, value in zip(late, stage[-1])]
            self.sync += If(self.clear, late[0].eq(0), late[1].eq(0))
            stage.append(late)
        count   = Signal(count_bits, reset_less=True)
        total   = Signal(count_bits, reset_less=True)
        carry   = Signal()
        current = Signal(GENERATION_BITS)
        of_word    = Signal(GENERATION_BITS)
        self.comb += [
            reader.value.eq(count),
            write.adr.eq(stage[3][2]),
            write.dat_w.eq(Cat(total, of_word)),
            write.we.eq(stage[3][1] & ~carry),
        ]
        self.sync += [
            count.eq(read.dat_r),
            If(read.dat_r[count_bits:] != generation, count.eq(0)),
            current.eq(generation),
            Cat(total, carry).eq(count + stage[2][0]),
            of_word.eq(current),
            If(stage[3][0] & carry & (of_word == generation), self.saturated.eq(1)),
            If(self.clear, self.saturated.eq(0)),
        ]
