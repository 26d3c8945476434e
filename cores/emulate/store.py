# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Stores what a direction has in block RAM or in the SDRAM: octets of frames in rings, a lane each, and a bandwidth trace."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.assign import copied
from liteprobe.cores.capture.descriptors import descriptor_layout
from liteprobe.cores.emulate.layouts import ADDRESS_BITS, LANE_BITS, POSITION_BITS, RING_BITS, ring_layout, verdict_layout
from liteprobe.cores.emulate.memories import lut_ports
from liteprobe.cores.formats.emulate import LANES, TRACE_ENTRY_WORDS
from liteprobe.cores.memory.ports import REQUESTS as PORT_REQUESTS
from liteprobe.cores.memory.sdram import BURST_WORDS

WORDS_BITS = 12 # Of a frame.
LINE_BITS  = log2_int(BURST_WORDS)
WORD_BITS  = log2_int(TRACE_ENTRY_WORDS)
SDRAM_BLOCK = 8 # Opportunities of a burst.
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
        Of the frame at ``source``; the position after the piece.
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
        base       = Signal(ADDRESS_BITS)
        size       = Signal(RING_BITS)
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

class RingStore(LiteXModule):
    """Keeps frames in rings of a memory, a ring a lane: what `BlockStore` and `SdramStore` have in common.

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
        ]

    def count_taken(self):
        """Tell of the words of a piece once they are taken."""
        self.comb += [
            self.written.eq(self.writer.source.valid & self.writer.source.ready),
            self.written_lane.eq(self.writer.lane),
            self.written_position.eq(self.writer.end),
        ]

class BlockStore(RingStore):
    """Keeps frames in block RAM: both ways a word a cycle.

    Parameters
    ----------
    words : int
        A power of two.
    buffer : int
        Words that are read ahead.
    """
    def __init__(self, words, buffer=512):
        RingStore.__init__(self, words, buffer)

        # # #

        self.count_taken()
        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        self.memory = memory = Memory(32, words, name="store")
        put, get    = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, put, get
        into, out   = self.writer.source, self.reader.source
        put_rest    = Signal(LINE_BITS) # Words of the piece that are through,
        get_rest    = Signal(LINE_BITS) # and of the one that is read.
        is_there    = Signal()
        has_space    = Signal()
        self.comb += [
            put.adr.eq(into.address + put_rest),
            put.dat_w.eq(self.write_data.data),
            put.we.eq(into.valid & self.write_data.valid),
            self.write_data.ready.eq(into.valid),
            into.ready.eq(put.we & (put_rest == into.rest)),
            has_space.eq(self.level < self.buffer.depth - 2),
            get.adr.eq(out.address + get_rest),
            out.ready.eq(has_space & (get_rest == out.rest)),
            self.buffer.sink.valid.eq(is_there),
            self.buffer.sink.data.eq(get.dat_r),
            self.is_idle.eq(self.writer.is_idle & self.reader.is_idle & ~is_there & (self.level == 0)),
        ]
        self.sync += [
            is_there.eq(out.valid & has_space),
            If(put.we, put_rest.eq(put_rest + 1)),
            If(into.valid & into.ready, put_rest.eq(0)),
            If(out.valid & has_space, get_rest.eq(get_rest + 1)),
            If(out.valid & out.ready, get_rest.eq(0)),
        ]

class SdramStore(RingStore):
    """Keeps frames in the SDRAM, by bursts of up to 64 words.

    Parameters
    ----------
    write_port, read_port : BurstPort
        Of one memory. Where they aren't ordered, words count as written once their burst is through.
    address, words : int
        Where the store begins in the memory; its size.
    buffer : int
        Words that are read ahead.
    """
    def __init__(self, write_port, read_port, address, words, buffer=1024):
        RingStore.__init__(self, words, buffer)

        # # #

        # A burst begins with all of its words here: so the memory never waits for what comes in.
        self.queue = queue = stream.SyncFIFO([("data", 32)], 512, buffered=True)
        into, out  = self.writer.source, self.reader.source
        taken      = Signal(LINE_BITS)
        held       = Signal(max=buffer + 1) # Words in the buffer, or on their way.
        self.fsm   = fsm = FSM(reset_state="ASK")
        asked      = Signal()
        is_whole   = Signal()
        has_space   = Signal()
        self.comb += [
            self.write_data.connect(queue.sink),
            write_port.request.write.eq(1),
            write_port.request.address.eq(into.address + address),
            write_port.request.rest.eq(into.rest),
            write_port.write_data.eq(queue.source.data),
            queue.source.ready.eq(write_port.takes),
            is_whole.eq(queue.level > into.rest),
            has_space.eq(held + out.rest < buffer),
            read_port.request.write.eq(0),
            read_port.request.address.eq(out.address + address),
            read_port.request.rest.eq(out.rest),
            read_port.request.valid.eq(out.valid & has_space),
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
        left      = Signal()
        is_through = Signal(reset=1)
        self.comb += [
            left.eq(self.read_data.valid & self.read_data.ready),
            self.is_idle.eq(self.writer.is_idle & self.reader.is_idle & (held == 0) & is_through),
        ]
        if write_port.is_ordered:
            self.count_taken()
        else:
            self.add_landing(write_port, into.valid & into.ready, is_through)
        self.sync += held.eq(held + Mux(asked, out.rest + 1, 0) - left)

    def add_landing(self, port, begins, is_through):
        """Tell of the words of a burst once it is through, not when they are taken."""
        layout = [("lane", LANE_BITS), ("position", POSITION_BITS), ("number", len(port.last))]
        self.landing = landing = stream.SyncFIFO(layout, PORT_REQUESTS, buffered=False)
        self.lands   = landing.source.valid & port.is_through(landing.source.number)
        self.comb += [
            landing.sink.valid.eq(begins),
            landing.sink.lane.eq(self.writer.lane),
            landing.sink.position.eq(self.writer.end),
            landing.sink.number.eq(port.last),
            landing.source.ready.eq(self.lands),
            self.written.eq(self.lands),
            self.written_lane.eq(landing.source.lane),
            self.written_position.eq(landing.source.position),
            is_through.eq(~landing.source.valid),
        ]

# Frame Mover --------------------------------------------------------------------------------------

class FrameMover(LiteXModule):
    """Takes the frame at hand for each verdict, and writes its words to the store, or lets them go.

    Attributes
    ----------
    drains : Signal(), in
        Level: no program runs; all frames go, and so do verdicts.
    anew : Signal(), in
        Pulse, while ``drains``: the rings are empty from some cycles after the store is idle.
    verdicts : Endpoint(verdict_layout), in
    descriptor, data, skip : Endpoint(descriptor_layout()), Endpoint([("data", 32)]), Signal(), in, in and out
        Of `Staging`: each frame that came in, in order.
    store : RingStore
        ``write``, ``write_data``, ``written`` and ``is_idle`` of it are driven and looked at.
    lane, position : Signal(4), Signal(22), in and out
        Up to where the words of a lane are in the store, or on their way there before any read that is asked for later.

    A frame takes its words in cycles, and some five more.
    """
    def __init__(self, store):
        # The engine gives a verdict where it is taken at once, and only then: whether is known in its cycle.
        self.queue      = queue      = stream.Buffer(verdict_layout, pipe_valid=True, pipe_ready=True)
        self.verdicts   = queue.sink
        self.descriptor = descriptor = stream.Endpoint(descriptor_layout())
        self.data       = data       = stream.Endpoint([("data", 32)])
        self.skip       = Signal()
        self.drains     = Signal()
        self.anew       = Signal()
        self.lane       = Signal(LANE_BITS)
        self.position   = Signal(POSITION_BITS)

        # # #

        write_moved, look = lut_ports(self, "moved", POSITION_BITS, LANES)
        verdict  = queue.source
        write    = store.write
        clear    = Signal(LANE_BITS)
        clears   = Signal()
        is_asked = Signal() # For empty rings.
        keeps    = Signal()
        self.comb += [
            look.adr.eq(self.lane),
            self.position.eq(look.dat_r),
            write_moved.adr.eq(Mux(clears, clear, store.written_lane)),
            write_moved.dat_w.eq(Mux(clears, 0, store.written_position)),
            write_moved.we.eq(clears | store.written),
            keeps.eq(verdict.keep & ~self.drains),
            self.skip.eq(~keeps),
            *copied(write, verdict, "lane", "position"),
            write.words.eq(descriptor.words),
            store.write_data.data.eq(data.data),
        ]
        self.sync += If(self.anew, is_asked.eq(1)).Elif(clears, is_asked.eq(0))
        self.fsm = fsm = FSM(reset_state="CLEAR")
        fsm.act("CLEAR",
            clears.eq(1),
            NextValue(clear, clear + 1),
            If(clear == LANES - 1, NextValue(clear, 0), NextState("WAIT")),
        )
        fsm.act("WAIT",
            If(is_asked & store.is_idle,
                NextState("CLEAR"),
            ).Elif(self.drains,
                verdict.ready.eq(1),
                descriptor.ready.eq(1),
            ).Elif(verdict.valid & descriptor.valid,
                write.valid.eq(keeps),
                If(write.ready | ~keeps,
                    verdict.ready.eq(1),
                    descriptor.ready.eq(1),
                    If(keeps, NextState("MOVE")),
                ),
            ),
        )
        fsm.act("MOVE",
            data.connect(store.write_data, keep={"valid", "ready"}),
            If(data.valid & data.ready & data.last, NextState("WAIT")),
        )

# Trace Reader -------------------------------------------------------------------------------------

class TraceReader(LiteXModule):
    """Gives the opportunities of a trace in a circle, some of which it reads ahead.

    Parameters
    ----------
    depth : int
        Opportunities that there is space for, a power of two.
    block : int
        That are read at once, a power of two; it has space for two blocks.

    Attributes
    ----------
    start : Signal(), in
        Pulse: begin anew, with the first one.
    count : Signal, in
        Opportunities of the trace; stands still from ``start`` on. 0: none is given.
    source : Endpoint([("ticks", 32), ("octets", 32)]), out
    number : Signal, out
        Of the block that is read.
    asks : Signal(), out
        Its words are wanted.
    asked, gives, word : Signal(), Signal(), Signal(32), in
        They are on their way; pulse: this is the next one of them. All of a block must come.
    """
    def __init__(self, depth, block):
        self.start  = Signal()
        self.count  = Signal(max=depth + 1)
        self.number = Signal(max=depth//block)
        self.asks   = Signal()
        self.asked  = Signal()
        self.gives  = Signal()
        self.word   = Signal(32)

        # # #

        layout    = [("ticks", 32), ("octets", 32)]
        self.queue = queue = ResetInserter()(stream.SyncFIFO(layout, 2*block))
        self.source = queue.source
        last      = TRACE_ENTRY_WORDS*block - 1
        at        = Signal(max=last + 1) # Of the words of the block.
        ticks     = Signal(32, reset_less=True)
        after     = Signal.like(self.count) # Opportunities of the trace up to this one.
        is_over   = Signal() # What comes is after the trace.
        is_old    = Signal() # What comes is of a program before.
        ends      = Signal()
        self.comb += [
            queue.reset.eq(self.start),
            queue.sink.ticks.eq(ticks),
            queue.sink.octets.eq(self.word),
            queue.sink.valid.eq(self.gives & at[0] & ~is_over & ~is_old),
            after.eq(Cat(at, self.number)[WORD_BITS:] + 1),
            ends.eq(is_over | (after == self.count)),
        ]
        self.fsm = fsm = FSM(reset_state="ASK")
        fsm.act("ASK",
            self.asks.eq((self.count != 0) & ~self.start & (queue.level <= block)),
            If(self.asks & self.asked, NextState("TAKE")),
        )
        fsm.act("TAKE", If(self.gives & (at == last), NextState("ASK")))
        self.sync += [
            If(fsm.ongoing("ASK"), is_old.eq(0)),
            If(self.gives,
                at.eq(at + 1),
                ticks.eq(self.word),
                If(at[0], is_over.eq(ends)),
                If(at == last,
                    is_over.eq(0),
                    self.number.eq(Mux(ends, 0, self.number + 1)),
                ),
            ),
            If(self.start,
                is_old.eq(1),
                is_over.eq(0),
                self.number.eq(0),
            ),
            If(is_old, self.number.eq(0), is_over.eq(0)),
        ]

# Traces -------------------------------------------------------------------------------------------

class BlockTrace(TraceReader):
    """Reads a trace from block RAM, which the bus writes.

    Parameters
    ----------
    depth : int, as of `TraceReader`.

    Attributes
    ----------
    bus : wishbone.Interface, slave
        TRACE_ENTRY_WORDS of each opportunity. An access takes two cycles.
    words : int
        That it has.
    """
    def __init__(self, depth):
        TraceReader.__init__(self, depth, 1)
        self.words = TRACE_ENTRY_WORDS*depth
        self.bus   = bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        self.memory = memory = Memory(32, self.words, name="trace")
        host, get   = memory.get_port(write_capable=True, mode=READ_FIRST), memory.get_port(mode=READ_FIRST)
        self.specials += memory, host, get
        left = Signal(2) # Words on their way, a bit each.
        self.comb += [
            *copied(host, bus, "adr", "dat_w"),
            host.we.eq(bus.cyc & bus.stb & bus.we & ~bus.ack),
            bus.dat_r.eq(host.dat_r),
            get.adr.eq(Cat(left[0], self.number)),
            self.word.eq(get.dat_r),
            self.asked.eq(1),
            self.gives.eq(left != 0),
        ]
        self.sync += [
            bus.ack.eq(bus.cyc & bus.stb & ~bus.ack),
            left.eq(Cat(self.asks, left[0])),
        ]

class SdramTrace(TraceReader):
    """Reads a trace from the SDRAM, where the bus writes it.

    Parameters
    ----------
    port : BurstPort
    address : int
        Where it begins in the memory, words; a multiple of the words of a block.
    depth : int, as of `TraceReader`.
    """
    def __init__(self, port, address, depth):
        TraceReader.__init__(self, depth, SDRAM_BLOCK)
        self.comb += [
            port.request.valid.eq(self.asks),
            port.request.write.eq(0),
            port.request.address.eq(Cat(Constant(0, log2_int(TRACE_ENTRY_WORDS*SDRAM_BLOCK)), self.number) + address),
            port.request.rest.eq(TRACE_ENTRY_WORDS*SDRAM_BLOCK - 1),
            self.asked.eq(port.request.ready),
            self.gives.eq(port.gives),
            self.word.eq(port.read_data),
        ]
