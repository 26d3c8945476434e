# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Accumulates what is measured of a port and its streams in a block RAM, a word a cycle, with a snapshot of all."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import (
    BIT_ERRORS, FAULTS, PORT_ACCUMULATORS, STREAM_ACCUMULATORS, STREAM_SLOTS, STREAM_SLOT_WORDS, STREAM_WINDOW, BinKind,
    RecordFlag,
)
from liteprobe.cores.measure.measured import ERROR_BITS, measured_layout, sample_layout
from liteprobe.cores.measure.slots import SlotValid, SlotFinder
from liteprobe.cores.measure.square import DelaySquare
from liteprobe.cores.measure.words import WordAdder, late

PORT_STEPS  = 8               # Words of the port come first.
DELAY_STEPS = [28, 29]        # The delay once more, for the histogram of slot 0; their words (``frames``) only count.
LAST_STEP   = DELAY_STEPS[-1]
TABLES      = (PORT_ACCUMULATORS, {name: place for name, place in STREAM_ACCUMULATORS.items() if name not in BIT_ERRORS})
DAMAGED_STEP, *ERROR_STEPS = [
    step for place in map(STREAM_ACCUMULATORS.get, BIT_ERRORS) for step in range(place.first, place.first + place.words)]

def steps_of(*names):
    """Return the steps of accumulators, which are their words, in their order."""
    places = [table[name] for table in TABLES for name in names if name in table]
    return sorted(step for place in places for step in range(place.first, place.first + place.words))

def lowest_steps_of(*names):
    """Return the steps of the lowest words of accumulators, in their order."""
    return sorted(table[name].first for table in TABLES for name in names if name in table)

def carried_steps():
    """Return the steps of all words but the lowest of each accumulator."""
    places = [place for table in TABLES for place in table.values()]
    return [step for place in places for step in range(place.first + 1, place.first + place.words)]

# Step Order ---------------------------------------------------------------------------------------

class StepOrder(LiteXModule):
    """Counts the steps of a frame in `StreamMeter`, finds the instant of a snapshot, and tells when the bus may read.

    Parameters
    ----------
    is_tight : bool
        All words of a slot are steps, for frames that write any; others end after the port's words. A frame may then start in
        the cycle of the last step of the one before, so there may be no cycle between them: the port's bank changes while a
        frame does the words of its stream, and the streams' change before the next one has done the port's.

    Attributes
    ----------
    latch, clear : Signal(), in
        As of `StreamMeter`.
    comes, start : Signal(), in
        One cycle: a frame comes; its steps begin.
    is_written : Signal(), in
        From two cycles later on: it writes words of its slot.
    running, step : Signal(), Signal(5), out
        A frame does this step.
    port_done, streams_done : Signal(), out
        One cycle: a frame's words of the port are written, or soon will be; those of its slot.
    take_port, take_streams : Signal(), out
        One cycle: the snapshot.
    is_free : Signal(), out
        The bus may read in this cycle: no step needs the memory, and what the snapshot shows is written.
    """
    def __init__(self, is_tight):
        self.latch        = Signal()
        self.clear        = Signal()
        self.comes        = Signal()
        self.start        = Signal()
        self.is_written   = Signal()
        self.running      = Signal()
        self.step         = Signal(max=STREAM_SLOT_WORDS)
        self.port_done    = Signal()
        self.streams_done = Signal()
        self.take_port    = Signal()
        self.take_streams = Signal()
        self.is_free      = Signal()

        # # #

        # Steps.
        # ------
        running, step = self.running, self.step
        ends          = Signal()
        is_done       = Signal()
        self.sync += [
            step.eq(step + running),
            If(ends,       running.eq(0)),
            If(self.start, step.eq(0), running.eq(1)),
            If(self.clear, running.eq(0)),
        ]
        self.comb += [
            ends.eq(step == LAST_STEP),
            is_done.eq(running & ends & ~self.clear),
            self.streams_done.eq(is_done & self.is_written),
        ]
        if is_tight:
            self.comb += ends.eq((step == STREAM_SLOT_WORDS - 1) | ((step == PORT_STEPS) & ~self.is_written))

        # Instant.
        # --------
        waiting  = Signal()
        is_taken = Constant(0, 1)
        if is_tight:
            is_taken = Signal() # The port's snapshot; the streams' isn't yet.
        since = Signal(5)       # The snapshot: what was under way is written.
        self.comb += self.is_free.eq(~running & ~self.latch & ~waiting & ~is_taken & (since == 0))
        self.sync += [
            If(self.latch, waiting.eq(1)).Elif(self.take_port, waiting.eq(0)),
            since.eq(Cat(self.take_streams, since)),
        ]
        # The banks must stand when a frame starts, a cycle later.
        if not is_tight:
            self.comb += [
                self.port_done.eq(is_done),
                self.take_port.eq(waiting & ~running & ~self.comes),
                self.take_streams.eq(self.take_port),
            ]
            return
        self.comb += [
            self.port_done.eq(running & (step == PORT_STEPS) & ~self.clear),
            self.take_port.eq(waiting & ~self.comes & (~running | step[-1])),
            self.take_streams.eq(is_taken & (~running | (step[2:] == 0))),
        ]
        self.sync += If(self.take_port, is_taken.eq(1)).Elif(self.take_streams, is_taken.eq(0))

