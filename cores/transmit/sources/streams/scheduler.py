# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which stream sends next, when, and how long its frame is."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import BEGIN_TICKS, LIST_WORDS, OVERHEAD, STREAMS
from liteprobe.cores.transmit.frames import LENGTH_BITS
from liteprobe.cores.transmit.sources.streams.active import ActiveStreams
from liteprobe.cores.transmit.sources.streams.dues import STREAM_BITS, DueSearch
from liteprobe.cores.transmit.sources.streams.exponential import ExponentialInterval
from liteprobe.cores.transmit.sources.length import LengthDraw, field
from liteprobe.cores.transmit.sources.word_reader import Word, WordReader
from liteprobe.cores.transmit.sources.streams.xorshift import xorshift

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
        self.is_told = Signal() # A frame is there.
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
            If(~self.is_told,
                NextValue(self.is_told, 1),
                NextValue(frame.final, 1),
                NextState("ENDED"),
            ),
        )
        fsm.act("ENDED",
            If(~self.is_told,
                NextValue(frame.final, 0),
                NextValue(self.is_active, 0),
                NextValue(self.is_primed, 0),
                NextState("IDLE"),
            ),
        )
        self.comb += [
            frame.valid.eq(self.is_told),
            frame.empty.eq(frame.final),
            dues.stream.eq(reader.stream),
            dues.candidates.eq(streams.running),
            dues.elapsed.eq(self.elapsed),
            *[getattr(streams, name).eq(getattr(self, name)) for name in ("mask", "begin", "end", "is_armed")],
            streams.stream.eq(reader.stream),
            streams.clear.eq(fsm.ongoing("IDLE") | fsm.ongoing("END") | fsm.ongoing("ENDED")),
            self.active.eq(streams.active),
        ]
        self.sync += If(frame.valid & frame.ready, self.is_told.eq(0))

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
        fsm.act("BEGIN",
            If(reader.of_begin[Word.PHASE], NextState("OFFSET")),
        )
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
                If(self.may_begin & ~self.is_told,
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
                NextValue(self.is_told, 1),
                NextState("LOOK"),
            ),
        )
