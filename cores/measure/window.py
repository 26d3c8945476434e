# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The sequence numbers of several streams that were seen lately."""

from migen import *

from litex.gen import *

# Sequence Window ----------------------------------------------------------------------------------

class SequenceWindow(LiteXModule):
    """Remembers of each slot the latest frame on each place of its window.

    Parameters
    ----------
    slots, window : int
        Powers of two; up to 1024 places in all for two block RAMs.

    Attributes
    ----------
    slot, sequence : Signal, Signal(32), in
        The frame.
    is_known : Signal(), out
        It was remembered, and no later one took its place; right four cycles after slot and sequence changed.
    commit : Signal(), in
        One cycle: remembers it.
    clear : Signal(), in
        Forgets everything in one cycle.

    Limits: `clear` makes old memory invalid by a generation that fills a word of 36 bits: 11 of them with a window of 128. A
    place that was not written once in 2048 clears could pass for a new one.
    """
    def __init__(self, slots, window):
        self.slot     = Signal(max=max(slots, 2))
        self.sequence = Signal(32)
        self.is_known = Signal()
        self.commit   = Signal()
        self.clear    = Signal()

        # # #

        place_bits = log2_int(window)
        # A reset leaves the memory as it is, so the generation must outlive it and step.
        generation = Signal(4 + place_bits, reset=1, reset_less=True) # 0 is what the memory holds at power-up.
        was_reset  = Signal(reset=1)
        self.sync += [
            was_reset.eq(0),
            If(self.clear | was_reset, generation.eq(generation + 1)),
        ]

        tag    = Cat(self.sequence[place_bits:], generation)
        memory = Memory(len(tag), slots*window)
        place  = Cat(self.sequence[:place_bits], *([self.slot] if slots > 1 else []))
        read   = memory.get_port(mode=READ_FIRST)
        write  = memory.get_port(write_capable=True, mode=READ_FIRST)
        self.specials += memory, read, write
        stored = Signal(len(tag), reset_less=True)
        self.comb += [
            read.adr.eq(place),
            write.adr.eq(place),
            write.dat_w.eq(tag),
            write.we.eq(self.commit),
        ]
        # Two bits of each to a LUT, then a tree.
        pairs    = [(stored[n:n + 2] == tag[n:n + 2]) for n in range(0, len(tag), 2)]
        is_equal = Signal(len(pairs))
        self.sync += [
            stored.eq(read.dat_r),
            is_equal.eq(Cat(*pairs)),
            self.is_known.eq(is_equal == 2**len(pairs) - 1),
        ]
