# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Schedules streams: which one sends next, when, and how long its frame is."""

from enum import IntEnum

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import BEGIN_TICKS, LIST_WORDS, OVERHEAD, STREAMS, STREAM_FIELDS, STREAM_WORDS
from liteprobe.cores.prbs import xorshift
from liteprobe.cores.transmit.frames import LENGTH_BITS
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory
from liteprobe.cores.transmit.sources.length import LengthDraw, field
from liteprobe.cores.transmit.sources.streams.dues import STREAM_BITS, DueSearch
from liteprobe.cores.transmit.sources.streams.exponential import ExponentialInterval

# Active Streams -----------------------------------------------------------------------------------

class ActiveStreams(LiteXModule):
    """Keeps for each stream whether it is waiting for its begin, or running.

    Attributes
    ----------
    begin, end : Signal(16), in
        Pulses: from now on it waits; it is neither.
    clear : Signal(), in
        All are neither.
    mask, is_armed : Signal(16), Signal(), in
        Those of ``mask`` are to begin, in the place of those that wait.
    stream : Signal(4), in
        The one that is looked at.
    is_next : Signal(), out
        It is to begin.
    begins, has_left : Signal(), in
        Pulse: it begins, and runs if it has frames left and is still to begin.
    ends : Signal(), in
        Pulse: it has no more frames.
    is_waiting : Signal(), out
        Any stream waits.
    running, active : Signal(16), out
        Streams that run; those and streams that wait.
    """
    def __init__(self):
        self.begin      = Signal(STREAMS)
        self.end        = Signal(STREAMS)
        self.clear      = Signal()
        self.mask       = Signal(STREAMS)
        self.is_armed   = Signal()
        self.stream     = Signal(max=STREAMS)
        self.is_next    = Signal()
        self.begins     = Signal()
        self.has_left   = Signal()
        self.ends       = Signal()
        self.is_waiting = Signal()
        self.running    = Signal(STREAMS)
        self.active     = Signal(STREAMS)

        # # #

        waiting = Signal(STREAMS)
        one     = Signal(STREAMS)
        self.comb += [
            one.eq(1 << self.stream),
            self.is_next.eq(Array(Mux(self.is_armed, self.mask, waiting))[self.stream]),
            self.is_waiting.eq(waiting != 0),
            self.active.eq(self.running | waiting),
        ]
        for n in range(STREAMS):
            self.sync += [
                If((self.begins | self.ends) & one[n], self.running[n].eq(self.begins & self.has_left & self.is_next)),
                If(self.end[n] | self.begin[n], self.running[n].eq(0)),
                waiting[n].eq(((waiting[n] & ~(one[n] & self.begins)) | self.begin[n]) & ~self.end[n]),
            ]
        self.sync += If(self.clear,
            self.running.eq(0),
            waiting.eq(0),
        )

WORD_NUMBER_BITS = log2_int(STREAM_WORDS)

class Word(IntEnum):
    """The words of a stream, by what is in them."""
    CONTROL         = STREAM_FIELDS["fill"].word
    PLACES          = STREAM_FIELDS["payload_offset"].word
    FIELDS          = STREAM_FIELDS["network_halfword"].word
    SUMS            = STREAM_FIELDS["ipv4_sum"].word
    LENGTH          = STREAM_FIELDS["length_least"].word
    LENGTH_STATE    = STREAM_FIELDS["length_next"].word
    LENGTH_RANDOM   = STREAM_FIELDS["length_random"].word
    INTERVAL        = STREAM_FIELDS["interval"].word
    FRACTION        = STREAM_FIELDS["interval_fraction"].word
    BURST           = STREAM_FIELDS["burst_frames"].word
    INNER           = STREAM_FIELDS["burst_interval"].word
    PHASE           = STREAM_FIELDS["phase"].word
    DUE_FRACTION    = STREAM_FIELDS["due_fraction"].word
    INTERVAL_RANDOM = STREAM_FIELDS["interval_random"].word
    SEQUENCE        = STREAM_FIELDS["sequence"].word
    LEFT            = STREAM_FIELDS["frames_left"].word

