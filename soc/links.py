# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The management stack: ARP, ping and Etherbone over any pair of frame streams."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteeth.common import convert_ip, eth_phy_description
from liteeth.core.arp import LiteEthARP
from liteeth.core.icmp import LiteEthICMP
from liteeth.core.ip import LiteEthIP
from liteeth.core.udp import LiteEthUDP
from liteeth.frontend.etherbone import LiteEthEtherbone
from liteeth.mac.common import LiteEthMACCrossbar, LiteEthMACDepacketizer, LiteEthMACPacketizer

ETHERBONE_PORT = 1234
ETHERBONE_WORDS = 64 # Words of the largest burst that a request may ask for.

# MAC ----------------------------------------------------------------------------------------------

class FrameCrossbar(LiteXModule):
    """Gives LiteEth's stack its MAC crossbar over plain frame streams, without LiteEth's own MAC.

    Attributes
    ----------
    sink, source : Endpoint(eth_phy_description(data_width)), frames in from and out to the wire
    crossbar : LiteEthMACCrossbar, as LiteEthARP and LiteEthIP ask for
    """
    def __init__(self, data_width=32):
        self.sink         = stream.Endpoint(eth_phy_description(data_width))
        self.source       = stream.Endpoint(eth_phy_description(data_width))
        self.crossbar     = LiteEthMACCrossbar(data_width)
        self.packetizer   = LiteEthMACPacketizer(data_width)
        self.depacketizer = LiteEthMACDepacketizer(data_width)

        # # #

        self.comb += [
            self.sink.connect(self.depacketizer.sink),
            self.depacketizer.source.connect(self.crossbar.master.sink),
            self.crossbar.master.source.connect(self.packetizer.sink),
            self.packetizer.source.connect(self.source),
        ]

# Stack --------------------------------------------------------------------------------------------

class ManagementStack(LiteXModule):
    """Answers ARP and ping, and reads and writes the bus for Etherbone requests on UDP port 1234.

    Parameters
    ----------
    mac_address : int, 48 bits
    ip_address : str, dotted
    clk_freq : float, Hz of ``sys``

    Attributes
    ----------
    sink, source : Endpoint(eth_phy_description(32)), in ``sys``
        Frames without preamble, padding and FCS.
    bus : wishbone.Interface, master
        What Etherbone reads and writes.

    Limits: bursts of at most 64 words; one record a request.
    """
    def __init__(self, mac_address, ip_address, clk_freq, data_width=32):
        ip_address = convert_ip(ip_address)
        self.mac   = FrameCrossbar(data_width)
        self.arp   = LiteEthARP(
            mac         = self.mac,
            mac_address = mac_address,
            ip_address  = ip_address,
            clk_freq    = clk_freq,
            dw          = data_width,
        )
        self.ip = LiteEthIP(
            mac         = self.mac,
            mac_address = mac_address,
            ip_address  = ip_address,
            arp_table   = self.arp.table,
            dw          = data_width,
        )
        self.icmp      = LiteEthICMP(ip=self.ip, ip_address=ip_address, dw=data_width)
        self.udp       = LiteEthUDP(ip=self.ip, ip_address=ip_address, dw=data_width)
        self.etherbone = LiteEthEtherbone(self.udp, ETHERBONE_PORT, buffer_depth=ETHERBONE_WORDS)

        self.sink   = self.mac.sink
        self.source = self.mac.source
        self.bus    = self.etherbone.wishbone.bus
