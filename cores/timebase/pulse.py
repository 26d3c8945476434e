# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Pulses of an asynchronous pin: which are long enough to count, and for how long."""

from migen import *

from litex.gen import *

from liteprobe.cores.timebase.samples import SAMPLE_TICKS

# From the tick in which the pin rises to the first in which ``is_high`` is high.
LATENCY_TICKS = SAMPLE_TICKS + 2

# Pulse Detector -----------------------------------------------------------------------------------

class PulseDetector(LiteXModule):
    """Tells pulses from glitches by their width; in ``timebase``.

    A pulse that is already there as the detector is enabled does not count. One that begins while ``hold`` is high is a glitch.
    Pulses are what the last sample of each tick says; the others only tell when in its first tick a pulse began.

    Parameters
    ----------
    samples : int
        Samples of the pin a tick: 1, 2 or 4.

    Attributes
    ----------
    samples : Signal(samples), in
        The pin during the tick SAMPLE_TICKS before, at even distances, the earliest in bit 0, the last one as the tick ends.
    enable, invert : Signal(), in
        Must stand still; ``invert``: a pulse is low.
    min_width : Signal(16), in
        Ticks that a pulse must last; 0 is taken as 1. Must stand still.
    hold : Signal(), in
        Whoever captures the time of a rise could not do so in the next tick of ``is_high``.
    is_high : Signal(), out
        The pin, LATENCY_TICKS late. Registered.
    early : Signal(max=samples), out
        A tick before ``is_high`` rises: samples that were high already before the last one of the tick of the rise, without a
        gap. Else anything. Registered; of one sample 0.
    accepted : Signal(), out
        One tick for each pulse as it has lasted ``min_width`` ticks: ``is_high`` was high in the tick before. Registered.
    glitch : Signal(), out
        One tick for each pulse that ended before, or began too soon. Registered.
    width : Signal(32), out
        Ticks that the last accepted pulse has lasted so far; new in the tick of ``accepted``. Wraps after 34 s.

    Limits: a gap between two last samples is not seen, a pulse between two last samples neither.
    """
    def __init__(self, samples=1):
        self.samples   = Signal(samples)
        self.enable    = Signal()
        self.invert    = Signal()
        self.min_width = Signal(16)
        self.hold      = Signal()
        self.is_high   = Signal()
        self.early     = Signal(max=max(samples, 2), reset_less=True)
        self.accepted  = Signal()
        self.glitch    = Signal()
        self.width     = Signal(32, reset_less=True)

        # # #

        level      = Signal()
        level_d    = Signal()
        was_high   = Signal()
        count      = Signal(32, reset_less=True)
        lasted     = Signal(32, reset_less=True) # In step with ``is_high``.
        is_longest = Signal() # Beyond all that can be asked for.
        is_long    = Signal()
        is_blocked = Signal(reset=1) # Until the pin was low once.
        is_early   = Signal()        # Nobody knows when it began.
        is_done    = Signal()        # This pulse was accepted.
        counts     = Signal()
        early      = 0
        self.comb += [
            level.eq(self.samples[-1] ^ self.invert),
            counts.eq(self.is_high & is_long & ~is_blocked & ~is_early),
        ]
        for n in range(samples - 1):
            early = Mux(self.samples[n] ^ self.invert, 1 + early, 0)
        self.sync.timebase += [
            level_d.eq(level),
            self.early.eq(early),
            self.is_high.eq(level_d),
            was_high.eq(self.is_high),
            If(level, count.eq(count + 1)).Else(count.eq(0)),
            lasted.eq(count),
            is_longest.eq(level & (is_longest | (count[:16] == 0xffff))),
            is_long.eq(is_longest | (count[:16] >= self.min_width)),
            If(~self.enable, is_blocked.eq(1)).Elif(~self.is_high, is_blocked.eq(0)),
            If(~self.is_high, is_early.eq(self.hold)),
            is_done.eq(counts),
            self.accepted.eq(counts & ~is_done),
            self.glitch.eq(was_high & ~self.is_high & ~is_done & ~is_blocked),
            If(counts, self.width.eq(lasted)),
        ]
