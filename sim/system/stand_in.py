# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A small SoC in the place of the probe, to test the harness alone: a copier and LiteEth's own Etherbone."""

from migen import *

from litex.gen import *

from litex.soc.integration.soc_core import SoCMini
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import *

from liteeth.common import eth_phy_description, eth_udp_user_description


class LastMarker(LiteXModule):
    """Marks the last octet of each frame, as LiteEth's MAC asks of a PHY; ours doesn't.

    ``sink``, ``source``: Endpoint(eth_phy_description(8)), transmit in, receive out. Latency of receive: 1 cycle.
    """

    dw = 8

    def __init__(self, phy):
        self.sink = phy.sink
        self.source = source = stream.Endpoint(eth_phy_description(8))

        # # #

        self.sync.eth_rx += [
            source.valid.eq(phy.source.valid),
            source.data.eq(phy.source.data),
        ]
        self.comb += source.last.eq(source.valid & ~phy.source.valid)


class ConstantDecoder(LiteXModule):
    """Decodes a constant, as LitePCIe's crossbar does: logic with no input that ever changes.

    ``selected``: CSRStatus(8), 0x5a.
    """

    def __init__(self):
        self.selected = CSRStatus(8)

        # # #

        slot = Signal(3)
        chosen = Signal(8)
        self.comb += [
            slot.eq(5),
            Case(
                slot,
                {
                    5: chosen.eq(0x5A),
                    "default": chosen.eq(0xFF),
                },
            ),
            self.selected.status.eq(chosen),
        ]


class Teller(LiteXModule):
    """Sends a datagram of one word, as captured blocks are sent: to another UDP port than Etherbone's.

    Attributes
    ----------
    source : Endpoint(eth_udp_user_description(32)), out
    address, port, data : CSRStorage, to whom, and what; a write of ``data`` sends it.
    """

    def __init__(self):
        self.source = source = stream.Endpoint(eth_udp_user_description(32))
        self.address = CSRStorage(32)
        self.port = CSRStorage(16)
        self.data = CSRStorage(32)

        # # #

        self.comb += [
            source.src_port.eq(1235),
            source.dst_port.eq(self.port.storage),
            source.ip_address.eq(self.address.storage),
            source.length.eq(4),
            source.data.eq(self.data.storage),
            source.last.eq(1),
            source.last_be.eq(0b1000),
        ]
        self.sync += If(self.data.re, source.valid.eq(1)).Elif(source.ready, source.valid.eq(0))


class Echo(LiteXModule):
    """Sends what comes to a UDP port of the probe back to the port that it came from.

    ``sink``, ``source``: Endpoint(eth_udp_user_description(32)), in and out.
    """

    def __init__(self):
        self.fifo = fifo = stream.SyncFIFO(eth_udp_user_description(32), 512, buffered=True)
        self.sink = fifo.sink
        self.source = source = stream.Endpoint(eth_udp_user_description(32))

        # # #

        self.comb += [
            fifo.source.connect(source, omit={"src_port", "dst_port"}),
            source.src_port.eq(fifo.source.dst_port),
            source.dst_port.eq(fifo.source.src_port),
        ]


class StandIn(SoCMini):
    """Copies what comes in on port 2 to ports 0 and 1, one tick later, and answers Etherbone on port 2.

    What comes in on ports 0 and 1 goes nowhere, so every frame passes a wire once.
    """

    def __init__(self, board):
        SoCMini.__init__(
            self,
            board.platform,
            int(board.sys_clk_freq),
            ident="liteprobe stand-in",
            integrated_sram_size=4096,
        )
        self.crg = board.crg()
        self.phy0 = phy0 = board.phy(0)
        self.phy1 = phy1 = board.phy(1)
        self.phy2 = phy2 = board.phy(2)

        self.decoder = ConstantDecoder()

        # Copier.
        # -------
        for phy in [phy0, phy1]:
            self.sync.timebase += [
                phy.sink.valid.eq(phy2.source.valid),
                phy.sink.data.eq(phy2.source.data),
            ]

        # Etherbone.
        # ----------
        self.cd_eth_tx = ClockDomain(reset_less=True)
        self.cd_eth_rx = ClockDomain(reset_less=True)
        self.comb += [
            self.cd_eth_tx.clk.eq(ClockSignal("timebase")),
            self.cd_eth_rx.clk.eq(ClockSignal("eth_rx2")),
        ]
        self.marker = LastMarker(phy2)
        self.add_etherbone(phy=self.marker, phy_cd="eth", buffer_depth=64, with_timing_constraints=False)

        # Another datagram.
        # -----------------
        self.teller = teller = Teller()
        port = self.ethcore_etherbone.udp.crossbar.get_port(1235, dw=32, cd="etherbone")
        self.comb += teller.source.connect(port.sink)

        # What a host streams.
        # --------------------
        self.echo = echo = Echo()
        port = self.ethcore_etherbone.udp.crossbar.get_port(1236, dw=32, cd="etherbone")
        self.comb += [
            port.source.connect(echo.sink),
            echo.source.connect(port.sink),
        ]
