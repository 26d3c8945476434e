# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Loss, duplication and reordering by sequence number."""

from migen import *

from litex.gen import *

# Sequence Tracker ---------------------------------------------------------------------------------

class SequenceTracker(LiteXModule):
    """Tells lost, duplicated and reordered frames apart, frame by frame.

    A frame at or after the next expected one moves it on, and those in between count as lost. An earlier frame is
    reordered, and no longer lost, unless it was seen before: then it is a duplicate. A memory of the last ``window``
    sequence numbers knows. Frames farther back can't be distinguished: they count as beyond the window and stay lost.

    Parameters
    ----------
    window : int
        Frames that the memory covers; a power of two from 2 to 1024 for two block RAMs.

    Attributes
    ----------
    sequence : Signal(32), in
        Compared modulo 2^32. Must stand still up to ``commit``; the flags are right three cycles after it changed.
    commit : Signal(), in
        One cycle, from then on: remembers the frame.
    clear : Signal(), in
        Forgets everything in one cycle and expects 0.
    is_duplicate, is_reordered, is_beyond : Signal(), out
        What the frame is; at most one.
    lost : Signal(32), out
        What the frame adds to the frames that are lost: those it passes over, -1 where it is reordered. To be added
        modulo 2^32, up to ``commit``.
    expected : Signal(32), out
        Next expected sequence number. Wraps.

    Limits: `clear` makes old memory invalid by a generation of 14 bits; a slot that was not written once in 16384 clears
    could pass for a new one.

    Source: RFC 4737, section 3 (NextExp); RFC 5560 (duplicates).
    """
    def __init__(self, window=1024):
        self.sequence     = Signal(32)
        self.commit       = Signal()
        self.clear        = Signal()
        self.is_duplicate = Signal()
        self.is_reordered = Signal()
        self.is_beyond    = Signal()
        self.expected     = Signal(32)
        self.lost         = Signal(32)

        # # #

        # Memory.
        # -------
        # A slot holds the latest frame that fell on it: sequence without the slot's own bits, and generation.
        slot_bits  = log2_int(window)
        # A reset leaves the memory as it is, so the generation must outlive it and step.
        generation = Signal(14, reset=1, reset_less=True) # 0 is what the memory holds at power-up.
        was_reset  = Signal(reset=1)
        tag        = Cat(self.sequence[slot_bits:], generation)
        memory     = Memory(len(tag), window)
        read_port  = memory.get_port()
        write_port = memory.get_port(write_capable=True)
        self.specials += memory, read_port, write_port

        stored        = Signal(len(tag), reset_less=True)
        is_known_low  = Signal()
        is_known_high = Signal()
        half          = len(tag)//2
        self.comb += [
            read_port.adr.eq(self.sequence[:slot_bits]),
            write_port.adr.eq(self.sequence[:slot_bits]),
            write_port.dat_w.eq(tag),
            write_port.we.eq(self.commit & ~self.is_beyond),
        ]
        self.sync += [
            stored.eq(read_port.dat_r),
            is_known_low.eq(stored[:half] == tag[:half]),
            is_known_high.eq(stored[half:] == tag[half:]),
        ]

        # Verdict.
        # --------
        ahead     = Signal(32, reset_less=True) # Of the expected one; modulo 2^32, so the upper half is behind.
        is_behind = Signal()
        is_near   = Signal()
        self.sync += [
            ahead.eq(self.sequence - self.expected),
            is_behind.eq(ahead[-1]),
            is_near.eq(ahead[slot_bits:] == 2**(32 - slot_bits) - 1), # 1 to ``window`` behind.
        ]
        self.comb += [
            self.is_beyond.eq(   is_behind & ~is_near),
            self.is_duplicate.eq(is_near &  (is_known_low & is_known_high)),
            self.is_reordered.eq(is_near & ~(is_known_low & is_known_high)),
        ]

        self.comb += self.lost.eq(Mux(is_behind, Replicate(self.is_reordered, 32), ahead))

        # Memory of the past.
        # -------------------
        self.sync += [
            If(self.commit & ~is_behind, self.expected.eq(self.sequence + 1)),
            was_reset.eq(0),
            If(self.clear | was_reset,
                generation.eq(generation + 1),
            ),
            If(self.clear, self.expected.eq(0)),
        ]
