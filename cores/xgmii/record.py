# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Makes a record of each frame that arrives at 10 Gb/s: what its headers say, its verdict, and the time of its SFD."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.crossing import NumberCrossing, StreamCrossing
from liteprobe.cores.formats import MIN_LENGTH
from liteprobe.cores.formats.xgmii import COLUMN_PS, CYCLE_PS, LANES
from liteprobe.cores.receive.frames import frame_layout, number_bits
from liteprobe.cores.timebase.clock import FRACTION_BITS
from liteprobe.cores.xgmii.parse import FRAMES_MAX, XgmiiParser, parsed_layout
from liteprobe.cores.xgmii.receive import SFD_CYCLES
from liteprobe.cores.xgmii.shifted_time import TIME_BITS, ShiftedTime, time_of

STAMP_CYCLES = SFD_CYCLES + 3 # From an SFD at the pins until its number is in ``timebase``, where both have one clock.

def record_layout():
    """Return the fields of a record: ``arrival`` (ns) is the time of its SFD at the pins, 0 for a runt."""
    return [*parsed_layout(), ("arrival", 64)]

# Word Crossing ------------------------------------------------------------------------------------

class FrameCrossing(LiteXModule):
    """Brings frames from ``eth_rx`` to ``timebase``, and marks those that lost words on the way.

    Attributes
    ----------
    sink : Endpoint(frame_layout(64)), in, eth_rx
        Never stalls.
    is_high : Signal(), in, eth_rx
        With the last word of a frame.
    source : Endpoint(frame_layout(64) + [("is_high", 1)]), out, timebase
        ``overflow``: words are missing; also of a frame that lost its end, and was joined to the next one. ``ready`` is not
        looked at.
    lost : Signal(), out, eth_rx
        One cycle for each frame that lost words, at its end.

    As many words cross as come: the clocks may be as far apart as the idle between frames allows.
    """
    def __init__(self):
        self.sink    = sink = stream.Endpoint(frame_layout(8*LANES))
        self.is_high = Signal()
        self.lost    = Signal()

        # # #

        self.crossing = crossing = StreamCrossing(frame_layout(8*LANES) + [("is_high", 1)], "eth_rx", "timebase")
        self.source   = crossing.source
        to      = crossing.sink
        is_gone = Signal() # A word of the frame.
        self.comb += [
            sink.ready.eq(1),
            crossing.source.ready.eq(1),
            to.valid.eq(sink.valid & (~is_gone | sink.last)),
            *copied(to, sink, "last", "data", "last_be", "fcs_error", "symbol_error", "number"),
            to.overflow.eq(is_gone),
            to.is_high.eq(self.is_high),
            self.lost.eq(sink.valid & sink.last & (is_gone | ~to.ready)),
        ]
        self.sync.eth_rx += If(sink.valid, is_gone.eq(~to.ready | (is_gone & ~sink.last)))

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
    """Gives a record of each frame that arrives, with the time of its SFD.

    Attributes
    ----------
    sink : Endpoint(frame_layout(64)), in, eth_rx
        From `XgmiiReceiveMAC`, as ``sfd`` and ``sfd_high``.
    sfd, sfd_high : Signal(), Signal(), in, eth_rx
    now, fraction : Signal(64), Signal(40), in, timebase
        Present time.
    source : Endpoint(record_layout()), out, timebase
    lost : Signal(), out, eth_rx
        One cycle: words of a frame are lost since ``timebase`` was too slow for it.
    dropped : Signal(), out, timebase
        One cycle: a frame is lost since the parser, or who takes records, was too slow.
    lost_count : Signal(32), out, eth_rx
        Of ``lost``. Wraps.
    dropped_count : Signal(32), out, timebase
        Of ``dropped``. Wraps.

    A time is that of the column of the SFD at the pins; where the clocks aren't one, it may be up to a cycle (6.4 ns) less.
    """
    def __init__(self):
        self.sink          = stream.Endpoint(frame_layout(8*LANES))
        self.sfd           = Signal()
        self.sfd_high      = Signal()
        self.now           = Signal(64)
        self.fraction      = Signal(FRACTION_BITS)
        self.source        = source = stream.Endpoint(record_layout())
        self.lost          = Signal()
        self.dropped       = Signal()
        self.lost_count    = Signal(32)
        self.dropped_count = Signal(32)

        # # #

        self.stamper  = stamper  = ColumnStamper()
        self.crossing = crossing = FrameCrossing()
        self.parser   = parser   = ClockDomainsRenamer("timebase")(XgmiiParser())
        self.shifted  = shifted  = ShiftedTime(-STAMP_CYCLES*CYCLE_PS, -STAMP_CYCLES*CYCLE_PS + COLUMN_PS)
        self.stamps   = stamps   = ClockDomainsRenamer("timebase")(stream.SyncFIFO([("arrival", 64)], FRAMES_MAX))
        word = crossing.source
        self.comb += [
            self.sink.connect(crossing.sink),
            *copied(stamper, self, "sfd", "sfd_high", "now", "fraction"),
            stamper.high_number.eq(self.sink.number),
            crossing.is_high.eq(stamper.is_high),
            stamper.number.eq(word.number),
            word.connect(parser.sink, omit={"ready", "is_high"}),
            self.lost.eq(crossing.lost),
            self.dropped.eq(parser.dropped),
        ]
        self.sync.eth_rx   += If(self.lost, self.lost_count.eq(self.lost_count + 1))
        self.sync.timebase += If(self.dropped, self.dropped_count.eq(self.dropped_count + 1))

        # A cycle to read the time, and two to shift it; it then waits for its frame.
        # ---------------------------------------------------------------------------
        ended = Signal(3)
        self.sync.timebase += [
            ended.eq(Cat(parser.ended, ended)),
            shifted.time.eq(stamper.time),
            shifted.choose.eq(word.is_high),
        ]
        self.comb += [
            stamps.sink.valid.eq(ended[-1]),
            stamps.sink.arrival.eq(shifted.ns),
            source.valid.eq(parser.source.valid & stamps.source.valid),
            *copied(source, parser.source, *[name for name, _ in parsed_layout()]),
            If(source.length >= MIN_LENGTH, source.arrival.eq(stamps.source.arrival)),
            parser.source.ready.eq(source.valid & source.ready),
            stamps.source.ready.eq(source.valid & source.ready),
        ]
