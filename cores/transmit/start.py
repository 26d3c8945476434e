# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Several ports, one tick."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import HeldCrossing

# Start Gate ---------------------------------------------------------------------------------------

class StartGate(LiteXModule):
    """Starts programs on several ports in the same tick, once all of them are ready.

    Parameters
    ----------
    ports : int

    Attributes
    ----------
    mask : Signal(ports), in, ``sys``
        Ports to start; bit n is port n.
    request : Signal(), in, ``sys``
        One pulse: take ``mask``. It replaces a start that still waits; a mask of 0 cancels it. The next
        one must come four cycles later or more.
    ready : Signal(ports), in, ``timebase``
    strobe : Signal(ports), out, ``timebase``
        One pulse for all masked ports in one tick.
    """
    def __init__(self, ports):
        self.mask    = Signal(ports)
        self.request = Signal()
        self.ready   = Signal(ports)
        self.strobe  = Signal(ports)

        # # #

        pending       = Signal(ports)
        is_ready      = Signal()
        self.crossing = crossing = HeldCrossing(ports, "sys", "timebase")
        self.comb += [
            crossing.i.eq(self.mask),
            crossing.take.eq(self.request),
            is_ready.eq((pending & ~self.ready) == 0),
        ]
        self.sync.timebase += [
            self.strobe.eq(0),
            If(crossing.taken,
                pending.eq(crossing.o),
            ).Elif(is_ready,
                self.strobe.eq(pending),
                pending.eq(0),
            ),
        ]
