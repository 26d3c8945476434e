# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated board with a PPS of its own: a pulse every so many ticks, so the rate that a servo must find is known."""

from migen import *

from litex.gen import *

from liteprobe.sim.system.board import Board

WIDTH_TICKS = 1000

class Pulses(LiteXModule):
    """Gives a pulse of WIDTH_TICKS every ``period`` ticks of ``timebase``.

    Attributes
    ----------
    pin : Signal(), out, ``timebase``
    """
    def __init__(self, period):
        self.pin = Signal()

        # # #

        left = Signal(max=period, reset=period - 1)
        self.sync.timebase += [
            left.eq(left - 1),
            If(left == 0, left.eq(period - 1)),
            self.pin.eq(left < WIDTH_TICKS),
        ]

class PulsedBoard(Board):
    """A simulated board whose receiver is an ideal one: its periods are ``period`` ticks long.

    Parameters
    ----------
    period : int, ticks of the timebase from edge to edge
    """
    def __init__(self, period):
        Board.__init__(self)
        self.pulses = Pulses(period)

    def crg(self):
        """Return the clocks and resets, the pulses with them."""
        crg = Board.crg(self)
        crg.pulses = self.pulses
        return crg

    def pps(self):
        """Return the pulses in place of a pad."""
        return self.pulses.pin
