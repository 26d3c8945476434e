# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Measures the frames of a port at 10 Gb/s: counts, order and delay, all of a frame in one step, and histograms."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import (
    BIN_SLOT_WORDS, BIT_ERRORS, FAULTS, PORT_ACCUMULATORS, RECORD_SLOTS, RECORD_WINDOW,
    STREAM_ACCUMULATORS, STREAM_SLOT_WORDS, STREAM_WINDOW, BinKind,
)
from liteprobe.cores.measure.histogram import Histograms
from liteprobe.cores.measure.measured import measured_layout
from liteprobe.cores.measure.port import PortMeter
from liteprobe.cores.measure.streams import SequenceWindow
from liteprobe.cores.xgmii.record import record_layout

FRAME_CYCLES = 5 # A frame of 60 octets every 67.2 ns is met from 74.5 MHz on;
BIN_CYCLES   = 8 # with histograms from 119.1 MHz on.
DELAY_BITS   = 32 # Of a delay whose square is exact.

#: Of a stream; bit errors are checked by nobody here: their words read 0.
COUNTED = {name: place for name, place in STREAM_ACCUMULATORS.items() if name not in BIT_ERRORS}

def numbers(table):
    """Return the layout of the numbers of a table of accumulators."""
    return [(name, (32*place.words, place.is_signed)) for name, place in table.items()]

def word_places(table, bits):
    """Return the words of ``bits``, which are laid out by `numbers`, by their places in a slot."""
    places = [place.first + word for place in table.values() for word in range(place.words)]
    return {place: bits[32*number:32*number + 32] for number, place in enumerate(places)}

# Accumulators -------------------------------------------------------------------------------------

class Accumulators(LiteXModule):
    """Keeps the numbers of a port and of each slot, and shows them all as of one cycle.

    Each slot has two rows of a memory: one is shown, the other is written. So a snapshot copies nothing but the port's numbers.

    Parameters
    ----------
    slots : int
        A power of two.

    Attributes
    ----------
    slot, read : Signal, Signal(), in
        ``read``: the numbers of ``slot`` are wanted,
    old, is_fresh : Record, Signal(), out
        and are here from the next cycle on: 0 where it has none.
    port, new : Record, out and in
        Of the port; what is to be written.
    port_next : Record, in
        Taken with ``counts``.
    counts, writes : Signal(), in
        One cycle: a frame of the port, of the slot.
    latch, clear : Signal(), in
        One cycle: takes the snapshot, a cycle later where ``counts``; forgets all but the snapshot.
    bus : wishbone.Interface, slave
        The snapshot, ``bus_words`` words; 0 before the first ``latch``.
    """
    def __init__(self, slots):
        self.slot      = Signal(max=slots)
        self.read      = Signal()
        self.old       = old = Record(numbers(COUNTED))
        self.is_fresh  = Signal()
        self.port      = port = Record(numbers(PORT_ACCUMULATORS))
        self.port_next = Record(numbers(PORT_ACCUMULATORS))
        self.new       = new = Record(numbers(COUNTED))
        self.counts    = Signal()
        self.writes    = Signal()
        self.latch     = Signal()
        self.clear     = Signal()
        self.bus       = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus_words = STREAM_SLOT_WORDS*slots

        # # #

        memory = Memory(len(new.raw_bits()), 2*slots)
        reader = memory.get_port(async_read=True)
        shower = memory.get_port(async_read=True)
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, reader, shower, writer
        self.autocsr_exclude = {"memory"}
        # Row of the numbers, and of those that are shown; whether there are any.
        live   = Signal(slots)
        shown  = Signal(slots)
        seen   = Signal(slots)
        shows  = Signal(slots)
        def of(word, slot):
            return Array(word[n] for n in range(slots))[slot]
        bank    = Signal() # That is written.
        waiting = Signal()
        takes   = Signal()
        self.comb += [
            reader.adr.eq(Cat(of(live, self.slot), self.slot)),
            bank.eq(~of(shown, self.slot)),
            writer.adr.eq(Cat(bank, self.slot)),
            writer.dat_w.eq(new.raw_bits()),
            writer.we.eq(self.writes),
            takes.eq((waiting | self.latch) & ~self.counts),
        ]
        self.sync += [
            If(self.read,
                old.raw_bits().eq(reader.dat_r),
                self.is_fresh.eq(~of(seen, self.slot)),
                If(~of(seen, self.slot), old.raw_bits().eq(0)),
            ),
            If(self.counts, port.raw_bits().eq(self.port_next.raw_bits())),
            If(self.writes, *[If(self.slot == n, live[n].eq(bank), seen[n].eq(1)) for n in range(slots)]),
            If(self.latch, waiting.eq(1)),
            If(takes, waiting.eq(0), shown.eq(live), shows.eq(seen)),
            If(self.clear, seen.eq(0), port.raw_bits().eq(0)),
        ]

        # Bus.
        # ----
        asked      = Signal(max=slots)
        row        = Signal(len(new.raw_bits()))
        port_shown = Signal(len(port.raw_bits()))
        words, of_port = word_places(COUNTED, row), word_places(PORT_ACCUMULATORS, port_shown)
        self.comb += [
            asked.eq(bus.adr[log2_int(STREAM_SLOT_WORDS):]),
            shower.adr.eq(Cat(of(shown, asked), asked)),
            If(of(shows, asked), row.eq(shower.dat_r)),
        ]
        self.sync += [
            If(takes, port_shown.eq(port.raw_bits())),
            bus.ack.eq(bus.cyc & bus.stb & ~bus.ack & ~waiting & ~self.latch),
            Case(bus.adr[:log2_int(STREAM_SLOT_WORDS)], {
                **{place: bus.dat_r.eq(word) for place, word in words.items()},
                **{place: bus.dat_r.eq(Mux(asked == 0, word, 0)) for place, word in of_port.items()},
                "default": bus.dat_r.eq(0),
            }),
        ]

