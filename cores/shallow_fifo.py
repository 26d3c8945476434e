# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Buffers words between two clocks in LUT RAM, fast enough for 125 MHz on ECP5; only `StreamCrossing` is built on it."""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *
from litex.soc.interconnect import stream

# Gray Pointer -------------------------------------------------------------------------------------

class GrayPointer(LiteXModule):
    """Counts steps, in binary and in Gray code, whose present and next value are registers.

    Attributes
    ----------
    step : Signal(), in
    binary, gray, gray_next : Signal(width), out
    """
    def __init__(self, width):
        self.step      = Signal()
        self.binary    = Signal(width)
        self.gray      = Signal(width)
        self.gray_next = Signal(width, reset=1)

        # # #

        after_next = Signal(width)
        self.gray.attr.add("no_retiming")
        self.comb += after_next.eq(self.binary + 2)
        self.sync += If(self.step,
            self.binary.eq(self.binary + 1),
            self.gray.eq(self.gray_next),
            self.gray_next.eq(after_next ^ after_next[1:]),
        )

def differ(a, b):
    """Return whether two words of one width differ, written bit by bit."""
    return Reduce("OR", [x ^ y for x, y in zip(a, b)])

# Shallow FIFO -------------------------------------------------------------------------------------

class ShallowFIFO(LiteXModule):
    """Asynchronous FIFO in LUT RAM whose only read register is its output; domains ``write`` and ``read``.

    Migen's AsyncFIFO looks up the address after next in the same cycle as it learns of ``ready``: six levels of
    logic, too slow for 125 MHz on ECP5. Here the address is a register, and so is each verdict.

    Parameters
    ----------
    rests_write, rests_read : bool
        After each transfer into (out of) the memory that side rests for a cycle, which takes half of the logic.

    Attributes
    ----------
    sink, source : Endpoint(layout), in (write) and out (read)
    """
    def __init__(self, layout, depth, rests_write=False, rests_read=False):
        self.sink   = sink   = stream.Endpoint(layout)
        self.source = source = stream.Endpoint(layout)

        # # #

        bits       = log2_int(depth)
        entry      = Cat(*sink.payload.flatten(), *sink.param.flatten(), sink.first, sink.last)
        fields     = Cat(*source.payload.flatten(), *source.param.flatten(), source.first, source.last)
        storage    = Memory(len(entry), depth)
        write_port = storage.get_port(write_capable=True, clock_domain="write", mode=READ_FIRST)
        read_port  = storage.get_port(async_read=True, clock_domain="read")
        produce    = ClockDomainsRenamer("write")(GrayPointer(bits + 1))
        consume    = ClockDomainsRenamer("read")(GrayPointer(bits + 1))
        produced   = Signal(bits + 1) # As the reader knows it.
        consumed   = Signal(bits + 1) # As the writer knows it.
        full       = Signal(bits + 1) # Where the writer would be with the FIFO full.
        is_there   = Signal()
        stream.set_reset_less(source.payload) # Counts only with ``valid``.
        self.specials   += storage, write_port, read_port
        self.specials   += MultiReg(produce.gray, produced, "read"), MultiReg(consume.gray, consumed, "write")
        self.submodules += produce, consume
        self.comb += [
            full.eq(Cat(consumed[:-2], ~consumed[-2], ~consumed[-1])),
            produce.step.eq(sink.valid & sink.ready),
            write_port.adr.eq(produce.binary[:-1]),
            write_port.dat_w.eq(entry),
            write_port.we.eq(produce.step),
            consume.step.eq(is_there & (source.ready | ~source.valid)),
            read_port.adr.eq(consume.binary[:-1]),
        ]
        self.sync.write += self.judge(sink.ready, produce, full, rests_write)
        self.sync.read += [
            self.judge(is_there, consume, produced, rests_read),
            If(source.ready | ~source.valid,
                source.valid.eq(is_there),
                fields.eq(read_port.dat_r),
            ),
        ]

    def judge(self, verdict, pointer, limit, rests):
        """Register whether ``pointer`` is away from ``limit``, for a step and for none side by side: a step is known late."""
        if rests:
            return verdict.eq(~pointer.step & (pointer.gray != limit))
        # Bit by bit for the step, because Yosys would make one comparison behind a multiplexer of two that look alike.
        return verdict.eq(Mux(pointer.step, differ(pointer.gray_next, limit), pointer.gray != limit))
