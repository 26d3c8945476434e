# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""From a program to octets on the PHY: source -> announce -> build -> pace -> stamp -> mac."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.crossing import LevelCrossing, PulseCrossing, StillCrossing, StreamCrossing, WordCrossing
from liteprobe.cores.formats import MIN_LENGTH, OVERHEAD, TransmitState
from liteprobe.cores.transmit.announce import Announcer
from liteprobe.cores.transmit.build import FrameBuild
from liteprobe.cores.transmit.counters import COUNTER_BITS, TransmitCounters
from liteprobe.cores.transmit.elapsed import Elapsed
from liteprobe.cores.transmit.fetch import FrameFetch
from liteprobe.cores.transmit.frames import DUE_BITS, descriptor_description, program_layout, stamp_layout, word_description
from liteprobe.cores.transmit.management.to_line import ManagementQueue
from liteprobe.cores.transmit.pace import TrainPacer
from liteprobe.cores.transmit.programs.all_programs import add_sources
from liteprobe.cores.transmit.programs.stamps import add_stamp_settings
from liteprobe.cores.transmit.programs.forward import FORWARD_DUE_BITS, FORWARD_ELAPSED_BITS, add_forward
from liteprobe.cores.transmit.registers import add_registers, add_stream_registers
from liteprobe.cores.transmit.sources.train import TrainSchedule
from liteprobe.cores.transmit.stamp import Stamp
from liteprobe.cores.transmit.wire.mac import TransmitMAC
from liteprobe.cores.transmit.wire.width_converter import WidthConverter

COUNTERS = ["sent", "late", "first_late", "underruns", "management_sent", "management_held", "management_dropped", "disturbed"]

# Transmit Path ------------------------------------------------------------------------------------

