# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes a record of each frame that arrives at 10 Gb/s: its length and verdict, the fields of a probe frame, both times."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.crossing import NumberCrossing, StreamCrossing
from liteprobe.cores.formats import MIN_LENGTH, SIGNATURE
from liteprobe.cores.formats.xgmii import COLUMN, COLUMN_PS, CYCLE_PS, LANES
from liteprobe.cores.receive.frames import frame_layout, number_bits
from liteprobe.cores.timebase.clock import FRACTION_BITS
from liteprobe.cores.transmit.frames import LENGTH_BITS
from liteprobe.cores.xgmii.receive import SFD_CYCLES
from liteprobe.cores.xgmii.shifted_time import TIME_BITS, ShiftedTime, time_of

STAMP_CYCLES = SFD_CYCLES + 3 # From an SFD at the pins until its number is in ``timebase``, where both have one clock.
FIELD_OCTETS = 4 + 8 # Sequence and time.
WORD_INDEX   = LENGTH_BITS - log2_int(LANES)

def fields_layout():
    """Return what is known of a frame at its end, in ``eth_rx``."""
    return [
        ("sequence",     32),
        ("sent",         64), # TX stamp (ns).
        ("stream",       16),
        ("length",       LENGTH_BITS), # Octets without FCS; stops at the greatest multiple of 8.
        ("has_probe",    1),  # It has the signature, and is long enough for what stands after it.
        ("fcs_error",    1),
        ("symbol_error", 1),
    ]

def record_layout():
    """Return the fields of a record: ``arrival`` (ns) is the time of its SFD at the pins, 0 without ``is_stamped``."""
    return fields_layout() + [("arrival", 64), ("is_stamped", 1)]

# Probe Reader -------------------------------------------------------------------------------------

