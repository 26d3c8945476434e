# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Measures the clock of a line against the time of the probe.

Stands alone: a port has it or not, whatever else keeps time.
"""

from migen import *
from migen.genlib.cdc import MultiReg

from litex.gen import *

from litex.soc.interconnect.csr import CSRStatus, CSRStorage

from liteprobe.cores.crossing import HeldCrossing, PulseCrossing

class LineClockLatch(LiteXModule):
    """Takes a tick of the line and its time, as an SFD in that tick would be stamped.

    The tick goes the way of an SFD through the crossing: so a line through many such pairs is what the stamps of the port
    scatter about.

    Parameters
    ----------
    waiting : Signal(64), in, timebase
        ``now`` as late as an SFD is in `ArrivalStamper` in the tick in which its stamp is pushed.

    Limits: a line whose clock stands still leaves both registers as they were. From one write of ``latch`` to the next there
    must be ten cycles of all clocks, and as many until the registers are new.
    """
    def __init__(self, waiting):
        self._latch = CSRStorage(1, name="latch", description="Write: take a tick of the line and its time.")
        self._count = CSRStatus(32, name="count", description="Ticks of the line since power-up, at the latch; wraps.")
        self._now   = CSRStatus(64, name="now", description="Stamp of an SFD in that tick (ns).")

        # # #

        # Line.
        # -----
        self.latch = latch = PulseCrossing("sys", "eth_rx")
        self.ticks = ticks = HeldCrossing(32, "eth_rx", "sys")
        count  = Signal(32, reset_less=True)
        toggle = Signal()
        toggle.attr.add("no_retiming")
        self.sync.eth_rx += [
            count.eq(count + 1),
            If(latch.o, toggle.eq(~toggle)),
        ]
        self.comb += [
            latch.i.eq(self._latch.re),
            ticks.take.eq(latch.o),
            ticks.i.eq(count),
            self._count.status.eq(ticks.o),
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
            moment.i.eq(waiting),
            self._now.status.eq(moment.o),
        ]
