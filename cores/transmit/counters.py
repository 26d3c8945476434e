# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port counts."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import PulseCrossing
from liteprobe.cores.formats import NO_SEQUENCE

EVENTS = ["late", "sent", "underruns", "management_sent", "management_held"]

# Transmit Counters --------------------------------------------------------------------------------

class TransmitCounters(LiteXModule):
    """Counts events of ``timebase`` in ``sys``; all counters wrap.

    Events of one kind are a slot apart (84 ticks) or more, so each crosses as a pulse.

    Attributes
    ----------
    events : dict of Signal(), in, ``timebase``
        ``late``, ``sent``, ``underruns``, ``management_sent``, ``management_held``: one pulse each. ``late`` must
        come eight ticks before ``sent`` of the same frame or earlier.
    dropped : Signal(), in, ``sys``
    clear, clear_program : Signal(), in, ``sys``
        Clear all; clear what belongs to a program (sent, late, first_late, underruns).
    late, sent, underruns, management_sent, management_held, management_dropped : Signal(32), out, ``sys``
    first_late : Signal(32), out, ``sys``
        Sequence of the first late frame; NO_SEQUENCE if there was none.
    """
    def __init__(self):
        self.events             = {name: Signal(name=name) for name in EVENTS}
        self.dropped            = Signal()
        self.clear              = Signal()
        self.clear_program      = Signal()
        self.late               = Signal(32)
        self.sent               = Signal(32)
        self.underruns          = Signal(32)
        self.management_sent    = Signal(32)
        self.management_held    = Signal(32)
        self.management_dropped = Signal(32)
        self.first_late         = Signal(32, reset=NO_SEQUENCE)

        # # #

        pulses = {"management_dropped": self.dropped}
        for name in EVENTS:
            crossing = PulseCrossing("timebase", "sys")
            self.submodules += crossing
            self.comb += crossing.i.eq(self.events[name])
            pulses[name] = crossing.o
        for name, pulse in pulses.items():
            counter  = getattr(self, name)
            is_clear = self.clear if name.startswith("management") else self.clear | self.clear_program
            self.sync += [
                If(pulse, counter.eq(counter + 1)),
                If(is_clear, counter.eq(0)),
            ]
        self.sync += [
            # Frames sent before this one are its sequence.
            If(pulses["late"] & (self.late == 0), self.first_late.eq(self.sent)),
            If(self.clear | self.clear_program, self.first_late.eq(NO_SEQUENCE)),
        ]
