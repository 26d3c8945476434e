# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Speaks RGMII as a test port needs it: a given transmit clock, RX_ER, and the link from in-band status. Pins are an ECP5's."""

from migen import *
from migen.genlib.resetsync import AsyncResetSynchronizer

from litex.gen import *

from litex.build.io import DDRInput, DDROutput
from litex.soc.interconnect import stream

from liteeth.common import eth_phy_description
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMIITX

from liteprobe.boards.io_timing import RX_DELAY, taps_of

# Helpers ------------------------------------------------------------------------------------------

def leave_out(platform, name, number, subsignals):
    """Take pins out of a resource of ``platform``, because two ports share them or nobody drives them."""
    manager = platform.constraint_manager
    for position, resource in enumerate(manager.available):
        if resource[:2] == (name, number):
            kept = tuple(e for e in resource if getattr(e, "name", None) not in subsignals)
            manager.available[position] = kept

# Receive ------------------------------------------------------------------------------------------

class RgmiiReceive(LiteXModule):
    """Turns RGMII into octets and reads the in-band status between frames.

    Parameters
    ----------
    pads : RGMII pads with ``rx_ctl`` and ``rx_data``.
    rx_delay : float, ns
        Delay of data. A little less than 1 ns makes up for the way of the clock within the FPGA; more than that is for a
        PHY that doesn't delay its clock (io_timing.py).

    Attributes
    ----------
    source : Endpoint(eth_phy_description(8)), out
        ``valid`` is RX_DV, ``error`` RX_ER. ``last`` is never set. Latency: 3 cycles from the pads.
    link_up : Signal(), out
        Link up at 1 Gb/s full duplex, by the in-band status; 1 until the PHY has sent any status.
    status : Signal(5), out
        The last in-band status, as of ``formats.PhyStatus``.
    delay : Signal(3), in, asynchronous
        Of data and control: back to ``rx_delay``, one tap further as it falls, one less instead.

    Limits: a PHY that sends no in-band status always counts as up.
    Source: RGMII 2.0, sections 3.4.1 (status) and 3.4.2 (RX_CTL = RX_DV, then RX_DV xor RX_ER).
    """
    def __init__(self, pads, rx_delay=RX_DELAY):
        self.source  = source = stream.Endpoint(eth_phy_description(8))
        self.link_up = Signal(reset=1)
        self.status  = Signal(5)
        self.delay   = Signal(3)

        # # #

        self.rx_delay = rx_delay
        data     = Signal(8)
        ctl      = Signal(2)
        data_d   = Signal(8, reset_less=True)
        ctl_d    = Signal(2)
        up       = Signal()
        was_reported = Signal() # Some status has come: from now on it is believed.

        # Pads.
        # -----
        self.add_input(pads.rx_ctl, ctl[0], ctl[1])
        for i in range(4):
            self.add_input(pads.rx_data[i], data[i], data[4 + i])

        # Octets.
        # -------
        stream.set_reset_less(source.payload)
        self.sync.eth_rx += [
            data_d.eq(data),
            ctl_d.eq(ctl),
            source.valid.eq(ctl_d[0]),
            source.data.eq(data_d),
            source.error.eq(ctl_d[0] & ~ctl_d[1]),
        ]

        # Status.
        # -------
        self.comb += up.eq(data_d[0] & (data_d[1:3] == 0b10) & data_d[3])
        self.sync.eth_rx += If(ctl_d == 0b00,
            If(data_d[:4] != 0, was_reported.eq(1)),
            self.status.eq(Cat(data_d[:4], was_reported)),
            self.link_up.eq(up | (~was_reported & (data_d[:4] == 0))),
        )

    def add_input(self, pad, rising, falling):
        """Add the delay of a pin, and its samples of a rising edge and of the falling one behind it, which come together."""
        load, move, down = self.delay
        delayed = Signal()
        self.specials += [
            Instance("DELAYF",
                p_DEL_MODE  = "USER_DEFINED",
                p_DEL_VALUE = taps_of(self.rx_delay),
                i_A         = pad,
                i_LOADN     = ~load,
                i_MOVE      = move,
                i_DIRECTION = down,
                o_Z         = delayed,
            ),
            DDRInput(clk=ClockSignal("eth_rx"), i=delayed, o1=rising, o2=falling),
        ]