class ProbeReader(LiteXModule):
    """Reads sequence, time and stream of probe frames, whose signature stands before them; in ``eth_rx``.

    Attributes
    ----------
    sink : Endpoint(frame_layout(64)), in
        From `XgmiiReceiveMAC`; always ready.
    header_words : Signal(6), in
        Columns of four octets before the sequence; must stand still.
    source : Endpoint(fields_layout()), out
        One cycle for each frame, two after its last word; ``ready`` is not looked at.
    number : Signal(number_bits), out
        With ``source``: which SFD.
    """
    def __init__(self):
        self.sink         = sink   = stream.Endpoint(frame_layout(8*LANES))
        self.header_words = Signal(6)
        self.source       = source = stream.Endpoint(fields_layout())
        self.number       = Signal(number_bits)

        # # #

        word      = stream.Endpoint(frame_layout(8*LANES)) # A cycle later, with what is known of its place.
        index     = Signal(WORD_INDEX)    # Of the word on the sink; stops at the greatest.
        start     = Signal(WORD_INDEX)    # Of ``word``.
        places    = [Signal((WORD_INDEX + 2, True), name=f"place_{half}") for half in range(2)] # Of its columns, from the fields.
        octets    = Signal(max=LANES + 1) # Of the last word.
        length    = Signal(LENGTH_BITS)
        is_signed = Signal(2)             # First and second half of the signature.
        is_long   = Signal()
        signature = SIGNATURE.to_bytes(4, "big")
        halves    = [int.from_bytes(signature[2*half:2*half + 2], "little") for half in range(2)]
        for unreset in [word.payload, places, source.payload]:
            stream.set_reset_less(unreset)
        self.comb += [
            sink.ready.eq(1),
            [If(word.last_be[n], octets.eq(n + 1)) for n in range(LANES)],
            length.eq(LANES*start + octets),
            source.has_probe.eq(is_long & (is_signed == 3)),
        ]
        self.sync.eth_rx += [
            word.valid.eq(sink.valid),
            word.last.eq(sink.last),
            word.payload.eq(sink.payload),
            If(sink.valid,
                start.eq(index),
                If(sink.last, index.eq(0)).Elif(index != 2**WORD_INDEX - 1, index.eq(index + 1)),
                *(place.eq(2*index + half - self.header_words) for half, place in enumerate(places)),
            ),
            source.valid.eq(word.valid & word.last),
            source.length.eq(length),
            is_long.eq(length >= COLUMN*self.header_words + FIELD_OCTETS),
            self.number.eq(word.number),
            *copied(source, word, "fcs_error", "symbol_error"),
        ]
        for place, column in zip(places, [word.data[:32], word.data[32:]]):
            self.sync.eth_rx += If(word.valid,
                If(place == -2, is_signed[0].eq(column[16:] == halves[0])),
                If(place == -1,
                    is_signed[1].eq(column[:16] == halves[1]),
                    source.stream.eq(self.swapped(column[16:])),
                ),
                If(place == 0, source.sequence.eq(self.swapped(column))),
                If(place == 1, source.sent[32:].eq(self.swapped(column))),
                If(place == 2, source.sent[:32].eq(self.swapped(column))),
            )

    def swapped(self, word):
        """Return octets in the other order."""
        return Cat(*(word[8*n:8*n + 8] for n in reversed(range(len(word)//8))))

# Column Stamper -----------------------------------------------------------------------------------

class ColumnStamper(LiteXModule):
    """Takes the time of each SFD in ``timebase``, and gives it by the number of the SFD.

    What crosses is a Gray-coded number, one bit at a time, and never the time. Of SFDs that come closer than two cycles the last
    one alone has a time; the frames of the others are runts.

    Attributes
    ----------
    sfd, sfd_high : Signal(), Signal(), in, eth_rx
        From `XgmiiReceiveMAC`.
    number : Signal(number_bits), in
        Of the frame whose time is asked for, at most 15 SFDs ago.
    now, fraction : Signal(64), Signal(40), in
        Present time.
    time : Signal(72), out
        When its number came across, STAMP_CYCLES after the SFD where both clocks are one, in 2^-8 ns; in the same cycle.
    high_number : Signal(number_bits), in, eth_rx
    is_high : Signal(), out, eth_rx
        The SFD of this number stood in lane 7.
    """
    def __init__(self):
        self.sfd         = Signal()
        self.sfd_high    = Signal()
        self.number      = Signal(number_bits)
        self.now         = Signal(64)
        self.fraction    = Signal(FRACTION_BITS)
        self.time        = Signal(TIME_BITS)
        self.high_number = Signal(number_bits)
        self.is_high     = Signal()

        # # #

        # Lanes.
        # ------
        lanes = Signal(2**number_bits)
        count = Signal(number_bits)
        self.comb += Case(self.high_number, {n : self.is_high.eq(lanes[n]) for n in range(2**number_bits)})
        self.sync.eth_rx += If(self.sfd,
            count.eq(count + 1),
            Case(count, {n : lanes[n].eq(self.sfd_high) for n in range(2**number_bits)}),
        )

        # Times.
        # ------
        self.crossing = crossing = NumberCrossing(number_bits, "eth_rx", "timebase")
        memory = Memory(TIME_BITS, 2**number_bits, init=[0]*2**number_bits, name="stamps")
        writer = memory.get_port(write_capable=True, clock_domain="timebase", mode=READ_FIRST)
        reader = memory.get_port(async_read=True, clock_domain="timebase")
        seen   = Signal(number_bits)
        self.specials += memory, writer, reader
        self.sync.timebase += seen.eq(crossing.o)
        self.comb += [
            crossing.step.eq(self.sfd),
            writer.adr.eq(crossing.o - 1),
            writer.dat_w.eq(time_of(self.now, self.fraction)),
            writer.we.eq(crossing.o != seen),
            reader.adr.eq(self.number),
            self.time.eq(reader.dat_r),
        ]

# Record Path --------------------------------------------------------------------------------------

class XgmiiRecordPath(LiteXModule):
    """Gives a record of each frame that arrives, with the time of its SFD; up to one a cycle.

    Attributes
    ----------
    sink : Endpoint(frame_layout(64)), in, eth_rx
        From `XgmiiReceiveMAC`, as ``sfd`` and ``sfd_high``.
    sfd, sfd_high : Signal(), Signal(), in, eth_rx
    header_words : Signal(6), in
        Columns of four octets before the sequence of a probe frame; must stand still.
    now, fraction : Signal(64), Signal(40), in, timebase
        Present time.
    source : Endpoint(record_layout()), out, timebase
        One cycle for each frame; ``ready`` is not looked at.
    lost : Signal(), out, eth_rx
        One cycle: a record is lost since ``timebase`` was too slow for it.
    lost_count : Signal(32), out, eth_rx
        Such records. Wraps.

    A time is that of the column of the SFD at the pins; where the clocks aren't one, it may be up to a cycle (6.4 ns) less.
    """
    def __init__(self):
        self.sink         = stream.Endpoint(frame_layout(8*LANES))
        self.sfd          = Signal()
        self.sfd_high     = Signal()
        self.header_words = Signal(6)
        self.now          = Signal(64)
        self.fraction     = Signal(FRACTION_BITS)
        self.source       = source = stream.Endpoint(record_layout())
        self.lost         = Signal()
        self.lost_count   = Signal(32)

        # # #

        self.reader   = reader   = ProbeReader()
        self.stamper  = stamper  = ColumnStamper()
        self.crossing = crossing = StreamCrossing(
            fields_layout() + [("number", number_bits), ("is_high", 1)], "eth_rx", "timebase", depth=16)
        self.shifted  = shifted  = ShiftedTime(-STAMP_CYCLES*CYCLE_PS, -STAMP_CYCLES*CYCLE_PS + COLUMN_PS)
        fields = [name for name, _ in fields_layout()]
        taken  = crossing.source
        self.comb += [
            self.sink.connect(reader.sink),
            reader.header_words.eq(self.header_words),
            *copied(stamper, self, "sfd", "sfd_high", "now", "fraction"),
            stamper.high_number.eq(reader.number),
            crossing.sink.valid.eq(reader.source.valid),
            *copied(crossing.sink, reader.source, *fields),
            crossing.sink.number.eq(reader.number),
            crossing.sink.is_high.eq(stamper.is_high),
            taken.ready.eq(1),
            stamper.number.eq(taken.number),
        ]
        self.comb += self.lost.eq(reader.source.valid & ~crossing.sink.ready)
        self.sync.eth_rx += If(self.lost, self.lost_count.eq(self.lost_count + 1))

        # A cycle to read the time, and two to shift it.
        # ----------------------------------------------
        stages = [stream.Endpoint(fields_layout()) for _ in range(3)]
        for before, after in zip([taken, *stages], stages):
            stream.set_reset_less(after.payload)
            self.sync.timebase += [after.valid.eq(before.valid), *copied(after, before, *fields)]
        self.sync.timebase += [
            shifted.time.eq(stamper.time),
            shifted.choose.eq(taken.is_high),
        ]
        self.comb += [
            source.valid.eq(stages[-1].valid),
            *copied(source, stages[-1], *fields),
            source.is_stamped.eq(source.length >= MIN_LENGTH),
            If(source.is_stamped, source.arrival.eq(shifted.ns)),
        ]
