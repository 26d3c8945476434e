# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives the trains and records of a port at 10 Gb/s the registers and memories of a port at 1 Gb/s, in ``sys``."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr import *

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.record import RecordRing
from liteprobe.cores.crossing import EventCrossing, LevelCrossing, PulseCrossing, StreamCrossing, WordCrossing
from liteprobe.cores.formats import DAMAGE, FAULTS, MIN_LENGTH, TransmitState, UnifiedFlag
from liteprobe.cores.formats.xgmii import COLUMN, LANES
from liteprobe.cores.measure.tally import Event
from liteprobe.cores.receive.path import MeasurePath, RecordPath
from liteprobe.cores.transmit.counters import TransmitCounters, COUNTERS
from liteprobe.cores.transmit.path import PROGRAM, STATUS, ProgramBank
from liteprobe.cores.xgmii.meter import XgmiiMeter
from liteprobe.cores.xgmii.record import XgmiiRecordPath, record_layout
from liteprobe.cores.xgmii.train import XgmiiTrainPort

#: What a program has, as of 1 Gb/s, with its bits. A tick is an octet of the line; frames have no checksum to mend.
SETTINGS     = {
    "length": 14, "count": 32, "repeats": 32, "interval_ticks": 32, "interval_fraction": 32, "gap_ticks": 32, "start_time": 64,
    "timed": 1, "fill": 2, "payload_offset": 8,
}
BEFORE_SEQUENCE = 6 # Octets of a payload: signature and stream.
SENT_CYCLES     = 8 # From the decision to start until a frame counts as sent, two before its SFD: ``late`` is counted before.

# Header Bus ---------------------------------------------------------------------------------------

class HeaderBus(LiteXModule):
    """Lets the bus write and read words of 32 bits of a memory of 64; in ``sys``.

    Attributes
    ----------
    bus : wishbone.Interface, slave
    """
    def __init__(self, memory):
        self.bus = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        port  = memory.get_port(write_capable=True, we_granularity=32, mode=READ_FIRST)
        asks  = Signal()
        self.specials += port
        self.comb += [
            asks.eq(bus.cyc & bus.stb & ~bus.ack),
            port.adr.eq(bus.adr[1:]),
            port.dat_w.eq(Cat(bus.dat_w, bus.dat_w)),
            If(asks & bus.we, port.we.eq(Mux(bus.adr[0], 2, 1))),
            bus.dat_r.eq(Mux(bus.adr[0], port.dat_r[32:], port.dat_r[:32])),
        ]
        self.sync += bus.ack.eq(asks)

# Transmit Path ------------------------------------------------------------------------------------

