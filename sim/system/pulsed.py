# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The simulated board with a PPS of its own: a pulse every so many ticks, so the rate that a servo must find is known."""

from migen import *

from litex.gen import *

from liteprobe.sim.system.board import Board

WIDTH_TICKS = 1000


class Pulses(LiteXModule):
    """Gives a pulse every ``period`` ticks of ``timebase``, each as long as WIDTH_TICKS, until tick ``until`` of reset.

    Attributes
    ----------
    pin : Signal(), out, ``timebase``
    """

    def __init__(self, period, until):
        self.pin = Signal()

        # # #

        left = Signal(max=period, reset=period - 1)
        ticks = Signal(64)
        self.sync.timebase += [
            ticks.eq(ticks + 1),
            left.eq(left - 1),
            If(left == 0, left.eq(period - 1)),
            self.pin.eq((left < WIDTH_TICKS) & (ticks < until)),
        ]


class PulsedBoard(Board):
    """A simulated board whose receiver is an ideal one: its seconds are ``period`` ticks long.

    Parameters
    ----------
    period : int, ticks of the timebase from edge to edge
    until : int, tick in which the receiver falls silent
    """

    def __init__(self, period, until):
        Board.__init__(self)
        self.pulses = Pulses(period, until)

    def crg(self):
        crg = Board.crg(self)
        crg.pulses = self.pulses  # A part of the SoC, as the clocks are.
        return crg

    def pps(self):
        return self.pulses.pin
