# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends the frames of a trace that a host streams, record by record."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRStorage

from liteprobe.cores.assign import copied
from liteprobe.cores.bus import RegisterBank
from liteprobe.cores.formats import (
    MAX_LENGTH, MIN_LENGTH, NO_SEQUENCE, RING_WORDS, STAMP_OFFSET_MIN, TRACE_FLAGS_BIT, TRACE_LENGTH_BIT, TRACE_SNAP_BIT,
    TRACE_STAMP_MEND_BIT, TRACE_STAMP_NIBBLE_BIT, TRACE_STAMP_OCTETS_BIT, TRACE_STAMP_OFFSET_BIT, TRACE_STAMP_SHIFT_BIT,
    TraceFlag, TransmitState,
)
from liteprobe.cores.memory.ring_reader import AHEAD_BITS, BUFFER_WORDS, POSITION_BITS, RingReader
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description
from liteprobe.cores.transmit.sources.source import ProgramSource

# Registers, ``port<n>_replay``.
SETTINGS = {
    "session": "Number of the session that open begins: datagrams of another one are strange.",
    "prime":   "Words that must be in the ring before the first program of the session is ready: at most those of the trace; "
               "of a trace that loops all of them, and exactly.",
    "loops":   "How often the trace is sent: 0 until stop. Other than 1: all of it lies in the ring, from position 0 on.",
}

STROBES = {
    "open":  "Write: begin a session: the ring is empty, counters are 0. Ignored while a trace is armed or runs.",
    "close": "Write: take no more words of this session.",
    "arm":   "Write: a trace is to be sent, as arm of port<n>_tx a train; ignored unless idle.",
}

COUNTERS = {
    "frames":         "Frames of this program, or of the last one, that the pacer took.",
    "underruns":      "Frames that were due before their words came, 65535 at most; and the one that was missing at a stop.",
    "first_underrun": "Number of the first of them; 0xffffffff: none.",
    "errors":         "1: the program ended at a record that no frame can be made of, that of frame number frames or a WAIT before "
                      "it; or it began after a stop or an error, without open.",
}

def is_above(signal, most):
    """Return whether ``signal`` is greater than a constant, in fewer LUTs than by a carry chain."""
    found = Constant(0, 1)
    for n, bit in enumerate(signal):
        found = bit & found if most >> n & 1 else bit | found
    return found

# Record Check -------------------------------------------------------------------------------------

class RecordCheck(LiteXModule):
    """Tells what a record is, and whether it breaks a rule of formats/replay.py; no latency.

    Attributes
    ----------
    length, snap : Signal(14), in
    flags : Signal(4), in
        ``formats.TraceFlag``.
    stamp_offset, stamp_octets : Signal(8), Signal(3), in
        Octets less one; count only where ``has_stamp``.
    has_stamp, is_wait, is_end : Signal(), out
    is_bad : Signal(), out
        Of a WAIT only its flags count.
    """
    def __init__(self):
        self.length       = Signal(LENGTH_BITS)
        self.snap         = Signal(LENGTH_BITS)
        self.flags        = Signal(4)
        self.stamp_offset = Signal(8)
        self.stamp_octets = Signal(3)
        self.has_stamp    = Signal()
        self.is_wait      = Signal()
        self.is_end       = Signal()
        self.is_bad       = Signal()

        # # #

        last       = Signal(9) # Octet of the stamp.
        is_strange = Signal()  # Flags that no record has.
        is_off     = Signal()  # A length.
        is_outside = Signal()  # The stamp.
        known      = TraceFlag.WAIT | TraceFlag.STAMP | TraceFlag.END
        self.comb += [
            self.has_stamp.eq((self.flags & TraceFlag.STAMP) != 0),
            self.is_wait.eq((self.flags & TraceFlag.WAIT) != 0),
            self.is_end.eq((self.flags & TraceFlag.END) != 0),
            is_strange.eq(((self.flags & (15 - known)) != 0) | (self.is_wait & self.has_stamp)),
            is_off.eq(~is_above(self.length, MIN_LENGTH - 1) | is_above(self.length, MAX_LENGTH) | (self.snap > self.length)),
            last.eq(self.stamp_offset + self.stamp_octets),
            is_outside.eq(
                ~is_above(self.stamp_offset, STAMP_OFFSET_MIN - 1)
                | ((self.snap[len(last):] == 0) & (last >= self.snap[:len(last)]))),
            self.is_bad.eq(is_strange | (~self.is_wait & (is_off | (self.has_stamp & is_outside)))),
        ]

