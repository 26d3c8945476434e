# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Keeps when each stream of a port is due, and which one is first, as a tree of winners: four cycles a change.

Stands alone: it knows due ticks and nothing else of streams.
"""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAMS

STREAM_BITS = log2_int(STREAMS)

class DueTree(LiteXModule):
    """Knows the stream that is due first, the lowest number on a tie; in ``timebase``.

    A memory has a node for each pair of nodes or streams, with the earlier one of them. A change goes from its stream to the root,
    a level a cycle, and meets the other one of the pair at each.

    Parameters
    ----------
    due_bits : int

    Attributes
    ----------
    change : Signal(), in
        One cycle, while not ``is_busy``: ``stream`` is due at ``due``, or never unless ``is_valid``.
    stream, is_valid, due : Signal(4), Signal(), Signal(due_bits), in
    clear : Signal(), in
        While high, for 32 cycles or more: no stream is due.
    is_busy : Signal(), out
        The four cycles after a change: what follows isn't known.
    found, number, first : Signal(), Signal(4), Signal(due_bits), out
        A stream is due; which one is first, and when.
    """
    def __init__(self, due_bits):
        self.change   = Signal()
        self.stream   = Signal(STREAM_BITS)
        self.is_valid = Signal()
        self.due      = Signal(due_bits)
        self.clear    = Signal()
        self.is_busy  = Signal()
        self.found    = Signal()
        self.number   = Signal(STREAM_BITS, reset_less=True)
        self.first    = Signal(due_bits, reset_less=True)

        # # #

        # Else LiteX gives the memory a page of the CSR bus.
        self.autocsr_exclude = {"memory"}
        node         = [self.found, self.number, self.first]
        other        = [Signal.like(one, name=f"other_{n}") for n, one in enumerate(node)]
        self.memory  = memory = Memory(len(Cat(*node)), 2*STREAMS, name="due_tree")
        read         = memory.get_port(async_read=True, clock_domain="timebase")
        write        = memory.get_port(write_capable=True, clock_domain="timebase")
        self.specials += memory, read, write
        place        = Signal(STREAM_BITS + 1) # In the memory: the root is 1, the children of n are 2n and 2n + 1.
        is_left      = Signal()
        is_earlier   = Signal()
        self.comb += [
            self.is_busy.eq(place[1:] != 0),
            is_left.eq(~place[0]),
            read.adr.eq(place ^ 1),
            Cat(*other).eq(read.dat_r),
            # One more in the comparison: on a tie the left one is first.
            is_earlier.eq(Cat(Constant(0, 1), self.first) < Cat(is_left, other[2])),
            write.adr.eq(place),
            write.dat_w.eq(Cat(*node)),
            write.we.eq(self.is_busy | self.clear),
        ]
        self.sync.timebase += [
            If(self.change,
                place.eq(Cat(self.stream, 1)),
                self.found.eq(self.is_valid),
                self.number.eq(self.stream),
                self.first.eq(self.due),
            ).Elif(self.is_busy,
                place.eq(place[1:]),
                If(other[0] & ~(self.found & is_earlier), Cat(*node).eq(Cat(*other))),
            ),
            If(self.clear,
                self.found.eq(0),
                place.eq(place + 1),
            ),
        ]
