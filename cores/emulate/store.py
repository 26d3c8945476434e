# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the octets of frames wait: rings of a memory, a lane each."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteprobe.cores.emulate.kept import lut_ports
from liteprobe.cores.emulate.layouts import ADDRESS_BITS, LANE_BITS, POSITION_BITS, RING_BITS, ring_layout
from liteprobe.cores.formats.emulate import LANES
from liteprobe.cores.memory.sdram import BURST_WORDS

WORDS_BITS = 12 # Of a frame.
LINE_BITS  = log2_int(BURST_WORDS)
REQUESTS   = 4  # Frames whose words come in while those before are written.

request_layout = [ # Words of a frame, to be written or read.
    ("lane",     LANE_BITS),
    ("position", POSITION_BITS), # Of the first one.
    ("words",    WORDS_BITS),    # From 1.
]

# Ring Places --------------------------------------------------------------------------------------

class RingPlaces(LiteXModule):
    """Goes through the words of a frame, piece by piece, and says where they are.

    A piece ends where the next multiple of ``line`` words begins: so it never goes round the end of a ring.

    Parameters
    ----------
    rings : Endpoint(ring_layout)
        Where each ring is; ``ready`` is not driven.
    line : int
        A power of two, at most the size of the least ring.

    Attributes
    ----------
    sink : Endpoint(request_layout), in
    source : Endpoint([("address", 21), ("rest", bits of line)]), out
        Pieces: words less one; ``last`` with that of a frame.
    lane, end : Signal(4), Signal(22), out
        Of the frame at ``source``; the position behind the piece.
    is_idle : Signal(), out
    """
    def __init__(self, rings, line=BURST_WORDS):
        self.sink   = sink   = stream.Endpoint(request_layout)
        self.source = source = stream.Endpoint([("address", ADDRESS_BITS), ("rest", log2_int(line))])
        self.lane   = Signal(LANE_BITS, reset_less=True)
        self.end    = Signal(POSITION_BITS)
        self.is_idle = Signal()

        # # #

        bits        = log2_int(line)
        write, read = lut_ports(self, "places", ADDRESS_BITS + RING_BITS, LANES)
        base, size = Signal(ADDRESS_BITS), Signal(RING_BITS)
        mask       = Signal(ADDRESS_BITS, reset_less=True)
        place      = Signal(ADDRESS_BITS, reset_less=True) # Of the ring.
        position   = Signal(POSITION_BITS, reset_less=True)
        left       = Signal(WORDS_BITS, reset_less=True)   # Words, less one.
        to_line    = Signal(bits)
        self.comb += [
            write.adr.eq(rings.lane),
            write.dat_w.eq(Cat(rings.base, rings.bits)),
            write.we.eq(rings.valid),
            read.adr.eq(sink.lane),
            Cat(base, size).eq(read.dat_r),
            to_line.eq(~position[:bits]),
            source.address.eq((position & mask) | place),
            source.last.eq(left <= to_line),
            source.rest.eq(Mux(source.last, left, to_line)),
            self.end.eq(position + source.rest + 1),
        ]
        self.fsm = fsm = FSM(reset_state="WAIT")
        self.comb += self.is_idle.eq(fsm.ongoing("WAIT") & ~sink.valid)
        fsm.act("WAIT",
            sink.ready.eq(1),
            NextValue(self.lane, sink.lane),
            NextValue(mask, (1 << size) - 1),
            NextValue(place, base),
            NextValue(position, sink.position),
            NextValue(left, sink.words - 1),
            If(sink.valid, NextState("GIVE")),
        )
        fsm.act("GIVE",
            source.valid.eq(1),
            If(source.ready,
                NextValue(position, self.end),
                NextValue(left, left - source.rest - 1),
                If(source.last, NextState("WAIT")),
            ),
        )

# Frame Stores -------------------------------------------------------------------------------------

class FrameStore(LiteXModule):
    """Is what `BlockStore` and `SdramStore` have in common.

    Attributes
    ----------
    words : int
        That it holds.
    rings : Endpoint(ring_layout), in
        Where each ring is; ``ready`` is not driven.
    write : Endpoint(request_layout), in
        Words of a frame are to come.
    write_data : Endpoint([("data", 32)]), in
        So many words for each.
    written, written_lane, written_position : Signal(), Signal(4), Signal(22), out
        Pulse: words of a frame are in the memory up to this position, or will be before any read that is asked for later.
    read : Endpoint(request_layout), in
        Words of a frame are asked for. Only what was written.
    read_data : Endpoint([("data", 32)]), out
        So many words for each, in order.
    level : Signal, out
        Words that are ready to be taken from ``read_data``.
    is_idle : Signal(), out
        All that was asked for is done, and taken.
    """
    def __init__(self, words, buffer):
        self.words      = words
        self.rings      = stream.Endpoint(ring_layout)
        self.requests   = stream.SyncFIFO(request_layout, REQUESTS)
        self.write      = self.requests.sink
        self.write_data = stream.Endpoint([("data", 32)])
        self.written          = Signal()
        self.written_lane     = Signal(LANE_BITS)
        self.written_position = Signal(POSITION_BITS)
        self.is_idle    = Signal()
        self.read       = stream.Endpoint(request_layout)
        self.buffer     = stream.SyncFIFO([("data", 32)], buffer, buffered=True)
        self.read_data  = self.buffer.source
        self.level      = self.buffer.level
        self.writer     = RingPlaces(self.rings)
        self.reader     = RingPlaces(self.rings)
        self.comb += [
            self.requests.source.connect(self.writer.sink),
            self.read.connect(self.reader.sink),
            self.written.eq(self.writer.source.valid & self.writer.source.ready),
            self.written_lane.eq(self.writer.lane),
            self.written_position.eq(self.writer.end),
        ]

