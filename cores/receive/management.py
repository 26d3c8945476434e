# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stores good frames for the management stack, whole, then forwards them."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description

from liteprobe.cores.formats import MIN_LENGTH
from liteprobe.cores.receive.frames import frame_layout
from liteprobe.cores.receive.mac import ReceiveMAC

# Frame Store --------------------------------------------------------------------------------------

class FrameStore(LiteXModule):
    """Keeps frames until they are known to be good, then gives them away; never stalls what comes in.

    Parameters
    ----------
    data_width : int
        Of ``sink``: 32 or 64 (bits).
    octets : int
        What it holds; a power of two. The default holds two of the longest untagged frames.
    is_packed : bool
        Keep no bit for ``last``: ``last_be`` tells it, 0 but in the last word of any good frame. 36 bits fit block RAM, 37 don't.

    Attributes
    ----------
    sink : Endpoint(frame_layout(data_width)), in
        Always ready. Frames with any error in their verdict, or shorter than 60 bytes, are left out.
    refuse : Signal(), in
        With the last word: leaves the frame out.
    source : Endpoint(eth_phy_description(32)), out
        Whole good frames.
    stored, dropped : Signal(), out
        One cycle for each good frame that was kept, or that found too little space.
    """
    def __init__(self, data_width=32, octets=4096, is_packed=False):
        self.sink    = sink   = stream.Endpoint(frame_layout(data_width))
        self.refuse  = Signal()
        self.source  = stream.Endpoint(eth_phy_description(32))
        self.stored  = Signal()
        self.dropped = Signal()

        # # #

        depth  = octets//(data_width//8)
        marks  = [("last_be", data_width//8)] if is_packed else [("last", 1), ("last_be", data_width//8)]
        packed = Record([("data", data_width), *marks])
        memory = Memory(len(packed.raw_bits()), depth)
        self.specials += memory
        self.comb += [
            sink.ready.eq(1),
            *[getattr(packed, name).eq(getattr(sink, name)) for name, _ in packed.layout],
        ]
        read, committed = self.add_write(memory, packed.raw_bits())
        self.add_read(memory, packed.layout, read, committed)

    def add_write(self, memory, packed):
        """Write frames as they come, and take bad ones back at their end; return the pointers."""
        sink  = self.sink
        bits  = log2_int(memory.depth)
        lanes = len(sink.last_be)

        # A pointer has a bit more than an address: full and empty differ.
        written   = Signal(bits + 1)
        committed = Signal(bits + 1)
        read      = Signal(bits + 1)
        level     = Signal(bits + 1)
        fits      = Signal()
        is_cut    = Signal() # The present frame found too little space.
        self.comb += [
            level.eq(written - read),
            fits.eq((level != memory.depth) & ~is_cut),
        ]

        # Byte 59 says that the frame is not a runt.
        final_word, final_lane = divmod(MIN_LENGTH - 1, lanes)
        word    = Signal(max=final_word + 2)
        is_good = Signal()
        self.comb += is_good.eq(
            ~(sink.fcs_error | sink.symbol_error | sink.overflow | self.refuse) &
            ((word > final_word) | ((word == final_word) & (sink.last_be[final_lane:] != 0)))
        )

        port = memory.get_port(write_capable=True)
        self.specials += port
        self.comb += [
            port.adr.eq(written[:bits]),
            port.dat_w.eq(packed),
            port.we.eq(sink.valid & fits),
        ]
        self.sync += [
            If(sink.valid,
                If(fits, written.eq(written + 1)).Else(is_cut.eq(1)),
                If(word <= final_word, word.eq(word + 1)),
                If(sink.last,
                    word.eq(0),
                    is_cut.eq(0),
                    If(is_good & fits, committed.eq(written + 1)).Else(written.eq(committed))
                )
            ),
            self.stored.eq( sink.valid & sink.last & is_good &  fits),
            self.dropped.eq(sink.valid & sink.last & is_good & ~fits),
        ]
        return read, committed

    def add_read(self, memory, layout, read, committed):
        """Give away what is committed, 32 bits at a time."""
        words    = len(self.sink.data)//32
        word     = Record(layout)
        half     = Signal()
        is_valid = Signal()
        is_done  = Signal() # The memory's word leaves.
        self.buffer = buffer = stream.Buffer(eth_phy_description(32))
        out         = buffer.sink
        stream.set_reset_less(buffer.pipe_valid.source.payload) # Counts only with ``valid``.

        # The memory shows the word that ``read`` points at, whatever it will be.
        next_read = Signal.like(read)
        port      = memory.get_port()
        self.specials += port
        self.comb += [
            next_read.eq(read + is_done),
            port.adr.eq(next_read[:len(port.adr)]),
            word.raw_bits().eq(port.dat_r),
        ]
        self.sync += [
            read.eq(next_read),
            is_valid.eq(next_read != committed),
        ]

        # A wide word leaves in two halves, unless the frame ends in its first.
        self.comb += [
            out.valid.eq(is_valid),
            Case(half, {number: [
                out.data.eq(word.data[32*number:32*number + 32]),
                out.last_be.eq(word.last_be[4*number:4*number + 4]),
            ] for number in range(words)}),
            out.last.eq((word.last if hasattr(word, "last") else 1) & (out.last_be != 0)),
            is_done.eq(is_valid & out.ready & (out.last | (half == words - 1))),
            buffer.source.connect(self.source),
        ]
        if words == 2:
            self.sync += If(is_valid & out.ready, half.eq(~half & ~out.last))

# Management Receive -------------------------------------------------------------------------------

class ManagementReceive(LiteXModule):
    """The receive side of a port that only carries management.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, eth_rx
        The PHY's source.
    source : Endpoint(eth_phy_description(32)), out, sys
        Whole good frames. What finds no space is dropped.
    stored, dropped : Signal(), out, sys
        As of FrameStore.
    refused, cut : Signal(4), out, sys
        As ``preamble_errors`` and ``overflows`` of ReceiveMAC.
    """
    def __init__(self):
        self.sink    = stream.Endpoint(eth_phy_description(8))
        self.source  = stream.Endpoint(eth_phy_description(32))
        self.stored  = Signal()
        self.dropped = Signal()
        self.refused = Signal(4)
        self.cut     = Signal(4)

        # # #

        self.mac   = mac   = ReceiveMAC(32)
        self.store = store = FrameStore(32)
        self.comb += [
            self.sink.connect(mac.sink),
            mac.source.connect(store.sink),
            store.source.connect(self.source),
            self.stored.eq(store.stored),
            self.dropped.eq(store.dropped),
            self.refused.eq(mac.preamble_errors),
            self.cut.eq(mac.overflows),
        ]
