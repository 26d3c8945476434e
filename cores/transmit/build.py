# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds probe frames, and fetches the octets of frames that are replayed or forwarded."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import FILL_OFFSET, HEADER_WORDS, PRBS_BITS, PRBS_SEED, SEQUENCE_OFFSET, STREAMS, Fill
from liteprobe.cores.octets import last_be_of_length, words_of_length
from liteprobe.cores.prbs import LANE, prbs_advance
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description, word_description

FILL_LANES = (FILL_OFFSET - SEQUENCE_OFFSET)*8//LANE # Words from the sequence to the fill.

# Frame Build --------------------------------------------------------------------------------------

class FrameBuild(LiteXModule):
    """Builds a frame for each descriptor: header, sequence, place of the stamp (zero), fill; in ``sys``.

    One word a cycle, two cycles of latency.

    Parameters
    ----------
    data_width : int
        32 or 64; with streams 32.
    with_streams : bool
        Headers of 16 streams, in a memory outside; else one, in a memory of its own.

    Attributes
    ----------
    sink : Endpoint(descriptor_description()), in
        Of the settings: ``stream``, ``header_words``, ``with_probe`` and ``fill``.
    source : Endpoint(word_description(data_width)), out
    header : Memory(32, 32)
        Without streams: everything before the sequence, byte 0 in bits 7..0 of word 0. Must stand still while frames are built.
    header_adr, header_re, header_dat : Signal(9), Signal(), Signal(32), out, out and in
        With streams: reads word ``header_adr`` (32 for each stream, likewise), which is there in the next cycle, and until
        the next read.
    builds, build_stream, build_word : Signal(), Signal(4), Signal(5), out
        With streams: this frame's header is not read to its end, and ``build_word`` is the word that is read next.
    """
    def __init__(self, data_width=32, with_streams=False):
        assert data_width in ([32] if with_streams else [32, 64])
        self.sink   = stream.Endpoint(descriptor_description())
        self.source = source = stream.Endpoint(word_description(data_width))
        stream.set_reset_less(source.payload)

        # # #

        self.lanes    = data_width//LANE
        self.advance  = Signal()
        self.beat     = Signal(LENGTH_BITS)
        self.sequence = Signal(32, reset_less=True) # Of the frame in the second stage.
        self.fill     = Signal(2,  reset_less=True)
        self.is_valid = Signal()
        self.is_last  = Signal()
        self.last_be  = Signal(data_width//8, reset_less=True)
        self.comb += self.advance.eq(source.ready | ~source.valid)
        if with_streams:
            self.add_streams()
        else:
            self.header    = Memory(LANE, HEADER_WORDS, name="header")
            self.specials += self.header
        self.add_address(data_width)
        self.add_words(data_width)

    def add_streams(self):
        """Read headers from a memory outside, and say how far."""
        self.header_adr   = Signal(log2_int(STREAMS*HEADER_WORDS))
        self.header_re    = Signal()
        self.header_dat   = Signal(LANE)
        self.builds       = Signal()
        self.build_stream = Signal(log2_int(STREAMS))
        self.build_word   = Signal(log2_int(HEADER_WORDS))
        self.comb += [
            self.header_adr.eq(Cat(self.build_word, self.build_stream)),
            self.header_re.eq(self.advance),
            self.builds.eq(self.sink.valid & (self.beat < self.sink.header_words)),
            self.build_stream.eq(self.sink.stream),
            self.build_word.eq(self.beat),
        ]

    def add_address(self, data_width):
        """Walk the words of the frame; the header memory answers in the second stage."""
        sink    = self.sink
        is_last = Signal()
        self.comb += [
            is_last.eq(self.beat == words_of_length(sink.length, data_width) - 1),
            sink.ready.eq(self.advance & is_last),
        ]
        self.sync += If(self.advance,
            self.is_valid.eq(sink.valid),
            self.is_last.eq(is_last),
            self.sequence.eq(sink.sequence),
            self.fill.eq(sink.fill),
            self.last_be.eq(Mux(is_last, last_be_of_length(sink.length, data_width), 0)),
            If(sink.valid,
                self.beat.eq(self.beat + 1),
                If(is_last, self.beat.eq(0)),
            ),
        )

    def add_words(self, data_width):
        """Choose what each lane carries and put the word out."""
        source = self.source
        lanes  = [self.add_lane(number) for number in range(self.lanes)]
        self.add_prbs(lanes)
        words  = []
        for lane in lanes:
            word = Signal(LANE)
            self.comb += [
                word.eq(0),
                If(lane["is_header"],
                    word.eq(lane["header"]),
                ).Elif(lane["is_sequence"],
                    word.eq(Cat(*[self.sequence[8*n:8*n + 8] for n in reversed(range(4))])),
                ).Elif(lane["is_fill"],
                    If(self.fill == Fill.COUNTING,
                        word.eq(Cat(*[Cat(Constant(n, 2), lane["number"]) for n in range(4)])),
                    ),
                    If(self.fill == Fill.PRBS, word.eq(lane["prbs"])),
                ),
            ]
            words.append(word)
        self.sync += If(self.advance,
            source.valid.eq(self.is_valid),
            source.data.eq(Cat(*words)),
            source.last.eq(self.is_last),
            source.last_be.eq(self.last_be),
        )

    def add_lane(self, number):
        """Tell, in the second stage, where 32-bit word ``number`` of the beat lies in the frame."""
        bits  = LENGTH_BITS - log2_int(LANE//8)
        index = Signal(bits)
        fill  = Signal(bits) # Index of the first word of the fill.
        lane  = {
            "header": Signal(LANE, name="header"),
            **{name: Signal(name=name, reset_less=True) for name in ("is_header", "is_sequence", "is_fill")},
            "number": Signal(6, name="fill_number", reset_less=True), # Of the word in the fill, modulo 64.
            "prbs":   Signal(LANE, name="prbs"),
        }
        first = self.sink.header_words
        self.comb += [
            index.eq(Cat(Constant(number, log2_int(self.lanes)), self.beat) if self.lanes > 1 else self.beat),
            fill.eq(first + Mux(self.sink.with_probe, FILL_LANES, 0)),
        ]
        self.sync += If(self.advance,
            lane["is_header"].eq(index < first),
            lane["is_sequence"].eq(self.sink.with_probe & (index == first)),
            lane["is_fill"].eq(index >= fill),
            lane["number"].eq(index - fill),
        )
        self.add_header(lane["header"], index)
        return lane

    def add_header(self, header, index):
        """Read a word of the header for the second stage."""
        if hasattr(self, "header_dat"):
            self.comb += header.eq(self.header_dat)
            return
        port = self.header.get_port(has_re=True, mode=READ_FIRST)
        self.specials += port
        self.comb += [
            port.adr.eq(index),
            port.re.eq(self.advance),
            header.eq(port.dat_r),
        ]

    def add_prbs(self, lanes):
        """Run one generator over the lanes of the fill, in order; each frame starts it anew."""
        state = Signal(PRBS_BITS, reset=PRBS_SEED, reset_less=True)
        begin = state
        for lane in lanes:
            end        = Signal(PRBS_BITS)
            bits, after = prbs_advance(begin)
            self.comb += [
                lane["prbs"].eq(bits),
                end.eq(begin),
                If(lane["is_fill"], end.eq(after)),
            ]
            begin = end
        self.sync += If(self.advance,
            state.eq(end),
            If(self.is_last | ~self.is_valid, state.eq(PRBS_SEED)),
        )

DATA_WIDTH = 32
WORDS_BITS = LENGTH_BITS - 2

# Frame Fetch --------------------------------------------------------------------------------------

class FrameFetch(LiteXModule):
    """Gives each frame its ``snap`` octets, then zeros up to its length; in ``sys``.

    A word a cycle, no latency.

    Parameters
    ----------
    with_zeros : bool
        Without, all octets of each frame are there: ``snap`` counts for nothing.
    due_bits : int
        As of `Announcer`.

    Attributes
    ----------
    sink : Endpoint(descriptor_description(True, due_bits)), in
        Of the settings: ``length``, and ``snap``, at most the length.
    octets : Endpoint([("data", 32)]), in
        As many words as hold ``snap`` octets are taken for each frame; what follows these octets in the last one counts for
        nothing.
    source : Endpoint(word_description(32)), out
    """
    def __init__(self, with_zeros=True, due_bits=64):
        self.sink   = sink   = stream.Endpoint(descriptor_description(True, due_bits))
        self.octets = octets = stream.Endpoint([("data", DATA_WIDTH)])
        self.source = source = stream.Endpoint(word_description(DATA_WIDTH))

        # # #

        word    = Signal(WORDS_BITS)
        is_last = Signal()
        is_used = Signal(reset=not with_zeros) # Some of the word is octets of the ring.
        is_full = Signal() # All of it.
        is_end  = Signal() # The word after these.
        is_past = Signal() # It was.
        used    = Signal(DATA_WIDTH//8, reset=0 if with_zeros else 2**(DATA_WIDTH//8) - 1)
        tail    = sink.snap[:2]
        next_word = Signal(WORDS_BITS) # Number of the next word.
        self.comb += [
            next_word.eq(word + 1),
            is_last.eq(Mux(sink.length[:2] != 0, word, next_word) == sink.length[2:]),
            source.valid.eq(sink.valid & (octets.valid | ~is_used)),
            source.last.eq(is_last),
            source.last_be.eq(Mux(is_last, last_be_of_length(sink.length, DATA_WIDTH), 0)),
            *[source.data[8*n:8*n + 8].eq(octets.data[8*n:8*n + 8] & Replicate(used[n], 8)) for n in range(DATA_WIDTH//8)],
            octets.ready.eq(sink.valid & is_used & source.ready),
            sink.ready.eq(source.valid & source.ready & is_last),
        ]
        if with_zeros:
            self.comb += [
                is_end.eq(word == sink.snap[2:]),
                is_full.eq(~is_end & ~is_past),
                is_used.eq(is_full | (is_end & (tail != 0))),
                *[used[n].eq(is_full | (is_end & (tail > n))) for n in range(DATA_WIDTH//8)],
            ]
        self.sync += If(source.valid & source.ready,
            word.eq(next_word),
            If(is_end, is_past.eq(1)),
            If(is_last, word.eq(0), is_past.eq(0)),
        )
