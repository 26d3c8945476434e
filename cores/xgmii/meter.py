# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Measures the frames of a port at 10 Gb/s: counts, order and delay, each in one step, and their snapshot for the bus."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import (
    FAULTS, GIANT_LENGTH, MIN_LENGTH, PORT_ACCUMULATORS, RECORD_WINDOW, STREAM_ACCUMULATORS, STREAM_SLOT_WORDS,
    RecordFlag,
)
from liteprobe.cores.measure.measured import measured_layout
from liteprobe.cores.measure.streams import SequenceWindow
from liteprobe.cores.xgmii.record import record_layout

FRAME_CYCLES = 5 # A frame of 60 octets every 67.2 ns is met from 74.5 MHz on.
DELAY_BITS   = 32 # Of a delay whose square is exact.

# Accumulators -------------------------------------------------------------------------------------

class Accumulators(LiteXModule):
    """Keeps numbers, and shows them all as of one cycle: words of a memory that nobody writes.

    Parameters
    ----------
    places : dict of name to Accumulator, one for each slot
        As of ``formats.STREAM_ACCUMULATORS``.

    Attributes
    ----------
    values : list of dict of name to Signal
        Of each slot; drive them in ``sys``.
    latch : Signal(), in
        One cycle: takes the snapshot, as all numbers are in it.
    bus : wishbone.Interface, slave
        The snapshot, ``bus_words`` words; 0 before the first ``latch``.
    """
    def __init__(self, places):
        self.values    = [{name: Signal(32*place.words, name=f"{name}_{slot}") for name, place in table.items()}
            for slot, table in enumerate(places)]
        self.latch     = Signal()
        self.bus       = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
        self.bus_words = STREAM_SLOT_WORDS*len(places)

        # # #

        words = {}
        for slot, table in enumerate(places):
            for name, place in table.items():
                shown = Signal(32*place.words, name=f"shown_{name}_{slot}")
                self.sync += If(self.latch, shown.eq(self.values[slot][name]))
                for word in range(place.words):
                    words[STREAM_SLOT_WORDS*slot + place.first + word] = bus.dat_r.eq(shown[32*word:32*word + 32])
        self.sync += [
            bus.ack.eq(bus.cyc & bus.stb & ~bus.ack),
            Case(bus.adr[:log2_int(self.bus_words)], {**words, "default": bus.dat_r.eq(0)}),
        ]

# Train Meter --------------------------------------------------------------------------------------

