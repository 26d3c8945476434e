# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Buffers words and takes them back, where only later words tell whether they are wanted."""

from migen import *

from litex.gen import *

class RewindFIFO(LiteXModule):
    """Holds words in block RAM, and gives those that were kept; what was written after them can be taken back.

    Parameters
    ----------
    width, depth : int
        Bits of a word; words, a power of two. It holds one less.

    Attributes
    ----------
    write, write_data : Signal(), Signal(width), in
        A word; only where ``level`` is below depth - 1.
    keep : Signal(), in
        All words up to this cycle's may be read. They can't be taken back any more.
    rewind : Signal(), in
        Takes back what was not kept; without ``write``.
    level : Signal(max=depth), out
        Words in it, with those that aren't kept.
    is_there, read_data : Signal(), Signal(width), out
        The oldest word is kept, and what it is. From a cycle after ``keep`` on; straight from the memory.
    step : Signal(), in
        The oldest word leaves; only with ``is_there``. The next one is there in the next cycle.
    """
    def __init__(self, width, depth):
        self.write      = Signal()
        self.write_data = Signal(width)
        self.keep       = Signal()
        self.rewind     = Signal()
        self.level      = Signal(max=depth)
        self.is_there   = Signal()
        self.read_data  = Signal(width)
        self.step       = Signal()

        # # #

        memory     = Memory(width, depth)
        write_port = memory.get_port(write_capable=True, mode=READ_FIRST)
        read_port  = memory.get_port(mode=READ_FIRST)
        written      = Signal(max=depth)
        next_written = Signal(max=depth)
        committed    = Signal(max=depth)
        read         = Signal(max=depth)
        next_read    = Signal(max=depth)
        self.autocsr_exclude = {"memory"}
        self.specials += memory, write_port, read_port
        self.comb += [
            write_port.adr.eq(written),
            write_port.dat_w.eq(self.write_data),
            write_port.we.eq(self.write),
            read_port.adr.eq(next_read),
            self.read_data.eq(read_port.dat_r),
            self.level.eq(written - read),
            next_written.eq(written + self.write),
            next_read.eq(read + self.step),
        ]
        self.sync += [
            written.eq(next_written),
            If(self.rewind, written.eq(committed)),
            If(self.keep, committed.eq(next_written)),
            read.eq(next_read),
            self.is_there.eq(next_read != committed),
        ]
