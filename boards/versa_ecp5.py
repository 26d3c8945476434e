# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Lattice Versa ECP5(-5G): two gigabit ports (88E1512) and a speed grade 8 device."""

from litex.build.generic_platform import IOStandard, Pins, Subsignal

from litex_boards.platforms import lattice_versa_ecp5

from liteprobe.boards.clocks import ProbeClocks
from liteprobe.boards.ddr_samples import DdrSamples
from liteprobe.boards.memories import FlashPins
from liteprobe.boards.rgmii import RgmiiPort, leave_out

# IOs ----------------------------------------------------------------------------------------------

# Expansion header X3, 3.3 V: pin 4 (EXPCON_IO29) takes the PPS, 5 gives one, 6 goes to the receiver's RX, 7 takes its TX.
_timing = [
    ("pps",     0, Pins("X3:4"), IOStandard("LVCMOS33")),
    ("pps_out", 0, Pins("X3:5"), IOStandard("LVCMOS33")),
    ("gnss", 0,
        Subsignal("tx", Pins("X3:6")),
        Subsignal("rx", Pins("X3:7")),
        IOStandard("LVCMOS33")
    ),
]
# The defaults of the PHYs are what a probe needs: MDIO stays unused.
_unused_pins = ["mdio", "mdc"]

# CRG ----------------------------------------------------------------------------------------------

def _clocks(platform, sys_clk_freq):
    return ProbeClocks(platform.request("clk100"), 100e6, sys_clk_freq, reset=~platform.request("rst_n"))

# Board --------------------------------------------------------------------------------------------

class Board:
    """What a SoC may ask of this board, and nothing of what it does with it."""
    name         = "versa_ecp5"
    ports        = 2
    sys_clk_freq = 62.5e6
    seed         = 1 # Of placement.
    placer       = "heap"
    block_rams   = 108 # LFE5UM5G-45F.
    with_serial  = True
    with_pcie    = False
    sdram_bytes  = 0 # Its DDR3 isn't wired.
    spare_bytes  = 104*1024 # 52 block RAMs, beside 51 for all else.
    flash_offset = 0x200000 # Of firmware; a bitstream of the LFE5UM5G-45F takes 1.3 MB at most.
    pps_is_serial_rx = False
    cable        = "ft2232" # On board.
    limits       = "No MDIO: 1 Gb/s full duplex only, as the PHYs negotiate."

    def __init__(self, toolchain="trellis"):
        self.platform = lattice_versa_ecp5.Platform(device="LFE5UM5G", toolchain=toolchain)
        self.platform.add_extension(_timing)
        for port in range(self.ports):
            leave_out(self.platform, "eth", port, _unused_pins)

    def crg(self):
        """Return the clocks and resets."""
        self.clocks = _clocks(self.platform, self.sys_clk_freq)
        return self.clocks

    def phy(self, port):
        """Return the PHY of one port; the PHY delays both directions."""
        return RgmiiPort(
            clock_pads = self.platform.request("eth_clocks", port),
            pads       = self.platform.request("eth", port),
            number     = port,
            tx_delay   = 0,
            rx_delay   = 0,
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

    def flash(self):
        """Return the pads of the SPI flash."""
        return FlashPins(self.platform.request("spiflash"))
