# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""What the ECP5 boards have in common: two RGMII PHYs, a timing header, a flash, and on most an SDRAM."""

from migen import ClockDomainsRenamer

from liteprobe.boards.ddr_samples import DdrSamples
from liteprobe.boards.io_timing import MEMORY_CLK_FREQ, MEMORY_CLOCK_PHASE, RX_DELAY, SDRAM_CLOCK_PHASE, margins
from liteprobe.boards.memories import SDRAM_BYTES, FlashPins, sdram_phy
from liteprobe.boards.rgmii import RgmiiPort
from liteprobe.cores.formats import PHY_KINDS

class Ecp5Board:
    """Names what a SoC may ask of a board, and nothing of what it does with it.

    A board sets ``platform`` and ``clocks`` (`ProbeClocks`, made by its ``crg``), and what differs from here.

    Attributes
    ----------
    name : str, as in ``liteprobe build``.
    ports : int, Ethernet PHYs.
    sys_clk_freq : float, Hz
    two_way_clk_freq : float, Hz, of ``sys`` where an emulator goes both ways without the discipline; None: as all else.
    placer : str, of nextpnr, with processor and discipline.
    seeds : dict, preset -> seed of placement that is known to meet timing, with processor and discipline; 1 where none is named.
    lut_sites, block_rams : int, of the device.
    with_serial, with_pcie : bool
    sdram_bytes : int, that a probe can use; 0: none.
    sdram_banks : int, banks of 2 MiB that an emulator can use, of the least of its chips.
    spare_bytes : int
        Block RAM that firmware can have by default, where there is no SDRAM; 0: none.
    spare_records : int
        That each port of a train holds by default beside firmware in block RAM, which gets what is not taken of 1024.
    flash_offset : int, where firmware lies in the flash, behind the bitstream.
    pps_is_serial_rx : bool, whether the PPS takes the pin of the serial port's RX.
    flash_bytes : int, size of the flash.
    cable : str, JTAG cable by openFPGALoader's name.
    jtag_advice : str, what to look at when no FPGA answers on the cable.
    limits : str, what the board can't do, for docs/boards.md.
    loading : str, what to know before it is loaded, for docs/boards.md.
    parts : Parts, what is beside the FPGA, for the margins of its buses, and to set it up.
    rx_delay : float, ns that the FPGA delays received data by.
    sdram_clock_phase : float, degrees that the SDRAM's clock is behind ``sys``.
    memory_clk_freq : float, Hz, of the SDRAM of a probe that replays; None: as all else, ``sys``.
    memory_clock_phase : float, degrees that the SDRAM's clock is behind ``memory`` then.
    with_late_sdram : bool, whether the SDRAM answers a cycle later, because its pins are far from the processor.
    phy_times : dict, ``reset_s`` and ``start_s`` of `Mdio` where they differ: a simulation can't wait that long.
    """
    ports        = 2
    sys_clk_freq = 50e6
    two_way_clk_freq = None
    seeds        = {}
    placer       = "heap"
    lut_sites    = 24288 # LFE5U-25F.
    block_rams   = 56
    with_serial  = True
    with_pcie    = False
    sdram_bytes  = SDRAM_BYTES
    spare_bytes  = 0
    spare_records = 1024
    flash_offset = 0x100000 # A bitstream of the LFE5U-25F takes 0.7 MB at most.
    pps_is_serial_rx = False
    jtag_advice  = ""
    loading      = ""
    limits       = "1 Gb/s full duplex only."
    rx_delay     = RX_DELAY
    sdram_clock_phase = SDRAM_CLOCK_PHASE
    memory_clk_freq   = MEMORY_CLK_FREQ
    memory_clock_phase = MEMORY_CLOCK_PHASE
    with_late_sdram = False
    phy_times    = {}

    @property
    def phy_kind(self):
        """Return the kind of its PHYs: what a probe sets up in them."""
        return next(kind for kind in PHY_KINDS if kind.name == self.parts.phy.name)

    @property
    def sdram_banks(self):
        """Return the banks of its SDRAM."""
        return min((chip.banks for chip in self.parts.sdrams), default=0)

    def phy(self, port):
        """Return the PHY of one port; the PHY delays both clocks."""
        pads = self.platform.request("eth", port)
        if hasattr(pads, "mdio"):
            self.mdio_pads = pads
        return RgmiiPort(
            clock_pads = self.platform.request("eth_clocks", port),
            pads       = pads,
            number     = port,
            tx_delay   = 0,
            rx_delay   = self.rx_delay,
        )

    def mdio(self):
        """Return the pads of the bus to all PHYs, ``mdc`` and ``mdio``; after ``phy()`` of port 0."""
        return self.mdio_pads

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

    def sdram(self, has_clock=False):
        """Return the PHY of the SDRAM, in ``memory`` where ``has_clock``, and the frequency of its times; after ``crg()``."""
        if has_clock:
            self.clocks.add_memory(self.memory_clk_freq, self.memory_clock_phase)
            phy = sdram_phy(self.platform, self.memory_clk_freq, is_late=True)
            return ClockDomainsRenamer("memory")(phy), self.memory_clk_freq
        self.clocks.add_sdram(self.sdram_clock_phase)
        return sdram_phy(self.platform, self.sys_clk_freq), self.sys_clk_freq

    def flash(self):
        """Return the pads of the SPI flash."""
        return FlashPins(self.platform.request("spiflash"))

    def io_margins(self, has_clock=False):
        """Return the margins of the buses to the PHYs, the flash and the SDRAM, in ``memory`` where ``has_clock``."""
        if has_clock and self.memory_clk_freq:
            return margins(self.parts, self.sys_clk_freq, self.rx_delay, self.memory_clock_phase, self.memory_clk_freq)
        return margins(self.parts, self.sys_clk_freq, self.rx_delay, self.sdram_clock_phase)
