# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Starts each frame on its tick, and ports together."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.crossing import HeldCrossing
from liteprobe.cores.formats import TransmitState
from liteprobe.cores.transmit.due import DUE_TO_START, LEAD_TICKS, TIMED_NS, DueTime, StartTime
from liteprobe.cores.transmit.frames import DUE_BITS, octet_description, pace_description
from liteprobe.cores.transmit.line import LINE_TICKS, LineGrant

START_TO_SFD = 16 # Ticks, through line, stamp and MAC.
# Of the ticks from the comparison with ``start_time`` to the SFD, five pass before ``is_reached``, and one until the program
# runs.
TIMED_LEAD_TICKS = TIMED_NS//8 - 5 - 1 - DUE_TO_START - START_TO_SFD
# A management frame is compared with what was left four ticks ago, a start comes two ticks after its due
# tick, one tick is in the comparison.
MANAGEMENT_TICKS = LINE_TICKS + 1
LONELY_BITS      = 8 # After so many ticks (as a power of two) without a frame in waiting none is due within a management frame.

# Train Pacer --------------------------------------------------------------------------------------

class TrainPacer(LiteXModule):
    """Starts each frame of a program at its tick, and management frames where they disturb none.

    Parameters
    ----------
    pad_ticks : int
        Whole ticks from the MAC's source to the PHY's pads, where ``start_time`` is that of the first SFD.
    with_time : bool
        Without, no program is ``timed``, and ``start_time`` and ``now`` are not looked at.
    patience_bits : int or None
        After so many ticks (as a power of two) a management frame goes before the next one of the program, which is late then;
        None: never.

    It knows nothing of a program but its start: each frame brings the tick at which it is due. A frame starts in the first
    tick at or after that one in which the line is free and the frame is there. A management frame starts only where its slot
    ends before the next start, or outside of a program; with no frame in waiting, once the line has been free for 256 ticks:
    what comes then is due much later (``HORIZON``). All in ``timebase``.

    Attributes
    ----------
    descriptors : Endpoint(pace_description()), in
        Frames of the program, in order, up to a ``final`` one. The next one must come four ticks after one is taken, or later.
    sink : Endpoint(octet_description()), in
        Octets of these frames, but for an ``empty`` one. The first of a frame must come later than its descriptor.
    management : Endpoint(octet_description()), in
        Whole frames: once one begins it must not pause.
    source : Endpoint(octet_description()), out
        Never stalls: ``ready`` is not looked at.
    timed, start_time : Signal(), Signal(64), in
        Whether the program waits for a time after ``start_strobe``, and that of its first SFD (ns); must stand still from
        ``arm`` on.
    now : Signal(64), in
        Present time (ns), a tick late.
    arm : Signal(), in
        One pulse: a program is coming.
    is_primed : Signal(), in
        It may start, though no frame of it is in waiting. Must be low with ``arm``.
    stop : Signal(), in
        Level: end after the present frame, throw away what comes up to ``final``.
    start_strobe : Signal(), in
        Starts the program when ready: first SFD a fixed number of ticks later, or at ``start_time``.
    ready : Signal(), out
        The first frame is in waiting, or it needn't be.
    elapsed : Signal(20), out
        Ticks since the start of the program, modulo 2^20.
    state : Signal(3), out
        ``formats.TransmitState``.
    management_waiting : Signal(), in
        A whole management frame is in waiting; falls, or is about the next one, after ``start_management``.
    management_hold : Signal(11), in
        LINE_TICKS less than the ticks that it will hold the line.
    start_management : Signal(), out
        One pulse as it starts.
    started, late : Signal(), out
        One pulse for each frame of the program as it starts; ``late`` with it, for a start after its tick.
    management_started, management_held : Signal(), out
        Likewise; ``held`` with it, if it had to wait for the program.
    finished : Signal(), out
        One pulse as the state turns idle.
    """
    def __init__(self, pad_ticks=0, with_time=True, patience_bits=None):
        self.descriptors        = stream.Endpoint(pace_description())
        self.sink               = stream.Endpoint(octet_description())
        self.management         = stream.Endpoint(octet_description())
        self.source             = stream.Endpoint(octet_description())
        self.timed              = Signal()
        self.start_time         = Signal(64)
        self.now                = Signal(64)
        self.arm                = Signal()
        self.is_primed          = Signal()
        self.stop               = Signal()
        self.start_strobe       = Signal()
        self.ready              = Signal()
        self.elapsed            = Signal(DUE_BITS)
        self.state              = Signal(3)
        self.management_waiting = Signal()
        self.management_hold    = Signal(11)
        self.start_management   = Signal()
        self.started            = Signal()
        self.late               = Signal()
        self.management_started = Signal()
        self.management_held    = Signal()
        self.finished           = Signal()

        # # #

        self.due        = DueTime()
        if with_time:
            self.start_at = StartTime()
        self.line       = LineGrant()
        self.fsm        = ClockDomainsRenamer("timebase")(FSM(reset_state="IDLE"))
        self.start      = Signal()
        self.is_begun   = Signal() # The tick after a start, which is known late in its own.
        self.in_program = Signal()
        self.runs       = Signal() # From the start of the program on.
        self.yields     = None if patience_bits is None else Signal() # A management frame goes first.
        self.comb += [
            self.sink.connect(self.line.probe),
            self.management.connect(self.line.management),
            self.line.source.connect(self.source, omit={"ready"}),
            self.line.start.eq(self.start | self.start_management),
            self.line.choose_management.eq(self.start_management),
            self.line.probe_hold.eq(self.descriptors.hold),
            self.line.management_hold.eq(self.management_hold),
            *([self.start_at.now.eq(self.now), self.start_at.start_time.eq(self.start_time)] if with_time else []),
            self.due.runs.eq(self.runs),
            self.due.lead.eq(Mux(self.timed, TIMED_LEAD_TICKS - pad_ticks, LEAD_TICKS) if with_time else LEAD_TICKS),
            self.due.due.eq(self.descriptors.due),
            self.due.is_there.eq(self.descriptors.valid),
            self.elapsed.eq(self.due.elapsed),
        ]
        self.sync.timebase += [
            self.is_begun.eq(self.start),
            self.due.min_ticks.eq(self.management_hold + MANAGEMENT_TICKS),
        ]
        self.add_starts()
        self.add_descriptors()
        self.add_waiting(with_time)
        if with_time:
            self.add_time()
        self.add_running()
        self.add_lateness()
        self.add_management()
        if self.yields is not None:
            self.add_patience(patience_bits)

    def add_starts(self):
        """Start each frame of the program that runs when it is due."""
        line = self.line
        self.is_there = Signal() # The next frame, and its first octet.
        is_open       = Signal() # Registered, so that a start depends on little; the line is busy while it is old.
        self.comb += [
            self.is_there.eq(self.sink.valid & self.descriptors.valid & ~self.descriptors.empty & ~line.is_discarding),
            self.start.eq(self.due.is_due & line.is_free & is_open),
        ]
        opens         = self.is_there & self.fsm.ongoing("RUN") & ~self.stop
        self.sync.timebase += is_open.eq(opens if self.yields is None else opens & ~self.yields)

    def add_descriptors(self):
        """Take the descriptor of each frame that has started, two ticks after it did, or was thrown away; and an empty one."""
        descriptors, line = self.descriptors, self.line
        is_draining = self.fsm.ongoing("DRAIN")
        self.comb += descriptors.ready.eq(
            self.started
            | (is_draining & line.discarded)
            | ((is_draining | self.fsm.ongoing("RUN")) & descriptors.empty))
        # Registered: many conditions meet in the next state, where a tick doesn't matter.
        self.is_over   = Signal() # The descriptor of the final frame was taken.
        self.was_there = Signal()
        self.is_quiet  = Signal()
        self.sync.timebase += [
            If(descriptors.valid & descriptors.ready & descriptors.final, self.is_over.eq(1)),
            If(self.arm, self.is_over.eq(0)),
            self.was_there.eq(self.is_there),
            self.is_quiet.eq(line.is_free & ~line.is_sending & ~line.is_discarding),
        ]

    def add_waiting(self, with_time):
        """Take a program from arm to its start."""
        fsm = self.fsm
        fsm.act("IDLE", If(self.arm, NextState("ARMED")))
        fsm.act("ARMED",
            self.state.eq(TransmitState.ARMED),
            If(self.stop, NextState("DRAIN")).Elif(self.was_there | self.is_primed, NextState("READY")),
        )
        fsm.act("READY",
            self.state.eq(TransmitState.READY),
            self.ready.eq(1),
            If(self.stop,
                NextState("DRAIN"),
            ).Elif(self.start_strobe,
                If(self.timed, NextState("WAIT")).Else(NextState("RUN")) if with_time else NextState("RUN"),
            ),
        )

    def add_time(self):
        """Let a timed program wait for its time."""
        self.fsm.act("WAIT",
            self.state.eq(TransmitState.WAITING),
            self.in_program.eq(1),
            If(self.stop, NextState("DRAIN")).Elif(self.start_at.is_reached, NextState("RUN")),
        )

    def add_running(self):
        """Take a program from its start, or from a stop, to idle."""
        fsm = self.fsm
        fsm.act("RUN",
            self.state.eq(TransmitState.RUNNING),
            self.in_program.eq(1),
            self.runs.eq(1),
            If(self.stop, NextState("DRAIN")).Elif(self.is_over, NextState("FINISH")),
        )
        # A stopped program ends at its final frame, which is thrown away with the rest.
        fsm.act("DRAIN",
            self.state.eq(TransmitState.RUNNING),
            self.runs.eq(1),
            self.line.discard.eq(1),
            If(self.is_over, NextState("FINISH")),
        )
        fsm.act("FINISH",
            self.state.eq(TransmitState.RUNNING),
            self.runs.eq(1),
            If(self.is_quiet,
                self.finished.eq(1),
                NextState("IDLE"),
            ),
        )

    def add_lateness(self):
        """Tell a start after its tick from one on it."""
        was_late = Signal() # With the start.
        is_first = Signal()
        self.sync.timebase += [
            was_late.eq(self.due.is_late & ~is_first),
            If(self.arm, is_first.eq(1)),
            If(self.is_begun, is_first.eq(0)),
            self.started.eq(self.is_begun),
            self.late.eq(self.is_begun & was_late),
        ]

    def add_management(self):
        """Let management frames into the gaps."""
        fsm, line  = self.fsm, self.line
        lonely     = Signal(LONELY_BITS + 1) # Ticks; stops once its top bit is set.
        is_there   = Signal(5) # Long enough for ``fits`` to be about this frame.
        is_allowed = Signal()
        had_to     = Signal()
        is_begun   = Signal()
        fits       = self.due.fits | lonely[-1]
        self.comb += self.start_management.eq(is_there[-1] & is_allowed & line.is_free & ~self.start)
        self.sync.timebase += [
            is_there.eq(Cat(1, is_there[:-1])),
            If(~self.management_waiting | ~self.management.valid | line.is_sending | is_begun, is_there.eq(0)),
            # While a frame is sent, the next one may not be built yet.
            If(self.descriptors.valid | ~fsm.ongoing("RUN") | ~(line.is_free | line.is_management),
                lonely.eq(0),
            ).Elif(~lonely[-1],
                lonely.eq(lonely + 1),
            ),
            is_allowed.eq(
                ~self.in_program
                | (fsm.ongoing("WAIT") & self.start_at.is_far if hasattr(self, "start_at") else 0)
                | (fsm.ongoing("RUN") & (fits if self.yields is None else fits | self.yields))),
            is_begun.eq(self.start_management),
            self.management_started.eq(is_begun),
            self.management_held.eq(is_begun & had_to),
            If(is_begun,
                had_to.eq(0),
            ).Elif(is_there[-1] & self.in_program & ~(is_allowed & line.is_free),
                had_to.eq(1),
            ),
        ]

    def add_patience(self, bits):
        """Let a management frame go before the program's next one, once it has waited so long."""
        waits = Signal(bits + 1) # Ticks; stops once its top bit is set.
        self.comb += self.yields.eq(waits[-1])
        self.sync.timebase += If(~self.management_waiting | self.start_management,
            waits.eq(0),
        ).Elif(~waits[-1],
            waits.eq(waits + 1),
        )

# Start Gate ---------------------------------------------------------------------------------------

class StartGate(LiteXModule):
    """Starts programs on several ports in the same tick, if all of them are ready.

    A start that finds a port unready does nothing and is forgotten: no program of later begins by it.

    Parameters
    ----------
    ports : int

    Attributes
    ----------
    mask : Signal(ports), in, ``sys``
        Ports to start; bit n is port n.
    request : Signal(), in, ``sys``
        One pulse: take ``mask``. The next one must come four cycles later or more.
    ready : Signal(ports), in, ``timebase``
    strobe : Signal(ports), out, ``timebase``
        One pulse for all masked ports in one tick.
    """
    def __init__(self, ports):
        self.mask    = Signal(ports)
        self.request = Signal()
        self.ready   = Signal(ports)
        self.strobe  = Signal(ports)

        # # #

        self.crossing = crossing = HeldCrossing(ports, "sys", "timebase")
        self.comb += [
            crossing.i.eq(self.mask),
            crossing.take.eq(self.request),
        ]
        self.sync.timebase += [
            self.strobe.eq(0),
            If(crossing.taken & ((crossing.o & ~self.ready) == 0), self.strobe.eq(crossing.o)),
        ]
