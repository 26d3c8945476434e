# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Describes frames that wait for their records to be made."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.formats import RECORD_HEAD_WORDS

# Numbers ------------------------------------------------------------------------------------------

words_bits = 14 # Of a frame's octets.
slot_words = 8  # Of the queue's memory, for a descriptor.
slots      = 64 # In one block RAM.

# Layout -------------------------------------------------------------------------------------------

def descriptor_layout():
    """Return the layout of what is known of a frame that is captured."""
    return [
        *[(f"head{number}", 32) for number in range(RECORD_HEAD_WORDS)], # The record's.
        ("hash",       32), # Of the flow.
        ("has_header",  1), # Words 4 to 31 of the unified header follow.
        ("lost",        1), # Its octets found no space: they don't follow, nor does a header. Only that it was counts.
        ("words",      words_bits), # Of the frame's octets, that follow.
    ]

# Descriptor Queue ---------------------------------------------------------------------------------

class DescriptorQueue(LiteXModule):
    """Queues descriptors, word by word, in a block RAM.

    Attributes
    ----------
    put : Signal(), in
        Queue one; from 8 cycles apart, and only where ``has_space``.
    given, given_place : Record(descriptor_layout()), Signal(4), in
        The descriptor, but for ``words``, and where its header is: from ``put`` on for 7 cycles.
    given_words, given_start : Signal(14), Signal(15), in
        How many words, and where they are: with ``put``.
    has_space : Signal(), out
    source : Endpoint(descriptor_layout()), out
        In order; from 10 cycles apart.
    start, place : Signal(15), Signal(4), out
        Of the one at ``source``.
    is_empty : Signal(), out
        All that were put have left; falls in the cycle after ``put``.
    """
    def __init__(self):
        self.put         = Signal()
        self.given       = given = Record(descriptor_layout())
        self.given_words = Signal(words_bits)
        self.given_start = Signal(words_bits + 1)
        self.given_place = Signal(4)
        self.has_space    = Signal()
        self.source      = stream.Endpoint(descriptor_layout())
        self.start       = Signal(words_bits + 1, reset_less=True)
        self.place       = Signal(4, reset_less=True)
        self.is_empty    = Signal(reset=1)

        # # #

        memory = Memory(36, slot_words*slots)
        writer, reader = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, writer, reader
        last = RECORD_HEAD_WORDS + 1 # Word of a slot.

        # Put.
        # ----
        # Start and words go beside the last words, in the bits that make 36 of them.
        step    = Signal(max=slot_words)
        writes  = Signal()
        written = Signal(max=2*slots) # A bit more than the number of a slot.
        start   = Signal.like(self.given_start)
        words   = Signal(words_bits)
        rest    = Signal(36)
        self.comb += [
            writer.we.eq(writes),
            writer.adr.eq(Cat(step, written[:-1])),
            rest.eq(Cat(start, words, given.has_header, given.lost, self.given_place)),
            Case(step, {
                **{number: writer.dat_w.eq(getattr(given, f"head{number}")) for number in range(RECORD_HEAD_WORDS)},
                RECORD_HEAD_WORDS : writer.dat_w.eq(given.hash),
                "default"         : writer.dat_w.eq(rest),
            }),
        ]
        self.sync += [
            If(writes,
                step.eq(step + 1),
                If(step == last, step.eq(0), writes.eq(0), written.eq(written + 1)),
            ),
            If(self.put, writes.eq(1), start.eq(self.given_start), words.eq(self.given_words)),
        ]

        # Count.
        # ------
        count  = Signal(max=2*slots)
        leaves = Signal()
        self.comb += leaves.eq(self.source.valid & self.source.ready)
        self.sync += [
            If(self.put & ~leaves, count.eq(count + 1)),
            If(leaves & ~self.put, count.eq(count - 1)),
            self.has_space.eq(count < slots - 1),
            self.is_empty.eq((count == 0) & ~self.put | (count == 1) & leaves & ~self.put),
        ]
        self.add_read(reader, written, last)

    def add_read(self, reader, written, last):
        """Fetch the next descriptor, with a register after the block RAM."""
        source  = self.source
        read    = Signal.like(written)
        step    = Signal(max=slot_words)
        fetches = Signal()
        arrives = Signal()
        arrived = Signal(max=slot_words)
        heads   = [getattr(source, f"head{number}") for number in range(RECORD_HEAD_WORDS)]
        rest    = Cat(self.start, source.words, source.has_header, source.lost, self.place)
        stream.set_reset_less(source.payload)
        self.comb += [
            reader.adr.eq(Cat(step, read[:-1])),
            fetches.eq(~source.valid & (read != written) & ~(arrives & (arrived == last))),
        ]
        self.sync += [
            If(source.valid & source.ready, source.valid.eq(0)),
            If(fetches & (step != last + 1), step.eq(step + 1)),
            arrives.eq(fetches & (step != last + 1)),
            arrived.eq(step),
            If(arrives,
                Case(arrived, {
                    **{number: word.eq(reader.dat_r) for number, word in enumerate([*heads, source.hash])},
                    "default": rest.eq(reader.dat_r),
                }),
                If(arrived == last, source.valid.eq(1), read.eq(read + 1), step.eq(0)),
            ),
        ]