# Meter --------------------------------------------------------------------------------------------

class XgmiiMeter(LiteXModule):
    """Counts and adds up every frame of a port, and of each stream loss, duplication, reordering and delay.

    What is measured, and how it is laid out, is as of `StreamMeter`; here all numbers of a frame are added in one cycle.

    Parameters
    ----------
    slots, window : int
        As of `StreamMeter`.
    frame_cycles : int
        From frame to frame, FRAME_CYCLES or more.

    Attributes
    ----------
    sink : Endpoint(record_layout()), in
        Frames; one is taken every ``frame_cycles`` cycles.
    measured : Endpoint(measured_layout), out
        One cycle of ``valid`` for each frame; the rest stands until ``ordered``.
    stream_base : Signal(16), in
        Modulo 2^16.
    latch, clear : Signal(), in
        One cycle: takes a snapshot; all is 0, and a frame under way leaves no trace. The snapshot stays.
    bus : wishbone.Interface, slave
        The snapshot, ``bus_words`` words.
    ordered : Signal(), out
        One cycle for each frame, its last one; in it:
    is_foreign, is_duplicate, is_reordered, is_beyond : Signal(), out
        What a probe frame is, as of `StreamMeter`.

    Source: RFC 4737, section 3 (NextExp); RFC 5560 (duplicates); RFC 7679 (one-way delay).
    """
    def __init__(self, slots=RECORD_SLOTS, window=RECORD_WINDOW, frame_cycles=FRAME_CYCLES):
        self.slots        = slots
        self.sink         = sink = stream.Endpoint(record_layout())
        self.measured     = stream.Endpoint(measured_layout)
        self.stream_base  = Signal(16)
        self.latch        = Signal()
        self.clear        = Signal()
        self.ordered      = Signal()
        self.is_foreign   = Signal()
        self.is_duplicate = Signal()
        self.is_reordered = Signal()
        self.is_beyond    = Signal()

        # # #

        self.slot         = Signal(max=slots)
        self.is_good      = Signal() # A probe frame without a fault.
        self.step         = Signal(frame_cycles) # One-hot.
        self.accumulators = accumulators = Accumulators(slots)
        self.bus, self.bus_words = accumulators.bus, accumulators.bus_words
        self.comb += copied(accumulators, self, "slot", "latch", "clear")
        self.add_frame(sink)
        self.add_order(window)
        self.add_delay()
        self.add_sums()

    def add_frame(self, sink):
        """Take a frame, and let it stand."""
        measured, step = self.measured, self.step
        takes  = Signal()
        number = Signal(16) # From stream_base on.
        self.comb += [
            sink.ready.eq(step[:-1] == 0),
            takes.eq(sink.valid & sink.ready),
            number.eq(sink.stream_id - self.stream_base),
            self.accumulators.read.eq(step[0]),
            self.is_foreign.eq(self.slot == 0),
            self.ordered.eq(step[-1] & ~self.clear),
        ]
        self.sync += [
            step.eq(Cat(takes, step)),
            measured.valid.eq(takes),
            If(takes,
                self.slot.eq(Mux(number < self.slots - 1, number[:len(self.slot)] + 1, 0)),
                measured.stamp.eq(sink.arrival),
                measured.flags.eq(sink.flags & int(FAULTS)),
                *copied(measured, sink, "length", "is_probe", "stream_id", "sequence", "tx_stamp"),
            ),
            self.is_good.eq(measured.is_probe & ((measured.flags & int(FAULTS)) == 0)),
            If(self.clear, step.eq(0), measured.valid.eq(0)),
        ]

    def add_order(self, window):
        """Find the frame's place in its stream."""
        measured, is_good = self.measured, self.is_good
        has_window   = (self.slot != 0) | (self.slots > 2)
        self.window  = memory = SequenceWindow(self.slots if self.slots > 2 else 1, window)
        behind       = Signal(32) # Modulo 2^32: less 1, so that it is negative where the frame is not behind.
        self.is_next = is_next = Signal()
        is_near      = Signal()
        is_known     = Signal()
        if self.slots > 2:
            self.comb += memory.slot.eq(self.slot)
        self.comb += [
            memory.sequence.eq(measured.sequence),
            memory.commit.eq(self.ordered & is_good & has_window & ~self.is_beyond),
            memory.clear.eq(self.clear),
            is_known.eq(memory.is_known & has_window),
            self.is_duplicate.eq(is_good & ~is_next & is_near & is_known),
            self.is_reordered.eq(is_good & ~is_next & is_near & ~is_known),
            self.is_beyond.eq(is_good & ~is_next & ~is_near),
        ]
        self.sync += [
            behind.eq(self.accumulators.old.expected - measured.sequence - 1),
            is_next.eq(behind[-1]),
            is_near.eq(behind[log2_int(window):] == 0),
        ]

    def add_delay(self):
        """Form the delay, how it compares, and its square, a step a cycle."""
        measured, old = self.measured, self.accumulators.old
        self.delay   = delay   = Signal((64, True))
        self.square  = square  = Signal(2*DELAY_BITS)
        self.is_less = is_less = Signal()
        self.is_more = is_more = Signal()
        size         = Signal(64)
        factor       = Signal(DELAY_BITS)
        self.comb += size.eq(Mux(delay[-1], -delay, delay))
        self.sync += [
            delay.eq(measured.stamp - measured.tx_stamp),
            is_less.eq(delay < old.delay_min),
            is_more.eq(delay > old.delay_max),
            factor.eq(Mux(size[DELAY_BITS:] != 0, 2**DELAY_BITS - 1, size)),
            square.eq(factor*factor),
        ]

    def add_sums(self):
        """Add everything, in the last step of a frame."""
        measured, accumulators = self.measured, self.accumulators
        old, new, port, after = accumulators.old, accumulators.new, accumulators.port, accumulators.port_next
        is_first     = accumulators.is_fresh
        self.is_lone = is_lone = Signal() # The port has had no frame.
        self.comb += [
            accumulators.counts.eq(self.ordered),
            accumulators.writes.eq(self.ordered & self.is_good),
            is_lone.eq(port.frames == 0),
            after.frames.eq(port.frames + 1),
            after.octets.eq(port.octets + measured.length),
            after.first_stamp.eq(Mux(is_lone, measured.stamp, port.first_stamp)),
            after.last_stamp.eq(measured.stamp),
            new.frames.eq(old.frames + 1),
            new.octets.eq(old.octets + measured.length),
            new.first_stamp.eq(Mux(is_first, measured.stamp, old.first_stamp)),
            new.last_stamp.eq(measured.stamp),
            new.expected.eq(Mux(self.is_next, measured.sequence + 1, old.expected)),
            new.delay_sum.eq(old.delay_sum + self.delay),
            new.delay_square_sum.eq(old.delay_square_sum + self.square),
            new.delay_min.eq(Mux(is_first | self.is_less, self.delay, old.delay_min)),
            new.delay_max.eq(Mux(is_first | self.is_more, self.delay, old.delay_max)),
            new.duplicated.eq(old.duplicated + self.is_duplicate),
            new.reordered.eq(old.reordered + self.is_reordered),
            new.beyond_window.eq(old.beyond_window + self.is_beyond),
        ]