WORDS_OF_FRAME = [
    Word.CONTROL, Word.BURST, Word.INTERVAL_RANDOM, Word.INTERVAL, Word.LENGTH_RANDOM, Word.LENGTH, Word.LENGTH_STATE,
    Word.SEQUENCE, Word.LEFT, Word.PLACES, Word.FIELDS, Word.SUMS,
    # These wait for the interval.
    Word.FRACTION, Word.DUE_FRACTION, Word.INNER, Word.PHASE,
]
WORDS_OF_BEGIN = [Word.CONTROL, Word.LEFT, Word.PHASE]

# Word Reader --------------------------------------------------------------------------------------

class WordReader(LiteXModule):
    """Reads words of a stream one a cycle, in the order in which they are needed.

    Attributes
    ----------
    memory : EngineMemory
        Words of streams; this module uses its read port.
    stream : Signal(4), inout
        Must stand still while words are read.
    reads_frame, reads_begin : Signal(), inout
        Set one to begin with WORDS_OF_FRAME or WORDS_OF_BEGIN; it falls by itself.
    waits : Signal(), in
        Do not go on with WORDS_OF_FRAME from FRACTION on.
    ends_burst : Signal(), in
        In the place of INNER, read INTERVAL once more.
    word, word_adr : Signal(32), Signal(8), out
        What was read two cycles ago, and where.
    of_frame, of_begin : dict of Signal(), out
        Which word it is.
    """
    def __init__(self):
        self.memory      = memory = EngineMemory(STREAMS*STREAM_WORDS)
        self.stream      = Signal(STREAM_BITS)
        self.reads_frame = Signal()
        self.reads_begin = Signal()
        self.waits       = Signal()
        self.ends_burst  = Signal()
        self.word        = memory.values[0]
        self.word_adr    = Signal(STREAM_BITS + WORD_NUMBER_BITS, reset_less=True)
        self.of_frame    = {word: Signal(name=f"of_frame_{word.name.lower()}") for word in WORDS_OF_FRAME}
        self.of_begin    = {word: Signal(name=f"of_begin_{word.name.lower()}") for word in WORDS_OF_BEGIN}

        # # #

        step      = Signal(WORD_NUMBER_BITS)
        which     = Signal(WORD_NUMBER_BITS)
        goes_on   = Signal()
        of_frame  = {int(n): which.eq(int(word)) for n, word in enumerate(WORDS_OF_FRAME)}
        of_frame[WORDS_OF_FRAME.index(Word.INNER)] = which.eq(Mux(self.ends_burst, int(Word.INTERVAL), int(Word.INNER)))
        of_begin  = {n: which.eq(int(word)) for n, word in enumerate(WORDS_OF_BEGIN)}
        self.comb += [
            If(self.reads_begin,
                Case(step, {**of_begin, "default": which.eq(int(WORDS_OF_BEGIN[-1]))}),
            ).Else(
                Case(step, of_frame),
            ),
            goes_on.eq(self.reads_frame & ~((step == WORDS_OF_FRAME.index(Word.FRACTION)) & self.waits)),
            memory.read.eq(goes_on | self.reads_begin),
            memory.read_adr.eq(Cat(which, self.stream)),
        ]
        self.sync += [
            If(memory.read, step.eq(step + 1)),
            If(self.reads_frame & (step == len(WORDS_OF_FRAME) - 1), self.reads_frame.eq(0)),
            If(self.reads_begin & (step == len(WORDS_OF_BEGIN) - 1), self.reads_begin.eq(0)),
            If(~self.reads_frame & ~self.reads_begin, step.eq(0)),
        ]
        self.add_answer(step, goes_on)

    def add_answer(self, step, goes_on):
        """Say what the word is that comes two cycles later."""
        adr, steps = Signal.like(self.word_adr), [Signal.like(step, name=f"step_{n}") for n in range(2)]
        frames     = [Signal(name=f"was_of_frame_{n}") for n in range(2)]
        begins     = [Signal(name=f"was_of_begin_{n}") for n in range(2)]
        self.sync += [
            adr.eq(self.memory.read_adr),
            self.word_adr.eq(adr),
            Cat(*steps).eq(Cat(step, steps[0])),
            Cat(*frames).eq(Cat(goes_on, frames[0])),
            Cat(*begins).eq(Cat(self.reads_begin, begins[0])),
        ]
        self.comb += [
            *[self.of_frame[word].eq(frames[1] & (steps[1] == n)) for n, word in enumerate(WORDS_OF_FRAME)],
            *[self.of_begin[word].eq(begins[1] & (steps[1] == n)) for n, word in enumerate(WORDS_OF_BEGIN)],
        ]

WORD_BITS = 32

