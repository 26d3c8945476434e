# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""SQRL Acorn CLE-215+ (Artix-7 200T, M.2) on LiteX's Acorn Baseboard Mini: PCIe x1 and two SFPs."""

from migen import *

from litex.gen import *

from litex.build.generic_platform import IOStandard, Misc, Pins, Subsignal
from litex.soc.cores.clock import S7PLL
from litex.soc.interconnect import stream

from litex_boards.platforms import sqrl_acorn

from liteeth.common import eth_phy_description
from liteeth.phy.a7_1000basex import A7_1000BASEX
from liteeth.phy.a7_gtp import QPLL, QPLLChannel, QPLLSettings

from litepcie.phy.s7pciephy import S7PCIEPHY

from liteprobe.cores.crossing import StreamCrossing
from liteprobe.cores.timebase.pps import PinSamples

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
        sync += If(octets.valid & octets.ready & octets.last,
            wait.eq(HEAD_START),
        ).Elif(octets.valid & (wait != 0),
            wait.eq(wait - 1),
        )
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

# IOs ----------------------------------------------------------------------------------------------

# The card alone has no network port: all four transceivers go to its M.2 edge. On the baseboard one is PCIe, two are SFPs and
# one is SATA; pins as of litex-boards' later `sqrl_acorn` (_litex_acorn_baseboard_mini_io), but SFP 1's rxn is A8, the other
# half of the pair of B8 in the PCIe x4 table of 2023.12, where that one says C8.
# Connector P2 of the card, 3.3 V: H5 takes the PPS, J5 gives one, K2 goes to the receiver's RX, J2 takes its TX.
_baseboard = [
    ("pcie_x1", 0,
        Subsignal("rst_n", Pins("J1"), IOStandard("LVCMOS33"), Misc("PULLUP=TRUE")),
        Subsignal("clk_p", Pins("F6")),
        Subsignal("clk_n", Pins("E6")),
        Subsignal("rx_p",  Pins("D9")),
        Subsignal("rx_n",  Pins("C9")),
        Subsignal("tx_p",  Pins("D7")),
        Subsignal("tx_n",  Pins("C7")),
    ),
    ("sfp", 0,
        Subsignal("txp", Pins("D5")),
        Subsignal("txn", Pins("C5")),
        Subsignal("rxp", Pins("D11")),
        Subsignal("rxn", Pins("C11")),
    ),
    ("sfp", 1,
        Subsignal("txp", Pins("B4")),
        Subsignal("txn", Pins("A4")),
        Subsignal("rxp", Pins("B8")),
        Subsignal("rxn", Pins("A8")),
    ),
    ("pps",     0, Pins("H5"), IOStandard("LVCMOS33")),
    ("pps_out", 0, Pins("J5"), IOStandard("LVCMOS33")),
    ("gnss", 0,
        Subsignal("tx", Pins("K2")),
        Subsignal("rx", Pins("J2")),
        IOStandard("LVCMOS33")
    ),
]

# CRG ----------------------------------------------------------------------------------------------

class _AcornClocks(LiteXModule):
    """Makes ``sys`` and ``timebase`` from the oscillator of 200 MHz.

    Attributes
    ----------
    rst : Signal(), in; driven by the SoC controller.
    """
    def __init__(self, platform, sys_clk_freq):
        self.rst         = Signal()
        self.cd_sys      = ClockDomain()
        self.cd_timebase = ClockDomain()

        # # #

        self.pll = pll = S7PLL(speedgrade=-3)
        self.comb += pll.reset.eq(self.rst)
        pll.register_clkin(platform.request("clk200"), 200e6)
        pll.create_clkout(self.cd_sys,      sys_clk_freq, margin=0)
        pll.create_clkout(self.cd_timebase, 125e6,        margin=0)

# PHYs ---------------------------------------------------------------------------------------------