# Histograms ---------------------------------------------------------------------------------------

class PairedHistograms(LiteXModule):
    """Sorts the values of each frame into the histograms of slot 0 and of its slot at once, in two memories.

    Parameters
    ----------
    slots : int

    Attributes
    ----------
    port_sample, sample : Record(sample_layout(slots)), in
        As of `Histograms`: of slot 0, of the others.
    length_origin, delay_origin, arrival_origin, length_shift, delay_shift, arrival_shift, clear : Signal, in
    saturated : Signal(), out
    bus : wishbone.Interface, slave
        As of `Histograms`.
    """
    def __init__(self, slots):
        self.bus       = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus_words = slots*BIN_SLOT_WORDS
        self.clear     = Signal()
        self.saturated = Signal()
        self.of_port   = of_port   = Histograms(slots=2)
        self.of_slots  = of_slots  = Histograms(slots=slots)
        self.port_sample, self.sample = of_port.sample, of_slots.sample

        # # #

        settings = [f"{kind}_{what}" for kind in ("length", "delay", "arrival") for what in ("origin", "shift")]
        for name in settings:
            setattr(self, name, Signal.like(getattr(of_port, name), name=name))
        is_port = Signal()
        self.comb += [
            is_port.eq(bus.adr[log2_int(BIN_SLOT_WORDS):log2_int(self.bus_words)] == 0),
            self.saturated.eq(of_port.saturated | of_slots.saturated),
            bus.ack.eq(of_port.bus.ack | of_slots.bus.ack),
            bus.dat_r.eq(Mux(is_port, of_port.bus.dat_r, of_slots.bus.dat_r)),
        ]
        for part, chosen in [(of_port, is_port), (of_slots, ~is_port)]:
            self.comb += [
                *copied(part, self, "clear", *settings),
                *copied(part.bus, bus, "adr", "dat_w", "sel", "we", "stb"),
                part.bus.cyc.eq(bus.cyc & chosen),
            ]