# Banks --------------------------------------------------------------------------------------------

class Banks(LiteXModule):
    """Keeps a snapshot of groups of words without copying it.

    What is shown of a group is in one bank; whoever counts reads the group's words wherever they are, and writes all of them
    into the other one. So to take a snapshot of all groups is to show, from this cycle on, whichever bank each was written to
    last; and to forget all is to say that none has been written.

    Parameters
    ----------
    groups : int

    Attributes
    ----------
    group : Signal, in
        The one that is counted in.
    read_bank, write_bank : Signal(), out
        Where its words are, and where they must be written to; a cycle after ``group``.
    is_fresh : Signal(), out
        It has no words yet: they count as 0; a cycle after ``group``.
    done : Signal(), in
        One cycle, in which ``group`` has stood for two: all its words have been written, or soon will be.
    take : Signal(), in
        One cycle, in which no group is half written: the snapshot.
    clear : Signal(), in
        One cycle: forgets all but the snapshot.
    shown : Signal, in
        The group that is looked at.
    shown_bank, shown_fresh : Signal(), out
        Where its words are, and whether they count as 0, in the same cycle.
    """
    def __init__(self, groups):
        self.group       = Signal(max=max(groups, 2))
        self.read_bank   = Signal()
        self.write_bank  = Signal()
        self.is_fresh    = Signal(reset=1)
        self.done        = Signal()
        self.take        = Signal()
        self.clear       = Signal()
        self.shown       = Signal(max=max(groups, 2))
        self.shown_bank  = Signal()
        self.shown_fresh = Signal()

        # # #

        # Bank of the words, and of those that are shown.
        live  = Signal(groups)
        shown = Signal(groups)
        # There are any.
        seen  = Signal(groups)
        shows = Signal(groups)
        def of(word, group):
            return Array(word[n] for n in range(groups))[group]
        self.sync += [
            self.read_bank.eq( of(live,  self.group)),
            self.write_bank.eq(~of(shown, self.group)),
            self.is_fresh.eq(  ~of(seen,  self.group)),
            [If(self.done & (self.group == n), live[n].eq(self.write_bank), seen[n].eq(1)) for n in range(groups)],
            If(self.take,  shown.eq(live), shows.eq(seen)),
            If(self.clear, seen.eq(0)),
        ]
        self.comb += [
            self.shown_bank.eq( of(shown, self.shown)),
            self.shown_fresh.eq(~of(shows, self.shown)),
        ]

# Sequence Window ----------------------------------------------------------------------------------

