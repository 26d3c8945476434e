# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds back edits of headers until the frame before no longer needs what they overwrite."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import HEADER_WORDS_OF_STREAM, STREAMS
from liteprobe.cores.octets import swapped

STREAM_BITS   = log2_int(STREAMS)
HALFWORD_BITS = 6
WORD_BITS     = log2_int(HEADER_WORDS_OF_STREAM)
DEPTH         = 16 # More than the edits of one frame: four modifiers, two lengths and a checksum.

def edit_description():
    """Bits 31..16 of the window go to the halfword, if bit 1 of ``writes`` is set, bits 15..0 to the next, if bit 0 is."""
    return stream.EndpointDescription([("stream", STREAM_BITS), ("halfword", HALFWORD_BITS), ("writes", 2), ("window", 32)])

def window_adrs(number, halfword):
    """Return the address in each bank of the 32 bits from a halfword of the header of stream ``number`` on."""
    word = halfword[1:]
    return [Cat((word + halfword[0])[:WORD_BITS], number), Cat(word, number)]

def window(words, is_odd):
    """Return the window in two halfwords of banks 0 and 1, or the other way round; octets are swapped."""
    halves = [swapped(words[:16]), swapped(words[16:])]
    return Mux(is_odd, Cat(halves[0], halves[1]), Cat(halves[1], halves[0]))

class HeaderEdits(LiteXModule):
    """Holds back each edit of a header until the words that it touches are read for the frame before.

    The frame before is the one at ``source``, if it is of the same stream: it may be built there, word by word, or be built
    and wait. At any time, there are edits of one frame only, the next one after that at ``source``.

    Attributes
    ----------
    sink : Endpoint(edit_description()), in
        Always ready for the edits of one frame.
    is_empty : Signal(), out
        All that came up to the cycle before the last one is written.
    has_frame, frame_stream, taken : Signal(), Signal(4), Signal(), in
        Of ``source``: a frame is there; its stream; it is taken.
    builds, build_stream, build_word : Signal(), Signal(4), Signal(5), in
        As of `StreamSource`.
    write : Signal(), out
        An edit is to be written, in this cycle, if ``grant`` is 1: the rest as of `TemplateStore`.
    grant : Signal(), in
    adrs, writes, dat_w : list of two Signal(9), Signal(2), Signal(32), out
    """
    def __init__(self):
        self.sink         = stream.Endpoint(edit_description())
        self.is_empty     = Signal()
        self.has_frame    = Signal()
        self.frame_stream = Signal(STREAM_BITS)
        self.taken        = Signal()
        self.builds       = Signal()
        self.build_stream = Signal(STREAM_BITS)
        self.build_word   = Signal(WORD_BITS)
        self.write        = Signal()
        self.grant        = Signal()
        self.adrs         = [Signal(STREAM_BITS + WORD_BITS, name=f"adr_{n}") for n in range(2)]
        self.writes       = Signal(2)
        self.dat_w        = Signal(32)

        # # #

        # A queue that is never full.
        # ---------------------------
        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        edit        = stream.Endpoint(edit_description())
        self.memory = memory = Memory(len(edit.payload.raw_bits()), DEPTH, name="edits")
        read        = memory.get_port(async_read=True)
        write       = memory.get_port(write_capable=True)
        self.specials += memory, read, write
        self.comb += [
            self.sink.ready.eq(1),
            write.dat_w.eq(self.sink.payload.raw_bits()),
            write.we.eq(self.sink.valid),
            edit.payload.raw_bits().eq(read.dat_r),
            edit.valid.eq(read.adr != write.adr),
            self.is_empty.eq(~edit.valid),
        ]
        self.sync += [
            If(self.sink.valid,          write.adr.eq(write.adr + 1)),
            If(edit.valid & edit.ready,  read.adr.eq(read.adr + 1)),
        ]

        # May it be written?
        # ------------------
        reads    = Signal() # The header of the frame at the source is being read,
        was_read = Signal() # or is read.
        is_past  = Signal() # What the edit touches is.
        last     = Signal(WORD_BITS + 1)
        next_word = Signal(WORD_BITS, reset_less=True)
        self.comb += [
            last.eq(edit.halfword[1:] + edit.halfword[0]),
            is_past.eq(was_read | (reads & (next_word > last))),
            self.write.eq(edit.valid & (~self.has_frame | (self.frame_stream != edit.stream) | is_past)),
            edit.ready.eq(self.write & self.grant),
        ]
        # The builder's word is a cycle old: then the builder is further on.
        self.sync += [
            reads.eq(self.builds & (self.build_stream == self.frame_stream) & self.has_frame & ~self.taken),
            next_word.eq(self.build_word),
            If(reads & ~self.builds, was_read.eq(1)),
            If(self.taken | ~self.has_frame, was_read.eq(0)),
        ]

        # Where.
        # ------
        adrs  = window_adrs(edit.stream, edit.halfword)
        is_odd = edit.halfword[0]
        self.comb += [
            *[mine.eq(adr) for mine, adr in zip(self.adrs, adrs)],
            self.dat_w.eq(Mux(is_odd,
                Cat(swapped(edit.window[:16]), swapped(edit.window[16:])),
                Cat(swapped(edit.window[16:]), swapped(edit.window[:16])),
            )),
            self.writes.eq(Mux(is_odd, edit.writes, Cat(edit.writes[1], edit.writes[0]))),
        ]
