# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What stands in a probe frame."""

from functools import reduce
from operator import xor

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.formats import FILL_OFFSET, HEADER_WORDS, PRBS_BITS, PRBS_SEED, PRBS_TAPS, SEQUENCE_OFFSET, Fill
from liteprobe.cores.last_be import last_be_of_length, words_of_length
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description, word_description

LANE        = 32 # Bits; header, sequence and stamp are 32-bit aligned in every layout.
FILL_LANES  = (FILL_OFFSET - SEQUENCE_OFFSET)*8//LANE # From the sequence to the fill.

# PRBS ---------------------------------------------------------------------------------------------

def prbs_advance(state):
    """Return (lane, next state): the next 32 bits of PRBS-31, first bit in bit 7 of byte 0."""
    bits = [[n] for n in range(PRBS_BITS)] # Each bit as the list of state bits that it is the sum of.
    sent = []
    for _ in range(LANE):
        new  = sorted(set(bits[PRBS_TAPS[0] - 1]) ^ set(bits[PRBS_TAPS[1] - 1]))
        bits = [new] + bits[:-1]
        sent.append(new)
    def total(terms):
        return reduce(xor, [state[n] for n in terms])
    lane = [total(sent[8*(n//8) + 7 - n%8]) for n in range(LANE)]
    return Cat(*lane), Cat(*[total(terms) for terms in bits])

# Frame Build --------------------------------------------------------------------------------------

class FrameBuild(LiteXModule):
    """Builds a frame for each descriptor: header, sequence, place of the stamp (zero), fill; in ``sys``.

    One word a cycle, two cycles of latency.

    Parameters
    ----------
    data_width : int
        32 or 64.

    Attributes
    ----------
    sink : Endpoint(descriptor_description()), in
    source : Endpoint(word_description(data_width)), out
    payload_offset : Signal(8), in
        Start of the UDP payload; ``payload_offset + 6`` must be a multiple of 4. Must stand still while frames are built, as
        all inputs below.
    fill : Signal(2), in
        ``formats.Fill``.
    header : Memory(32, 32)
        Everything before the sequence, byte 0 in bits 7..0 of word 0.
    """
    def __init__(self, data_width=32):
        assert data_width in [32, 64]
        self.sink           = stream.Endpoint(descriptor_description())
        self.source         = source = stream.Endpoint(word_description(data_width))
        stream.set_reset_less(source.payload)
        self.payload_offset = Signal(8)
        self.fill           = Signal(2)
        self.header         = Memory(LANE, HEADER_WORDS, name="header")

        # # #

        self.specials += self.header
        self.lanes    = data_width//LANE
        self.advance  = Signal()
        self.beat     = Signal(LENGTH_BITS)
        self.sequence = Signal(32, reset_less=True) # Of the frame in the second stage.
        self.is_valid = Signal()
        self.is_last  = Signal()
        self.last_be  = Signal(data_width//8)
        self.comb += self.advance.eq(source.ready | ~source.valid)
        self.add_address(data_width)
        self.add_words(data_width)

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
        port = self.header.get_port(has_re=True, mode=READ_FIRST)
        self.specials += port
        bits  = LENGTH_BITS - log2_int(LANE//8)
        index = Signal(bits)
        first = Signal(bits) # Index of the sequence.
        lane  = {
            "header": port.dat_r, **{name: Signal(name=name) for name in ("is_header", "is_sequence", "is_fill")},
            "number": Signal(6, name="fill_number"), # Of the word in the fill, modulo 64.
            "prbs":   Signal(LANE, name="prbs"),
        }
        self.comb += [
            index.eq(Cat(Constant(number, log2_int(self.lanes)), self.beat) if self.lanes > 1 else self.beat),
            port.adr.eq(index),
            port.re.eq(self.advance),
        ]
        self.sync += [
            first.eq((self.payload_offset + SEQUENCE_OFFSET)[2:]),
            If(self.advance,
                lane["is_header"].eq(index < first),
                lane["is_sequence"].eq(index == first),
                lane["is_fill"].eq(index >= first + FILL_LANES),
                lane["number"].eq(index - first - FILL_LANES),
            ),
        ]
        return lane

    def add_prbs(self, lanes):
        """Run one generator over the lanes of the fill, in order; each frame starts it anew."""
        state = Signal(PRBS_BITS, reset=PRBS_SEED)
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
        self.sync += If(self.advance & self.is_valid,
            state.eq(end),
            If(self.is_last, state.eq(PRBS_SEED)),
        )