SHOWN_BITS    = 8  # As a power of two: words of a frame's octets that are in the buffer before it is shown.
LOOPS_BITS    = 16
DUE_BITS      = 56 # Ticks: 18 years.
UNDERRUN_BITS = 16

# Replay Source ------------------------------------------------------------------------------------

class ReplaySource(ProgramSource):
    """Emits a descriptor for each frame of a trace, and gives its octets away; in ``sys``.

    A program goes from a record to the next one that is the END; the next program goes on after it. A frame is due when the
    gaps of all records up to its own are over, in 56 bits. It is shown once all of its record is in the ring, and the first
    256 words of its octets are in the buffer: what comes too late makes a late frame, not a broken one.

    Attributes
    ----------
    name, request, is_chosen, may_start : as of `ProgramSource`
    words : Endpoint([("data", 32)]), in
        From `RingReader`, as all below.
    level, fetched, written : Signal(11), Signal(32), Signal(32), in
    wraps : Signal(), out
        The ring is a loop.
    source : Endpoint(descriptor_description(with_replay=True)), out
        ``final`` with the last frame, or alone and ``empty``: after a record that is not a frame, a stop, or an error.
    fetch : Endpoint([("data", 32)]), out
        Octets of the frame at ``source``, to be taken while it stands there; as many words as hold ``snap`` octets.
    open : Signal(), in
        Level: a new session begins, from position 0 on; low once ``words`` and ``written`` are of it. ``arm`` may come before.
    arm : Signal(), in
        Pulse: begins a program. Not while active.
    stop : Signal(), in
        Level: the next descriptor is ``empty`` and ``final``. After that, frames leave only after ``open``.
    is_past : Signal(), in
        The descriptor at ``source``, valid or not, was due before now.
    prime : Signal(18), in
        Position up to which words must be in the ring before the first frame of a session is shown: at most those of the trace;
        of a trace that loops all of them, and exactly.
    loops : Signal(16), in
        How often the trace is sent; 0: until ``stop``. Other than 1, all of it lies in the ring from position 0 on, and ends
        at ``prime``: then the ring starts over without a pause, and the due time goes on.
    is_loop : Signal(), out
        ``loops`` is not 1.
    is_active : Signal(), out
        From ``arm`` until the final descriptor is taken.
    is_primed : Signal(), out
        The first descriptor is there, or was; 0 while not active.
    frames : Signal(32), out
        Descriptors of frames that were taken, of this program or the last one. Wraps.
    is_bad : Signal(), out
        The program ended at a record that no frame can be made of: where that of frame number ``frames`` would be, from 0, or
        at a WAIT before it. Or it began with no session that is sound: there was an error or a stop since ``open``.
    underruns : Signal(16), out
        Frames that were due before the last of their words was in the ring and the buffer: those that the source was ready
        for. And the one that was missing when a program was stopped. Stops at 65535.
    first_underrun : Signal(32), out
        Number of the first one, from 0; NO_SEQUENCE: none.
    is_starved : Signal(), out
        There was an underrun.

    Limits: after END nothing else may lie in a ring that loops. Some four cycles a record and two a WAIT, on top of the words.
    """
    name = "replay"

    def __init__(self):
        ProgramSource.__init__(self)
        self.words          = stream.Endpoint([("data", 32)])
        self.level          = Signal(max=BUFFER_WORDS + 1)
        self.fetched        = Signal(POSITION_BITS)
        self.written        = Signal(POSITION_BITS)
        self.wraps          = Signal()
        self.source         = stream.Endpoint(descriptor_description(with_replay=True))
        self.fetch          = stream.Endpoint([("data", 32)])
        self.open           = Signal()
        self.is_past        = Signal()
        self.prime          = Signal(AHEAD_BITS)
        self.loops          = Signal(LOOPS_BITS)
        self.is_loop        = Signal()
        self.is_active      = Signal()
        self.is_primed      = Signal()
        self.frames         = Signal(32)
        self.is_bad         = Signal()
        self.underruns      = Signal(UNDERRUN_BITS)
        self.first_underrun = Signal(32, reset=NO_SEQUENCE)
        self.is_starved     = Signal()

        # # #

        self.gap_taken   = Signal() # A word of a record is taken: of its gap,
        self.shape_taken = Signal() # its lengths and flags,
        self.stamp_taken = Signal() # its stamp.
        self.waits       = Signal() # For words, wherever they are.
        self.is_missing  = Signal() # The words that it waits for are not in the ring.
        self.shows       = Signal() # A frame.
        self.ends        = Signal() # Shows the end alone.
        self.is_final    = Signal() # The record is the last one of its program.
        self.is_whole    = Signal() # All of the record is in the ring, and enough of it in the buffer.
        self.breaks      = Signal() # The record is bad.
        self.flags       = Signal(4, reset_less=True)
        self.has_waited  = Signal() # For the present record, or for a WAIT right before it.
        self.is_sound    = Signal() # Since ``open`` no stop and no error.
        self.fsm         = FSM(reset_state="IDLE")
        self.check       = RecordCheck()
        self.add_record()
        self.add_check()
        self.add_arrival()
        self.add_prime()
        self.add_loops()
        self.add_steps()
        self.add_counters()

    def add_record(self):
        """Keep what a record says of its frame."""
        source, data = self.source, self.words.data
        stream.set_reset_less(source.payload)
        def bits(first, count):
            return data[first:first + count]
        self.sync += [
            If(self.arm, source.due.eq(0)),
            If(self.gap_taken, source.due[:DUE_BITS].eq(source.due[:DUE_BITS] + data)),
            If(self.shape_taken,
                source.length.eq(bits(TRACE_LENGTH_BIT, LENGTH_BITS)),
                source.snap.eq(bits(TRACE_SNAP_BIT, LENGTH_BITS)),
                self.flags.eq(bits(TRACE_FLAGS_BIT, len(self.flags))),
            ),
            If(self.stamp_taken,
                source.stamp_offset.eq(bits(TRACE_STAMP_OFFSET_BIT, 8)),
                source.stamp_octets.eq(bits(TRACE_STAMP_OCTETS_BIT, 3)),
                source.stamp_shift.eq(bits(TRACE_STAMP_SHIFT_BIT, 4)),
                source.stamp_nibble.eq(bits(TRACE_STAMP_NIBBLE_BIT, 1)),
                source.stamp_mend.eq(bits(TRACE_STAMP_MEND_BIT, 1)),
            ),
        ]
        self.comb += [
            source.valid.eq(self.shows | self.ends),
            source.first.eq(1),
            source.last.eq(1),
            source.final.eq(self.ends | self.is_final),
            source.empty.eq(self.ends),
            source.fetch.eq(1),
            self.fetch.data.eq(data),
            self.fetch.valid.eq(self.words.valid & self.shows),
            self.words.ready.eq(self.gap_taken | self.shape_taken | self.stamp_taken | (self.fetch.ready & self.shows)),
        ]

    def add_check(self):
        """Tell a record of which no frame can be made; a WAIT has nothing to be wrong in but its flags."""
        source, check = self.source, self.check
        self.comb += [
            *copied(check, source, "length", "snap", "stamp_offset", "stamp_octets"),
            check.flags.eq(self.flags),
            source.stamp_enable.eq(check.has_stamp),
        ]

    def add_arrival(self):
        """Tell whether the octets of a record are there."""
        snap, level = self.source.snap, self.level
        ahead     = Signal(AHEAD_BITS) # Words of the ring that the source hasn't taken.
        in_buffer = Signal()
        in_ring   = Signal()
        octets    = SHOWN_BITS + 2
        self.comb += [
            ahead.eq(self.written - self.fetched),
            in_buffer.eq(
                (level[SHOWN_BITS:] != 0)
                | ((snap[octets:] == 0) & (Cat(Constant(0, 2), level[:SHOWN_BITS]) >= snap[:octets]))),
            in_ring.eq(self.wraps | (ahead[LENGTH_BITS - 2:] != 0) | (Cat(Constant(0, 2), ahead[:LENGTH_BITS - 2]) >= snap)),
            self.is_whole.eq(in_buffer & in_ring),
            # Until it knows its octets, for the first words of a record.
            self.is_missing.eq(Mux(self.fsm.ongoing("ARRIVE"), ~in_ring, (ahead == 0) & ~self.wraps)),
        ]

    def add_prime(self):
        """Tell when enough is in the ring to begin: once for all programs of a session."""
        missing  = Signal(AHEAD_BITS + 1) # Words, less one.
        is_there = Signal()
        self.comb += [
            missing.eq(self.prime - self.written[:AHEAD_BITS] - 1),
            # A loop starts over after what is written: that must be its end.
            is_there.eq(missing[-1] & (~self.is_loop | (missing[:-1] == 2**AHEAD_BITS - 1))),
        ]
        self.has_enough = Signal()
        self.sync += [
            self.is_loop.eq(self.loops != 1),
            If(is_there & self.is_active, self.has_enough.eq(1)),
            self.wraps.eq(self.has_enough & self.is_loop),
            If(self.open, self.has_enough.eq(0), self.wraps.eq(0)),
        ]

    def add_loops(self):
        """Count how often the trace is still sent."""
        left = Signal(LOOPS_BITS, reset_less=True)
        self.is_over = Signal() # The present loop is the last one.
        self.restarts = Signal() # Pulse: END was sent.
        self.comb += self.is_over.eq(left == 1)
        self.sync += [
            If(self.arm, left.eq(self.loops)),
            If(self.restarts & (left != 0), left.eq(left - 1)),
        ]

    def add_steps(self):
        """Go from record to record."""
        fsm, stop = self.fsm, self.stop
        self.comb += [
            self.is_active.eq(~fsm.ongoing("IDLE")),
            self.shows.eq(fsm.ongoing("SHOW")),
            self.ends.eq(fsm.ongoing("END")),
            self.is_final.eq(self.check.is_end & self.is_over),
        ]
        fsm.act("IDLE", If(self.arm, NextState("PRIME")))
        fsm.act("PRIME",
            If(stop,
                NextState("END"),
            ).Elif(~self.is_sound,
                self.breaks.eq(1),
                NextState("END"),
            ).Elif(self.has_enough,
                NextState("GAP"),
            ),
        )
        self.add_words()
        self.add_frame()
        fsm.act("STOP", NextState("END"))
        fsm.act("END", If(self.source.ready, NextState("IDLE")))

    def add_words(self):
        """Take the first words of a record."""
        words, fsm = self.words, self.fsm
        is_stamped = words.data[TRACE_FLAGS_BIT + TraceFlag.STAMP.bit_length() - 1]
        for name, taken, follows in (
            ("GAP",   self.gap_taken,   NextState("SHAPE")),
            ("SHAPE", self.shape_taken, If(is_stamped, NextState("STAMP")).Else(NextState("KIND"))),
            ("STAMP", self.stamp_taken, NextState("KIND")),
        ):
            fsm.act(name,
                self.waits.eq(~words.valid),
                taken.eq(words.valid),
                If(words.valid, follows),
                If(self.stop, NextState("STOP")),
            )

    def add_frame(self):
        """Show the frame of a record once all of it is there; go on with the next record."""
        fsm, check = self.fsm, self.check
        def follow():
            return [NextState("GAP"), If(self.is_final, NextState("END")).Elif(check.is_end, self.restarts.eq(1))]
        fsm.act("KIND",
            If(check.is_bad,
                self.breaks.eq(1),
                NextState("END"),
            ).Elif(check.is_wait,
                *follow(),
            ).Else(
                NextState("ARRIVE"),
            ),
        )
        fsm.act("ARRIVE",
            self.waits.eq(~self.is_whole),
            If(self.is_whole, NextState("SHOW")),
            If(self.stop, NextState("STOP")),
        )
        fsm.act("SHOW",
            If(self.source.ready,
                *follow(),
                If(self.is_final, NextState("IDLE")),
            ),
        )

    def add_counters(self):
        """Count frames and underruns of the program."""
        fsm, source = self.fsm, self.source
        is_taken = Signal()
        is_dry   = Signal() # An underrun.
        stops    = fsm.ongoing("STOP")
        self.comb += [
            is_taken.eq(self.shows & source.ready),
            is_dry.eq(self.has_waited & self.is_past & (stops | (fsm.ongoing("ARRIVE") & self.is_whole & ~self.stop))),
        ]
        self.sync += [
            If(self.waits & self.is_missing, self.has_waited.eq(1)),
            If(self.shows | ~self.is_active, self.has_waited.eq(0)),
            If(is_taken, self.frames.eq(self.frames + 1)),
            If(is_dry,
                self.underruns.eq(self.underruns + (self.underruns != 2**UNDERRUN_BITS - 1)),
                self.is_starved.eq(1),
                If(~self.is_starved, self.first_underrun.eq(self.frames)),
            ),
            If(source.valid, self.is_primed.eq(1)),
            If(~self.is_active, self.is_primed.eq(0)),
            If(self.breaks, self.is_bad.eq(1)),
            If(self.breaks | stops, self.is_sound.eq(0)),
            If(self.open, self.is_sound.eq(1)),
            If(self.arm | self.open,
                self.frames.eq(0),
                self.underruns.eq(0),
                self.first_underrun.eq(NO_SEQUENCE),
                self.is_starved.eq(0),
                self.is_bad.eq(0),
            ),
        ]

    def join(self, path):
        """Follow the programs of a path."""
        ProgramSource.join(self, path)
        self.comb += [
            self.is_past.eq(path.announce.is_past),
            self.may_start.eq(self.is_primed),
        ]

