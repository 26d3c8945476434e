# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""1000BASE-X on Artix-7 transceivers, as a test port needs it: octets out in ``timebase``, octets in in ``eth_rx<number>``."""

from migen import *

from litex.gen import *

from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description
from liteeth.phy.a7_1000basex import A7_1000BASEX

from liteprobe.cores.crossing import StreamCrossing

HEAD_START = 4 # Octets that are there before a frame goes on, so that it never runs dry: both clocks have one source.

# Elastic Buffer -----------------------------------------------------------------------------------

class ElasticBuffer(LiteXModule):
    """Takes frames from ``timebase`` to a clock of the same frequency and any phase, without a hole in them.

    Parameters
    ----------
    cd_to : str

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, ``timebase``
        ``valid`` without a hole from the first octet of a frame to its last. Must always be ready: frames are further apart than
        the buffer is deep.
    source : Endpoint(eth_phy_description(8)), out, ``cd_to``
        Likewise; it may wait once, at a frame's start, for up to 4 cycles.

    Latency: HEAD_START octets, the crossing, and up to one cycle by the phase of the clocks; the same from frame to frame as long
    as the phase is.
    """
    def __init__(self, cd_to):
        self.sink   = sink   = stream.Endpoint(eth_phy_description(8))
        self.source = source = stream.Endpoint(eth_phy_description(8))

        # # #

        data          = Signal(8)
        valid         = Signal()
        self.crossing = crossing = StreamCrossing([("data", 8)], "timebase", cd_to)
        self.sync.timebase += [data.eq(sink.data), valid.eq(sink.valid)]
        self.comb += [
            sink.ready.eq(1),
            crossing.sink.valid.eq(valid),
            crossing.sink.data.eq(data),
            crossing.sink.last.eq(~sink.valid),
        ]

        octets = crossing.source
        wait   = Signal(max=HEAD_START + 1, reset=HEAD_START)
        sync   = getattr(self.sync, cd_to)
        sync += [
            If(octets.valid & octets.ready & octets.last,
                wait.eq(HEAD_START),
            ).Elif(octets.valid & (wait != 0),
                wait.eq(wait - 1),
            )
        ]
        self.comb += [
            source.valid.eq(octets.valid & (wait == 0)),
            source.data.eq(octets.data),
            source.last.eq(octets.last),
            octets.ready.eq(source.ready & (wait == 0)),
        ]

# Port ---------------------------------------------------------------------------------------------

class SfpPort(LiteXModule):
    """A SFP as a port sees it.

    Parameters
    ----------
    qpll_channel : QPLLChannel, 2.5 GHz made from the clock of ``timebase``
    pads : ``txp``, ``txn``, ``rxp``, ``rxn``
    number : int, port number; names the receive domain.
    sys_clk_freq : float, Hz
    rx_polarity, tx_polarity : int, 1 where the board crosses the pair.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, ``timebase``; always ready.
    source : Endpoint(eth_phy_description(8)), out, ``eth_rx<number>``
    link_up : Signal(), out, asynchronous

    Limits: the line has code-groups in pairs, so a frame may leave one octet (8 ns) later than it was given, and
    LiteEth's PCS tells no symbol errors.
    Source: IEEE 802.3, clause 36.2.4 (ordered sets begin on even code-groups).
    """
    rx_clk_freq = 125e6
    tx_clk_freq = 125e6
    tx_ticks    = 0 # Of the transceiver they are not known.
    rx_ticks    = 0
    def __init__(self, qpll_channel, pads, number, sys_clk_freq, rx_polarity=0, tx_polarity=0):
        phy = A7_1000BASEX(qpll_channel, pads, sys_clk_freq, with_csr=False, rx_polarity=rx_polarity, tx_polarity=tx_polarity)
        self.phy = ClockDomainsRenamer({
            "eth_tx":      f"eth_tx{number}",
            "eth_rx":      f"eth_rx{number}",
            "eth_tx_half": f"eth_tx{number}_half",
            "eth_rx_half": f"eth_rx{number}_half",
        })(phy)
        self.buffer  = ElasticBuffer(f"eth_tx{number}")
        self.sink    = self.buffer.sink
        self.source  = phy.source
        self.link_up = phy.link_up

        # # #

        self.comb += [
            self.buffer.source.connect(phy.sink),
            phy.reset.eq(ResetSignal("timebase")),
        ]
