# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Which streams have frames, and which are to begin."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAMS

# Active Streams -----------------------------------------------------------------------------------

class ActiveStreams(LiteXModule):
    """Keeps for each stream whether it is waiting for its begin, or running.

    Attributes
    ----------
    begin, end : Signal(16), in
        Pulses: from now on it waits; it is neither.
    clear : Signal(), in
        All are neither.
    mask, is_armed : Signal(16), Signal(), in
        Those of ``mask`` are to begin, in the place of those that wait.
    stream : Signal(4), in
        The one that is looked at.
    is_next : Signal(), out
        It is to begin.
    begins, has_left : Signal(), in
        Pulse: it begins, and runs if it has frames left and is still to begin.
    ends : Signal(), in
        Pulse: it has no more frames.
    is_waiting : Signal(), out
        Any stream waits.
    running, active : Signal(16), out
        Streams that run; those and streams that wait.
    """
    def __init__(self):
        self.begin      = Signal(STREAMS)
        self.end        = Signal(STREAMS)
        self.clear      = Signal()
        self.mask       = Signal(STREAMS)
        self.is_armed   = Signal()
        self.stream     = Signal(max=STREAMS)
        self.is_next    = Signal()
        self.begins     = Signal()
        self.has_left   = Signal()
        self.ends       = Signal()
        self.is_waiting = Signal()
        self.running    = Signal(STREAMS)
        self.active     = Signal(STREAMS)

        # # #

        waiting = Signal(STREAMS)
        one     = Signal(STREAMS)
        self.comb += [
            one.eq(1 << self.stream),
            self.is_next.eq(Array(Mux(self.is_armed, self.mask, waiting))[self.stream]),
            self.is_waiting.eq(waiting != 0),
            self.active.eq(self.running | waiting),
        ]
        for n in range(STREAMS):
            self.sync += [
                If((self.begins | self.ends) & one[n], self.running[n].eq(self.begins & self.has_left & self.is_next)),
                If(self.end[n] | self.begin[n], self.running[n].eq(0)),
                waiting[n].eq(((waiting[n] & ~(one[n] & self.begins)) | self.begin[n]) & ~self.end[n]),
            ]
        self.sync += If(self.clear,
            self.running.eq(0),
            waiting.eq(0),
        )
