# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The PPS input: each edge of a reference, in the time and in the ticks of the probe."""

from migen import *

from litex.gen import *

from liteprobe.cores.timebase.clock import FRACTION_BITS
from liteprobe.cores.timebase.presence import Presence
from liteprobe.cores.timebase.pulse import LATENCY_TICKS, PulseDetector

# Edge ---------------------------------------------------------------------------------------------

def edge_layout():
    """What is known of an edge."""
    return [
        ("count",    32), # Edges accepted since reset, this one included. Wraps.
        ("now",      64), # ns.
        ("fraction", 32), # 2^-32 ns.
        ("ticks",    64),
        ("width",    32), # Ticks that the pulse has lasted so far.
        ("spurious",  1),
    ]

# PPS Input ----------------------------------------------------------------------------------------

class PpsInput(LiteXModule):
    """Stamps each edge of the PPS with the tick in which the pin rose; in ``timebase``.

    ``now``, ``fraction`` and ``ticks`` of an edge are those of the beginning of that tick: at most a tick before the edge
    itself, half a tick in the mean.

    Parameters
    ----------
    clock : Clock
        Gives ``now``, ``fraction`` and ``ticks``.

    Attributes
    ----------
    pad : Signal(), in, asynchronous
    enable, invert : Signal(), in; ``period``, ``window`` : Signal(32), in; ``min_width`` : Signal(16), in
        As in `PulseDetector` and `Presence`; must stand still.
    take : Signal(), in
        One pulse: hand over the last edge. Two ticks or more apart.
    taken : Signal(), out
        One pulse, one or two ticks after ``take``: ``edge`` is of one moment.
    edge : Record(edge_layout()), out
    accepted, glitch, missed, spurious : Signal(), out
        One tick for each; ``accepted`` comes for spurious edges, too. ``edge`` is new in the tick of ``accepted``.
    is_present : Signal(), out
    """
    def __init__(self, clock):
        self.pad        = Signal()
        self.enable     = Signal()
        self.invert     = Signal()
        self.period     = Signal(32)
        self.window     = Signal(32)
        self.min_width  = Signal(16)
        self.take       = Signal()
        self.taken      = Signal()
        self.edge       = edge = Record(edge_layout(), reset_less=True)
        self.accepted   = Signal()
        self.glitch     = Signal()
        self.missed     = Signal()
        self.spurious   = Signal()
        self.is_present = Signal()

        # # #

        self.detector = detector = PulseDetector()
        self.presence = presence = Presence()
        self.comb += [
            detector.pad.eq(self.pad),
            *[getattr(detector, name).eq(getattr(self, name)) for name in ("enable", "invert", "min_width")],
            *[getattr(presence, name).eq(getattr(self, name)) for name in ("enable", "period", "window")],
            presence.edge.eq(detector.accepted),
            self.glitch.eq(detector.glitch),
            self.missed.eq(presence.missed),
            self.is_present.eq(presence.is_present),
            edge.width.eq(detector.width),
        ]
        self.add_capture(clock, edge)
        self.add_take()

    def add_capture(self, clock, edge):
        """Follow the time while the pin is low, as late as the pin; keep it when the pulse is accepted."""
        waiting = Cat(clock.now, clock.fraction[FRACTION_BITS - 32:], clock.ticks)
        # The receive paths keep the same old values of ``now``: Yosys makes one register of two that are alike.
        for _ in range(LATENCY_TICKS - 1):
            later = Signal(len(waiting), reset_less=True)
            self.sync.timebase += later.eq(waiting)
            waiting = later
        captured = Signal(len(waiting), reset_less=True)
        detector, presence = self.detector, self.presence
        count = Signal(32)
        self.comb += edge.count.eq(count)
        self.sync.timebase += [
            If(~detector.is_high, captured.eq(waiting)),
            If(detector.accepted,
                Cat(edge.now, edge.fraction, edge.ticks).eq(captured),
                edge.spurious.eq(presence.is_spurious),
                count.eq(count + 1),
            ),
            self.accepted.eq(detector.accepted),
            self.spurious.eq(detector.accepted & presence.is_spurious),
        ]

    def add_take(self):
        """Hand over, but not in the tick in which only the width is of the new edge."""
        is_asked = Signal()
        self.comb += self.taken.eq(is_asked & ~self.detector.accepted)
        self.sync.timebase += If(self.take, is_asked.eq(1)).Elif(self.taken, is_asked.eq(0))
