# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Finds the slot of a stream in a meter, and keeps which slots hold measurements."""

from migen import *

from litex.gen import *

# Slot Finder --------------------------------------------------------------------------------------

class SlotFinder(LiteXModule):
    """Finds the slot of a stream: the streams from ``stream_base`` on have slots 1 and on, all others 0.

    Parameters
    ----------
    slots : int
        A power of two.

    Attributes
    ----------
    stream_id, stream_base : Signal(16), in
    slot : Signal, out
        Two cycles later.
    """
    def __init__(self, slots):
        self.stream_id   = Signal(16)
        self.stream_base = Signal(16) # Modulo 2^16.
        self.slot        = Signal(max=slots, reset_less=True)

        # # #

        number = Signal(16, reset_less=True) # From stream_base on.
        self.sync += [
            number.eq(self.stream_id - self.stream_base),
            self.slot.eq(Mux(number < slots - 1, number[:len(self.slot)] + 1, 0)),
        ]

# Slot Valid --------------------------------------------------------------------------------------

class SlotValid(LiteXModule):
    """Remembers which slots have had a good frame.

    Attributes
    ----------
    slot : Signal, in
    is_begun : Signal(), out
        That slot was marked; a cycle later.
    mark, clear : Signal(), in
        One cycle: ``slot`` has had one; no slot has.
    """
    def __init__(self, slots):
        self.slot     = Signal(max=slots)
        self.is_begun = Signal()
        self.mark     = Signal()
        self.clear    = Signal()

        # # #

        begun = Signal(slots)
        self.sync += [
            self.is_begun.eq(Array(begun[n] for n in range(slots))[self.slot]),
            [If(self.mark & (self.slot == n), begun[n].eq(1)) for n in range(slots)],
            If(self.clear, begun.eq(0)),
        ]