# Port ---------------------------------------------------------------------------------------------

class RgmiiPort(LiteXModule):
    """A PHY as a port sees it: octets out in ``timebase``, octets in in ``eth_rx<number>``.

    Parameters
    ----------
    clock_pads, pads : RGMII pads; ``rst_n`` is driven when the pads have it.
    number : int, port number; names the receive domain.
    tx_delay, rx_delay : float, ns
        Delays of the FPGA: of the transmit clock, 0 where the PHY or the board delays it, and of received data.

    Attributes
    ----------
    sink : Endpoint(eth_phy_description(8)), in, ``timebase``; always ready. Latency: 1 cycle to the pads.
    source : Endpoint(eth_phy_description(8)), out, ``eth_rx<number>``
    link_up : Signal(), out, asynchronous
    status, delay : Signal(5), Signal(3), as of `RgmiiReceive`
    tx_ticks, rx_ticks : int
        Whole ticks from ``sink`` to the pads, and from the pads to ``source``: a register of the pad; two of the pad and
        one. Of the latter `RgmiiReceive` has a fourth edge less what the PHY's clock is behind its data: 2 ns are left.

    Transmits on ``timebase``, never on the recovered clock, so that all ports share one time.
    """
    rx_clk_freq = 125e6
    tx_clk_freq = 125e6
    tx_ticks    = 1
    rx_ticks    = 3

    def __init__(self, clock_pads, pads, number, tx_delay=0, rx_delay=RX_DELAY):
        # The receive clock needs a reset from the start, whatever the PHY does with its clock later.
        # A register behind the synchroniser, which stays near the PLL: the domain is far from it.
        cd_reset  = ClockDomain(f"reset_rx{number}")
        cd_eth_rx = ClockDomain(f"eth_rx{number}")
        setattr(self, f"cd_reset_rx{number}", cd_reset)
        setattr(self, f"cd_eth_rx{number}", cd_eth_rx)
        cd_eth_rx.rst.reset      = Constant(1)
        cd_eth_rx.rst.reset_less = True
        rx_clk = self.received_clock(clock_pads.rx)
        self.comb     += [cd_reset.clk.eq(rx_clk), cd_eth_rx.clk.eq(rx_clk)]
        self.specials += AsyncResetSynchronizer(cd_reset, ResetSignal("timebase"))
        sync = getattr(self.sync, f"reset_rx{number}")
        sync += cd_eth_rx.rst.eq(cd_reset.rst)

        self.tx      = ClockDomainsRenamer({"eth_tx": "timebase"})(self.new_transmit(pads))
        self.rx      = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}"})(self.new_receive(pads, rx_delay))
        self.sink    = self.tx.sink
        self.source  = self.rx.source
        self.link_up = self.rx.link_up
        self.status  = self.rx.status
        self.delay   = self.rx.delay
        self.reset   = Signal() # Of the PHY's pin, where it has one; in.

        # # #

        self.add_transmit_clock(clock_pads.tx, tx_delay)
        if hasattr(pads, "rst_n"):
            self.comb += pads.rst_n.eq(~ResetSignal("timebase") & ~self.reset)

    def new_transmit(self, pads):
        """Return what sends octets, in ``eth_tx``."""
        return LiteEthPHYRGMIITX(pads)

    def new_receive(self, pads, rx_delay):
        """Return what receives octets, in ``eth_rx``."""
        return RgmiiReceive(pads, rx_delay)

    def received_clock(self, pad):
        """Return the clock of received data, of its pin."""
        return pad

    def add_transmit_clock(self, pad, tx_delay):
        """Send the clock of ``timebase``, ``tx_delay`` ns late."""
        clock = Signal()
        self.specials += [
            DDROutput(clk=ClockSignal("timebase"), i1=1, i2=0, o=clock),
            Instance("DELAYG",
                p_DEL_MODE  = "SCLK_ALIGNED",
                p_DEL_VALUE = taps_of(tx_delay),
                i_A         = clock,
                o_Z         = pad,
            ),
        ]
