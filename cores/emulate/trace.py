# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Where the opportunities of a bandwidth trace lie: in a block RAM or the SDRAM."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream, wishbone

from liteprobe.cores.formats.emulate import TRACE_ENTRY_WORDS

WORD_BITS   = log2_int(TRACE_ENTRY_WORDS)
SDRAM_BLOCK = 8 # Opportunities of a burst.

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
        is_over   = Signal() # What comes is behind the trace.
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
        fsm.act("TAKE",
            If(self.gives & (at == last), NextState("ASK")),
        )
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
            host.adr.eq(bus.adr),
            host.dat_w.eq(bus.dat_w),
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
