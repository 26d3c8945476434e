# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Holds frames until it is decided on them, and then until their records are made."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.octets import bytes_of_last_be
from liteprobe.cores.capture.descriptors import DescriptorQueue, descriptor_layout, words_bits
from liteprobe.cores.receive.frames import frame_layout

class Staging(LiteXModule):
    """Keeps the first octets of frames; never stalls what comes in, and says of each frame that found too little space.

    A frame goes through it in three steps, each for every frame in order: its words pass at ``sink``, and ``classifies``
    says whether it stays; ``decide`` says whether it is kept; the reader takes its descriptor, then its words. The words of
    a frame that is not kept go once the reader has come by, at once where it has nothing else to do.

    Parameters
    ----------
    octets : int
        What it holds; a power of two, up to 65536.

    Attributes
    ----------
    sink : Endpoint(frame_layout(32)), in
        Always ready.
    snap_length : Signal(16), in
        Octets that are kept of a frame, at most. Counts as it was before the frame began.
    classifies : Signal(), in
        With the last word of a frame: there will be a ``decide``.
    snapped, is_lost : Signal(16), Signal(), out
        Of the last frame that was classified, from two cycles after its last word: octets that are here; or they found too
        little space, and none is.
    decide, keep : Signal(), Signal(), in
        One cycle for each frame that was classified, in order, from 8 cycles apart: whether there will be a record of it.
    is_placed : Signal(), out
        With ``decide``: there will be a descriptor. Without, though ``keep``: there was no space for one.
    given, given_octets, given_place : Record(descriptor_layout()), Signal(16), Signal(4), in
        Its descriptor, held for 8 cycles, but for ``words``: ``given_octets`` is what ``snapped`` was of this frame. And
        where its unified header is.
    opens, skips, place : Signal(), Signal(), Signal(4), out
        One cycle: the descriptor of a frame with a unified header is accepted; its header at ``place`` is wanted, or is not.
    is_reading : Signal(), in
        The header of the descriptor accepted before is being read still.
    descriptor : Endpoint(descriptor_layout()), out
        Of each frame that is kept.
    skip : Signal(), in
        In the cycle in which a descriptor is accepted: nothing of it follows.
    data : Endpoint([("data", 32)]), out
        Of each other descriptor that is accepted, ``words`` words. What is after the frame's end in the last one is 0.
    """
    def __init__(self, octets=4096):
        self.sink        = stream.Endpoint(frame_layout(32))
        self.snap_length = Signal(16, reset=0xffff)
        self.classifies  = Signal()
        self.snapped     = Signal(16)
        self.is_lost     = Signal()
        self.decide      = Signal()
        self.keep        = Signal()
        self.is_placed   = Signal()
        self.given       = Record(descriptor_layout())
        self.given_octets = Signal(16)
        self.given_place = Signal(4)
        self.opens       = Signal()
        self.skips       = Signal()
        self.place       = Signal(4)
        self.is_reading  = Signal()
        self.descriptor  = stream.Endpoint(descriptor_layout())
        self.skip        = Signal()
        self.data        = stream.Endpoint([("data", 32)])

        # # #

        # Pointers have a bit more than an address: full and empty differ.
        depth       = octets//4
        memory      = Memory(32, depth)
        self.bits   = bits = log2_int(depth)
        assert depth <= 2**words_bits
        self.specials += memory
        # Behind the last word that was written, decided on, read.
        self.written = Signal(bits + 1)
        self.decided = Signal(bits + 1)
        self.read    = Signal(bits + 1)
        self.add_write(memory)
        self.add_queue()
        self.add_read(memory)

    def add_write(self, memory):
        """Write words as they come, and take back those of frames that don't stay."""
        sink, bits = self.sink, self.bits
        writer = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += writer
        # To be kept; kept of the present frame.
        left   = Signal(16, reset=0xffff)
        octets = Signal(16)
        # Octets of the word that are kept, that are there.
        count   = Signal(3)
        present = Signal(3)
        start   = Signal(bits + 1)
        level   = Signal(bits + 1)
        fits    = Signal()
        is_cut  = Signal()
        is_lost = Signal()
        writes  = Signal()
        self.comb += [
            sink.ready.eq(1),
            present.eq(Mux(sink.last, bytes_of_last_be(sink.last_be), 4)),
            count.eq(Mux((left[2:] == 0) & (left[:3] < present), left[:3], present)),
            level.eq(self.written - self.read),
            fits.eq((level[bits] == 0) & ~is_cut),
            is_lost.eq(is_cut | ((count != 0) & ~fits)),
            writes.eq(sink.valid & (count != 0) & fits),
            writer.we.eq(writes),
            writer.adr.eq(self.written[:bits]),
            *[writer.dat_w[8*lane:8*lane + 8].eq(sink.data[8*lane:8*lane + 8] & Replicate(count > lane, 8)) for lane in range(4)],
        ]
        in_frame   = Signal()
        classified = Signal()
        snapped    = Signal(16, reset_less=True)
        was_lost   = Signal(reset_less=True)
        self.sync += [
            classified.eq(sink.valid & self.classifies),
            If(classified, self.snapped.eq(snapped), self.is_lost.eq(was_lost)),
            If(writes, self.written.eq(self.written + 1)),
            If(sink.valid,
                left.eq(left - count),
                octets.eq(octets + count),
                is_cut.eq(is_lost),
                in_frame.eq(1),
                If(sink.last,
                    octets.eq(0), is_cut.eq(0), in_frame.eq(0),
                    If(self.classifies & ~is_lost, start.eq(self.written + writes)).Else(self.written.eq(start)),
                    snapped.eq(octets + count), was_lost.eq(is_lost),
                    If(is_lost, snapped.eq(0)),
                )
            ),
            If(Mux(sink.valid, sink.last, ~in_frame), left.eq(self.snap_length)),
        ]

    def add_queue(self):
        """Queue the descriptors of what is kept."""
        self.queue = queue = DescriptorQueue()
        words = Signal(words_bits)
        self.comb += [
            words.eq((self.given_octets + 3)[2:]),
            self.is_placed.eq(self.decide & self.keep & queue.has_space),
            queue.put.eq(self.is_placed),
            queue.given.eq(self.given),
            queue.given_words.eq(words),
            queue.given_start.eq(self.decided),
            queue.given_place.eq(self.given_place),
        ]
        self.sync += If(self.decide, self.decided.eq(self.decided + words))

    def add_read(self, memory):
        """Give the words of the descriptor that was accepted."""
        queue, descriptor = self.queue, self.descriptor
        self.buffer = buffer = stream.Buffer([("data", 32)])
        reader = memory.get_port(mode=READ_FIRST)
        self.specials += reader
        next_read = Signal.like(self.read)
        left      = Signal(words_bits)
        is_open   = Signal()
        is_there  = Signal()
        accepts   = Signal()
        passes    = Signal()
        ends      = Signal()
        out       = buffer.sink
        self.comb += [
            queue.source.connect(descriptor, omit={"valid", "ready"}),
            descriptor.valid.eq(queue.source.valid & ~is_open & ~self.is_reading),
            accepts.eq(descriptor.valid & descriptor.ready),
            queue.source.ready.eq(accepts),
            self.opens.eq(accepts & descriptor.has_header & ~self.skip),
            self.skips.eq(accepts & descriptor.has_header & self.skip),
            self.place.eq(queue.place),
            out.valid.eq(is_there),
            out.data.eq(reader.dat_r),
            out.last.eq(left == 1),
            passes.eq(is_there & out.ready),
            ends.eq(passes & out.last),
            next_read.eq(self.read + passes),
            reader.adr.eq(next_read[:self.bits]),
            buffer.source.connect(self.data),
        ]
        self.sync += [
            self.read.eq(next_read),
            left.eq(left - passes),
            is_there.eq(is_open & ~ends),
            If(ends, is_open.eq(0)),
            # What nobody waits for.
            If(~is_open & queue.is_empty, self.read.eq(self.decided)),
            If(accepts,
                self.read.eq(queue.start + Mux(self.skip, descriptor.words, 0)),
                left.eq(descriptor.words),
                is_open.eq((descriptor.words != 0) & ~self.skip),
            ),
        ]
