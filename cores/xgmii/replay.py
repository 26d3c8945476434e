# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Sends the frames of a trace at 10 Gb/s from a memory of 64 bits: ring -> words -> records -> frames -> pacer.

All in ``timebase``. A frame is shown to the pacer once all of it is here. So a memory that is late makes a late frame, which is
counted, and never a wrong one.
"""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.assign import copied
from liteprobe.cores.formats import NO_SEQUENCE, TRACE_FLAGS_BIT, TRACE_LENGTH_BIT, TRACE_SNAP_BIT
from liteprobe.cores.formats.xgmii import LANES
from liteprobe.cores.transmit.frames import LENGTH_BITS
from liteprobe.cores.transmit.sources.replay import LOOPS_BITS, UNDERRUN_BITS, RecordCheck
from liteprobe.cores.xgmii.train import CYCLE_BITS, DUE_BITS, WORD_BITS
from liteprobe.cores.xgmii.transmit import transmit_description

POSITION_BITS = 32
BUFFER_PAIRS  = 512  # Read ahead: a block RAM, 3.3 us of a full line.
ASKED_MOST    = 256  # Pairs that were asked for and did not come.
FRAME_PAIRS   = 2048 # Octets of frames: the longest one, and as much again while it leaves.
FRAMES_MOST   = 256  # Frames that wait for the line: short ones take longer there than the longest one takes to be read.
PRIME_BITS    = 12   # As a power of two: cycles from the first frame on after which as much is here as there is space for.

# Pair Port ----------------------------------------------------------------------------------------

class PairPort:
    """Reads pairs of words, 64 bits, from a memory: LiteDRAM's native port, as far as a reader needs it; in ``timebase``.

    Attributes
    ----------
    cmd : Endpoint([("addr", 32)])
        Address of a pair that is to be read, a pair a cycle where the memory keeps up. It stands still until ``ready``.
    rdata : Endpoint([("data", 64)])
        Pairs in the order in which they were asked for, any time later; ``ready`` is not looked at: there is always space.
    """
    def __init__(self):
        self.cmd   = stream.Endpoint([("addr", POSITION_BITS)])
        self.rdata = stream.Endpoint([("data", 2*WORD_BITS)])

def pair_layout():
    """Return what two words of a ring are, the first one in ``data[:32]``, and which of them count: one at least."""
    return [("data", 2*WORD_BITS), ("has_first", 1), ("has_second", 1)]

# Pair Reader --------------------------------------------------------------------------------------

class PairReader(LiteXModule):
    """Gives the words of a ring in pairs, read ahead as far as they are written and the buffer has space.

    A position counts the words of a session from 0, as of `RingReader`. Where what is written ends in the midst of a pair its
    first word is given alone, and the second one once it is written.

    Parameters
    ----------
    port : PairPort
    address : int
        Of the ring in the memory, in pairs.
    words : int
        Of the ring, a power of two.

    Attributes
    ----------
    written : Signal(32), in
        Position up to which words are in the memory.
    wraps : Signal(), in
        Position 0 follows ``written``, which stands still.
    restart : Signal(), in
        Level: back to position 0; what was asked for is thrown away as it comes. ``written`` is not looked at.
    is_restarted : Signal(), out
        With ``restart``: it is at position 0, and nothing is on its way.
    source : Endpoint(pair_layout()), out
    fetched : Signal(32), out
        Position up to which the ring is needed no more. While it ``wraps`` it counts on.
    """
    def __init__(self, port, address, words):
        self.written      = Signal(POSITION_BITS)
        self.wraps        = Signal()
        self.restart      = Signal()
        self.is_restarted = Signal()
        self.source       = stream.Endpoint(pair_layout())
        self.fetched      = Signal(POSITION_BITS)

        # # #

        in_timebase = ClockDomainsRenamer("timebase")
        self.buffer = buffer = in_timebase(stream.SyncFIFO(pair_layout(), BUFFER_PAIRS, buffered=True))
        self.tags   = tags   = in_timebase(stream.SyncFIFO([("has_first", 1), ("has_second", 1)], ASKED_MOST, buffered=False))
        self.autocsr_exclude = {"buffer", "tags"}
        position  = Signal(log2_int(words) + 1)         # Of the next word to ask for, its low bits.
        written   = self.written[:len(position)]
        follows   = Signal.like(position)
        is_there  = Signal()                            # A word to read.
        is_half   = Signal()                            # The second word of its pair is not written,
        is_whole  = Signal()                            # or it is.
        held      = Signal(max=BUFFER_PAIRS + 1)        # Pairs in the buffer, or on their way.
        has_space = Signal()
        asks      = Signal()
        left      = Signal()
        self.comb += [
            is_there.eq(position != written),
            is_half.eq((position[1:] == written[1:]) & written[0]),
            is_whole.eq(~is_half),
            follows.eq(Cat(is_half, position[1:] + is_whole)),
            asks.eq(is_there & has_space & tags.sink.ready & ~self.restart & (~port.cmd.valid | port.cmd.ready)),
            tags.sink.valid.eq(asks),
            tags.sink.has_first.eq(~position[0]),
            tags.sink.has_second.eq(is_whole),
            tags.source.ready.eq(port.rdata.valid),
            port.rdata.ready.eq(1),
            buffer.sink.valid.eq(port.rdata.valid),
            buffer.sink.data.eq(port.rdata.data),
            *copied(buffer.sink, tags.source, "has_first", "has_second"),
            buffer.source.connect(self.source, omit={"valid", "ready"}),
            self.source.valid.eq(buffer.source.valid & ~self.restart),
            buffer.source.ready.eq(self.source.ready | self.restart),
            left.eq(buffer.source.valid & buffer.source.ready),
            self.is_restarted.eq(self.restart & (held == 0) & ~port.cmd.valid & (position == 0)),
        ]
        self.sync.timebase += [
            If(asks,
                port.cmd.valid.eq(1),
                port.cmd.addr.eq(address + position[1:log2_int(words)]),
                position.eq(follows),
            ).Elif(port.cmd.ready,
                port.cmd.valid.eq(0),
            ),
            If(self.wraps & ~is_there, position.eq(0)),
            held.eq(held + asks - left),
            has_space.eq(held < BUFFER_PAIRS - 2),
            If(left, self.fetched.eq(self.fetched + buffer.source.has_first + buffer.source.has_second)),
            If(self.restart & (held == 0) & ~port.cmd.valid,
                position.eq(0),
                self.fetched.eq(0),
            ),
        ]

# Word Taker ---------------------------------------------------------------------------------------

class WordTaker(LiteXModule):
    """Gives the words of pairs one or two a cycle, as they are asked for.

    Attributes
    ----------
    sink : Endpoint(pair_layout()), in
    data : Signal(64), out
        The next two words.
    has_one, has_two : Signal(), out
        So many of them are there.
    takes_one, takes_two : Signal(), in
        So many are taken, where they are there.
    clear : Signal(), in
    """
    def __init__(self):
        self.sink      = sink = stream.Endpoint(pair_layout())
        self.data      = Signal(2*WORD_BITS)
        self.has_one   = Signal()
        self.has_two   = Signal()
        self.takes_one = Signal()
        self.takes_two = Signal()
        self.clear     = Signal()

        # # #

        held    = Signal(WORD_BITS, reset_less=True) # The second word of a pair that is gone.
        is_held = Signal()
        first   = Signal(WORD_BITS)
        is_pair = Signal()
        second  = sink.data[WORD_BITS:]
        self.comb += [
            first.eq(Mux(sink.has_first, sink.data[:WORD_BITS], second)),
            is_pair.eq(sink.has_first & sink.has_second),
            self.data.eq(Mux(is_held, Cat(held, first), Cat(first, second))),
            self.has_one.eq(is_held | sink.valid),
            self.has_two.eq(sink.valid & (is_held | is_pair)),
            # One that is alone is held, too, until the next one comes.
            sink.ready.eq(Mux(is_held, self.takes_two, self.takes_one | self.takes_two | ~is_pair)),
        ]
        self.sync.timebase += [
            If(is_held,
                If(self.takes_one, is_held.eq(0)),
                If(self.takes_two & sink.valid, is_held.eq(is_pair)),
            ).Elif(sink.valid,
                If(self.takes_one, is_held.eq(is_pair)).Elif(~is_pair, is_held.eq(1)),
            ),
            If(sink.valid & sink.ready, held.eq(Mux(is_pair | ~sink.has_first, second, first))),
            If(self.clear, is_held.eq(0)),
        ]

# Trace Parser -------------------------------------------------------------------------------------

def frame_layout():
    """Return what is known of a frame whose octets are here; an ``empty`` one is none, and ends the program."""
    return [("due", DUE_BITS), ("length", LENGTH_BITS), ("snap", LENGTH_BITS), ("final", 1), ("empty", 1)]

class TraceParser(LiteXModule):
    """Takes the records of a program apart: what is known of each frame, after all of its octets.

    Records of frames without a stamp take two cycles and one for each eight octets: less than any frame takes on the line.

    Attributes
    ----------
    words : WordTaker
    begins : Signal(), in
        One cycle: a program begins, at the next record; not while active.
    stops : Signal(), in
        It ends at once. No program is read after that, or after a bad record, until ``restart``: each ends at its beginning.
        May come, too, when all of the program was read.
    restart : Signal(), in
        Level: a new session begins.
    loops : Signal(16), in
        How often END is passed until the program ends; 0: never. Must stand still while active.
    octets : Endpoint([("data", 64)]), out
    frames : Endpoint(frame_layout()), out
    may_begin : Signal(), in
        There is space for two more in ``frames``.
    is_active : Signal(), out
    is_bad : Signal(), out
        The program ended at a record that no frame can be made of, or had none to begin with.
    has_waited : Signal(), out
        With a frame: words of it, or of a WAIT before it, were not there when they were asked for.

    Limits: a record that asks for a stamp is a bad one.
    """
    def __init__(self):
        self.words      = words  = WordTaker()
        self.begins     = Signal()
        self.stops      = Signal()
        self.restart    = Signal()
        self.loops      = Signal(LOOPS_BITS)
        self.octets     = octets = stream.Endpoint([("data", 2*WORD_BITS)])
        self.frames     = frames = stream.Endpoint(frame_layout())
        self.may_begin  = Signal()
        self.is_active  = Signal()
        self.is_bad     = Signal()
        self.has_waited = Signal()

        # # #

        self.check = check = RecordCheck()
        self.fsm   = fsm   = ClockDomainsRenamer("timebase")(FSM(reset_state="IDLE"))
        gap      = Signal(WORD_BITS,   reset_less=True)
        length   = Signal(LENGTH_BITS, reset_less=True)
        snap     = Signal(LENGTH_BITS, reset_less=True)
        flags    = Signal(4,           reset_less=True)
        left     = Signal(LENGTH_BITS, reset_less=True)                  # Octets of the frame that are still to come.
        loops    = Signal(LOOPS_BITS,  reset_less=True)                  # Still to come, the present one too.
        due_low  = Signal(WORD_BITS,   reset_less=True)
        due_high = Signal(DUE_BITS - WORD_BITS, reset_less=True)
        carry    = Signal()
        sum_     = Signal(WORD_BITS + 1)
        is_sound = Signal(reset=1)
        is_last  = Signal() # Loop.
        is_final = Signal() # The record is the last one of the program.
        is_end   = Signal() # The last octets of the frame.
        waits    = Signal() # For words.
        adds     = Signal() # A gap.
        takes    = Signal() # The last octets of a frame, or there are none.
        breaks   = Signal()
        shows    = Signal()
        ends     = Signal() # Shows the end alone.
        was_final = Signal(reset_less=True)
        data     = words.data
        shape    = data[WORD_BITS:]
        self.comb += [
            *[getattr(check, name).eq(value) for name, value in (("length", length), ("snap", snap), ("flags", flags))],
            sum_.eq(due_low + gap),
            is_last.eq(loops == 1),
            is_final.eq(check.is_end & is_last),
            is_end.eq(left[3:] == 0),
            self.is_active.eq(~fsm.ongoing("IDLE")),
            *[octets.data[8*n:8*n + 8].eq(data[8*n:8*n + 8] & Replicate(~is_end | (left[:3] >= n), 8)) for n in range(LANES)],
            frames.due.eq(Cat(due_low, due_high)),
            frames.length.eq(length),
            frames.snap.eq(snap),
            frames.valid.eq(shows | ends),
            frames.empty.eq(ends),
            frames.final.eq(ends | was_final),
        ]
        fsm.act("IDLE",
            If(self.begins,
                NextValue(self.is_bad, ~is_sound),
                If(is_sound, NextState("HEAD")).Else(NextState("END")),
            )
        )
        fsm.act("HEAD",
            waits.eq(~words.has_two),
            If(words.has_two & self.may_begin,
                words.takes_two.eq(1),
                NextState("CHECK"),
            )
        )
        follows = [NextState("HEAD"), If(is_final, NextState("IDLE"))]
        fsm.act("CHECK",
            adds.eq(1),
            # Less one: ``is_end`` is then known by its high bits.
            NextValue(left, snap - 1),
            If(check.is_bad | check.has_stamp,
                breaks.eq(1),
                NextState("END"),
            ).Elif(check.is_wait,
                NextState("HEAD"),
                If(is_final, NextState("END")),
            ).Elif(snap == 0,
                NextState("NOTHING"),
            ).Else(
                NextState("OCTETS"),
            )
        )
        is_one = is_end & ~left[2] # Of four octets at most.
        is_there = Mux(is_one, words.has_one, words.has_two)
        fsm.act("OCTETS",
            waits.eq(~is_there),
            octets.valid.eq(is_there),
            If(is_there & octets.ready,
                words.takes_one.eq(is_one),
                words.takes_two.eq(~is_one),
                NextValue(left, left - 8),
                If(is_end,
                    takes.eq(1),
                    *follows,
                ),
            )
        )
        fsm.act("NOTHING",
            takes.eq(1),
            *follows,
        )
        fsm.act("END",
            # The frame before is shown by now, for a record takes two cycles.
            If(self.may_begin,
                ends.eq(1),
                NextState("IDLE"),
            )
        )
        self.sync.timebase += [
            If(words.takes_two & fsm.ongoing("HEAD"),
                gap.eq(data[:WORD_BITS]),
                length.eq(shape[TRACE_LENGTH_BIT:]),
                snap.eq(shape[TRACE_SNAP_BIT:]),
                flags.eq(shape[TRACE_FLAGS_BIT:]),
            ),
            carry.eq(0),
            If(adds,
                due_low.eq(sum_[:-1]),
                carry.eq(sum_[-1]),
            ),
            due_high.eq(due_high + carry),
            # A cycle later, when the due time is known.
            shows.eq(takes),
            was_final.eq(is_final),
            If(check.is_end & (takes | (adds & check.is_wait)) & (loops != 0), loops.eq(loops - 1)),
            If(waits, self.has_waited.eq(1)).Elif(shows, self.has_waited.eq(0)),
            If(breaks, self.is_bad.eq(1)),
            If(breaks | self.stops, is_sound.eq(0)),
            If(self.begins,
                due_low.eq(0),
                due_high.eq(0),
                loops.eq(self.loops),
                self.has_waited.eq(0),
            ),
            If(self.restart,
                is_sound.eq(1),
                self.is_bad.eq(0),
            ),
        ]
        for state in ("HEAD", "CHECK", "OCTETS", "NOTHING", "END"):
            fsm.act(state, If(self.stops | self.restart, NextState("IDLE")))

# Frame Player -------------------------------------------------------------------------------------

class FramePlayer(LiteXModule):
    """Gives the words of frames to the pacer: octets as far as they are there, then zeros.

    Attributes
    ----------
    frames : Endpoint(frame_layout()), in
        Taken with ``starts``.
    octets : Endpoint([("data", 64)]), in
        Of each frame, eight in a word, the last ones filled with zeros; all there before the frame is.
    starts : Signal(), in
        As of `ProbeBuilder`.
    source : Endpoint(transmit_description()), out
    in_frame : Signal(), out
        As of `ProbeBuilder`.
    """
    def __init__(self):
        self.frames   = frames = stream.Endpoint(frame_layout())
        self.octets   = octets = stream.Endpoint([("data", 2*WORD_BITS)])
        self.starts   = Signal()
        self.source   = source = stream.Endpoint(transmit_description())
        self.in_frame = in_frame = Signal()

        # # #

        index  = Signal(LENGTH_BITS - 3) # Of the word that comes next.
        last   = Signal(LENGTH_BITS - 3)
        count  = Signal(3)               # Octets of the last word; 0 is all eight.
        filled = Signal(LENGTH_BITS - 3) # Words that have octets.
        of_next = Signal(LENGTH_BITS - 3)
        has_octets = Signal()
        for unreset in [index, last, count, filled, source.payload]:
            stream.set_reset_less(unreset)
        self.comb += [
            of_next.eq(frames.snap[3:] + (frames.snap[:3] != 0)),
            has_octets.eq(Mux(in_frame, index < filled, of_next != 0)),
            octets.ready.eq(has_octets & (self.starts | (in_frame & source.ready))),
            frames.ready.eq(self.starts),
            source.valid.eq(1),
        ]
        self.sync.timebase += [
            If(self.starts,
                in_frame.eq(1),
                index.eq(1),
                last.eq((frames.length - 1)[3:]),
                count.eq(frames.length[:3]),
                filled.eq(of_next),
            ),
            If(in_frame & source.ready,
                index.eq(index + 1),
                If(source.last, in_frame.eq(0)),
            ),
            If(~in_frame | source.ready,
                source.data.eq(octets.data & Replicate(has_octets, 2*WORD_BITS)),
                source.last.eq(in_frame & (index == last)),
                *(source.last_be[lane].eq(count == (lane + 1)%LANES) for lane in range(LANES)),
            ),
        ]

# XGMII Replay Source ------------------------------------------------------------------------------

class XgmiiReplaySource(LiteXModule):
    """Sends programs of a trace's frames by the pacer of a port: a source of an `XgmiiTrainPort`.

    A program goes from a record to the next one that is the END, as of `ReplaySource`; it is read ahead, up to what is there of
    it, and up to FRAMES_MOST frames.

    Parameters
    ----------
    port, address, words
        As of `PairReader`.

    Attributes
    ----------
    name, request, is_asked, taken : as of `XgmiiTransmitPath`
    written, wraps : Signal(32), Signal(), in
        As of `PairReader`.
    restart, is_restarted : Signal(), Signal(), in and out
        Level, while no program is active: a new session begins, at position 0 of the ring; it is through.
    fetched : Signal(32), out
    loops : Signal(16), in
        As of `ReplaySource`.
    begins : Signal(), in
        One cycle: a program begins, whose first words are in the ring.
    stop : Signal(), in
        One cycle: no more frames start.
    is_chosen : Signal(), in
        The port's program is this one's.
    is_primed : Signal(), out
        The first frame is there, and as many octets as there is space for, or all; or the end alone; until ``is_active`` falls.
    is_active : Signal(), out
        From ``begins`` to the start of the last frame.
    runs, elapsed, starts : Signal(), Signal((46, True)), Signal(), in
        From the pacer: the program has started; cycles of it; a frame starts.
    source : Endpoint(transmit_description()), out
        To the pacer, as ``due``, ``is_there`` and ``in_frame``.
    due, is_there, in_frame : Signal(48), Signal(), Signal(), out
    frames, underruns, first_underrun : Signal(32), Signal(16), Signal(32), out
        As of `ReplaySource`; an underrun is a frame that was due before its last octet was here: from the host or from the memory.
    is_bad, is_starved : Signal(), Signal(), out
        As of `ReplaySource`.
    """
    name = "replay"

    def __init__(self, port, address, words):
        self.request        = Signal()
        self.is_asked       = Signal()
        self.taken          = Signal()
        self.written        = Signal(POSITION_BITS)
        self.wraps          = Signal()
        self.restart        = Signal()
        self.is_restarted   = Signal()
        self.fetched        = Signal(POSITION_BITS)
        self.loops          = Signal(LOOPS_BITS, reset=1)
        self.begins         = Signal()
        self.stop           = Signal()
        self.is_chosen      = Signal()
        self.is_primed      = Signal()
        self.is_active      = Signal()
        self.runs           = Signal()
        self.elapsed        = Signal((CYCLE_BITS + 1, True))
        self.starts         = Signal()
        self.source         = stream.Endpoint(transmit_description())
        self.due            = Signal(DUE_BITS)
        self.is_there       = Signal()
        self.in_frame       = Signal()
        self.frames         = Signal(WORD_BITS)
        self.underruns      = Signal(UNDERRUN_BITS)
        self.first_underrun = Signal(WORD_BITS, reset=NO_SEQUENCE)
        self.is_bad         = Signal()
        self.is_starved     = Signal()

        # # #

        def fifo(layout, depth, buffered):
            return ClockDomainsRenamer("timebase")(ResetInserter()(stream.SyncFIFO(layout, depth, buffered=buffered)))
        self.reader = reader = PairReader(port, address, words)
        self.parser = parser = TraceParser()
        self.octets = octets = fifo([("data", 2*WORD_BITS)], FRAME_PAIRS, True)
        self.queue  = queue  = fifo(frame_layout(), FRAMES_MOST, True)
        self.player = player = FramePlayer()
        # Without this LiteX gives every memory in there a page of the CSR bus.
        self.autocsr_exclude = {"octets", "queue"}
        front = queue.source
        stops     = Signal()
        was_stopped = Signal() # What is shown late is thrown away, too.
        ends      = Signal()   # What stands for the last frame is taken.
        settled   = Signal(PRIME_BITS + 1) # Cycles; stops once its top bit is set.
        self.comb += [
            *copied(reader, self, "written", "wraps", "restart"),
            *copied(self, reader, "is_restarted", "fetched"),
            *copied(parser, self, "begins", "restart", "loops"),
            parser.words.clear.eq(self.restart),
            parser.stops.eq(stops),
            reader.source.connect(parser.words.sink),
            parser.octets.connect(octets.sink),
            parser.frames.connect(queue.sink, omit={"ready"}),
            octets.reset.eq(self.restart),
            queue.reset.eq(self.restart | stops | was_stopped),
            stops.eq(self.stop & self.is_active),
            front.connect(player.frames, omit={"valid", "ready"}),
            front.ready.eq(self.starts | ends),
            player.starts.eq(self.starts),
            octets.source.connect(player.octets),
            player.source.connect(self.source),
            *copied(self, player, "in_frame"),
            *copied(self, parser, "is_bad"),
            self.due.eq(front.due),
            self.is_there.eq(front.valid & ~front.empty & self.is_active),
            ends.eq(self.runs & front.valid & front.empty & self.is_active),
        ]
        self.sync.timebase += [
            was_stopped.eq(stops),
            self.is_primed.eq(self.is_active & (self.is_primed | settled[-1])),
            If(~front.valid | self.begins,
                settled.eq(0),
            ).Elif(~parser.is_active,
                settled.eq(1 << PRIME_BITS),
            ).Elif(~settled[-1],
                settled.eq(settled + 1),
            ),
            parser.may_begin.eq(queue.level < FRAMES_MOST - 3),
            If(self.begins,
                self.is_active.eq(1),
            ).Elif(stops | ends | (self.starts & front.final) | self.restart,
                self.is_active.eq(0),
            ),
        ]
        self.add_counters(front)

    def add_counters(self, front):
        """Count frames and underruns of the program."""
        shown    = self.parser.frames
        number   = Signal(WORD_BITS, reset_less=True) # Of the frame that is shown.
        is_past  = Signal()
        waited   = Signal()
        is_dry   = Signal()
        ahead    = Signal((CYCLE_BITS + 2, True))
        at       = Signal(WORD_BITS, reset_less=True)
        self.comb += [
            is_past.eq(ahead[-1]),
            is_dry.eq(waited & is_past),
        ]
        self.sync.timebase += [
            # A cycle to the next decision of the pacer, and some from there to here.
            ahead.eq(shown.due[log2_int(LANES):] - self.elapsed),
            waited.eq(shown.valid & ~shown.empty & self.parser.has_waited & self.runs),
            at.eq(number),
            If(shown.valid, number.eq(number + 1)),
            If(self.starts, self.frames.eq(self.frames + 1)),
            If(is_dry,
                self.underruns.eq(self.underruns + (self.underruns != 2**UNDERRUN_BITS - 1)),
                self.is_starved.eq(1),
                If(~self.is_starved, self.first_underrun.eq(at)),
            ),
            If(self.begins | self.restart,
                number.eq(0),
                self.frames.eq(0),
                self.underruns.eq(0),
                self.first_underrun.eq(NO_SEQUENCE),
                self.is_starved.eq(0),
            ),
        ]
