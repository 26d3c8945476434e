# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""How long a program has been running, as ``sys`` knows it."""

from migen import *

from litex.gen import *

from liteprobe.cores.transmit.frames import DUE_BITS
from liteprobe.cores.transmit.due import LEAD_TICKS

# Elapsed Ticks ------------------------------------------------------------------------------------

class Elapsed(LiteXModule):
    """Extends the pacer's count of ticks; in ``sys``.

    Parameters
    ----------
    bits : int

    Attributes
    ----------
    ticks : Signal(20), in
        Ticks since the start of the program, modulo 2^20, as they came across. Must be new every 2^20 ticks or sooner.
    is_running : Signal(), in
        The program has started: ``ticks`` counts.
    elapsed : Signal((bits, True)), out
        Some 30 ticks old; about as many before 0 as pass from a start until then, while the program hasn't started.
    """
    def __init__(self, bits=64):
        self.ticks      = Signal(DUE_BITS)
        self.is_running = Signal()
        self.elapsed    = Signal((bits, True), reset=-LEAD_TICKS)

        # # #

        low, high = self.elapsed[:DUE_BITS], self.elapsed[DUE_BITS:]
        self.sync += [
            If(self.is_running,
                low.eq(self.ticks),
                If(self.ticks < low, high.eq(high + 1)),
            ).Else(
                self.elapsed.eq(-LEAD_TICKS),
            ),
        ]