class XgmiiTransmitPath(ProgramBank):
    """Sends programs of trains or streams on a port of 10 Gb/s: registers ``port<n>_tx``, as of `TransmitPath`.

    Parameters
    ----------
    clock : TimebaseClock
    mac : XgmiiMAC
    streams : XgmiiStreamSource, or None
    sources : list of modules
        As of `XgmiiTrainPort`, each with a ``name``, under which the path has it, ``is_primed``, and in ``sys``, one bit each,
        ``request`` (in: a program of its kind is asked for; ignored unless idle), ``taken`` (out: it is; one cycle) and
        ``is_asked`` (out: the program is this source's, or the last one was).

    Attributes
    ----------
    program : Record(SETTINGS), in, ``sys``
        Must stand still from ``arm`` to the end of the program.
    arm, stop, clear : Signal(), in, ``sys``
        As the registers. ``arm`` is ignored unless idle, and for a count, a repeats or a length (below 60) that no program has.
    lease_ended, header_write, program_write : Signal(), in, ``sys``
        As of `TransmitPath`.
    header : HeaderBus
        Everything before the sequence, 128 octets; with streams, of each.
    start_strobe, ready : Signal(), in and out, ``timebase``
        For StartGate.
    link_up : Signal(), out, ``sys``
        The receiver hears no link fault.
    state : Signal(3), out, ``sys``
        ``formats.TransmitState``.

    Limits: header and fill as of `TrainDues` and `ProbeBuilder`; there is no checksum to mend, and no management in band.
    """
    def __init__(self, clock, mac, streams=None, sources=()):
        self.program       = program = Record(list(SETTINGS.items()))
        self.arm           = Signal()
        self.stop          = Signal()
        self.clear         = Signal()
        self.lease_ended   = Signal()
        self.header_write  = Signal()
        self.program_write = Signal()
        self.state         = Signal(3)
        self.start_strobe  = Signal()
        self.ready         = Signal()
        self.link_up       = Signal()

        # # #

        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"port", "header", *(source.name for source in sources)}
        for source in sources:
            setattr(self, source.name, source)
        self.asked      = Signal() # A program is asked for;
        self.taken      = Signal() # it is taken,
        self.begins     = Signal() # a cycle ago;
        self.is_busy    = Signal() # from then to its end;
        self.is_stopped = Signal() # it is to end.
        self.is_armed   = Signal() # From its begin to its start, or a stop; in ``timebase``.
        self.streams  = streams
        self.port     = port = XgmiiTrainPort(sources, streams and streams.engine)
        self.header   = HeaderBus(port.header)
        self.counters = TransmitCounters()
        self.link     = LevelCrossing("sys")
        self.comb += [
            port.source.connect(mac.transmit.sink),
            *copied(port, mac.transmit, "starts", "starts_in_lane_4"),
            *copied(port, clock, "now", "fraction"),
            *copied(port.dues, program, "count", "repeats", "length", "fill"),
            port.dues.interval.eq(program.interval_ticks),
            port.dues.fraction.eq(program.interval_fraction),
            port.dues.gap.eq(program.gap_ticks),
            port.dues.header_words.eq((program.payload_offset + BEFORE_SEQUENCE)[log2_int(COLUMN):]),
            *copied(port, program, "timed", "start_time"),
            self.link.i.eq(mac.is_up),
        ]
        self.add_state(sources)
        self.add_counters(mac)
        if streams is not None:
            streams.join(self)

    def add_state(self, sources):
        """Begin and stop the program, and say how far it is."""
        port, program, streams = self.port, self.program, self.streams
        is_busy, is_stopped, taken = self.is_busy, self.is_stopped, self.taken
        requests   = Reduce("OR", [0, *(source.request for source in sources)])
        of_source  = Reduce("OR", [0, *(source.is_chosen for source in sources)])
        ready      = Reduce("OR", [streams.engine.is_primed if streams else 0,
            *(source.is_chosen & source.is_primed for source in sources)])
        is_over    = Signal() # The port is through.
        primes     = Signal() # The program may start: but for trains, once its first frame is there.
        is_primed  = Signal()
        there      = Signal(3) # State of the port.
        was_there  = Signal()
        self.arming   = arming   = PulseCrossing("sys", "timebase")
        self.stopping = stopping = LevelCrossing("timebase")
        self.states   = states   = WordCrossing(len(there), "timebase", "sys")
        self.finished = finished = PulseCrossing("timebase", "sys")
        is_sound   = (program.count != 0) & (program.repeats != 0) & (program.length >= MIN_LENGTH)
        self.comb += [
            self.asked.eq((self.arm & is_sound) | (streams.request if streams else 0) | requests),
            taken.eq(self.asked & ~is_busy),
            arming.i.eq(taken),
            primes.eq((arming.o & ~port.of_streams & ~of_source) | (ready & ~is_primed & ~stopping.o)),
            stopping.i.eq(is_stopped),
            port.start.eq(self.start_strobe & self.ready),
            port.stop.eq(stopping.o),
            states.i.eq(there),
            If(self.ready,
                there.eq(TransmitState.READY),
            ).Elif(port.is_waiting,
                there.eq(TransmitState.WAITING),
            ).Elif(port.is_running,
                there.eq(TransmitState.RUNNING),
            ).Elif((streams.engine.is_active if streams else 0) | (self.is_armed & of_source),
                there.eq(TransmitState.ARMED),
            ).Else(
                there.eq(TransmitState.IDLE),
            ),
            finished.i.eq(was_there & (there == TransmitState.IDLE)),
            If(is_busy,
                self.state.eq(states.o),
                If((states.o == TransmitState.IDLE) & ~is_over, self.state.eq(TransmitState.ARMED)),
            ),
            self.counters.disturbs.eq(is_busy & ((self.header_write & ~port.of_streams) | self.program_write)),
        ]
        self.sync.timebase += [
            was_there.eq(there != TransmitState.IDLE),
            is_primed.eq(ready),
            If(arming.o,
                self.is_armed.eq(1),
            ).Elif((self.start_strobe & self.ready) | stopping.o,
                self.is_armed.eq(0),
            ),
            If(primes,
                self.ready.eq(1),
            ).Elif(self.start_strobe | stopping.o,
                self.ready.eq(0),
            ),
        ]
        self.sync += [
            self.begins.eq(taken),
            If(taken, is_busy.eq(1)),
            If(self.stop & is_busy, is_stopped.eq(1)),
            If(finished.o, is_over.eq(1)),
            If(is_over & (states.o == TransmitState.IDLE),
                is_busy.eq(0),
                is_over.eq(0),
                is_stopped.eq(0),
            ),
        ]
        for source in sources:
            # It is there before the program.
            chosen = LevelCrossing("timebase")
            self.add_module(name=f"{source.name}_chosen", module=chosen)
            self.comb += [
                source.taken.eq(source.request & ~is_busy),
                chosen.i.eq(source.is_asked),
                source.is_chosen.eq(chosen.o),
            ]
            self.sync += If(self.asked & ~is_busy, source.is_asked.eq(source.request))

    def add_counters(self, mac):
        """Count in ``sys``."""
        counters = self.counters
        started  = Signal(SENT_CYCLES)
        self.sync.timebase += started.eq(Cat(self.port.starts, started))
        self.comb += [
            counters.events["late"].eq(self.port.pacer.late),
            counters.events["sent"].eq(started[-1]),
            counters.events["underruns"].eq(mac.transmit.starter.underrun),
            counters.clear_program.eq(self.taken),
            counters.clear.eq(self.clear),
            self.link_up.eq(self.link.o),
        ]

    def add_csr(self):
        """Add the registers of the contract ("Registers", ``port<n>_tx``), but those of the checksum."""
        self.add_settings({name: PROGRAM[name] for name in SETTINGS}, of=self.program)
        settings = [getattr(self, f"_{name}") for name in SETTINGS]
        self.sync += self.program_write.eq(Reduce("OR", [register.is_written for register in settings]))
        self.add_strobes()
        for name, description in STATUS.items():
            if name in COUNTERS:
                setattr(self, f"_{name}", self.counters.status(name, description))
            else:
                self.add_status({name: description})
        if self.streams is not None:
            self.streams.add_csr()

