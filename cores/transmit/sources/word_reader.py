# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Reads the words of a stream for a frame, or for its begin."""

from enum import IntEnum

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAM_FIELDS, STREAM_WORDS, STREAMS
from liteprobe.cores.transmit.sources.engine_memory import EngineMemory

STREAM_BITS = log2_int(STREAMS)
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
