# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends packet trains at 10 Gb/s: when each frame is due, what stands in it, and its start in the column that it is due in.

A tick of a program is an octet of the line, 0.8 ns, as it is at 1 Gb/s with 8 ns. All in ``timebase``.
"""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import OVERHEAD, STREAMS, Fill
from liteprobe.cores.formats.xgmii import COLUMN, COLUMN_PS, CYCLE_PS, LANES
from liteprobe.cores.octets import swapped
from liteprobe.cores.timebase.clock import FRACTION_BITS
from liteprobe.cores.transmit.due import TIMED_NS, StartTime
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description
from liteprobe.cores.xgmii.shifted_time import ShiftedTime, time_of
from liteprobe.cores.xgmii.transmit import START_CYCLES, transmit_description

WORD_BITS   = 32
DUE_BITS    = 48 # Octets from the start of a program: 2.6 days.
CYCLE_BITS  = DUE_BITS - log2_int(LANES)
LEAD_CYCLES = 16 # From the start of a program to its tick 0,
TIMED_LEAD  = TIMED_NS*1000//CYCLE_PS - 8 - START_CYCLES # and from where its time is TIMED_NS ahead: its first SFD is then.
COLUMN_BITS = log2_int(COLUMN)
WORD_ADR_BITS = 4 # Words of a header.
PROBE_COLUMNS = 3 # Sequence and stamp.

# Train Dues ---------------------------------------------------------------------------------------

class TrainDues(LiteXModule):
    """Emits one descriptor a frame: ``count`` frames in each of ``repeats`` trains, one every six cycles or slower.

    The first frame is due in tick 0. The interval has a fraction of 2^-32 ticks, which is carried from frame to frame: no
    rounding error adds up. Each step adds one word of 16 or 32 bits, so none is long.

    Attributes
    ----------
    source : Endpoint(descriptor_description(due_bits=48)), out
        ``sequence`` counts from 0 over the whole program; ``final`` marks the last frame of all.
    count, repeats : Signal(32), in
        Frames of a train and trains, from 1; must stand still while active, as all that follow.
    interval, fraction : Signal(32), in
        Octets from start to start, and 2^-32 octets; with both 0 back to back.
    gap : Signal(32), in
        Octets after the slot of the last frame of a train.
    length : Signal(14), in
        Octets of a frame, without FCS, from 60.
    header_words : Signal(6), in
        Columns of four octets before the sequence.
    fill : Signal(2), in
        ``formats.Fill``, but PRBS.
    start : Signal(), in
        One cycle: begins a program; ignored while active.
    stop : Signal(), in
        One cycle: no more descriptors.
    is_active : Signal(), out
    """
    def __init__(self):
        self.source       = source = stream.Endpoint(descriptor_description(due_bits=DUE_BITS))
        self.count        = Signal(WORD_BITS)
        self.repeats      = Signal(WORD_BITS)
        self.interval     = Signal(WORD_BITS)
        self.fraction     = Signal(WORD_BITS)
        self.gap          = Signal(WORD_BITS)
        self.length       = Signal(LENGTH_BITS)
        self.header_words = Signal(6)
        self.fill         = Signal(2)
        self.start        = Signal()
        self.stop         = Signal()
        self.is_active    = Signal()

        # # #

        slot      = Signal(WORD_BITS)
        part      = Signal(WORD_BITS)     # Of the due tick, 2^-32 ticks.
        due_low   = Signal(WORD_BITS)
        due_high  = Signal(DUE_BITS - WORD_BITS)
        carry     = Signal()
        frames    = Signal(WORD_BITS)     # Of this train, after the present one.
        trains    = Signal(WORD_BITS)     # Likewise.
        is_ending = Signal()              # The present frame ends its train,
        is_final  = Signal()              # and the program.
        sequence  = Signal(WORD_BITS)
        part_sum  = Signal(WORD_BITS + 1)
        total     = Signal(WORD_BITS + 1)
        addend    = Signal(WORD_BITS)
        shows     = Signal()
        self.fsm  = fsm = ClockDomainsRenamer("timebase")(FSM(reset_state="IDLE"))
        for unreset in [source.payload, slot, part, due_low, due_high, frames, trains, sequence]:
            stream.set_reset_less(unreset)
        self.comb += [
            self.is_active.eq(~fsm.ongoing("IDLE")),
            part_sum.eq(part + self.fraction),
            total.eq(due_low + addend + carry),
            source.first.eq(1),
            source.last.eq(1),
            source.length.eq(self.length),
            source.header_words.eq(self.header_words),
            source.with_probe.eq(1),
            source.fill.eq(self.fill),
            source.stamp_enable.eq(1),
        ]
        self.sync.timebase += [
            # An interval of 0 is that of the slot; the number stands still.
            slot.eq(self.interval),
            If((self.interval == 0) & (self.fraction == 0), slot.eq(self.length + OVERHEAD)),
            is_ending.eq(frames == 0),
            is_final.eq((frames == 0) & (trains == 0)),
        ]
        fsm.act("IDLE",
            If(self.start,
                NextValue(part, 0),
                NextValue(due_low, 0),
                NextValue(due_high, 0),
                NextValue(carry, 0),
                NextValue(sequence, 0),
                NextValue(frames, self.count - 1),
                NextValue(trains, self.repeats - 1),
                NextState("SETTLE"),
            )
        )
        fsm.act("SETTLE", NextState("SHOW"))
        fsm.act("SHOW",
            If(~source.valid | source.ready,
                shows.eq(1),
                NextValue(sequence, sequence + 1),
                NextState("PART"),
                If(is_final, NextState("END")),
            )
        )
        fsm.act("PART",
            NextValue(part, part_sum[:-1]),
            NextValue(carry, part_sum[-1]),
            NextState("LOW"),
        )
        fsm.act("LOW",
            addend.eq(slot),
            NextValue(due_low, total[:-1]),
            NextValue(carry, total[-1]),
            NextState("HIGH"),
        )
        fsm.act("HIGH",
            NextValue(due_high, due_high + carry),
            NextValue(carry, 0),
            NextValue(frames, frames - 1),
            NextState("SETTLE"),
            If(is_ending,
                NextValue(frames, self.count - 1),
                NextValue(trains, trains - 1),
                NextState("GAP_LOW"),
            ),
        )
        fsm.act("GAP_LOW",
            addend.eq(self.gap),
            NextValue(due_low, total[:-1]),
            NextValue(carry, total[-1]),
            NextState("GAP_HIGH"),
        )
        fsm.act("GAP_HIGH",
            NextValue(due_high, due_high + carry),
            NextValue(carry, 0),
            NextState("SETTLE"),
        )
        fsm.act("END", If(source.ready, NextState("IDLE")))
        self.sync.timebase += [
            If(shows,
                source.valid.eq(1),
                source.due.eq(Cat(due_low, due_high)),
                source.sequence.eq(sequence),
                source.final.eq(is_final),
            ).Elif(source.ready,
                source.valid.eq(0),
            ),
            If(self.stop, source.valid.eq(0)),
        ]
        for state in ["SETTLE", "SHOW", "PART", "LOW", "HIGH", "GAP_LOW", "GAP_HIGH", "END"]:
            fsm.act(state, If(self.stop, NextState("IDLE")))

#: Halfwords of a header: total length of IPv4, or payload length of IPv6; length of UDP; header checksum of IPv4.
PATCHES      = ("network", "udp", "ipv4")
patch_layout = [(name + end, bits) for name in PATCHES for end, bits in (("", 16), ("_halfword", 6), ("_write", 1))]

# Probe Builder ------------------------------------------------------------------------------------

class ProbeBuilder(LiteXModule):
    """Makes the words of frames: header, then sequence and time of the SFD where they are probe frames, fill.

    The first word, of the header alone, waits; what else stands in a frame is taken as it starts, so that the descriptor of the
    next one is there long before its end.

    Parameters
    ----------
    header : Memory
        16 words of 64 bits for each stream.

    Attributes
    ----------
    descriptors : Endpoint(descriptor_description(due_bits=48)), in
        Taken with ``starts``, two cycles or more after it came. ``header_words`` from 10, and with the length such that sequence
        and stamp have space; or else 2 or more, without them.
    starts : Signal(), in
        The frame starts: its first word is taken in the next cycle, and then one a cycle.
    source : Endpoint(transmit_description()), out
        Always valid.
    patches : Record(patch_layout), in
        With the descriptor: halfwords of the header that are other ones in this frame.
    stamp : Signal(64), in
        Must be there five cycles after ``starts``.
    in_frame : Signal(), out
        From the cycle after ``starts`` until the last word is taken.
    """
    def __init__(self, header):
        self.descriptors = descriptors = stream.Endpoint(descriptor_description(due_bits=DUE_BITS))
        self.starts      = Signal()
        self.source      = source      = stream.Endpoint(transmit_description())
        self.patches     = Record(patch_layout)
        self.stamp       = Signal(64)
        self.in_frame    = in_frame    = Signal()

        # # #

        index     = Signal(LENGTH_BITS - 3) # Of the word that comes next.
        last      = Signal(LENGTH_BITS - 3)
        octets    = Signal(3)               # Of the last word; 0 is all eight.
        sequence  = Signal(32)
        is_filled = Signal()
        has_probe = Signal()
        has_stamp = Signal()
        of_stream = Signal(max(1, log2_int(header.depth) - WORD_ADR_BITS)) # Whose frame it is.
        places    = [Signal(LENGTH_BITS - 1, name=f"place_{half}") for half in range(2)] # Of its columns, from the sequence on.
        columns   = [Signal(8*COLUMN, name=f"column_{half}") for half in range(2)]
        reader    = header.get_port(clock_domain="timebase")
        self.specials += reader
        held      = Record(patch_layout) # Of the frame that is built.
        header_word = Signal(8*LANES)
        for unreset in [index, last, octets, sequence, *places, source.payload]:
            stream.set_reset_less(unreset)
        self.comb += header_word.eq(reader.dat_r)
        for halfword in range(LANES//2):
            part   = header_word[16*halfword:16*halfword + 16]
            number = Cat(Constant(halfword, 2), index[:WORD_ADR_BITS])
            for name in PATCHES:
                writes, place = getattr(held, f"{name}_write"), getattr(held, f"{name}_halfword")
                self.comb += If(in_frame & writes & (place == number), part.eq(swapped(getattr(held, name))))
        self.comb += [
            # What is read now comes in the next cycle.
            reader.adr.eq(Cat(Constant(0, WORD_ADR_BITS), descriptors.stream)),
            If(self.starts,
                reader.adr.eq(Cat(Constant(1, WORD_ADR_BITS), descriptors.stream)),
            ).Elif(in_frame & ~(source.ready & source.last),
                reader.adr.eq(Cat((index + source.ready)[:WORD_ADR_BITS], of_stream)),
            ),
            descriptors.ready.eq(self.starts),
            source.valid.eq(1),
        ]
        for half, (place, column) in enumerate(zip(places, columns)):
            fill = Signal(6, name=f"fill_{half}")
            self.comb += [
                fill.eq(place - Mux(has_probe, PROBE_COLUMNS, 0)),
                If(place[-1] | ~in_frame,
                    column.eq(header_word[32*half:32*half + 32]),
                ).Elif(has_probe & (place == 0),
                    column.eq(self.swapped(sequence)),
                ).Elif(has_probe & (place == 1),
                    column.eq(self.swapped(self.stamp[32:]) & Replicate(has_stamp, 32)),
                ).Elif(has_probe & (place == 2),
                    column.eq(self.swapped(self.stamp[:32]) & Replicate(has_stamp, 32)),
                ).Elif(is_filled,
                    column.eq(Cat(*(Cat(Constant(octet, COLUMN_BITS), fill) for octet in range(COLUMN)))),
                ),
            ]
        self.sync.timebase += [
            If(self.starts,
                in_frame.eq(1),
                sequence.eq(descriptors.sequence),
                last.eq((descriptors.length - 1)[3:]),
                octets.eq(descriptors.length[:3]),
                is_filled.eq(descriptors.fill == int(Fill.COUNTING)),
                has_probe.eq(descriptors.with_probe),
                has_stamp.eq(descriptors.stamp_enable),
                of_stream.eq(descriptors.stream),
                held.eq(self.patches),
                index.eq(1),
                *(place.eq(2 + half - descriptors.header_words) for half, place in enumerate(places)),
            ),
            If(in_frame & source.ready,
                index.eq(index + 1),
                *(place.eq(place + 2) for place in places),
                If(source.last, in_frame.eq(0)),
            ),
            If(~in_frame | source.ready,
                source.data.eq(Cat(*columns)),
                source.last.eq(in_frame & (index == last)),
                *(source.last_be[lane].eq(octets == (lane + 1)%LANES) for lane in range(LANES)),
            ),
        ]

    def swapped(self, word):
        """Return 32 bits as four octets, the highest first."""
        return Cat(*(word[8*n:8*n + 8] for n in reversed(range(4))))

# Column Pacer -------------------------------------------------------------------------------------

class ColumnPacer(LiteXModule):
    """Shows each frame to the MAC in the cycle, and for the lane, in which it is due.

    A frame that can't start there starts as soon as the line is free, in either lane, and counts as late; the schedule stands
    still.

    Attributes
    ----------
    sink : Endpoint(transmit_description()), in
    source : Endpoint(transmit_description()), out
        To the MAC.
    due : Signal(48), in
        Tick of the frame in waiting.
    is_there : Signal(), in
        It stands still; with ``starts`` it is taken, and the next one must come within five cycles not to be late.
    in_frame : Signal(), in
        Words of a frame are being taken.
    starts, starts_in_lane_4 : Signal(), Signal(), in
        From the MAC.
    runs : Signal(), in
        The program has started: its tick 0 comes ``lead`` cycles later.
    lead : Signal(8), in
        Cycles, from 16; must stand still.
    clear : Signal(), in
        One cycle: clears the counts.
    elapsed : Signal((46, True)), out
        Cycles of the program, from ``-lead`` on.
    late : Signal(), out
        With ``starts``: the frame starts after its column.
    sent_count, late_count : Signal(32), Signal(32), out
        Frames that started; of them those that were late.
    """
    def __init__(self):
        self.sink             = sink   = stream.Endpoint(transmit_description())
        self.source           = source = stream.Endpoint(transmit_description())
        self.due              = Signal(DUE_BITS)
        self.is_there         = Signal()
        self.in_frame         = Signal()
        self.starts           = Signal()
        self.starts_in_lane_4 = Signal()
        self.runs             = Signal()
        self.lead             = Signal(8, reset=LEAD_CYCLES)
        self.clear            = Signal()
        self.elapsed          = Signal((CYCLE_BITS + 1, True))
        self.late             = Signal()
        self.sent_count       = Signal(32)
        self.late_count       = Signal(32)

        # # #

        elapsed  = self.elapsed
        left     = Signal((CYCLE_BITS + 2, True)) # Cycles, a cycle ago.
        there    = Signal()
        is_due   = Signal()
        is_late  = Signal()
        self.comb += [
            sink.connect(source, omit={"valid", "ready", "lane_4"}),
            source.lane_4.eq(self.due[COLUMN_BITS] & ~is_late),
            source.valid.eq(self.in_frame | is_due),
            self.late.eq(self.starts & (is_late | (self.starts_in_lane_4 & ~self.due[COLUMN_BITS]))),
            sink.ready.eq(source.ready & self.in_frame),
        ]
        self.sync.timebase += [
            # What is known of a frame that has started is old for three cycles; the next one starts ten later.
            If(self.runs, elapsed.eq(elapsed + 1)).Else(elapsed.eq(-self.lead)),
            left.eq(self.due[log2_int(LANES):] - elapsed),
            there.eq(self.is_there),
            is_due.eq(self.is_there & there & (left <= 0)),
            is_late.eq(left < 0),
            If(self.clear,
                self.sent_count.eq(0),
                self.late_count.eq(0),
            ).Elif(self.starts,
                self.sent_count.eq(self.sent_count + 1),
                If(self.late, self.late_count.eq(self.late_count + 1)),
            ),
        ]

# Start Stamp --------------------------------------------------------------------------------------

class StartStamp(LiteXModule):
    """Knows the time of an SFD at the pins from the decision to start: that of its column there, in ns; four cycles later.

    Attributes
    ----------
    now, fraction : Signal(64), Signal(40), in
        Present time.
    starts, starts_in_lane_4 : Signal(), Signal(), in
    stamp : Signal(64), out
        Of the last start.

    The cycles from the decision to the pins count 6.4 ns each: a clock that is trimmed by 100 ppm makes 7 ps of it.
    """
    def __init__(self):
        self.now              = Signal(64)
        self.fraction         = Signal(FRACTION_BITS)
        self.starts           = Signal()
        self.starts_in_lane_4 = Signal()
        self.stamp            = Signal(64, reset_less=True)

        # # #

        # In lane 0 the SFD stands in the second column of the start's cycle, else in the first one of the next.
        self.shifted = shifted = ShiftedTime(START_CYCLES*CYCLE_PS + COLUMN_PS, (START_CYCLES + 1)*CYCLE_PS)
        started = Signal(3)
        self.sync.timebase += [
            started.eq(Cat(self.starts, started)),
            If(self.starts,
                shifted.time.eq(time_of(self.now, self.fraction)),
                shifted.choose.eq(self.starts_in_lane_4),
            ),
            If(started[-1], self.stamp.eq(shifted.ns)),
        ]

# Train Port ---------------------------------------------------------------------------------------

class XgmiiTrainPort(LiteXModule):
    """Sends the frames of a program to a MAC of 10 Gb/s, each in its column, with sequence and time of its SFD.

    Parameters
    ----------
    sources : list of modules
        What programs may be of beside trains, each as `XgmiiReplaySource` from ``stop`` to ``in_frame``: one that ``is_chosen`` has
        the pacer from ``start`` to the end of the program.
    streams : XgmiiStreams, or None
        What programs may be of as well, built as trains are, with headers of their own; trains have that of stream 0.

    Attributes
    ----------
    source : Endpoint(transmit_description()), out
        To `XgmiiTransmitMAC`.
    starts, starts_in_lane_4 : Signal(), Signal(), in
        From it.
    now, fraction : Signal(64), Signal(40), in
        Present time.
    start, stop : Signal(), Signal(), in
        One cycle: starts the program; ends it after the present frame.
    timed, start_time : Signal(), Signal(64), in
        The program waits until its first SFD stands at the pins at this time (ns), to half a cycle (3.2 ns); one that has passed
        is at once. They must stand still from ``start`` on.
    of_streams : Signal(), in
        The program is of streams; must stand still while it runs.
    is_running, is_waiting : Signal(), Signal(), out
        From ``start`` to the end of the program; its time has not come.
    descriptors : Endpoint(descriptor_description(due_bits=48)), out
        The frame that waits, taken as it ``starts``.

    The program is in ``dues`` (`TrainDues`), its header in the memory ``header``, counts in ``pacer`` (`ColumnPacer`).
    """
    def __init__(self, sources=(), streams=None):
        self.source           = stream.Endpoint(transmit_description())
        self.starts           = Signal()
        self.starts_in_lane_4 = Signal()
        self.now              = Signal(64)
        self.fraction         = Signal(FRACTION_BITS)
        self.start            = Signal()
        self.stop             = Signal()
        self.timed            = Signal()
        self.start_time       = Signal(64)
        self.of_streams       = Signal()
        self.is_running       = Signal()
        self.is_waiting       = Signal()

        # # #

        words       = (STREAMS if streams else 1) << WORD_ADR_BITS
        self.header = header = Memory(8*LANES, words, init=[0]*words, name="header")
        self.specials += header
        self.dues    = dues    = TrainDues()
        self.builder = builder = ProbeBuilder(header)
        self.pacer   = pacer   = ColumnPacer()
        self.stamp   = stamp   = StartStamp()
        self.start_at = start_at = StartTime()
        self.descriptors = builder.descriptors
        stops       = Signal()
        is_reached  = Signal()
        has_streams = Signal() # Frames of them are left.
        if streams is None:
            self.comb += dues.source.connect(builder.descriptors)
        else:
            self.comb += [
                If(self.of_streams,
                    streams.source.connect(builder.descriptors),
                ).Else(
                    dues.source.connect(builder.descriptors),
                ),
                If(self.of_streams, builder.patches.eq(streams.patches)),
                has_streams.eq(streams.is_active),
                streams.elapsed.eq(pacer.elapsed),
            ]
        settles    = Signal(8) # While it is set: what is known of the time is that of the program before.
        begins     = Signal()
        is_active  = Signal()
        is_there   = Signal()
        is_other   = Reduce("OR", [0, *(source.is_chosen for source in sources)])
        self.comb += [
            *copied(start_at, self, "now", "start_time"),
            begins.eq(self.start & ~self.is_running),
            dues.start.eq(begins & ~is_other & ~self.of_streams),
            dues.stop.eq(stops),
            builder.stamp.eq(stamp.stamp),
            builder.source.connect(pacer.sink),
            pacer.source.connect(self.source),
            pacer.due.eq(builder.descriptors.due),
            is_there.eq(builder.descriptors.valid),
            is_active.eq(dues.is_active | has_streams),
            pacer.in_frame.eq(builder.in_frame),
            pacer.is_there.eq(is_there & ~stops),
            self.is_waiting.eq(self.is_running & self.timed & ~is_reached),
            pacer.runs.eq(self.is_running & ~self.is_waiting),
            pacer.clear.eq(begins),
            pacer.lead.eq(Mux(self.timed, TIMED_LEAD, LEAD_CYCLES)),
            builder.starts.eq(self.starts & ~is_other),
            *copied(pacer, self, "starts", "starts_in_lane_4"),
            *copied(stamp, self, "starts", "starts_in_lane_4", "now", "fraction"),
        ]
        for source in sources:
            self.comb += [
                source.starts.eq(self.starts & source.is_chosen),
                source.stop.eq(self.stop),
                *copied(source, pacer, "runs", "elapsed"),
                If(source.is_chosen,
                    source.source.connect(pacer.sink),
                    *copied(pacer, source, "due", "in_frame"),
                    is_there.eq(source.is_there),
                    is_active.eq(source.is_active),
                ),
            ]
        self.sync.timebase += [
            If(self.start,
                self.is_running.eq(1),
            ).Elif(~is_active & ~pacer.in_frame & ~self.starts,
                self.is_running.eq(0),
            ),
            stops.eq(self.is_running & (stops | self.stop)),
            settles.eq(Mux(self.is_running, settles[1:], 2**len(settles) - 1)),
            is_reached.eq(self.is_running & (is_reached | (start_at.is_reached & ~settles[0]))),
        ]