class SequenceWindow(LiteXModule):
    """Remembers of each slot the latest frame on each place of its window.

    Parameters
    ----------
    slots, window : int
        Powers of two; up to 1024 places in all for two block RAMs.

    Attributes
    ----------
    slot, sequence : Signal, Signal(32), in
        The frame.
    is_known : Signal(), out
        It was remembered, and no later one took its place; right four cycles after slot and sequence changed.
    commit : Signal(), in
        One cycle: remembers it.
    clear : Signal(), in
        Forgets everything in one cycle.

    Limits: `clear` makes old memory invalid by a generation that fills a word of 36 bits: 11 of them with a window of 128. A
    place that was not written once in 2048 clears could pass for a new one.
    """
    def __init__(self, slots, window):
        self.slot     = Signal(max=max(slots, 2))
        self.sequence = Signal(32)
        self.is_known = Signal()
        self.commit   = Signal()
        self.clear    = Signal()

        # # #

        place_bits = log2_int(window)
        # A reset leaves the memory as it is, so the generation must outlive it and step.
        generation = Signal(4 + place_bits, reset=1, reset_less=True) # 0 is what the memory holds at power-up.
        was_reset  = Signal(reset=1)
        self.sync += [
            was_reset.eq(0),
            If(self.clear | was_reset, generation.eq(generation + 1)),
        ]

        tag    = Cat(self.sequence[place_bits:], generation)
        memory = Memory(len(tag), slots*window)
        place  = Cat(self.sequence[:place_bits], *([self.slot] if slots > 1 else []))
        read   = memory.get_port(mode=READ_FIRST)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, read, write
        stored = Signal(len(tag), reset_less=True)
        self.comb += [
            read.adr.eq(place),
            write.adr.eq(place),
            write.dat_w.eq(tag),
            write.we.eq(self.commit),
        ]
        # Two bits of each to a LUT, then a tree.
        pairs    = [(stored[n:n + 2] == tag[n:n + 2]) for n in range(0, len(tag), 2)]
        is_equal = Signal(len(pairs), reset_less=True)
        self.sync += [
            stored.eq(read.dat_r),
            is_equal.eq(Cat(*pairs)),
            self.is_known.eq(is_equal == 2**len(pairs) - 1),
        ]

ORDERED_STEP = 13 # The window has answered.

# Stream Meter -------------------------------------------------------------------------------------

