# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Frames that go on to the management stack, past what takes datagrams out."""

from migen import *

from litex.gen import *
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.rewind_fifo import RewindFIFO

# Passing Frames -----------------------------------------------------------------------------------

PASS_WORDS = 512 # One block RAM.
HEAD_WORDS = 16  # More than the words of a frame by which it is known whose it is: they always find room.

class PassingFrames(LiteXModule):
    """Keeps the frames that go on to the management stack, and the first words of each frame until it is known whose it is.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(32)), in
        It is never stalled for less than HEAD_WORDS words behind a frame that went on.
    is_head : Signal(), in
        These are the first words of a frame.
    keep, rewind : Signal(), in
        As of `RewindFIFO`.
    source : Endpoint(eth_phy_description(32)), out
        Straight from the block RAM.
    """
    def __init__(self):
        self.sink    = sink   = stream.Endpoint(eth_phy_description(32))
        self.is_head = Signal()
        self.keep    = Signal()
        self.rewind  = Signal()
        self.source  = stream.Endpoint(eth_phy_description(32))

        # # #

        self.fifo = fifo = RewindFIFO(32 + 3, PASS_WORDS)
        out    = self.source
        octets = Signal(2) # Of the last word, less one.
        self.comb += [
            sink.ready.eq(self.is_head | (fifo.level < PASS_WORDS - HEAD_WORDS)),
            fifo.write.eq(sink.valid & sink.ready),
            fifo.write_data.eq(Cat(sink.data, sink.last, sink.last_be[1] | sink.last_be[3], sink.last_be[2] | sink.last_be[3])),
            fifo.keep.eq(self.keep),
            fifo.rewind.eq(self.rewind),
            out.valid.eq(fifo.is_there),
            Cat(out.data, out.last, octets).eq(fifo.read_data),
            out.last_be.eq(Mux(out.last, 1 << octets, 0)),
            fifo.step.eq(out.valid & out.ready),
        ]
