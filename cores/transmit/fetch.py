# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Fetches the octets of a frame that is replayed or forwarded."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteprobe.cores.octets import last_be_of_length
from liteprobe.cores.transmit.frames import LENGTH_BITS, descriptor_description, word_description

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
        As many words as hold ``snap`` octets are taken for each frame; what is behind these octets in the last one counts for
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
        is_kept = Signal(reset=not with_zeros) # Some of the word is octets of the ring.
        is_full = Signal() # All of it.
        is_end  = Signal() # The word behind these.
        is_past = Signal() # It was.
        kept    = Signal(DATA_WIDTH//8, reset=0 if with_zeros else 2**(DATA_WIDTH//8) - 1)
        tail    = sink.snap[:2]
        behind  = Signal(WORDS_BITS) # Number of the next word.
        self.comb += [
            behind.eq(word + 1),
            is_last.eq(Mux(sink.length[:2] != 0, word, behind) == sink.length[2:]),
            source.valid.eq(sink.valid & (octets.valid | ~is_kept)),
            source.last.eq(is_last),
            source.last_be.eq(Mux(is_last, last_be_of_length(sink.length, DATA_WIDTH), 0)),
            *[source.data[8*n:8*n + 8].eq(octets.data[8*n:8*n + 8] & Replicate(kept[n], 8)) for n in range(DATA_WIDTH//8)],
            octets.ready.eq(sink.valid & is_kept & source.ready),
            sink.ready.eq(source.valid & source.ready & is_last),
        ]
        if with_zeros:
            self.comb += [
                is_end.eq(word == sink.snap[2:]),
                is_full.eq(~is_end & ~is_past),
                is_kept.eq(is_full | (is_end & (tail != 0))),
                *[kept[n].eq(is_full | (is_end & (tail > n))) for n in range(DATA_WIDTH//8)],
            ]
        self.sync += If(source.valid & source.ready,
            word.eq(behind),
            If(is_end, is_past.eq(1)),
            If(is_last, word.eq(0), is_past.eq(0)),
        )
