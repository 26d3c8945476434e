# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends programs of frames, from their descriptors to octets on the PHY: source -> announce -> build -> pace -> stamp -> mac."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *

from liteeth.common import eth_phy_description

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import MemoryCSR, RegisterBank, WriteOnlyCSR
from liteprobe.cores.crossing import LevelCrossing, PulseCrossing, StillCrossing, StreamCrossing, WordCrossing
from liteprobe.cores.formats import MIN_LENGTH, STAMP_OCTETS, STAMP_OFFSET, TransmitState
from liteprobe.cores.formats.emulate import DUE_BITS as FORWARD_DUE_BITS, NOW_BITS as FORWARD_NOW_BITS
from liteprobe.cores.transmit.announce import Announcer
from liteprobe.cores.transmit.build import FrameBuild, FrameFetch
from liteprobe.cores.transmit.counters import COUNTERS, TransmitCounters
from liteprobe.cores.transmit.due import Elapsed
from liteprobe.cores.transmit.frames import DUE_BITS, descriptor_description, program_layout, stamp_layout, word_description
from liteprobe.cores.transmit.mac import TransmitMAC, WidthConverter
from liteprobe.cores.transmit.management import ManagementQueue
from liteprobe.cores.transmit.pace import TrainPacer
from liteprobe.cores.transmit.sources.train import NUMBERS, WORD_BITS, TrainSchedule
from liteprobe.cores.transmit.stamp import StampInserter

# Registers (docs/design/interfaces.md, ``port<n>_tx``).
PROGRAM = {
    "length":            "Bytes of a frame, without FCS (60 to 9000).",
    "count":             "Frames of a train, from 1.",
    "repeats":           "Trains, from 1.",
    "interval_ticks":    "Ticks from start to start; 0 with a fraction of 0 is back to back.",
    "interval_fraction": "Of the interval, 2^-32 ticks.",
    "gap_ticks":         "Ticks between the slot of a train's last frame and the next head.",
    "start_time":        "Time of the first SFD (ns), where timed.",
    "timed":             "Wait for start_time after the start.",
    "fill":              "0 zero, 1 counting, 2 PRBS-31.",
    "payload_offset":    "Byte offset of the UDP payload.",
    "checksum_enable":   "Write the checksum complement into the last two octets.",
    "checksum_seed":     "One's complement sum of pseudo-header and UDP header.",
}

STROBES = {
    "arm":   "Write: take the program and build its first frames; ignored unless idle.",
    "stop":  "Write: end after the present frame.",
    "clear": "Write: clear the counters.",
}

STATUS = {
    "state":              "0 idle, 1 armed, 2 ready, 3 waiting for start_time, 4 running.",
    "sent":               "Frames of this program whose SFD has left.",
    "late":               "Frames that started after their tick.",
    "first_late":         "Sequence of the first late frame; 0xffffffff: none.",
    "underruns":          "Frames cut because an octet was not there in time.",
    "management_sent":    "Management frames that started.",
    "management_held":    "Of these, frames that had to wait for a program.",
    "management_dropped": "Management frames that found no space while waiting.",
    "link_up":            "The PHY's link is up.",
    "disturbed":          "Writes to the program or its header while it ran: what it sent is not to be trusted.",
}

# Program Bank -------------------------------------------------------------------------------------