class XgmiiPortMeter(PortMeter):
    """Counts the frames of a port of 10 Gb/s and of its streams, and sorts them into histograms; registers as of `PortMeter`.

    Parameters
    ----------
    slots : int

    Attributes
    ----------
    streams, histograms : XgmiiMeter, PairedHistograms
    sink : Endpoint(record_layout()), in
        Frames; one is taken every BIN_CYCLES cycles.
    measured, stream_base, clear, latch : as of `XgmiiMeter`
    measure_passed : Signal(), in
        There is no filter: nothing follows.
    """
    with_fields = False

    def __init__(self, slots):
        self.streams        = streams    = XgmiiMeter(slots, STREAM_WINDOW, BIN_CYCLES)
        self.histograms     = histograms = PairedHistograms(slots)
        self.sink           = streams.sink
        self.measured       = streams.measured
        self.stream_base    = streams.stream_base
        self.clear          = streams.clear
        self.latch          = streams.latch
        self.measure_passed = Signal()

        # # #

        self.comb += histograms.clear.eq(self.clear)
        measured, accumulators = streams.measured, streams.accumulators
        since_port, since = Signal((64, True)), Signal((64, True)) # Frames before.
        self.comb += [
            since_port.eq(measured.stamp - accumulators.port.last_stamp),
            since.eq(measured.stamp - accumulators.old.last_stamp),
        ]
        # Two cycles for each value, up to the last step.
        turns = streams.step[-2*len(BinKind):]
        is_ours = streams.is_good & ~streams.is_foreign
        for sample, is_counted, is_delayed, is_later, arrival in [
            (histograms.port_sample, Constant(1, 1), streams.is_good, ~streams.is_lone,         since_port),
            (histograms.sample,      is_ours,        Constant(1, 1),  ~accumulators.is_fresh,   since),
        ]:
            if sample is histograms.sample:
                self.comb += sample.slot.eq(streams.slot)
            for number, (kind, value, has_value) in enumerate([
                (BinKind.LENGTH,  measured.length, 1),
                (BinKind.DELAY,   streams.delay,   is_delayed),
                (BinKind.ARRIVAL, arrival,         is_later),
            ]):
                low, high = turns[2*number], turns[2*number + 1]
                self.comb += If(low | high,
                    sample.valid.eq(is_counted & has_value),
                    sample.is_high.eq(high),
                    sample.kind.eq(int(kind)),
                    sample.word.eq(Mux(high, value[32:64] if len(value) > 32 else 0, value[:32])),
                )
        self.add_csr()
