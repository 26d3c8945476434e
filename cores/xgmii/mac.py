# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Joins both directions of a port at 10 Gb/s: what the receiver hears of link faults decides what the transmitter sends."""

from migen import *

from litex.gen import *

from liteprobe.cores.crossing import LevelCrossing
from liteprobe.cores.formats.xgmii import FAULT_COLUMNS, FAULT_SEQUENCES, LinkState
from liteprobe.cores.xgmii.receive import XgmiiReceiveMAC
from liteprobe.cores.xgmii.transmit import XgmiiTransmitMAC

# Link Fault ---------------------------------------------------------------------------------------

class LinkFault(LiteXModule):
    """Follows the ordered sets of a link: four of one type without 128 columns between them are a fault, 128 without one end it.

    Attributes
    ----------
    local, remote : Signal(2), Signal(2), in
        Columns of a cycle, the first in bit 0, that are ordered sets of a local or remote fault.
    fault : Signal(2), out
        ``formats.xgmii.LinkState``.
    local_fault_count, remote_fault_count : Signal(32), Signal(32), out
        Times that the link turned to such a fault. They wrap.

    Source: IEEE 802.3, 46.3.4.3 and figure 46-11.
    """
    def __init__(self):
        self.local              = Signal(2)
        self.remote             = Signal(2)
        self.fault              = Signal(2)
        self.local_fault_count  = Signal(32)
        self.remote_fault_count = Signal(32)

        # # #

        # The state after a column is an expression of what it was before: two of them a cycle.
        columns  = Signal(max=FAULT_COLUMNS)   # Since the last ordered set of a fault.
        count    = Signal(max=FAULT_SEQUENCES) # Of one type, the first left out.
        kind     = Signal(2)                   # Of the last one; none after a time without.
        state    = (columns, count, kind, self.fault)
        for column in range(2):
            after = tuple(Signal.like(one, name=f"after_{column}_{name}")
                for one, name in zip(state, ("columns", "count", "kind", "fault")))
            self.comb += self.step(state, after, self.local[column], self.remote[column])
            state = after
        self.sync += [
            Cat(columns, count, kind, self.fault).eq(Cat(*state)),
            *(If((state[-1] == kind) & (self.fault != kind), count.eq(count + 1)) for kind, count in [
                (LinkState.LOCAL_FAULT,  self.local_fault_count),
                (LinkState.REMOTE_FAULT, self.remote_fault_count),
            ]),
        ]

    def step(self, before, after, is_local, is_remote):
        """Return the statements that take the state over a column."""
        columns, count, kind, _ = before
        columns_after, count_after, kind_after, fault_after = after
        heard = Mux(is_local, int(LinkState.LOCAL_FAULT), int(LinkState.REMOTE_FAULT))
        return [
            *(one.eq(other) for one, other in zip(after, before)),
            If(is_local | is_remote,
                columns_after.eq(0),
                kind_after.eq(heard),
                If(heard != kind,
                    count_after.eq(0),
                ).Elif(count == FAULT_SEQUENCES - 2,
                    fault_after.eq(heard),
                ).Else(
                    count_after.eq(count + 1),
                ),
            ).Elif(columns == FAULT_COLUMNS - 1,
                count_after.eq(0),
                kind_after.eq(int(LinkState.OK)),
                fault_after.eq(int(LinkState.OK)),
            ).Else(
                columns_after.eq(columns + 1),
            ),
        ]

# XGMII MAC ----------------------------------------------------------------------------------------

class XgmiiMAC(LiteXModule):
    """Sends and receives at 10 Gb/s; the transmit side runs in ``timebase``, the receive side in ``eth_rx``.

    A local fault that is heard is answered with remote fault ordered sets, a remote fault with idle: frames that would leave
    meanwhile are lost, and counted.

    Attributes
    ----------
    fault : Signal(2), out, eth_rx
        ``formats.xgmii.LinkState``.
    is_up : Signal(), out, eth_rx
        There was no fault a cycle ago; registered.

    The rest is in ``transmit`` (`XgmiiTransmitMAC`), ``receive`` (`XgmiiReceiveMAC`) and ``link`` (`LinkFault`).

    Source: IEEE 802.3, 46.3.4.
    """
    def __init__(self):
        self.fault = Signal(2)
        self.is_up = Signal()

        # # #

        self.transmit = transmit = XgmiiTransmitMAC()
        self.receive  = receive  = ClockDomainsRenamer("eth_rx")(XgmiiReceiveMAC())
        self.link     = link     = ClockDomainsRenamer("eth_rx")(LinkFault())
        self.local_crossing  = LevelCrossing("timebase")
        self.remote_crossing = LevelCrossing("timebase")
        self.comb += [
            link.local.eq(receive.local),
            link.remote.eq(receive.remote),
            self.fault.eq(link.fault),
        ]
        self.sync.eth_rx += self.is_up.eq(link.fault == LinkState.OK)
        for crossing, fault, sent in [
            (self.local_crossing,  LinkState.LOCAL_FAULT,  transmit.local_fault),
            (self.remote_crossing, LinkState.REMOTE_FAULT, transmit.remote_fault),
        ]:
            level = Signal(name=f"is_{fault.name.lower()}") # What crosses is a register: no glitch does.
            self.sync.eth_rx += level.eq(link.fault == fault)
            self.comb += [
                crossing.i.eq(level),
                sent.eq(crossing.o),
            ]