class ProgramBank(RegisterBank):
    """The registers that begin and stop the program of a path, at 1 and at 10 Gb/s."""
    def add_strobes(self):
        """Add STROBES, and ``attached``: with it a program ends with its host's lease, ``lease_ended``."""
        self._attached = WriteOnlyCSR(1, name="attached",
            description="The program ends with the lease of the host that started it.")
        ends = {"stop": self.lease_ended & self._attached.storage}
        for name, description in STROBES.items():
            register = CSRStorage(1, name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += getattr(self, name).eq(register.re | ends.get(name, 0))

# Program Path -------------------------------------------------------------------------------------

class ProgramPath(ProgramBank):
    """Sends the frames of one program after the other, each on its tick: the stages that all transmit paths share.

    Parameters
    ----------
    announce, pace : Announcer, TrainPacer
    elapsed_bits : int
        As of `Elapsed`.
    data_width : int
        Of the ``sys`` side, 32 or 64.
    with_management : bool
        Let management frames into the gaps.
    with_stamp : bool
        As of `ManagementQueue`.

    Attributes
    ----------
    stop : Signal(), in, ``sys``
        One pulse: the program ends after the present frame.
    lease_ended : Signal(), in, ``sys``
        One pulse: the host that held the probe is gone, and with it the program, if its register ``attached`` is set.
    state : Signal(3), out, ``sys``
        ``formats.TransmitState``.
    counters : TransmitCounters
        ``asks`` and ``word`` read them, where no registers do.
    start_strobe, ready : Signal(), in and out, ``timebase``
        For StartGate.
    source : Endpoint(eth_phy_description(8)), out, ``timebase``
        To the PHY, registered; ``ready`` is not looked at.
    management_sink : Endpoint(eth_phy_description(32)), in, ``sys``
        With management: frames without preamble, padding and FCS. Never stalls.
    management_has_space, management_has_spare : Signal(), out, ``sys``
        With management: as of ManagementStore.
    phy_link_up : Signal(), in, asynchronous
    link_up : Signal(), out, ``sys``
    asked, taken, begins, is_busy, is_stopped : Signal(), out, ``sys``
        For sources: somebody asks for a program; one is taken; its source may begin; from there to its end; it is to end.
    """
    def __init__(self, announce, pace, elapsed_bits, data_width=32, with_management=False, with_stamp=False):
        self.stop         = Signal()
        self.lease_ended  = Signal()
        self.state        = Signal(3)
        self.start_strobe = Signal()
        self.ready        = Signal()
        self.source       = stream.Endpoint(eth_phy_description(8))
        self.phy_link_up  = Signal(reset=1)
        self.link_up      = Signal()
        self.asked        = Signal()
        self.taken        = Signal()
        self.begins       = Signal()
        self.is_busy      = Signal()
        self.is_stopped   = Signal()

        # # #

        self.announce  = announce
        self.crossing  = StreamCrossing(word_description(data_width), "sys", "timebase", rests="timebase")
        self.converter = WidthConverter(data_width)
        self.pace      = pace
        self.mac       = TransmitMAC()
        self.elapsed   = Elapsed(elapsed_bits)
        self.counters  = TransmitCounters()
        self.add_state()
        self.add_counters()
        if with_management:
            self.add_management(with_stamp)

    def add_state(self):
        """Begin and stop the program, and say how far it is."""
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
            self.pace.start_strobe.eq(self.start_strobe),
            self.ready.eq(self.pace.ready),
            self.begins.eq(begin[-1]),
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

    def add_primed(self, begins, may_start):
        """Let a program that began start, though its first frame may be due much later."""
        is_armed  = Signal() # What the source says is about this program.
        is_primed = Signal()
        self.primed = primed = LevelCrossing("timebase")
        self.sync += [
            If(begins, is_armed.eq(1)),
            If(~self.is_busy, is_armed.eq(0)),
            is_primed.eq(is_armed & may_start),
        ]
        self.comb += [
            primed.i.eq(is_primed),
            self.pace.is_primed.eq(primed.o),
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
            counters.clear_program.eq(self.taken),
            link.i.eq(self.phy_link_up),
            self.link_up.eq(link.o),
        ]

    def add_states(self, table):
        """Add what is read, counters and others, as of `add_status`."""
        for name, description in table.items():
            if name in COUNTERS:
                setattr(self, f"_{name}", self.counters.status(name, description))
            else:
                self.add_status({name: description})

    def add_management(self, with_stamp):
        """Bring management frames to the line, where the pacer arbitrates."""
        self.management      = management = ManagementQueue(with_stamp=with_stamp)
        self.management_sink = management.sink
        self.management_has_space = management.has_space
        self.management_has_spare = management.has_spare
        self.comb += [
            management.source.connect(self.pace.management),
            self.pace.management_waiting.eq(management.waiting),
            self.pace.management_hold.eq(management.hold),
            management.start.eq(self.pace.start_management),
            self.counters.dropped.eq(management.dropped),
        ]

# Transmit Path ------------------------------------------------------------------------------------

class TransmitPath(ProgramPath):
    """Sends programs of frames on one port, each frame on its tick, with its stamp.

    A program is of trains, begun by ``arm``, or of one of ``sources``, begun by its ``request``.

    Parameters
    ----------
    clock : TimebaseClock
        Shared by all ports.
    data_width, with_management, with_stamp : as of `ProgramPath`
        ``data_width`` is 32 with other sources.
    pad_ticks : int
        Whole ticks from ``source`` to the PHY's pads: stamps, and the first SFD of a timed program, are those at the pads.
        With other sources at most 2.
    sources : list of ProgramSource
        All that programs may be of beside trains: streams, a trace, configuration sets. The path joins them, and has each under
        its name; their buses, settings and words are the business of whoever gives them.

    Attributes
    ----------
    program : Record(program_layout), in, ``sys``
        Must stand still from ``arm`` to the end of the program.
    address, number : Signal(3), Signal(32), out and in, ``sys``
        As of `TrainSchedule`: reads the numbers of the program, which must stand still likewise.
    header : Memory(32, 32), ``sys``
        Without sources that vary headers: everything before the sequence; give it a bus port. Must stand still likewise. With
        them, trains have the header of stream 0.
    program_write, header_write : Signal(), in, ``sys``
        It is written in this cycle: while a program runs this is counted.
    arm, clear : Signal(), in, ``sys``
        One pulse each. ``arm`` is ignored unless idle, and for a count, a repeats or a length (below 60) that
        no program has; it clears what is counted for a program.
    """
    def __init__(self, clock, data_width=32, with_management=False, pad_ticks=0, sources=(), with_stamp=False):
        self.program       = Record(program_layout)
        self.address       = Signal(max=len(NUMBERS))
        self.number        = Signal(WORD_BITS)
        self.program_write = Signal()
        self.header_write  = Signal()
        self.arm           = Signal()
        self.clear         = Signal()

        # # #

        assert not sources or pad_ticks <= 2 # Or a stamp at STAMP_OFFSET_MIN is not known in time.
        self.sources = {source.name: source for source in sources}
        for name, source in self.sources.items():
            setattr(self, name, source)
        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"header", "build", "management", "schedule"}
        headers  = [source for source in sources if source.header_read is not None]
        fetches  = [source for source in sources if source.fetch is not None]
        announce = Announcer(with_stamps=bool(sources), with_replay=bool(fetches))
        self.schedule    = TrainSchedule()
        self.build       = FrameBuild(data_width, bool(headers))
        self.stamp       = StampInserter()
        self.descriptors = stream.Endpoint(descriptor_description(bool(fetches)))
        ProgramPath.__init__(self, announce, TrainPacer(pad_ticks), 64, data_width, with_management, with_stamp)
        self.add_stream()
        self.add_program(sources)
        self.add_time(clock, pad_ticks)
        self.add_writes(sources)
        for source in headers[:1]:
            self.add_headers(source)
        if not headers:
            self.header = self.build.header
        if fetches:
            self.add_fetch(*fetches)
        else:
            self.comb += [
                self.announce.build.connect(self.build.sink),
                self.build.source.connect(self.crossing.sink),
            ]
        if sources:
            self.add_choice(sources, headers)
            begins = Reduce("OR", [source.arm for source in sources])
            self.add_primed(begins, Reduce("OR", [source.may_start for source in sources]))
            self.add_stamp_of_frame()
        else:
            self.comb += [
                self.schedule.source.connect(self.descriptors),
                self.asked.eq(self.arm),
            ]
        for source in sources:
            source.join(self)

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

    def add_program(self, sources):
        """Check the program, resolve its intervals, and give it to both sides."""
        program, schedule = self.program, self.schedule
        length, ends = program.length, self.is_stopped
        for source in sources:
            if source.is_scheduled:
                length = Mux(source.is_chosen, source.length, length)
                ends   = ends | source.ends
        others       = [source.is_chosen for source in sources if not source.is_scheduled]
        is_other     = Reduce("OR", others) if others else Constant(0, 1) # It has another schedule.
        shown        = Record(program_layout)
        is_good      = Signal()
        self.program_crossing = crossing = StillCrossing(len(shown), "sys", "timebase")
        self.comb += [
            schedule.check.eq(self.asked & ~self.is_busy),
            self.taken.eq(schedule.checked & (is_good | is_other) & ~self.is_busy),
            is_good.eq(schedule.is_good & (program.length >= MIN_LENGTH)),
            *copied(self, schedule, "address"),
            *copied(schedule, self, "number"),
            crossing.i.eq(program.raw_bits()),
            crossing.take.eq(self.taken),
            shown.raw_bits().eq(crossing.o),
            self.pace.arm.eq(crossing.taken),
            *[getattr(self.pace, name).eq(getattr(shown, name)) for name in ("timed", "start_time")],
            *copied(schedule, program, "payload_offset", "fill", "checksum_enable", "checksum_seed"),
            schedule.length.eq(length),
            schedule.start.eq(self.begins & ~is_other),
            schedule.stop.eq(ends),
        ]
        if not sources:
            self.add_stamp_of_program(shown)

    def add_time(self, clock, pad_ticks):
        """Give pacer and stamp the one time."""
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
        ]
        if hasattr(self, "management") and hasattr(self.management, "stamp"):
            self.comb += copied(self.management.stamp, self.stamp, "now", "sfd")

    def add_writes(self, sources):
        """Count writes to what the program stands on."""
        may_write = [source.is_chosen for source in sources if not source.keeps_headers]
        disturbs  = self.header_write & ~Reduce("OR", may_write) if may_write else self.header_write
        self.comb += [
            self.counters.clear.eq(self.clear),
            self.counters.disturbs.eq((self.program_write | disturbs) & self.is_busy),
        ]

    def add_headers(self, source):
        """Let the builder read headers that vary."""
        build, read = self.build, source.header_read
        self.comb += [
            read.adr.eq(build.header_adr),
            read.re.eq(build.header_re),
            build.header_dat.eq(read.dat),
            *copied(source, build, "builds", "build_stream", "build_word"),
        ]

    def add_fetch(self, source):
        """Build a frame or fetch it, as its descriptor says; all frames of a program are of one kind."""
        build, words = self.announce.build, self.crossing.sink
        self.fetch = fetch = FrameFetch()
        self.comb += [
            source.fetch.connect(fetch.octets),
            fetch.sink.valid.eq(build.valid & build.fetch),
            self.build.sink.valid.eq(build.valid & ~build.fetch),
            build.connect(fetch.sink, omit={"valid", "ready"}),
            build.connect(self.build.sink, omit={"valid", "ready", "fetch", "snap"}),
            build.ready.eq(Mux(build.fetch, fetch.sink.ready, self.build.sink.ready)),
            If(build.fetch, fetch.source.connect(words)).Else(self.build.source.connect(words)),
        ]

    def add_choice(self, sources, headers):
        """Take descriptors of the source that the program is of; trains are all others."""
        choice = None
        for source in sources:
            descriptors = (headers[0] if source.source is None else source).source.connect(self.descriptors)
            choice = choice.Elif(source.is_chosen, descriptors) if choice else If(source.is_chosen, descriptors)
        self.comb += [
            self.asked.eq(Reduce("OR", [self.arm, *[source.request for source in sources]])),
            choice.Else(self.schedule.source.connect(self.descriptors)),
        ]

    def add_stamp_of_program(self, shown):
        """Give the stamp the settings of the program, which stand still."""
        stamp = self.stamp
        self.comb += [
            *copied(stamp, shown, "payload_offset", "checksum_enable", "checksum_seed"),
            stamp.enable.eq(1),
            stamp.is_late.eq(0),
            stamp.offset.eq(shown.payload_offset + STAMP_OFFSET),
            stamp.octets.eq(STAMP_OCTETS - 1),
            stamp.shift.eq(0),
            stamp.nibble.eq(0),
            stamp.mend.eq(0),
        ]

    def add_stamp_of_frame(self):
        """Give the stamp the settings of each frame, from its start on: by then the one before is through."""
        stamp = self.stamp
        held  = Record(stamp_layout)
        stream.set_reset_less(held)
        self.sync.timebase += [
            If(self.pace.is_begun, [getattr(held, name).eq(getattr(self.announce.source, name)) for name, _ in stamp_layout]),
            stamp.is_late.eq(~held.checksum_enable | (held.stamp_offset < held.payload_offset)),
        ]
        self.comb += [
            *copied(stamp, held, "payload_offset", "checksum_enable", "checksum_seed"),
            *[getattr(stamp, name).eq(getattr(held, f"stamp_{name}"))
                for name in ("enable", "offset", "octets", "shift", "nibble", "mend")],
        ]

    def add_csr(self):
        """Add the registers of the contract, in its order."""
        for name, description in PROGRAM.items():
            if name in NUMBERS:
                register = MemoryCSR(name, description)
            else:
                signal   = getattr(self.program, name)
                register = WriteOnlyCSR(len(signal), name=name, description=description)
                self.comb += signal.eq(register.storage)
            setattr(self, f"_{name}", register)
        self.add_numbers([getattr(self, f"_{name}") for name in NUMBERS])
        settings = [getattr(self, f"_{name}") for name in PROGRAM]
        # A cycle late: of the bus's address, and of all of these.
        self.sync += self.program_write.eq(Reduce("OR", [register.is_written for register in settings]))
        self.add_strobes()
        self.add_states(STATUS)
        for source in self.sources.values():
            source.add_csr()

    def add_numbers(self, registers):
        """Keep numbers of the program in a LUT RAM."""
        memory = Memory(WORD_BITS, 16, name="numbers")
        reader = memory.get_port(async_read=True)
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, reader, writer
        self.comb += [
            *[If(register.is_written, writer.adr.eq(number)) for number, register in enumerate(registers)],
            writer.we.eq(Reduce("OR", [register.is_written for register in registers])),
            writer.dat_w.eq(registers[0].data),
            reader.adr.eq(self.address),
            self.number.eq(reader.dat_r),
        ]

