# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Several ports, one tick."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import HeldCrossing

# Start Gate ---------------------------------------------------------------------------------------

class StartGate(LiteXModule):
    """Starts programs on several ports in the same tick, if all of them are ready.

    A start that finds a port unready does nothing and is forgotten: no program of later begins by it.

    Parameters
    ----------
    ports : int

    Attributes
    ----------
    mask : Signal(ports), in, ``sys``
        Ports to start; bit n is port n.
    request : Signal(), in, ``sys``
        One pulse: take ``mask``. The next one must come four cycles later or more.
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

        self.crossing = crossing = HeldCrossing(ports, "sys", "timebase")
        self.comb += [
            crossing.i.eq(self.mask),
            crossing.take.eq(self.request),
        ]
        self.sync.timebase += [
            self.strobe.eq(0),
            If(crossing.taken & ((crossing.o & ~self.ready) == 0), self.strobe.eq(crossing.o)),
        ]