# Held Record --------------------------------------------------------------------------------------

class HeldRecord(LiteXModule):
    """Keeps a record while the ring writes it, a cycle later: the next frame may come meanwhile. All else is the ring's.

    Parameters
    ----------
    ring : RecordRing

    Attributes
    ----------
    keep, sequence, tx_stamp, rx_stamp, length, flags, clear, read, written, lost, bus, words
        As of `RecordRing`; the record must stand still in the cycle of ``keep`` alone.
    """
    def __init__(self, ring):
        self.keep = Signal()
        self.clear, self.read, self.written, self.lost, self.bus = ring.clear, ring.read, ring.written, ring.lost, ring.bus
        self.words = ring.words

        # # #

        keep   = Signal()
        fields = ("sequence", "tx_stamp", "rx_stamp", "length", "flags")
        for name in fields:
            setattr(self, name, Signal.like(getattr(ring, name), name=name))
            held       = Signal.like(getattr(ring, name), name=f"held_{name}", reset_less=True)
            self.sync += If(self.keep, held.eq(getattr(self, name)))
            self.comb += getattr(ring, name).eq(held)
        self.sync += keep.eq(self.keep & ~self.clear)
        self.comb += ring.keep.eq(keep)

# Receive Path -------------------------------------------------------------------------------------