# Forward Transmit ---------------------------------------------------------------------------------

class ForwardTransmit(ProgramPath):
    """Sends what leaves an emulated network, in the place of trains and all else: a program without an end.

    Frames leave without stamps; no program waits for a time.

    Parameters
    ----------
    forward : ForwardSource
    with_management : bool
        As of `ProgramPath`.
    pad_ticks : int
        As of `TransmitPath`.

    Attributes
    ----------
    forward_arm : Signal(), in, ``sys``
        One pulse; ignored unless idle.
    """
    def __init__(self, forward, with_management=False, pad_ticks=0):
        self.forward_arm = Signal()

        # # #

        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"management"}
        self.forward = forward
        self.fetch   = FrameFetch(with_zeros=False, due_bits=FORWARD_DUE_BITS)
        # The time since the start has a sign.
        ProgramPath.__init__(self, Announcer(with_replay=True, due_bits=FORWARD_DUE_BITS),
            TrainPacer(pad_ticks, False, forward.patience_bits), FORWARD_NOW_BITS + 1, with_management=with_management)
        self.add_stream()
        self.add_program()
        self.add_spoils()

    def add_stream(self):
        """Join the stages in the order of the data."""
        self.comb += [
            self.forward.source.connect(self.announce.sink),
            self.announce.source.connect(self.pace.descriptors),
            self.announce.build.connect(self.fetch.sink),
            self.forward.fetch.connect(self.fetch.octets),
            self.fetch.source.connect(self.crossing.sink),
            self.crossing.source.connect(self.converter.sink),
            self.converter.source.connect(self.pace.sink),
            self.pace.source.connect(self.mac.sink, omit={"ready", "error"}),
            self.mac.source.connect(self.source, omit={"ready"}),
        ]

    def add_program(self):
        """Begin a program, which may start once nothing is left of the one before."""
        forward = self.forward
        self.program_crossing = arming = PulseCrossing("sys", "timebase")
        self.comb += [
            self.taken.eq(self.forward_arm & ~self.is_busy),
            arming.i.eq(self.taken),
            self.pace.arm.eq(arming.o),
            forward.start.eq(self.begins),
            forward.stop.eq(self.is_stopped),
        ]
        self.add_primed(self.begins, forward.is_primed)

    def add_spoils(self):
        """Let a frame leave with a wrong FCS where ``spoils`` stands while its descriptor is shown: from its start on."""
        self.spoiled = spoiled = LevelCrossing("timebase")
        is_spoiled   = Signal()
        self.sync.timebase += If(self.pace.is_begun, is_spoiled.eq(spoiled.o))
        self.comb += [
            spoiled.i.eq(self.forward.spoils),
            self.mac.sink.error.eq(self.pace.source.error | is_spoiled),
        ]

    def add_csr(self):
        """Add the registers of the contract: what begins is said elsewhere."""
        self._stop = CSRStorage(1, name="stop", description=STROBES["stop"])
        self.comb += self.stop.eq(self._stop.re)
        of_management = ("management_sent", "management_held", "management_dropped") if hasattr(self, "management") else ()
        self.add_states({name: STATUS[name] for name in ("state", "sent", "late", "underruns", *of_management, "link_up")})