class _Transceivers(LiteXModule):
    """Makes the clocks of all transceivers: PLL 0 is for PCIe, from the slot's 100 MHz; PLL 1 for the SFPs, from ``timebase``.

    Their clock is the timebase's, so a frame's place on the line follows the timebase for good.
    """
    def __init__(self, pcie_refclk):
        pcie = QPLLSettings(refclksel=0b001, fbdiv=5, fbdiv_45=5, refclk_div=1) # 100 MHz * 25.
        sfp  = QPLLSettings(refclksel=0b111, fbdiv=4, fbdiv_45=5, refclk_div=1) # 125 MHz * 20.
        self.qpll = QPLL(
            gtrefclk0  = pcie_refclk, qpllsettings0 = pcie,
            gtgrefclk1 = ClockSignal("timebase"), qpllsettings1 = sfp,
        )
        self.pcie, self.of_sfps = self.qpll.channels
        self.resets = []

    def sfp(self):
        """Return what one more SFP knows of PLL 1; any of them may reset it."""
        channel = QPLLChannel(self.of_sfps.index)
        channel.lock, channel.clk, channel.refclk = self.of_sfps.lock, self.of_sfps.clk, self.of_sfps.refclk
        self.resets.append(channel.reset)
        return channel

    def do_finalize(self):
        self.comb += self.of_sfps.reset.eq(Cat(self.resets) != 0)

# Board --------------------------------------------------------------------------------------------

class SqrlAcorn:
    """Gives a SoC what it may ask of this board, and knows nothing of what the SoC does with it."""
    name         = "sqrl_acorn"
    ports        = 2
    sys_clk_freq = 125e6
    two_way_clk_freq = None
    lut_sites    = 134600 # XC7A200T: a LUT6 holds a LUT4.
    block_rams   = 730 # RAMB18E1.
    with_serial  = False
    with_pcie    = True
    sdram_bytes  = 0 # Its DDR3 isn't wired.
    eye_clk_freqs = None
    spare_bytes  = 256*1024
    spare_records = 1024
    flash_offset = None
    pps_is_serial_rx = False
    cable        = None
    limits       = "Never seen on hardware. Verilog, driver and library only: the bitstream takes Vivado (docs/pcie.md)."

    def __init__(self, toolchain="vivado"):
        self.platform = sqrl_acorn.Platform(variant="cle-215+", toolchain=toolchain)
        self.platform.add_extension(_baseboard)
        self.pcie_refclk = Signal()

    def crg(self):
        """Return the clocks and resets; the clocks of the transceivers with them."""
        self.clocks = _AcornClocks(self.platform, self.sys_clk_freq)
        self.clocks.transceivers = self.transceivers = _Transceivers(self.pcie_refclk)
        return self.clocks

    def phy(self, port):
        """Return the PHY of one SFP; after ``crg()``. The card crosses the pairs that receive, says LiteX's target."""
        return SfpPort(self.transceivers.sfp(), self.platform.request("sfp", port), port, self.sys_clk_freq, rx_polarity=1)

    def pcie_phy(self, bar0_size):
        """Return the PHY of PCIe, with a BAR0 of so many octets; after ``crg()``."""
        phy = S7PCIEPHY(self.platform, self.platform.request("pcie_x1"), data_width=64, bar0_size=bar0_size)
        phy.use_external_qpll(self.transceivers.pcie)
        phy.update_config({"Bar0_Size": bar0_size >> 20}) # Megabytes.
        phy.comb += self.pcie_refclk.eq(phy.pcie_refclk)
        return phy

    def pps_samples(self):
        """Return a module with one sample a tick of the PPS input."""
        return PinSamples(self.platform.request("pps"))

    def pps_out(self):
        """Return the pad of the PPS output."""
        return self.platform.request("pps_out")

    def gnss(self):
        """Return the pads of the GNSS receiver's UART, ``tx`` and ``rx`` as the probe sees them."""
        return self.platform.request("gnss")