class XgmiiMeter(LiteXModule):
    """Counts and adds up every frame of a port, and of one stream loss, duplication, reordering and delay.

    What is measured, and how it is laid out, is as of `StreamMeter` with two slots: slot 0 has the port, and counts the good probe
    frames of other streams; slot 1 is the stream ``stream_base``. Here all numbers of a frame are added in one cycle.

    Attributes
    ----------
    sink : Endpoint(record_layout()), in
        Frames; one is taken every FRAME_CYCLES cycles.
    measured : Endpoint(measured_layout), out
        One cycle of ``valid`` for each frame; the rest stands until ``ordered``.
    stream_base : Signal(16), in
    latch, clear : Signal(), in
        One cycle: takes a snapshot; all is 0, and a frame under way leaves no trace. The snapshot stays.
    bus : wishbone.Interface, slave
        The snapshot, ``bus_words`` words.
    ordered : Signal(), out
        One cycle for each frame, its last one; in it, and until the next frame:
    is_foreign, is_duplicate, is_reordered, is_beyond : Signal(), out
        What a probe frame is, as of `StreamMeter`.

    Source: RFC 4737, section 3 (NextExp); RFC 5560 (duplicates); RFC 7679 (one-way delay).
    """
    def __init__(self):
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

        # Bit errors are checked by nobody here: their words read 0.
        counted = {name: STREAM_ACCUMULATORS[name] for name in STREAM_ACCUMULATORS if not name.endswith("bit_errors")}
        self.accumulators = accumulators = Accumulators([
            {**{f"port_{name}": place for name, place in PORT_ACCUMULATORS.items()}, "frames": counted["frames"]},
            counted,
        ])
        self.bus, self.bus_words = accumulators.bus, accumulators.bus_words
        self.add_frame(sink)
        self.add_order()
        self.add_delay()
        self.add_sums(*accumulators.values)

    def add_frame(self, sink):
        """Take a frame, and let it stand."""
        measured  = self.measured
        self.step = step = Signal(FRAME_CYCLES) # One-hot.
        self.comb += [
            sink.ready.eq(step[:-1] == 0),
            self.ordered.eq(step[-1] & ~self.clear),
        ]
        flags = [
            (RecordFlag.FCS_ERROR,    sink.fcs_error),
            (RecordFlag.SYMBOL_ERROR, sink.symbol_error),
            (RecordFlag.RUNT,         sink.length < MIN_LENGTH),
            (RecordFlag.GIANT,        sink.length > GIANT_LENGTH),
        ]
        self.sync += [
            step.eq(Cat(sink.valid & sink.ready, step)),
            measured.valid.eq(sink.valid & sink.ready),
            If(sink.valid & sink.ready,
                measured.stamp.eq(sink.arrival),
                measured.is_probe.eq(sink.has_probe),
                measured.stream_id.eq(sink.stream),
                measured.tx_stamp.eq(sink.sent),
                *copied(measured, sink, "length", "sequence"),
                *[measured.flags[log2_int(int(flag))].eq(condition) for flag, condition in flags],
            ),
            If(self.clear, step.eq(0), measured.valid.eq(0)),
        ]

    def add_order(self):
        """Find the stream, and the place in it."""
        measured, step, expected = self.measured, self.step, self.accumulators.values[1]["expected"]
        self.is_good = is_good = Signal() # A probe frame without a fault,
        self.is_ours = is_ours = Signal() # of the stream.
        self.window  = window  = SequenceWindow(1, RECORD_WINDOW)
        behind       = Signal(32) # Modulo 2^32: less 1, so that it is negative where the frame is not behind.
        place_bits   = log2_int(RECORD_WINDOW)
        self.is_next = is_next = Signal()
        is_near      = Signal()
        self.comb += [
            window.sequence.eq(measured.sequence),
            window.commit.eq(step[-1] & is_ours & ~self.is_beyond),
            window.clear.eq(self.clear),
            self.is_duplicate.eq(is_ours & ~is_next & is_near & window.is_known),
            self.is_reordered.eq(is_ours & ~is_next & is_near & ~window.is_known),
            self.is_beyond.eq(is_ours & ~is_next & ~is_near),
        ]
        self.sync += [
            is_good.eq(measured.is_probe & ((measured.flags & int(FAULTS)) == 0)),
            self.is_foreign.eq(measured.stream_id != self.stream_base),
            is_ours.eq(is_good & ~self.is_foreign),
            behind.eq(expected - measured.sequence - 1),
            is_next.eq(behind[-1]),
            is_near.eq(behind[place_bits:] == 0),
        ]

    def add_delay(self):
        """Form the delay, how it compares, and its square, a step a cycle."""
        measured, values = self.measured, self.accumulators.values[1]
        self.delay   = delay   = Signal((64, True))
        self.square  = square  = Signal(2*DELAY_BITS)
        self.is_less = is_less = Signal()
        self.is_more = is_more = Signal()
        least, most  = Signal((64, True)), Signal((64, True))
        size         = Signal(64)
        factor       = Signal(DELAY_BITS)
        self.comb += [
            least.eq(values["delay_min"]),
            most.eq(values["delay_max"]),
            size.eq(Mux(delay[-1], -delay, delay)),
        ]
        self.sync += [
            delay.eq(measured.stamp - measured.tx_stamp),
            is_less.eq(delay < least),
            is_more.eq(delay > most),
            factor.eq(Mux(size[DELAY_BITS:] != 0, 2**DELAY_BITS - 1, size)),
            square.eq(factor*factor),
        ]

    def add_sums(self, port, stream):
        """Add everything, in the last step of a frame."""
        measured = self.measured
        is_first = Signal(reset=1) # Of the stream.
        is_lone  = Signal(reset=1) # Of the port.
        seen = [
            port["port_frames"].eq(port["port_frames"] + 1),
            port["port_octets"].eq(port["port_octets"] + measured.length),
            port["port_last_stamp"].eq(measured.stamp),
            If(is_lone, port["port_first_stamp"].eq(measured.stamp)),
            is_lone.eq(0),
        ]
        ours = [
            stream["frames"].eq(stream["frames"] + 1),
            stream["octets"].eq(stream["octets"] + measured.length),
            stream["last_stamp"].eq(measured.stamp),
            stream["delay_sum"].eq(stream["delay_sum"] + self.delay),
            stream["delay_square_sum"].eq(stream["delay_square_sum"] + self.square),
            If(is_first, stream["first_stamp"].eq(measured.stamp)),
            If(is_first | self.is_less, stream["delay_min"].eq(self.delay)),
            If(is_first | self.is_more, stream["delay_max"].eq(self.delay)),
            If(self.is_next, stream["expected"].eq(measured.sequence + 1)),
            *[If(condition, stream[name].eq(stream[name] + 1)) for name, condition in [
                ("duplicated", self.is_duplicate), ("reordered", self.is_reordered), ("beyond_window", self.is_beyond)]],
            is_first.eq(0),
        ]
        self.comb += self.accumulators.latch.eq(self.latch)
        self.sync += [
            If(self.ordered,
                *seen,
                If(self.is_ours, *ours),
                If(self.is_good & self.is_foreign, port["frames"].eq(port["frames"] + 1)),
            ),
            If(self.clear,
                *[number.eq(0) for table in (port, stream) for number in table.values()],
                is_first.eq(1),
                is_lone.eq(1),
            ),
        ]
