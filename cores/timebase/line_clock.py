# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The clock of a line against the time of the probe."""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from liteprobe.cores.crossing import HeldCrossing, PulseCrossing

# Line Clock Latch ---------------------------------------------------------------------------------

class LineClockLatch(LiteXModule):
    """Takes a tick of the line and its time, as an SFD in that tick would be stamped.

    The tick goes the way of an SFD through the crossing: so a line through many such pairs is what the stamps of the port
    scatter about.

    Attributes
    ----------
    waiting : Signal(64), in, timebase
        ``now`` as late as an SFD is in `ArrivalStamper` in the tick in which its stamp is pushed.
    take : Signal(), in, sys
        One pulse: take a tick. The next one must come at least ten cycles of all clocks later.
    count : Signal(32), out, for sys
        Ticks of the line since reset; wraps after 34 s, which ``now`` makes good. New and still ten cycles of all
        clocks after ``take``; so is ``now``.
    now : Signal(64), out, for sys
        What the stamp of an SFD would be that stood on the PHY's source in the tick before (ns).

    Limits: a line whose clock stands still leaves both as they were.
    """
    def __init__(self):
        self.waiting = Signal(64)
        self.take    = Signal()
        self.count   = Signal(32)
        self.now     = Signal(64)

        # # #

        # Line.
        # -----
        self.latch = latch = PulseCrossing("sys", "eth_rx")
        self.ticks = ticks = HeldCrossing(32, "eth_rx", "sys")
        count  = Signal(32)
        toggle = Signal()
        toggle.attr.add("no_retiming")
        self.sync.eth_rx += [
            count.eq(count + 1),
            If(latch.o, toggle.eq(~toggle)),
        ]
        self.comb += [
            latch.i.eq(self.take),
            ticks.take.eq(latch.o),
            ticks.i.eq(count),
            self.count.eq(ticks.o),
        ]

        # Time.
        # -----
        arrived = Signal()
        seen    = Signal()
        take    = Signal() # In step with the push of `ArrivalStamper`.
        self.moment = moment = HeldCrossing(64, "timebase", "sys")
        self.specials += MultiReg(toggle, arrived, "timebase")
        self.sync.timebase += [
            seen.eq(arrived),
            take.eq(seen ^ arrived),
        ]
        self.comb += [
            moment.take.eq(take),
            moment.i.eq(self.waiting),
            self.now.eq(moment.o),
        ]