class BlockStore(FrameStore):
    """Keeps frames in block RAM: both ways a word a cycle.

    Parameters
    ----------
    words : int
        A power of two.
    buffer : int
        Words that are read ahead.
    """
    def __init__(self, words, buffer=512):
        FrameStore.__init__(self, words, buffer)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        self.memory = memory = Memory(32, words, name="store")
        put, get    = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, put, get
        into, out   = self.writer.source, self.reader.source
        put_rest, get_rest = Signal(LINE_BITS), Signal(LINE_BITS) # Words of the piece that are through.
        is_there    = Signal()
        has_room    = Signal()
        self.comb += [
            put.adr.eq(into.address + put_rest),
            put.dat_w.eq(self.write_data.data),
            put.we.eq(into.valid & self.write_data.valid),
            self.write_data.ready.eq(into.valid),
            into.ready.eq(put.we & (put_rest == into.rest)),
            has_room.eq(self.level < self.buffer.depth - 2),
            get.adr.eq(out.address + get_rest),
            out.ready.eq(has_room & (get_rest == out.rest)),
            self.buffer.sink.valid.eq(is_there),
            self.buffer.sink.data.eq(get.dat_r),
            self.is_idle.eq(self.writer.is_idle & self.reader.is_idle & ~is_there & (self.level == 0)),
        ]
        self.sync += [
            is_there.eq(out.valid & has_room),
            If(put.we, put_rest.eq(put_rest + 1)),
            If(into.valid & into.ready, put_rest.eq(0)),
            If(out.valid & has_room, get_rest.eq(get_rest + 1)),
            If(out.valid & out.ready, get_rest.eq(0)),
        ]

class SdramStore(FrameStore):
    """Keeps frames in the SDRAM, by bursts of up to 64 words.

    Parameters
    ----------
    write_port, read_port : BurstPort
        Of one memory; what is read after ``takes`` of a word is that word.
    address, words : int
        Where the store begins in the memory; its size.
    buffer : int
        Words that are read ahead.
    """
    def __init__(self, write_port, read_port, address, words, buffer=1024):
        FrameStore.__init__(self, words, buffer)

        # # #

        # A burst begins with all of its words here: so the memory never waits for what comes in.
        self.queue = queue = stream.SyncFIFO([("data", 32)], 512, buffered=True)
        into, out  = self.writer.source, self.reader.source
        taken      = Signal(LINE_BITS)
        held       = Signal(max=buffer + 1) # Words in the buffer, or on their way.
        self.fsm   = fsm = FSM(reset_state="ASK")
        asked      = Signal()
        is_whole   = Signal()
        has_room   = Signal()
        self.comb += [
            self.write_data.connect(queue.sink),
            write_port.request.write.eq(1),
            write_port.request.address.eq(into.address + address),
            write_port.request.rest.eq(into.rest),
            write_port.write_data.eq(queue.source.data),
            queue.source.ready.eq(write_port.takes),
            is_whole.eq(queue.level > into.rest),
            has_room.eq(held + out.rest < buffer),
            read_port.request.write.eq(0),
            read_port.request.address.eq(out.address + address),
            read_port.request.rest.eq(out.rest),
            read_port.request.valid.eq(out.valid & has_room),
            asked.eq(read_port.request.valid & read_port.request.ready),
            out.ready.eq(asked),
            self.buffer.sink.valid.eq(read_port.gives),
            self.buffer.sink.data.eq(read_port.read_data),
        ]
        fsm.act("ASK",
            write_port.request.valid.eq(into.valid & is_whole),
            If(write_port.request.valid & write_port.request.ready, NextState("GIVE")),
        )
        fsm.act("GIVE",
            If(write_port.takes,
                NextValue(taken, taken + 1),
                If(taken == into.rest,
                    NextValue(taken, 0),
                    into.ready.eq(1),
                    NextState("ASK"),
                ),
            ),
        )
        left = Signal()
        self.comb += [
            left.eq(self.read_data.valid & self.read_data.ready),
            self.is_idle.eq(self.writer.is_idle & self.reader.is_idle & (held == 0)),
        ]
        self.sync += held.eq(held + Mux(asked, out.rest + 1, 0) - left)