# What follows a frame from its schedule to its header.
frame_layout = [
    ("stream",   STREAM_BITS),
    ("sequence", WORD_BITS),
    ("length",   LENGTH_BITS),
    ("due",      64),
    ("final",    1),
    ("empty",    1),
    ("control",  WORD_BITS), # Words of the stream, as they are.
    ("places",   WORD_BITS),
    ("fields",   WORD_BITS),
    ("sums",     24),
]

def only(when, value):
    """Return a word where ``when`` is 1, else 0."""
    return Replicate(when, WORD_BITS) & value

# Stream Scheduler ---------------------------------------------------------------------------------

class StreamScheduler(LiteXModule):
    """Takes the stream that is due first, draws the length of its frame and the tick of the one after, and writes its state.

    A frame takes some 23 cycles, up to 32 where its interval is drawn from an exponential distribution.

    Attributes
    ----------
    frame : Endpoint(frame_layout), out
        In the order of their due ticks. Of a ``final``, ``empty`` one all else is meaningless.
    begins, next_stream : Signal(), Signal(4), out
        Pulse: the next frame will be of this stream.
    may_begin : Signal(), in
    elapsed, arm, mask, stop, hold, begin, end, is_primed, is_active, active
        As of `StreamSource`; ``is_active`` falls as the final frame is taken.
    memory : EngineMemory
        Words of streams.
    list_read, list_adr, list_grant, list_word
        As of `LengthDraw`.
    """
    def __init__(self):
        self.frame       = stream.Endpoint(frame_layout)
        stream.set_reset_less(self.frame.payload)
        self.begins      = Signal()
        self.next_stream = Signal(STREAM_BITS)
        self.may_begin   = Signal()
        self.elapsed     = Signal((64, True))
        self.arm         = Signal()
        self.mask        = Signal(STREAMS)
        self.stop        = Signal()
        self.hold        = Signal()
        self.begin       = Signal(STREAMS)
        self.end         = Signal(STREAMS)
        self.is_primed   = Signal()
        self.is_active   = Signal()
        self.active      = Signal(STREAMS)
        self.reader      = WordReader()
        self.memory      = self.reader.memory
        self.lengths     = LengthDraw(log2_int(LIST_WORDS))
        self.list_read, self.list_adr   = self.lengths.list_read, self.lengths.list_adr
        self.list_grant, self.list_word = self.lengths.list_grant, self.lengths.list_word

        # # #

        self.dues       = DueSearch()
        self.intervals  = ExponentialInterval()
        self.random     = Signal(WORD_BITS)
        self.endless    = Signal(reset_less=True)
        self.ends_burst = Signal() # The frame is the last of its burst.
        self.streams    = ActiveStreams()
        self.is_armed   = Signal() # Those of ``mask`` begin, with the program.
        self.leads      = Signal() # BEGIN_TICKS are added next.
        self.add_frame()
        self.add_changes()
        self.add_offset()
        self.add_states()

    def add_frame(self):
        """Draw the length, and keep what goes with the frame."""
        frame, lengths, word, at = self.frame, self.lengths, self.reader.word, self.reader.of_frame
        begins = self.reader.of_begin
        self.comb += [
            self.random.eq(xorshift(word)),
            lengths.word.eq(word),
            lengths.drawn.eq(self.random[16:]),
            lengths.kind.eq(field(frame.control, "length_kind")),
            lengths.list_drawn.eq(field(frame.control, "list_drawn")),
            lengths.is_random.eq(at[Word.LENGTH_RANDOM]),
            lengths.is_length.eq(at[Word.LENGTH]),
            lengths.is_state.eq(at[Word.LENGTH_STATE]),
            frame.length.eq(lengths.length),
            self.next_stream.eq(self.dues.number),
        ]
        self.sync += [
            If(at[Word.CONTROL] | begins[Word.CONTROL], self.endless.eq(field(word, "endless"))),
            If(at[Word.CONTROL],  frame.control.eq(word)),
            If(at[Word.SEQUENCE], frame.sequence.eq(word)),
            If(at[Word.PLACES],   frame.places.eq(word)),
            If(at[Word.FIELDS],   frame.fields.eq(word)),
            If(at[Word.SUMS],      frame.sums.eq(word)),
            If(self.begins,
                frame.due.eq(self.dues.due),
                frame.stream.eq(self.dues.number),
            ),
        ]

    def add_changes(self):
        """Work out what changes in the words of the stream."""
        reader, memory, lengths = self.reader, self.memory, self.lengths
        word, at                = reader.word, reader.of_frame
        is_last      = Signal() # In its burst.
        self.held    = Signal(WORD_BITS, reset_less=True) # What is added to the word that comes next.
        self.total   = Signal(WORD_BITS + 1)
        self.is_zero = Signal() # The word is.
        self.uses_random = Signal() # The interval is drawn.
        changed      = Signal(WORD_BITS)
        is_rest_zero = Signal()
        self.comb += [
            is_last.eq(field(word, "burst_left")[1:] == 0),
            self.total.eq(word + self.held + at[Word.SEQUENCE]),
            is_rest_zero.eq(word[1:] == 0),
            self.is_zero.eq(is_rest_zero & ~word[0]),
            self.streams.ends.eq(at[Word.LEFT] & is_rest_zero & word[0] & ~self.endless),
            changed.eq(
                only(at[Word.INTERVAL_RANDOM] | at[Word.LENGTH_RANDOM], self.random) |
                only(at[Word.LENGTH_STATE], lengths.next_state) |
                only(at[Word.BURST] | at[Word.SEQUENCE] | at[Word.LEFT] | at[Word.DUE_FRACTION] |
                    (at[Word.PHASE] & ~self.ends_burst), self.total[:WORD_BITS])),
            memory.write_dat[0].eq(changed),
            # A burst that begins anew.
            If(at[Word.BURST] & is_last, memory.write_dat[0].eq(Cat(word[:WORD_BITS//2], word[:WORD_BITS//2]))),
            memory.write_adr.eq(reader.word_adr),
            memory.writes[0].eq(
                at[Word.BURST] | at[Word.SEQUENCE] | at[Word.PHASE] | reader.of_begin[Word.PHASE] |
                (at[Word.LEFT] & ~self.endless) |
                (at[Word.DUE_FRACTION] & self.ends_burst) |
                (at[Word.INTERVAL_RANDOM] & self.uses_random) |
                (at[Word.LENGTH_RANDOM] & lengths.uses_random) |
                (at[Word.LENGTH_STATE] & lengths.uses_state)),
        ]
        self.sync += [
            If(at[Word.BURST], self.ends_burst.eq(is_last)),
            If(reader.of_begin[Word.LEFT], self.streams.has_left.eq(self.endless | ~self.is_zero)),
        ]

    def add_offset(self):
        """Work out how much later the stream is due then."""
        reader, intervals, dues = self.reader, self.intervals, self.dues
        word, at, begins        = reader.word, reader.of_frame, reader.of_begin
        held, total, is_drawn   = self.held, self.total, self.uses_random
        takes_length = Signal()
        self.comb += [
            is_drawn.eq(self.ends_burst & field(self.frame.control, "exponential")),
            intervals.u.eq(self.random),
            intervals.start.eq(at[Word.INTERVAL_RANDOM] & is_drawn),
            reader.waits.eq(~intervals.is_ready),
            reader.ends_burst.eq(self.ends_burst),
            takes_length.eq(at[Word.INNER] & ~self.ends_burst & self.is_zero),
        ]
        self.sync += [
            # Nothing for the sequence, which takes a carry. One frame less, in the burst and in all.
            held.eq(
                only((at[Word.FRACTION] | at[Word.INNER]) & ~is_drawn | begins[Word.PHASE], word) |
                only(at[Word.FRACTION] & is_drawn, intervals.fraction) |
                only(at[Word.INNER] & is_drawn, intervals.ticks) |
                only(takes_length, self.lengths.length + OVERHEAD) |
                only(at[Word.CONTROL], 2**WORD_BITS - 2**(WORD_BITS//2)) |
                only(at[Word.SEQUENCE], 2**WORD_BITS - 1) |
                only(self.leads, BEGIN_TICKS)),
            If(at[Word.INTERVAL],     intervals.mean.eq(word)),
            If(at[Word.DUE_FRACTION], dues.carry.eq(total[WORD_BITS] & self.ends_burst)),
            If(begins[Word.CONTROL],  dues.carry.eq(0)),
            dues.offset.eq(held - only(at[Word.PHASE] & self.ends_burst, word)),
        ]

    def add_states(self):
        """Go through it frame by frame."""
        dues, frame, reader, streams = self.dues, self.frame, self.reader, self.streams
        self.fsm     = fsm = FSM(reset_state="IDLE")
        self.has_frame = Signal() # A frame is there.
        fsm.act("IDLE",
            If(self.arm & ~self.is_active,
                NextValue(self.is_active, 1),
                NextValue(self.is_armed, 1),
                NextValue(reader.stream, 0),
                NextState("FIND"),
            ),
        )
        self.add_begins()
        self.add_frames()
        fsm.act("END",
            If(~self.has_frame,
                NextValue(self.has_frame, 1),
                NextValue(frame.final, 1),
                NextState("ENDED"),
            ),
        )
        fsm.act("ENDED",
            If(~self.has_frame,
                NextValue(frame.final, 0),
                NextValue(self.is_active, 0),
                NextValue(self.is_primed, 0),
                NextState("IDLE"),
            ),
        )
        self.comb += [
            frame.valid.eq(self.has_frame),
            frame.empty.eq(frame.final),
            dues.stream.eq(reader.stream),
            dues.candidates.eq(streams.running),
            dues.elapsed.eq(self.elapsed),
            *[getattr(streams, name).eq(getattr(self, name)) for name in ("mask", "begin", "end", "is_armed")],
            streams.stream.eq(reader.stream),
            streams.clear.eq(fsm.ongoing("IDLE") | fsm.ongoing("END") | fsm.ongoing("ENDED")),
            self.active.eq(streams.active),
        ]
        self.sync += If(frame.valid & frame.ready, self.has_frame.eq(0))

    def add_begins(self):
        """Let streams begin, one by one: all that do so with the program, or those that came since."""
        dues, reader, streams, fsm = self.dues, self.reader, self.streams, self.fsm
        fsm.act("FIND",
            If(streams.is_next,
                NextValue(reader.reads_begin, 1),
                NextState("BEGIN"),
            ).Else(
                NextState("NEXT"),
            ),
        )
        fsm.act("NEXT",
            NextValue(reader.stream, reader.stream + 1),
            NextState("FIND"),
            If(Mux(self.is_armed, reader.stream == STREAMS - 1, ~streams.is_waiting),
                NextValue(self.is_armed, 0),
                NextValue(self.is_primed, 1),
                dues.start.eq(1),
                NextState("LOOK"),
            ),
        )
        fsm.act("BEGIN", If(reader.of_begin[Word.PHASE], NextState("OFFSET")))
        fsm.act("OFFSET", # It is on its way from the word that was held.
            dues.shows_zero.eq(self.is_armed),
            dues.shows_elapsed.eq(1),
            NextState("BASE"),
        )
        fsm.act("BASE",
            dues.add.eq(1),
            self.leads.eq(1),
            NextState("SETTLE"),
        )
        fsm.act("SETTLE", NextState("LEAD"))
        fsm.act("LEAD",
            dues.add.eq(~self.is_armed),
            streams.begins.eq(1),
            NextState("NEXT"),
        )

    def add_frames(self):
        """Look for the first stream, and work on its frame; meanwhile look at all others."""
        dues, reader, streams, fsm = self.dues, self.reader, self.streams, self.fsm
        adds  = Signal() # The new due tick is written,
        added = Signal() # or is there.
        # By then the look at the others has ended.
        self.sync += adds.eq(reader.of_frame[Word.PHASE]), added.eq(adds)
        fsm.act("LOOK",
            dues.shows_elapsed.eq(~dues.is_looking),
            If(dues.done, NextState("DECIDE")),
        )
        fsm.act("DECIDE",
            dues.shows_elapsed.eq(1),
            If(self.stop,
                NextState("END"),
            ).Elif(streams.is_waiting,
                NextState("FIND"),
            ).Elif(~dues.found & ~self.hold,
                NextState("END"),
            ).Elif(dues.found & dues.is_near,
                If(self.may_begin & ~self.has_frame,
                    self.begins.eq(1),
                    dues.start.eq(1),
                    NextValue(reader.stream, dues.number),
                    NextValue(reader.reads_frame, 1),
                    NextState("WORK"),
                ),
            ).Else(
                dues.start.eq(1),
                NextState("LOOK"),
            ),
        )
        fsm.act("WORK",
            dues.is_changing.eq(1),
            dues.add.eq(adds),
            dues.renew.eq(added),
            If(added,
                NextValue(self.has_frame, 1),
                NextState("LOOK"),
            ),
        )
