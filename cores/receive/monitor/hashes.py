# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Hashes of every frame that is classified: of its flow, and of the packet itself."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import Layer3
from liteprobe.cores.receive.monitor.packet_hash import PacketHash
from liteprobe.cores.receive.monitor.toeplitz import FlowHash

# Frame Hashes -------------------------------------------------------------------------------------

class FrameHashes(LiteXModule):
    """Hashes what a parser finds, from its ``ended`` on.

    Parameters
    ----------
    parser : UnifiedParser

    Attributes
    ----------
    seed : Signal(32), in
        Of the hash of packets.
    flow : Signal(32), out
        0 for frames without layer 3. From 29 to 32 cycles after ``ended``.
    packet : Signal(32), out
        From 33 cycles after ``ended`` to 33 after the next one.
    """
    def __init__(self, parser):
        self.seed   = Signal(32)
        self.flow   = Signal(32)
        self.packet = Signal(32)

        # # #

        walk = parser.walk
        self.flow_hash   = flow   = FlowHash()
        self.packet_hash = packet = PacketHash()
        self.comb += [
            flow.write.eq(walk.sink.valid),
            flow.address.eq(walk.address),
            flow.data.eq(walk.data),
            flow.start.eq(parser.ended),
            flow.has_addresses.eq(parser.layer3 != Layer3.NONE),
            flow.is_ipv6.eq(parser.layer3 == Layer3.IPV6),
            flow.has_ports.eq(parser.is_hashed),
            self.flow.eq(flow.hash),
            packet.write.eq(walk.sink.valid),
            packet.address.eq(walk.address),
            packet.write_behind.eq(walk.is_behind),
            packet.aligned.eq(walk.aligned),
            packet.start.eq(parser.ended),
            packet.layer3.eq(parser.layer3),
            packet.behind.eq(parser.behind),
            packet.flow_hash.eq(flow.hash),
            packet.seed.eq(self.seed),
            self.packet.eq(packet.hash),
        ]