class TransmitPath(LiteXModule):
    """Sends programs of frames on one port, each frame on its tick, with its stamp.

    A program is of trains, begun by ``arm``, of streams, begun by ``streams_arm``, a trace, begun by ``replay_arm``, or of
    configuration sets, begun by ``sets_arm``.

    Parameters
    ----------
    clock : ProbeClock
        Shared by all ports.
    data_width : int
        Of the ``sys`` side, 32 or 64.
    with_management : bool
        Let management frames into the gaps.
    pad_ticks : int
        Whole ticks from ``source`` to the PHY's pads: stamps, and the first SFD of a timed program, are those at the pads.
        With streams, replay or sets at most 2.
    streams : StreamSource, or None
        What knows the streams; the path connects all of it but its buses. With sets, their ``user`` is one of its ``others``.
    replay : ReplaySource, or None
        What knows the trace; the path connects ``source``, ``fetch``, ``start``, ``stop`` and ``is_past``. ``data_width`` is 32.
    sets : SetsSource, or None
        What makes frames of sets; the path connects what it asks the path for, the rest is for the words of sets, and settings.

    Attributes
    ----------
    program : Record(program_layout), in, ``sys``
        Must stand still from ``arm`` to the end of the program.
    header : Memory(32, 32), ``sys``
        Without streams and sets: what precedes the sequence; give it a bus port. Must stand still likewise. With them, trains
        have the header of stream 0.
    headers : FrameTemplates
        With sets and without streams: give ``bus`` a port.
    program_write, header_write : Signal(), in, ``sys``
        It is written in this cycle: while a program runs this is counted.
    arm, stop, clear : Signal(), in, ``sys``
        One pulse each. ``arm`` is ignored unless idle, and for a count, a repeats or a length (below 60) that
        no program has; it clears what is counted for a program.
    streams_mask, streams_hold : Signal(16), Signal(), in, ``sys``
        With streams, as all below: those that ``streams_arm`` begins, and whether the program goes on when none is active.
    streams_arm : Signal(), in, ``sys``
        One pulse; ignored unless idle.
    streams_begin, streams_end : Signal(16), in, ``sys``
        Pulses: begin and end single streams while the program runs.
    streams_active : Signal(16), out, ``sys``
    sets_arm : Signal(), in, ``sys``
        With sets: one pulse; ignored as ``arm``. Frames are due as those of a train of the same program, as many at most, and
        as long where sets have no length. ``fill`` and what comes behind it don't matter.
    sent_counters : SentCounters
        Give it a bus port.
    replay_arm : Signal(), in, ``sys``
        With replay. One pulse; ignored unless idle.
    lease_ended : Signal(), in, ``sys``
        One pulse: the host that held the probe is gone, and with it the program, if its register ``attached`` is set.
    state : Signal(3), out, ``sys``
        ``formats.TransmitState``.
    sent, late, first_late, management_sent : Signal(32), out, ``sys``
    underruns, management_held, management_dropped, disturbed : Signal(16), out, ``sys``
    start_strobe, ready : Signal(), in and out, ``timebase``
        For StartGate.
    source : Endpoint(eth_phy_description(8)), out, ``timebase``
        To the PHY, registered; ``ready`` is not looked at.
    management_sink : Endpoint(eth_phy_description(32)), in, ``sys``
        With management: frames without preamble, padding and FCS. Never stalls.
    management_has_room : Signal(), out, ``sys``
        With management: as of FrameStore.
    phy_link_up : Signal(), in, asynchronous
    link_up : Signal(), out, ``sys``
    """
    forward = None # Of a `ForwardTransmit`.

    def __init__(self, clock, data_width=32, with_management=False, pad_ticks=0, streams=None, replay=None, sets=None):
        self.program      = Record(program_layout)
        self.program_write = Signal()
        self.header_write  = Signal()
        self.arm          = Signal()
        self.stop         = Signal()
        self.clear        = Signal()
        self.lease_ended  = Signal()
        self.state        = Signal(3)
        self.start_strobe = Signal()
        self.ready        = Signal()
        self.source       = stream.Endpoint(eth_phy_description(8))
        self.phy_link_up  = Signal(reset=1)
        self.link_up      = Signal()
        for name in COUNTERS:
            setattr(self, name, Signal(COUNTER_BITS.get(name, 32), name=name))

        # # #

        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"header", "build", "management", "streams", "sets", "headers", "sent_counters"}

        with_headers   = streams is not None or sets is not None # That vary.
        with_stamps    = with_headers or replay is not None # Of each frame.
        self.streams   = streams
        self.replay    = replay
        self.sets      = sets
        if self.forward is None:
            self.schedule = TrainSchedule()
            self.announce = Announcer(with_stamps, replay is not None)
            self.build    = FrameBuild(data_width, with_headers)
        else:
            self.announce = Announcer(with_replay=True, due_bits=FORWARD_DUE_BITS)
            self.fetch    = FrameFetch(with_zeros=False, due_bits=FORWARD_DUE_BITS)
        self.crossing  = StreamCrossing(word_description(data_width), "sys", "timebase", rests="timebase")
        self.converter = WidthConverter(data_width)
        self.pace      = TrainPacer(pad_ticks, self.forward is None, None if self.forward is None else self.forward.patience_bits)
        if self.forward is None:
            self.stamp = Stamp()
        self.mac       = TransmitMAC()
        self.elapsed   = Elapsed(64 if self.forward is None else FORWARD_ELAPSED_BITS)
        self.counters  = TransmitCounters()
        self.is_busy   = Signal() # From arm to the end of the program, in ``sys``.
        self.taken     = Signal() # A program begins.
        self.asked     = Signal() # Somebody wants one to.
        self.begins    = Signal() # The source may.
        self.is_stopped = Signal()
        self.of_streams = Signal() # The program is of streams.
        self.of_replay  = Signal() # It is a trace.
        self.of_sets    = Signal() # It is of sets.
        self.is_other   = self.of_streams if replay is None else self.of_streams | self.of_replay # It has another schedule.
        if self.forward is None:
            self.descriptors = stream.Endpoint(descriptor_description(replay is not None))
            self.add_stream()
            self.add_program()
            self.add_state()
            self.add_time(clock, pad_ticks)
            self.add_counters()
            add_sources(self, pad_ticks)
        else:
            add_forward(self)
            self.add_state()
            self.add_counters()
        if with_management:
            self.add_management()

    def add_stream(self):
        """Join the stages in the order of the data."""
        self.comb += [
            self.descriptors.connect(self.announce.sink),
            self.announce.source.connect(self.pace.descriptors, omit={name for name, _ in stamp_layout}),
            self.crossing.source.connect(self.converter.sink),
            self.converter.source.connect(self.pace.sink),
            self.pace.source.connect(self.stamp.sink, omit={"ready"}),
            self.stamp.source.connect(self.mac.sink, omit={"ready"}),
            self.mac.source.connect(self.source, omit={"ready"}),
        ]
        if self.replay is None:
            self.comb += [
                self.announce.build.connect(self.build.sink),
                self.build.source.connect(self.crossing.sink),
            ]

    def add_program(self):
        """Check the program, resolve its intervals, and tell both sides of it."""
        program      = self.program
        interval     = Signal(32, reset_less=True) # Back to back resolved; they follow the program at once.
        interval_gap = Signal(33, reset_less=True)
        length       = program.length if self.sets is None else Mux(self.of_sets, self.sets.length, program.length)
        shown        = Record(program_layout)
        is_good      = Signal()
        take         = Signal(2)
        self.program_crossing = crossing = StillCrossing(len(shown), "sys", "timebase")
        self.sync += [
            interval.eq(program.interval_ticks),
            If((program.interval_ticks == 0) & (program.interval_fraction == 0), interval.eq(length + OVERHEAD)),
            interval_gap.eq(interval + program.gap_ticks),
            is_good.eq((program.count != 0) & (program.repeats != 0) & (program.length >= MIN_LENGTH)),
            take.eq(Cat(self.asked & ~self.is_busy, take)),
        ]
        self.comb += [
            self.taken.eq(take[-1] & (is_good | self.is_other) & ~self.is_busy),
            crossing.i.eq(program.raw_bits()),
            crossing.take.eq(self.taken),
            shown.raw_bits().eq(crossing.o),
            self.pace.arm.eq(crossing.taken),
            *[getattr(self.pace, name).eq(getattr(shown, name)) for name in ("timed", "start_time")],
            *[getattr(self.schedule, name).eq(getattr(program, name)) for name in (
                "count", "repeats", "length", "interval_fraction", "payload_offset", "fill", "checksum_enable", "checksum_seed")],
            self.schedule.interval.eq(interval),
            self.schedule.interval_gap.eq(interval_gap),
        ]
        if self.streams is None and self.replay is None and self.sets is None:
            add_stamp_settings(self, shown)

    def add_state(self):
        """Start and stop the source, and say how far the program is."""
        is_stopped    = self.is_stopped
        is_over       = Signal() # The pacer is through.
        begin         = Signal(3) # Held program, then what the stages derive from it, are still by then.
        paced         = Signal(3) # State of the pacer.
        self.pacer    = pacer    = WordCrossing(len(paced) + DUE_BITS, "timebase", "sys")
        self.finished = finished = PulseCrossing("timebase", "sys")
        self.stopping = stopping = LevelCrossing("timebase")
        self.comb += [
            pacer.i.eq(Cat(self.pace.state, self.pace.elapsed)),
            Cat(paced, self.elapsed.ticks).eq(pacer.o),
            self.elapsed.is_running.eq(paced == TransmitState.RUNNING),
            self.announce.elapsed.eq(self.elapsed.elapsed),
            self.announce.stop.eq(is_stopped),
            finished.i.eq(self.pace.finished),
            stopping.i.eq(is_stopped),
            self.pace.stop.eq(stopping.o),
            *([] if self.forward is None else self.gate()),
            self.begins.eq(begin[-1]),
            *([] if self.forward is not None else [
                self.schedule.start.eq(self.begins & ~self.is_other),
                self.schedule.stop.eq(is_stopped if self.sets is None else is_stopped | self.sets.ends),
            ]),
            If(self.is_busy,
                self.state.eq(paced),
                If((paced == TransmitState.IDLE) & ~is_over, self.state.eq(TransmitState.ARMED)),
            ),
        ]
        self.sync += [
            begin.eq(Cat(self.taken, begin)),
            If(self.taken, self.is_busy.eq(1)),
            If(self.stop & self.is_busy, is_stopped.eq(1)),
            If(finished.o, is_over.eq(1)),
            # Only then is its count of ticks no more that of this program.
            If(is_over & (paced == TransmitState.IDLE),
                self.is_busy.eq(0),
                is_over.eq(0),
                is_stopped.eq(0),
            ),
        ]

    def gate(self):
        """Return the handshake with the gate that starts ports together."""
        return [self.pace.start_strobe.eq(self.start_strobe), self.ready.eq(self.pace.ready)]

    def add_time(self, clock, pad_ticks):
        """Give pacer and stamp the one time, and the gate its handshake."""
        now = Signal(64, reset_less=True) # Half of the way across the chip.
        self.sync.timebase += now.eq(clock.now)
        sfd = self.mac.sfd
        for _ in range(pad_ticks):
            later = Signal()
            self.sync.timebase += later.eq(sfd)
            sfd = later
        self.comb += [
            self.pace.now.eq(now),
            self.stamp.now.eq(now),
            self.stamp.sfd.eq(sfd),
            *self.gate(),
        ]

    def add_counters(self):
        """Count in ``sys``."""
        counters = self.counters
        self.link = link = LevelCrossing("sys")
        self.comb += [
            counters.events["late"].eq(self.pace.late),
            counters.events["sent"].eq(self.mac.sfd_probe),
            counters.events["underruns"].eq(self.pace.line.underrun),
            counters.events["management_sent"].eq(self.pace.management_started),
            counters.events["management_held"].eq(self.pace.management_held),
            counters.clear.eq(self.clear),
            counters.clear_program.eq(self.taken),
            counters.disturbs.eq((self.program_write | (self.header_write & ~self.of_streams)) & self.is_busy),
            link.i.eq(self.phy_link_up),
            self.link_up.eq(link.o),
            *[getattr(self, name).eq(getattr(counters, name)) for name in COUNTERS],
        ]

    def add_management(self):
        """Bring management frames to the line, where the pacer arbitrates."""
        self.management      = management = ManagementQueue()
        self.management_sink = management.sink
        self.management_has_room = management.has_room
        self.comb += [
            management.source.connect(self.pace.management),
            self.pace.management_waiting.eq(management.waiting),
            self.pace.management_hold.eq(management.hold),
            management.start.eq(self.pace.start_management),
            self.counters.dropped.eq(management.dropped),
        ]

    def add_csr(self):
        """Add the registers of the contract."""
        add_registers(self)
        if self.streams is not None:
            add_stream_registers(self)
