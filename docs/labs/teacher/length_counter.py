# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause
"""Lab 8, the exercise: a counter of frames that are longer than a limit. One answer of many."""

from litex.gen import LiteXModule
from litex.soc.interconnect.csr import CSRStatus, CSRStorage
from migen import ClockDomainsRenamer, If, Signal

from liteprobe.cores.crossing import EventCrossing, WordCrossing

SFD = 0xD5
FCS_OCTETS = 4
LENGTH_BITS = 14


class LengthCounter(LiteXModule):
    """Counts the frames that are longer than ``limit`` octets without FCS, right or damaged.

    How long a frame was is known when it has ended: at the first idle octet behind it.

    Attributes
    ----------
    valid, octet : Signal(), Signal(8), in, eth_rx
        As the PHY gives them, preamble and SFD included; ``valid`` is 0 between frames.
    limit : Signal(14), in, sys
        Octets without FCS.
    count : Signal(32), out, sys
        Wraps.
    """

    def __init__(self, with_csr=True):
        self.valid = Signal()
        self.octet = Signal(8)
        self.limit = Signal(LENGTH_BITS)
        self.count = Signal(32)

        # # #

        self.limit_crossing = limit = WordCrossing(LENGTH_BITS, "sys", "eth_rx")
        self.comb += limit.i.eq(self.limit)

        in_frame = Signal()  # Behind the SFD.
        length = Signal(LENGTH_BITS)  # Octets so far, FCS included; stays at the last one.
        most = 2**LENGTH_BITS - 1
        self.sync.eth_rx += [
            If(
                ~self.valid,
                in_frame.eq(0),
                length.eq(0),
            )
            .Elif(in_frame & (length != most), length.eq(length + 1))
            .Elif(self.octet == SFD, in_frame.eq(1)),
        ]
        self.longer = longer = EventCrossing("eth_rx", "sys")
        self.comb += longer.event.eq(~self.valid & in_frame & (length > limit.o + FCS_OCTETS))
        self.sync += self.count.eq(self.count + longer.count)
        if with_csr:
            self._limit = CSRStorage(LENGTH_BITS, name="limit", description="Octets without FCS.")
            self._count = CSRStatus(32, name="count", description="Longer frames. Wraps.")
            self.comb += [self.limit.eq(self._limit.storage), self._count.status.eq(self.count)]


def extend(soc):
    """Give each test port of a probe a counter: registers ``port<n>_longer_limit`` and ``_count``."""
    for number, phy in enumerate(soc.phys):
        counter = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}"})(LengthCounter())
        soc.add_module(name=f"port{number}_longer", module=counter)
        soc.comb += [
            counter.valid.eq(phy.source.valid),
            counter.octet.eq(phy.source.data),
        ]
