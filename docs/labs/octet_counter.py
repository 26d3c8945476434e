# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Lab 8: a counter of frames that have a given octet at a given place, and how a probe gets one for each port."""

from litex.gen import LiteXModule
from litex.soc.interconnect.csr import CSRStatus, CSRStorage
from migen import ClockDomainsRenamer, If, Signal

from liteprobe.cores.crossing import EventCrossing, WordCrossing

SFD = 0xD5
PLACE_BITS = 14  # Enough for a jumbo frame; a place beyond stays at the last one.


class OctetCounter(LiteXModule):
    """Counts the frames whose octet at ``place`` is ``value``, right or damaged.

    It looks at the octets of a PHY as they pass and never stalls them. Octets come in the clock of the line (``eth_rx``),
    registers are in the clock of the bus (``sys``): each signal crosses from one to the other by a core made for it.

    Attributes
    ----------
    valid, octet : Signal(), Signal(8), in, eth_rx
        As the PHY gives them, preamble and SFD included; ``valid`` is 0 between frames.
    place : Signal(14), in, sys
        Place of the octet, from 0: the first one of the destination address.
    value : Signal(8), in, sys
    count : Signal(32), out, sys
        Wraps.
    """

    def __init__(self, with_csr=True):
        self.valid = Signal()
        self.octet = Signal(8)
        self.place = Signal(PLACE_BITS)
        self.value = Signal(8)
        self.count = Signal(32)

        # # #

        # What is asked for, in the clock of the line.
        self.place_crossing = place = WordCrossing(PLACE_BITS, "sys", "eth_rx")
        self.value_crossing = value = WordCrossing(8, "sys", "eth_rx")
        self.comb += [place.i.eq(self.place), value.i.eq(self.value)]

        # Where in the frame we are.
        in_frame = Signal()  # Behind the SFD.
        at = Signal(PLACE_BITS)
        last = 2**PLACE_BITS - 1
        self.sync.eth_rx += [
            If(
                ~self.valid,
                in_frame.eq(0),
                at.eq(0),
            )
            .Elif(in_frame & (at != last), at.eq(at + 1))
            .Elif(self.octet == SFD, in_frame.eq(1)),
        ]

        # One event a frame, added up in the clock of the bus.
        self.matches = matches = EventCrossing("eth_rx", "sys")
        is_here = in_frame & (at == place.o) & (at != last)
        self.comb += matches.event.eq(self.valid & is_here & (self.octet == value.o))
        self.sync += self.count.eq(self.count + matches.count)
        if with_csr:
            self.add_csr()

    def add_csr(self):
        """Add the registers: ``port<n>_counter_place``, ``_value``, ``_count``."""
        self._place = CSRStorage(PLACE_BITS, name="place", description="Place of the octet, from 0.")
        self._value = CSRStorage(8, name="value", description="What it has to be.")
        self._count = CSRStatus(32, name="count", description="Frames that have it. Wraps.")
        self.comb += [
            self.place.eq(self._place.storage),
            self.value.eq(self._value.storage),
            self._count.status.eq(self.count),
        ]


def extend(soc):
    """Give each test port of a probe a counter."""
    for number, phy in enumerate(soc.phys):
        counter = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}"})(OctetCounter())
        soc.add_module(name=f"port{number}_counter", module=counter)
        soc.comb += [
            counter.valid.eq(phy.source.valid),
            counter.octet.eq(phy.source.data),
        ]