class XgmiiArrivals(LiteXModule):
    """Brings what is known of the frames of a port of 10 Gb/s to ``sys``, and counts what becomes of them.

    Parameters
    ----------
    clock : TimebaseClock
    mac : XgmiiMAC

    Attributes
    ----------
    source : Endpoint(record_layout()), out
    link_up : Signal(), out, asynchronous
    events : list of Event
        Of frames that ``source`` gives, by the names of their counters.
    """
    def __init__(self, clock, mac):
        self.link_up = Signal()

        # # #

        self.path     = path     = XgmiiRecordPath()
        self.crossing = crossing = StreamCrossing(record_layout(), "timebase", "sys")
        self.source   = crossing.source
        self.comb += [
            mac.receive.source.connect(path.sink),
            *copied(path, mac.receive, "sfd", "sfd_high"),
            *copied(path, clock, "now", "fraction"),
            path.source.connect(crossing.sink),
            self.link_up.eq(mac.is_up),
        ]
        self.events = self.events_of(mac)

    def events_of(self, mac):
        """Return the events; see `Tally` for the widths."""
        source = self.source
        seen, length, counts = Signal(), Signal(16), {}
        for name, domain, event in [
            ("preamble", "eth_rx",   mac.receive.finder.refused),
            ("lane",     "eth_rx",   mac.receive.finder.is_misplaced),
            ("lost",     "eth_rx",   self.path.lost),
            ("dropped",  "timebase", self.path.dropped),
        ]:
            crossing = EventCrossing(domain, "sys")
            self.add_module(name=f"{name}_events", module=crossing)
            self.comb   += crossing.event.eq(event)
            counts[name] = crossing.count
        self.comb += [
            seen.eq(source.valid & source.ready),
            If(seen, length.eq(source.length)),
        ]
        def has(flags):
            return seen & ((source.flags & int(flags)) != 0)
        nothing      = Constant(0, 1)
        length_error = has(UnifiedFlag.PROBE) & ~has(DAMAGE) & (has(UnifiedFlag.LENGTH_ERROR) | ~source.is_probe)
        return [
            Event("all_frames",         seen,                             6),
            Event("all_octets",         length,                          18),
            Event("fcs_errors",         has(UnifiedFlag.FCS_ERROR),       6),
            Event("length_errors",      length_error,                     6),
            Event("bad_probes",         has(FAULTS) & source.is_probe,    6),
            Event("runts",              has(UnifiedFlag.RUNT),            6),
            Event("giants",             has(UnifiedFlag.GIANT),           3),
            Event("preamble_errors",    counts["preamble"] + counts["lane"], 10),
            Event("symbol_errors",      has(UnifiedFlag.SYMBOL_ERROR),    6),
            Event("overflows",          counts["lost"] + counts["dropped"], 8),
            Event("stamp_errors",       nothing,                          3),
            Event("management_frames",  nothing,                          3),
            Event("management_dropped", nothing,                          3),
            Event("unclassified",       nothing,                          3),
        ]

class XgmiiReceivePath(RecordPath):
    """Measures what comes in at a port of 10 Gb/s, and records its probe frames: registers ``port<n>_rx``, as of `RecordPath`.

    Parameters
    ----------
    clock, mac
        As of `XgmiiArrivals`.
    record_depth : int
        Records of the ring; a power of two.

    Attributes
    ----------
    link_up, clear, latch, tally, streams, records, stream_id, records_read, records_enable
        As of `RecordPath`.
    """
    def __init__(self, clock, mac, record_depth=1024):
        self.link_up        = Signal(reset=1)
        self.clear          = Signal()
        self.latch          = Signal()
        self.records_enable = Signal(reset=1)

        # # #

        self.streams  = streams = XgmiiMeter()
        self.taken    = taken   = XgmiiArrivals(clock, mac)
        self.ring     = ring    = RecordRing(record_depth, width=8*LANES)
        self.records  = records = HeldRecord(ring)
        self.measured = streams.measured
        self.stream_id, self.records_read = streams.stream_base, records.read
        self.comb += [
            taken.source.connect(streams.sink),
            self.link_up.eq(taken.link_up),
            *[part.clear.eq(self.clear) for part in (streams, records)],
            streams.latch.eq(self.latch),
        ]
        self.add_tally(taken.events)
        self.add_records()

class XgmiiMeasurePath(MeasurePath):
    """Brings the frames of a port of 10 Gb/s to its meter, and keeps none: registers ``port<n>_rx``, as of `MeasurePath`.

    Parameters
    ----------
    clock, mac
        As of `XgmiiArrivals`.
    meter : XgmiiPortMeter

    Attributes
    ----------
    link_up, clear, latch, tally
        As of `MeasurePath`.
    """
    def __init__(self, clock, mac, meter):
        self.link_up = Signal(reset=1)
        self.clear   = Signal()
        self.latch   = Signal()

        # # #

        self.taken = taken = XgmiiArrivals(clock, mac)
        self.comb += [
            taken.source.connect(meter.sink),
            self.link_up.eq(taken.link_up),
        ]
        self.add_tally(taken.events)