class StreamMeter(LiteXModule):
    """Counts and adds up every frame of a port, and of each stream loss, duplication, reordering and delay.

    Slot 0 has the accumulators of the port (``PORT_ACCUMULATORS``: every frame, damaged or not), and as if it was one stream
    those of the probe frames that are of none (``STREAM_ACCUMULATORS``). The other slots are the streams from ``stream_base``
    on. Damaged frames, and those with broken lengths, are in no stream. A frame at or after the next expected sequence number
    moves it on. An earlier one is a duplicate if the window remembers it, beyond the window if it is too old for that, else
    reordered. Duplicates and late frames enter counts and delays.

    ``with_fields``: in slots of ``prbs`` bit errors are counted, those of frames with a bad FCS (but giants) apart, in the slot
    that their headers say; and frames that are ``is_bare`` are in slot 0 as if they were a probe's, in no order.

    Parameters
    ----------
    slots : int
        A power of two. With 2, slot 0 has no window: there each frame that is behind counts as reordered.
    window : int
        Frames that each window covers; a power of two.
    with_fields : bool

    Attributes
    ----------
    measured : Endpoint(measured_layout), in
    stream_base : Signal(16), in
        Modulo 2^16.
    measure_passed : Signal(), in
        Takes only frames that pass the filter.
    prbs : Signal(slots), in
        Slots whose frames' fill is PRBS-31.
    latch : Signal(), in
        One cycle: takes a snapshot of one instant, at most 32 cycles later (``with_fields`` 34): of all frames up to this cycle
        and the next.
    clear : Signal(), in
        One cycle: all is 0, and a frame under way leaves no trace. The snapshot stays.
    sample : Record(sample_layout(slots)), out
        Values of each frame for `Histograms`: in slot 0 length, time since the frame before, and delay of a good probe
        frame; in the slot of a stream the same. Values of a slot and kind come 32 cycles apart, others two.
    bus : wishbone.Interface, slave
        The snapshot: ``STREAM_SLOT_WORDS`` words a slot, the lowest word of each accumulator first; 0 before the first
        ``latch``. A read waits up to 32 cycles, and up to 70 after a latch; ``with_fields``, where good probe frames follow
        each other by 32 cycles and no more, until one is farther. ``bus_words`` words in all.
    ordered : Signal(), out
        One cycle for each frame (``with_fields``: of a stream), 14 cycles after ``measured.valid``; from then on for six cycles:
    is_foreign, is_duplicate, is_reordered, is_beyond : Signal(), out
        What a probe frame is; of the last three at most one, of good frames of a stream.

    Source: RFC 4737, section 3 (NextExp); RFC 5560 (duplicates); RFC 7679 (one-way delay).
    """
    def __init__(self, slots=STREAM_SLOTS, window=STREAM_WINDOW, with_fields=False):
        self.slots, self.bus_words = slots, slots*STREAM_SLOT_WORDS
        self.with_fields    = with_fields
        self.measured       = measured = stream.Endpoint(measured_layout)
        self.finder         = finder = SlotFinder(slots)
        self.stream_base    = finder.stream_base
        self.measure_passed = Signal()
        self.prbs           = Signal(slots)
        self.latch          = Signal()
        self.clear          = Signal()
        self.sample         = Record(sample_layout(slots))
        self.ordered        = Signal()
        self.is_foreign     = Signal()
        self.is_duplicate   = Signal()
        self.is_reordered   = Signal()
        self.is_beyond      = Signal()

        # # #

        # Steps.
        # ------
        self.order   = order = StepOrder(is_tight=with_fields)
        self.running = order.running
        step         = order.step
        self.step    = [late(self, step, n) for n in range(4)] # Now, and some cycles ago.
        self.comb += [
            order.comes.eq(measured.valid),
            order.start.eq(measured.valid & (measured.passed | ~self.measure_passed)),
            *[getattr(order, name).eq(getattr(self, name)) for name in ("latch", "clear")],
        ]

        # Which slot, and whether it counts there.
        # ----------------------------------------
        self.slot       = finder.slot
        self.is_counted = Signal()
        self.is_written = self.is_counted # Words of the slot are.
        self.is_bare    = measured.is_bare if with_fields else Constant(0, 1)
        self.comb += finder.stream_id.eq(measured.stream_id)
        self.sync += self.is_counted.eq((measured.is_probe | self.is_bare) & ((measured.flags & int(FAULTS)) == 0))

        # Delay.
        # ------
        self.delay = Signal(64, reset_less=True)
        self.sync  += self.delay.eq(measured.stamp - measured.tx_stamp)
        self.square = square = DelaySquare()
        self.comb  += square.delay.eq(self.delay), square.start.eq(Cat(step == 3, step == 4, step == 5))

        # Words.
        # ------
        self.words  = WordAdder(2*self.bus_words)
        self.bus    = self.words.reader.bus
        self.window = SequenceWindow(slots if slots > 2 else 1, window)
        self.comb  += self.words.cancel.eq(self.clear)
        if with_fields:
            self.add_fields()
        self.add_places()
        self.add_values()
        self.add_choices(window)
        self.add_sample()

    def at(self, cycle, steps):
        """Return whether the step of some cycles ago is one of ``steps``; what it depends on is decided a cycle earlier."""
        is_one = Signal()
        terms  = Reduce("OR", [self.step[max(cycle - 1, 0)] == step for step in steps])
        domain = self.sync if cycle else self.comb
        domain += is_one.eq(terms)
        return is_one

    def add_fields(self):
        """Let frames of slot 0 be bare, and write words of damaged frames, too."""
        measured, step = self.measured, self.step[0]
        fcs_error, giant = (measured.flags[log2_int(int(flag))] for flag in (RecordFlag.FCS_ERROR, RecordFlag.GIANT))
        self.slot       = Signal(max=self.slots)
        self.is_damaged = Signal() # And has bit errors that count.
        self.is_written = Signal()
        self.errors     = Signal(ERROR_BITS, reset_less=True)
        is_checked      = Signal()
        self.comb += If(~late(self, self.is_bare, 2), self.slot.eq(self.finder.slot))
        self.comb += self.is_written.eq(self.is_counted | self.is_damaged)
        self.sync += [
            self.is_damaged.eq(measured.is_probe & fcs_error & ~giant),
            is_checked.eq(measured.is_probe & Array(self.prbs[n] for n in range(self.slots))[self.slot]),
            If(step == PORT_STEPS, self.errors.eq(measured.bit_errors & Replicate(is_checked, ERROR_BITS))),
        ]

    def add_places(self):
        """Read and write words of the banks that are live, between snapshots; show those of the last one."""
        words, reader = self.words, self.words.reader
        self.port    = port    = Banks(1)
        self.streams = streams = Banks(self.slots)
        self.fresh   = Signal() # A frame is the first of the port, or of its slot.
        self.counts  = Signal() # The step counts for something.
        is_fresh     = Signal() # The step's word has not been written.
        order        = self.order
        self.comb += [
            order.is_written.eq(self.is_written),
            streams.group.eq(self.slot),
            reader.is_free.eq(order.is_free),
            *[port.done.eq(order.port_done),       port.take.eq(order.take_port),       port.clear.eq(self.clear)],
            *[streams.done.eq(order.streams_done), streams.take.eq(order.take_streams), streams.clear.eq(self.clear)],
        ]

        asked        = reader.bus.adr[:log2_int(self.bus_words)]
        self.is_port = is_port = Signal()
        shows_port   = Signal()
        self.slot_0  = slot = Signal(max=self.slots)
        self.comb += [
            is_port.eq(self.step[0] < PORT_STEPS),
            shows_port.eq(asked[3:5] == 0),
            streams.shown.eq(asked[5:]),
            If(~is_port, slot.eq(self.slot)),
            is_fresh.eq(Mux(is_port, port.is_fresh, streams.is_fresh)),
            self.fresh.eq(Mux(is_port, port.is_fresh, self.first_of_slot())),
            If(self.running,
                words.address.eq(Cat(self.step[0], slot, Mux(is_port, port.read_bank, streams.read_bank))),
                words.is_fresh.eq(is_fresh),
            ).Else(
                words.address.eq(Cat(asked, Mux(shows_port, port.shown_bank, streams.shown_bank))),
                words.is_fresh.eq(Mux(shows_port, port.shown_fresh, streams.shown_fresh)),
            ),
            words.target.eq(Cat(self.step[0], slot, Mux(is_port, port.write_bank, streams.write_bank))),
            self.counts.eq(self.running & (is_port | self.is_counted) & ~self.clear),
            words.writes.eq(self.running & (is_port | self.is_written) & ~self.clear),
        ]

    def first_of_slot(self):
        """Return whether a frame is the first good one of its slot."""
        if not self.with_fields:
            return self.streams.is_fresh
        self.begun = begun = SlotValid(self.slots)
        self.comb += [
            begun.slot.eq(self.slot),
            begun.mark.eq(self.streams.done & self.is_counted),
            begun.clear.eq(self.clear),
        ]
        return ~begun.is_begun

    def add_values(self):
        """Say what each step adds."""
        measured, delay, square = self.measured, self.delay, self.square.square
        firsts, lasts = steps_of("first_stamp"), steps_of("last_stamp")
        delays  = steps_of("delay_min", "delay_max", "delay_sum") + DELAY_STEPS
        squares = steps_of("delay_square_sum")
        fresh   = late(self, self.fresh)
        is_low,  is_first_low  = self.at(1, lasts[0::2]), self.at(1, firsts[0::2])
        is_high, is_first_high = self.at(1, lasts[1::2]), self.at(1, firsts[1::2])
        lengths = [step for step in steps_of("octets") if step%2 == 0]
        stamps  = Signal(2)
        self.comb += stamps.eq(Cat(is_low | (is_first_low & fresh), is_high | (is_first_high & fresh)))
        self.words.values += [
            (self.at(1, lengths),              measured.length),
            (self.at(1, steps_of("expected")), measured.sequence),
            (stamps[0],                        measured.stamp[:32]),
            (stamps[1],                        measured.stamp[32:]),
            (self.at(1, delays[0::2]),         delay[:32]),
            (self.at(1, delays[1::2]),         delay[32:]),
            (self.at(1, squares[0:1]),         square[:32]),
            (self.at(1, squares[1:2]),         square[32:]),
        ]
        if self.with_fields:
            self.words.values += [
                (self.at(1, [DAMAGED_STEP])    & self.is_damaged, self.errors),
                (self.at(1, ERROR_STEPS[0:1]) & self.is_counted, self.errors),
            ]
        pairs = steps_of("last_stamp", "delay_min", "delay_max")
        self.comb += [
            self.words.subtracts.eq(self.at(1, pairs + steps_of("expected"))),
            self.words.borrows.eq(  self.at(2, pairs[1::2])),
        ]

    def add_choices(self, window):
        """Keep the lesser delay, the greater one, and the sequence number that is ahead; count what a frame is."""
        words = self.words
        # The higher word decides, while the lower one waits for it.
        least, most = steps_of("delay_min"), steps_of("delay_max")
        fresh_2   = late(self, self.fresh, 2)
        keeps     = Signal()
        keeps_d      = Signal()
        expected  = steps_of("expected")
        is_behind = words.difference[-1]
        in_order  = Signal()  # The sequence number says something.
        keeps_all = Constant(0, 1)
        carried   = carried_steps()
        if self.with_fields:
            # A damaged frame leaves what good ones have written.
            carried   += ERROR_STEPS[1:]
            keeps_all  = Signal()
            self.comb += keeps_all.eq(late(self, self.is_damaged, 3) & ~late(self, self.is_port, 3) & ~self.at(3, [DAMAGED_STEP]))
        self.comb  += [
            in_order.eq(~self.is_bare),
            keeps.eq(~fresh_2 & (words.is_less ^ self.at(2, least[1:]))),
            words.keeps.eq(
                (self.at(3, [least[0], most[0]]) & keeps) | (self.at(3, [least[1], most[1]]) & keeps_d) |
                (self.at(3, expected) & (is_behind | ~in_order)) | self.at(3, DELAY_STEPS) | keeps_all),
        ]
        self.sync += keeps_d.eq(keeps)

        # What a frame is, known a cycle after its difference.
        place_bits = log2_int(window)
        was_behind = Signal()
        is_near    = Signal()
        self.sync += If(self.at(3, expected),
            was_behind.eq(is_behind & in_order),
            is_near.eq((words.difference[place_bits:] == 2**(32 - place_bits) - 1) & in_order), # 1 to ``window`` behind.
        )
        has_window = (self.slot != 0) | (self.slots > 2)
        is_known   = self.window.is_known & has_window
        self.comb += [
            self.ordered.eq(self.running & (self.step[0] == ORDERED_STEP) & ~self.clear),
            self.is_foreign.eq(self.slot == 0),
            self.is_duplicate.eq(is_near & is_known  & self.is_counted),
            self.is_reordered.eq(is_near & ~is_known & self.is_counted),
            self.is_beyond.eq(was_behind & ~is_near  & self.is_counted),

            words.carries.eq(self.at(3, carried)),
            words.adds.eq(
                (self.at(3, lowest_steps_of("frames")) & ~keeps_all) |
                (self.at(3, expected)                  & ~is_behind & in_order & ~keeps_all) |
                (self.at(3, steps_of("duplicated"))    & self.is_duplicate) |
                (self.at(3, steps_of("reordered"))     & self.is_reordered) |
                (self.at(3, steps_of("beyond_window")) & self.is_beyond)),
            self.window.slot.eq(self.slot),
            self.window.sequence.eq(self.measured.sequence),
            self.window.clear.eq(self.clear),
            # The last use of ``is_known`` is past.
            self.window.commit.eq(
                self.at(1, [20]) & self.running & self.is_counted & has_window & ~self.is_beyond & in_order & ~self.clear),
        ]

    def add_sample(self):
        """Hand the differences on, as values of histograms."""
        sample, words = self.sample, self.words
        slot      = late(self, self.slot_0, 3)
        is_octets, is_stamp = self.at(3, steps_of("octets")), self.at(3, steps_of("last_stamp"))
        is_delay,  is_again = self.at(3, steps_of("delay_sum")), self.at(3, DELAY_STEPS)
        is_slot   = self.at(3, range(PORT_STEPS)) | (slot != 0) # Slot 0 has had its values from the port's words.
        fresh_3   = late(self, self.fresh, 3)
        counts    = late(self, self.counts, 3, cancel=self.clear)
        self.comb += [
            sample.valid.eq(counts & (is_again | (is_slot & (is_octets | is_delay | (is_stamp & ~fresh_3))))),
            sample.is_high.eq(self.step[3][0]), # All lie on even words.
            sample.word.eq(words.difference),
            If(~is_again, sample.slot.eq(slot)),
            sample.kind.eq(Mux(is_octets, BinKind.LENGTH, Mux(is_stamp, BinKind.ARRIVAL, BinKind.DELAY))),
        ]
