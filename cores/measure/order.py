# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The steps of each frame, and when banks change for a snapshot of all words of a port: between two frames."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAM_SLOT_WORDS
from liteprobe.cores.measure.steps import LAST_STEP, PORT_STEPS

# Step Order ---------------------------------------------------------------------------------------

class StepOrder(LiteXModule):
    """Counts the steps of a frame in `StreamMeter`, finds the instant of a snapshot, and tells when the bus may read.

    Parameters
    ----------
    is_tight : bool
        All words of a slot are steps, for frames that write any; others end behind the port's words. A frame may then start in
        the cycle of the last step of the one before, so there may be no cycle between them: the port's bank changes while a
        frame does the words of its stream, and the streams' change before the next one has done the port's.

    Attributes
    ----------
    latch, clear : Signal(), in
        As of `StreamMeter`.
    comes, start : Signal(), in
        One cycle: a frame comes; its steps begin.
    is_written : Signal(), in
        From two cycles later on: it writes words of its slot.
    running, step : Signal(), Signal(5), out
        A frame does this step.
    port_done, streams_done : Signal(), out
        One cycle: a frame's words of the port are written, or soon will be; those of its slot.
    take_port, take_streams : Signal(), out
        One cycle: the snapshot.
    is_free : Signal(), out
        The bus may read in this cycle: no step needs the memory, and what the snapshot shows is written.
    """
    def __init__(self, is_tight):
        self.latch        = Signal()
        self.clear        = Signal()
        self.comes        = Signal()
        self.start        = Signal()
        self.is_written   = Signal()
        self.running      = Signal()
        self.step         = Signal(max=STREAM_SLOT_WORDS)
        self.port_done    = Signal()
        self.streams_done = Signal()
        self.take_port    = Signal()
        self.take_streams = Signal()
        self.is_free      = Signal()

        # # #

        # Steps.
        # ------
        running, step = self.running, self.step
        ends          = Signal()
        is_done       = Signal()
        self.sync += [
            step.eq(step + running),
            If(ends,       running.eq(0)),
            If(self.start, step.eq(0), running.eq(1)),
            If(self.clear, running.eq(0)),
        ]
        self.comb += [
            ends.eq(step == LAST_STEP),
            is_done.eq(running & ends & ~self.clear),
            self.streams_done.eq(is_done & self.is_written),
        ]
        if is_tight:
            self.comb += ends.eq((step == STREAM_SLOT_WORDS - 1) | ((step == PORT_STEPS) & ~self.is_written))

        # Instant.
        # --------
        waiting  = Signal()
        is_taken = Constant(0, 1)
        if is_tight:
            is_taken = Signal() # The port's snapshot; the streams' isn't yet.
        since = Signal(5)       # The snapshot: what was under way is written.
        self.comb += self.is_free.eq(~running & ~self.latch & ~waiting & ~is_taken & (since == 0))
        self.sync += [
            If(self.latch, waiting.eq(1)).Elif(self.take_port, waiting.eq(0)),
            since.eq(Cat(self.take_streams, since)),
        ]
        # The banks must stand when a frame starts, a cycle later.
        if not is_tight:
            self.comb += [
                self.port_done.eq(is_done),
                self.take_port.eq(waiting & ~running & ~self.comes),
                self.take_streams.eq(self.take_port),
            ]
            return
        self.comb += [
            self.port_done.eq(running & (step == PORT_STEPS) & ~self.clear),
            self.take_port.eq(waiting & ~self.comes & (~running | step[-1])),
            self.take_streams.eq(is_taken & (~running | (step[2:] == 0))),
        ]
        self.sync += If(self.take_port, is_taken.eq(1)).Elif(self.take_streams, is_taken.eq(0))