# Replay Bank --------------------------------------------------------------------------------------

class ReplayBank(RegisterBank):
    """The registers of a port that replays, at 1 and at 10 Gb/s."""
    def add_csr(self):
        """Add the registers of the contract (docs/design/replay.md)."""
        self.add_settings(SETTINGS, loops=1)
        for name, description in STROBES.items():
            register = CSRStorage(1, name=name, description=description)
            setattr(self, f"_{name}", register)
            self.comb += getattr(self, name).eq(register.re)

    def add_counters(self):
        """Add registers of what is counted, where no `DatagramReceiver` shows it."""
        self.add_status(COUNTERS)

# Replay Port --------------------------------------------------------------------------------------

class ReplayPort(ReplayBank):
    """Joins a `ReplaySource`, and a `SetsSource` where there is one, to the ring in the memory and what fills it; in ``sys``.

    Parameters
    ----------
    path : TransmitPath
        With replay.
    port : BurstPort
        Of the memory.
    address, words : int
        As of `RingReader`.

    Attributes
    ----------
    session, prime, loops : Signal(16), Signal(18), Signal(16), in
    open, close, arm : Signal(), in
        Pulses. ``arm`` may follow ``open`` at once: the program waits for the words of its session.
    opens, closes : Signal(), out
        Pulses, as of `DatagramReceiver`.
    restart, is_restarted : Signal(), Signal(), in and out
        Likewise: pulse, some time after ``opens``: ``written`` is 0 from the next cycle on. Then low until the reader has
        begun anew.
    written, fetched : Signal(32), in and out
    keeps, is_running : Signal(), out
    frames, underruns, first_underrun, errors, is_starved : Signal(32), Signal(16), Signal(32), Signal(), Signal(), out
        As of `ReplaySource`.
    """
    def __init__(self, path, port, address, words=RING_WORDS):
        source, sets = path.sources["replay"], path.sources.get("sets")
        self.session        = Signal(16)
        self.prime          = Signal.like(source.prime)
        self.loops          = Signal.like(source.loops)
        self.open           = Signal()
        self.close          = Signal()
        self.arm            = Signal()
        self.opens          = Signal()
        self.closes         = Signal()
        self.restart        = Signal()
        self.is_restarted   = Signal()
        self.written        = Signal(POSITION_BITS)
        self.fetched        = Signal(POSITION_BITS)
        self.keeps          = Signal()
        self.is_running     = Signal()
        self.frames         = source.frames
        self.underruns      = source.underruns
        self.first_underrun = source.first_underrun
        self.errors         = source.is_bad
        self.is_starved     = source.is_starved

        # # #

        self.reader = reader = RingReader(port, address, words)
        is_opening  = Signal() # From ``opens`` on,
        restarts    = Signal() # and from ``restart`` on, until the reader begins anew.
        of_ring     = source.is_chosen if sets is None else source.is_chosen | sets.is_chosen
        self.comb += [
            *copied(source, reader, "level", "fetched"),
            *copied(source, self, "written", "prime", "loops"),
            source.open.eq(is_opening),
            reader.written.eq(self.written),
            reader.wraps.eq(source.wraps),
            reader.restart.eq(self.restart),
            source.request.eq(self.arm),
            self.opens.eq(self.open & ~(path.is_busy & of_ring)),
            self.closes.eq(self.close),
            self.is_restarted.eq(reader.ready),
            self.fetched.eq(reader.fetched),
            self.keeps.eq(source.is_loop),
            self.is_running.eq(of_ring & (path.state == TransmitState.RUNNING)),
        ]
        self.sync += [
            If(restarts & reader.ready, is_opening.eq(0), restarts.eq(0)),
            If(self.restart, restarts.eq(1)),
            If(self.opens, is_opening.eq(1), restarts.eq(0)),
        ]
        if sets is None:
            self.comb += reader.source.connect(source.words)
        else:
            self.add_sets(source, sets, is_opening)

    def add_sets(self, source, sets, is_opening):
        """Give words to the program that they are for; one of sets waits for those of its session, too."""
        words = self.reader.source
        self.comb += [
            If(sets.is_chosen,
                words.connect(sets.words, omit={"valid", "ready"}),
                sets.words.valid.eq(words.valid & ~is_opening),
                words.ready.eq(sets.words.ready & ~is_opening),
            ).Else(
                words.connect(source.words),
            ),
            sets.prime.eq(self.prime),
            If(~is_opening, sets.written.eq(self.written)),
        ]
        frames, underruns, is_starved = self.frames, self.underruns, self.is_starved
        self.frames, self.underruns   = Signal.like(frames), Signal.like(underruns)
        self.is_starved = Signal()
        self.comb += [
            self.frames.eq(Mux(sets.is_chosen, sets.sets, frames)),
            self.underruns.eq(Mux(sets.is_chosen, sets.underruns, underruns)),
            self.is_starved.eq(is_starved | sets.is_starved),
        ]
