# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A port that carries nothing but management."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.receive.management import ManagementReceive
from liteprobe.cores.transmit.management import ManagementTransmit

# Management Port ----------------------------------------------------------------------------------

class ManagementPort(LiteXModule):
    """Joins the two sides of a management port to its PHY, and counts what they lose.

    Parameters
    ----------
    phy : PHY
        ``sink`` in ``timebase``, ``source`` in ``eth_rx<number>``.
    number : int
        Of the PHY.
    count_bits : int
        Of each counter.

    Attributes
    ----------
    source, sink : Endpoint(eth_phy_description(32)), out and in, ``sys``
        Whole frames, received and to be sent.
    received, receive_dropped, receive_cut, receive_refused, transmit_dropped : CSRStatus(count_bits)
    """
    def __init__(self, phy, number, count_bits=32):
        self.transmit = transmit = ManagementTransmit()
        self.receive  = receive  = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}"})(ManagementReceive())
        self.source   = receive.source
        self.sink     = transmit.sink
        self.received         = CSRStatus(count_bits, description="Frames received and kept. Wraps, as all below.")
        self.receive_dropped  = CSRStatus(count_bits, description="Good frames that found no room.")
        self.receive_cut      = CSRStatus(count_bits, description="Frames cut because sys was too slow.")
        self.receive_refused  = CSRStatus(count_bits, description="Carriers without an SFD.")
        self.transmit_dropped = CSRStatus(count_bits, description="Answers that found no room, or were too long.")

        # # #

        self.comb += [
            transmit.source.connect(phy.sink),
            phy.source.connect(receive.sink),
        ]
        for register, events in [
            (self.received,         receive.stored),
            (self.receive_dropped,  receive.dropped),
            (self.receive_cut,      receive.cut),
            (self.receive_refused,  receive.refused),
            (self.transmit_dropped, transmit.dropped),
        ]:
            self.sync += register.status.eq(register.status + events)
