# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The management stack: ARP, ping and Etherbone over any pair of frame streams."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream
from litex.soc.interconnect.packet import Arbiter, Dispatcher

from liteeth.common import convert_ip, eth_etherbone_packet_user_description, eth_phy_description
from liteeth.core.arp import LiteEthARP
from liteeth.core.icmp import LiteEthICMP
from liteeth.core.ip import LiteEthIP
from liteeth.core.udp import LiteEthUDP
from liteeth.frontend.etherbone import (
    LiteEthEtherbonePacket,
    LiteEthEtherboneProbe,
    LiteEthEtherboneRecord,
    LiteEthEtherboneWishboneMaster,
)
from liteeth.mac.common import LiteEthMACCrossbar, LiteEthMACDepacketizer, LiteEthMACPacketizer

ETHERBONE_PORT = 1234
BUFFER_WORDS    = 256 # Of a request, and of an answer: two block RAMs each, as 64 words would take.

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

# Etherbone ----------------------------------------------------------------------------------------

class RecordGuard(LiteXModule):
    """Lets through the Etherbone records that LiteEth's receiver can digest, and drops the others.

    LiteEth stores a record whole and believes its counts: one that is longer than the store blocks it for
    good, one whose length disagrees with its counts makes it take the next request for data.

    Attributes
    ----------
    sink, source : Endpoint(eth_etherbone_packet_user_description(32))
        ``length`` is of the UDP payload without the 8 bytes of the packet header.

    Limits: a frame that ends before its own UDP length says is believed.
    """
    def __init__(self):
        self.sink   = sink   = stream.Endpoint(eth_etherbone_packet_user_description(32))
        self.source = source = stream.Endpoint(eth_etherbone_packet_user_description(32))

        # # #

        # The record header is the first word: flags, byte enables, wcount, rcount.
        writes, reads = sink.data[16:24], sink.data[24:32]
        words    = Signal(10) # With the header and the addresses.
        is_first = Signal(reset=1)
        is_good  = Signal()
        was_good = Signal()
        self.comb += [
            words.eq(1 + Mux(writes != 0, writes + 1, 0) + Mux(reads != 0, reads + 1, 0)),
            is_good.eq(Mux(is_first, (sink.length == Cat(0, 0, words)) & (words <= BUFFER_WORDS), was_good)),
            sink.connect(source, omit={"valid", "ready"}),
            source.valid.eq(sink.valid & is_good),
            sink.ready.eq(source.ready | ~is_good),
        ]
        self.sync += If(sink.valid & sink.ready,
            is_first.eq(sink.last),
            was_good.eq(is_good),
        )

class Etherbone(LiteXModule):
    """Reads and writes a bus for Etherbone requests; LiteEth's parts behind a guard.

    Attributes
    ----------
    bus : wishbone.Interface, master

    Limits: one record a request, of at most 255 words with its addresses.
    """
    def __init__(self, udp, udp_port):
        self.packet = packet = LiteEthEtherbonePacket(udp, udp_port)
        self.probe  = probe  = LiteEthEtherboneProbe()
        self.guard  = guard  = RecordGuard()
        self.record = record = LiteEthEtherboneRecord(buffer_depth=BUFFER_WORDS)
        self.master = master = LiteEthEtherboneWishboneMaster()
        self.bus    = master.bus

        # # #

        self.dispatcher = dispatcher = Dispatcher(packet.source, [probe.sink, guard.sink])
        self.arbiter    = Arbiter([probe.source, record.source], packet.sink)
        self.comb += [
            dispatcher.sel.eq(~packet.source.pf),
            guard.source.connect(record.sink),
            record.receiver.source.connect(master.sink),
            master.source.connect(record.sender.sink),
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

    Limits: as of `Etherbone`.
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
        self.etherbone = Etherbone(self.udp, ETHERBONE_PORT)

        self.sink   = self.mac.sink
        self.source = self.mac.source
        self.bus    = self.etherbone.bus
