# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What a transmit port counts."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import PulseCrossing
from liteprobe.cores.formats import NO_SEQUENCE

# Of those that are narrower than 32; they stop at their highest count.
COUNTER_BITS = dict.fromkeys(["underruns", "management_held", "management_dropped", "disturbed"], 16)
EVENTS       = ["late", "sent", "underruns", "management_sent", "management_held"]

# Transmit Counters --------------------------------------------------------------------------------

class TransmitCounters(LiteXModule):
    """Counts events of ``timebase`` in ``sys``; counters of 32 bits wrap, those of 16 stop at 65535.

    Events of one kind are a slot apart (84 ticks) or more, so each crosses as a pulse.

    Attributes
    ----------
    events : dict of Signal(), in, ``timebase``
        ``late``, ``sent``, ``underruns``, ``management_sent``, ``management_held``: one pulse each. ``late`` must
        come eight ticks before ``sent`` of the same frame or earlier.
    dropped, disturbs : Signal(), in, ``sys``
    clear, clear_program : Signal(), in, ``sys``
        Clear all; clear what belongs to a program (sent, late, first_late, underruns, disturbed).
    late, sent, management_sent : Signal(32), out, ``sys``
    underruns, management_held, management_dropped : Signal(16), out, ``sys``
    disturbed : Signal(16), out, ``sys``
        Of a program, too.
    first_late : Signal(32), out, ``sys``
        Sequence of the first late frame; NO_SEQUENCE if there was none.
    pulses : dict of Signal(), out, ``sys``
        One pulse for each event, as it is counted.
    """
    def __init__(self):
        self.events             = {name: Signal(name=name) for name in EVENTS}
        self.dropped            = Signal()
        self.disturbs           = Signal()
        self.clear              = Signal()
        self.clear_program      = Signal()
        self.late               = Signal(32)
        self.sent               = Signal(32)
        self.underruns          = Signal(COUNTER_BITS["underruns"])
        self.management_sent    = Signal(32)
        self.management_held    = Signal(COUNTER_BITS["management_held"])
        self.management_dropped = Signal(COUNTER_BITS["management_dropped"])
        self.disturbed          = Signal(COUNTER_BITS["disturbed"])
        self.first_late         = Signal(32, reset=NO_SEQUENCE)

        # # #

        self.pulses = pulses = {"management_dropped": self.dropped, "disturbed": self.disturbs}
        for name in EVENTS:
            crossing = PulseCrossing("timebase", "sys")
            self.submodules += crossing
            self.comb += crossing.i.eq(self.events[name])
            pulses[name] = crossing.o
        for name, pulse in pulses.items():
            counter  = getattr(self, name)
            is_clear = self.clear if name.startswith("management") else self.clear | self.clear_program
            is_full  = (counter == 2**len(counter) - 1) & int(name in COUNTER_BITS)
            self.sync += [
                If(pulse & ~is_full, counter.eq(counter + 1)),
                If(is_clear, counter.eq(0)),
            ]
        self.sync += [
            # Frames sent before this one are its sequence.
            If(pulses["late"] & (self.late == 0), self.first_late.eq(self.sent)),
            If(self.clear | self.clear_program, self.first_late.eq(NO_SEQUENCE)),
        ]
