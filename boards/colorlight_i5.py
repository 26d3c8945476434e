# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Colorlight i5 (7.0) on its extension board: a SODIMM module with two gigabit PHYs."""

from litex.build.generic_platform import IOStandard, Pins, Subsignal

from litex_boards.platforms import colorlight_i5

from liteprobe.boards.clocks import ProbeClocks
from liteprobe.boards.ddr_samples import DdrSamples
from liteprobe.boards.memories import SDRAM_BYTES, FlashPins, sdram_phy
from liteprobe.boards.rgmii import RgmiiPort, leave_out

# IOs ----------------------------------------------------------------------------------------------

# PMOD E of the extension board, 3.3 V: pin 0 takes the PPS, 1 gives one, 2 goes to the receiver's RX, 3 takes its TX.
_timing = [
    ("pps",     0, Pins("pmode:0"), IOStandard("LVCMOS33")),
    ("pps_out", 0, Pins("pmode:1"), IOStandard("LVCMOS33")),
    ("gnss", 0,
        Subsignal("tx", Pins("pmode:2")),
        Subsignal("rx", Pins("pmode:3")),
        IOStandard("LVCMOS33")
    ),
]
# Both PHYs are on one MDIO bus and one reset: port 0, which every probe has, drives the reset.
_left_out = [["mdio", "mdc"], ["mdio", "mdc", "rst_n"]]

# CRG ----------------------------------------------------------------------------------------------

def _clocks(platform, sys_clk_freq):
    return ProbeClocks(platform.request("clk25"), 25e6, sys_clk_freq, reset=~platform.request("cpu_reset_n"))

# Board --------------------------------------------------------------------------------------------

class Board:
    """What a SoC may ask of this board, and nothing of what it does with it."""
    name         = "colorlight_i5"
    ports        = 2
    sys_clk_freq = 50e6
    seed         = 1 # Of placement.
    placer       = "static" # HeAP found no way, with seeds 1 and 2.
    block_rams   = 56 # LFE5U-25F.
    with_serial  = True
    with_pcie    = False
    sdram_bytes  = SDRAM_BYTES
    spare_bytes  = 0
    flash_offset = 0x100000 # Of firmware; a bitstream of the LFE5U-25F takes 0.7 MB at most.
    pps_is_serial_rx = False
    cable        = "cmsisdap" # DAPLink of the extension board.
    limits       = "No MDIO: 1 Gb/s full duplex only, as the PHYs negotiate."

    def __init__(self, toolchain="trellis"):
        self.platform = colorlight_i5.Platform(board="i5", revision="7.0", toolchain=toolchain)
        self.platform.add_extension(_timing)
        for port in range(self.ports):
            leave_out(self.platform, "eth", port, _left_out[port])

    def crg(self):
        """Return the clocks and resets."""
        self.clocks = _clocks(self.platform, self.sys_clk_freq)
        return self.clocks

    def phy(self, port):
        """Return the PHY of one port; the PHY delays the transmit clock, the FPGA received data."""
        return RgmiiPort(
            clock_pads = self.platform.request("eth_clocks", port),
            pads       = self.platform.request("eth", port),
            number     = port,
            tx_delay   = 0,
            rx_delay   = 2e-9,
        )

    def pps(self):
        """Return the pad of the PPS input."""
        return self.platform.request("pps")

    def pps_samples(self):
        """Return a module with four samples a tick of the PPS input; after ``crg()``."""
        self.clocks.add_double()
        return DdrSamples(self.pps())

    def pps_out(self):
        """Return the pad of the PPS output."""
        return self.platform.request("pps_out")

    def gnss(self):
        """Return the pads of the GNSS receiver's UART, ``tx`` and ``rx`` as the probe sees them."""
        return self.platform.request("gnss")

    def sdram(self):
        """Return the PHY of the SDRAM, and the frequency at which its times are kept."""
        return sdram_phy(self.platform, self.sys_clk_freq), self.sys_clk_freq

    def flash(self):
        """Return the pads of the SPI flash."""
        return FlashPins(self.platform.request("spiflash"))
