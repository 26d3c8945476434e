# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives boards of any family of FPGAs what they share: attributes, requests of pins, and pins of a SDRAM that change late."""

from migen import *

from litex.gen import *

from litex.build.generic_platform import IOStandard, Misc, Pins, Subsignal
from litex.build.io import DDROutput, SDRInput, SDROutput

from liteprobe.boards.io_timing import (
    EYE_CLK_FREQS, EYE_CLOCK_STEPS, MEMORY_CLK_FREQ, MEMORY_CLOCK_PHASE, RX_DELAY, SDRAM_CLOCK_PHASE,
)
from liteprobe.boards.rgmii import leave_out
from liteprobe.cores.formats import PHY_KINDS

# Pins ---------------------------------------------------------------------------------------------

SDRAM_BYTES = 4*1024*1024 # What a probe uses of any of these chips.

def make_fast(platform, name, number, attribute="SLEWRATE=FAST"):
    """Give the pins of a resource of ``platform`` fast edges, as the others of its bus have, and as data sheets mean them."""
    manager = platform.constraint_manager
    for position, resource in enumerate(manager.available):
        if resource[:2] == (name, number):
            manager.available[position] = (*resource, Misc(attribute))

class LatePin(LiteXModule):
    """Drives an output from a DDR register of the I/O, which changes with the falling edge after that of a register."""
    def __init__(self, pin):
        before = Signal()
        self.sync     += before.eq(pin.i)
        self.specials += DDROutput(i1=before, i2=pin.i, o=pin.o, clk=pin.clk)

class LateDataPin(LiteXModule):
    """Drives a data pin with the falling edge, and reads it by a register of the I/O and one after it.

    The enable, in a register of the I/O, begins half a cycle before the output and ends with it or half a cycle later.
    """
    def __init__(self, pin):
        before   = Signal()
        enabled  = Signal()
        output   = Signal()
        disabled = Signal()
        input    = Signal()
        taken    = Signal()
        self.sync += [before.eq(pin.o), enabled.eq(pin.oe), pin.i.eq(taken)]
        self.specials += [
            DDROutput(i1=before, i2=pin.o, o=output, clk=pin.clk),
            SDROutput(i=~(pin.oe | enabled), o=disabled, clk=pin.clk),
            SDRInput(i=input, o=taken, clk=pin.clk),
            self.buffer(pin.io, output, disabled, input),
        ]

    def buffer(self, io, output, disabled, input):
        """Return the buffer of a pin that goes both ways; each family has its own."""
        return Instance("TRELLIS_IO", p_DIR="BIDIR", i_B=io, i_I=output, i_T=disabled, o_O=input)

def replaced_pins(phy, kind, by):
    """Take the pins of a kind out of LiteDRAM's PHY, and return the modules that are in their place, for its submodules."""
    specials = phy._fragment.specials # Migen has no other way to a special that was added.
    # In the order in which they were made: a set has another one each time.
    pins = sorted((special for special in specials if isinstance(special, kind)), key=lambda pin: pin.duid)
    specials.difference_update(pins)
    return [by(pin) for pin in pins]

def timing_header(pps_out, tx, rx, pps=None):
    """Return the pins, 3.3 V, of a header that takes the PPS and gives one, and a GNSS receiver's UART, as the probe sees it."""
    level = IOStandard("LVCMOS33")
    taken = [("pps", 0, Pins(pps), level)] if pps else []
    return [*taken, ("pps_out", 0, Pins(pps_out), level), ("gnss", 0, Subsignal("tx", Pins(tx)), Subsignal("rx", Pins(rx)), level)]

# Board --------------------------------------------------------------------------------------------

class RgmiiBoard:
    """Names what a SoC may ask of a board, and nothing of what it does with it.

    A board gives its platform, and sets what differs from here.

    Attributes
    ----------
    name : str, as in ``liteprobe build``.
    ports : int, Ethernet PHYs.
    oscillator : its pin, and its frequency (Hz); ``reset_pin``: of a button, low; "": there is none.
    timing : pins as of `timing_header`.
    left_out : of each port, pins of its PHY that two ports share, or that nobody drives.
    sys_clk_freq : float, Hz
    two_way_clk_freq : float, Hz, of ``sys`` where an emulator goes both ways without the discipline; None: as all else.
    placer : str, of nextpnr, with processor and discipline.
    lut_sites, block_rams : int, of the device.
    with_serial, with_pcie : bool
    sdram_bytes : int, that a probe can use; 0: none.
    sdram_banks : int, banks of 2 MiB that an emulator can use, of the least of its chips.
    spare_bytes : int
        Block RAM that firmware can have by default, where there is no SDRAM; 0: none.
    spare_records : int
        That each port of a train holds by default beside firmware in block RAM, which gets what is not taken of 1024.
    flash_offset : int, where firmware lies in the flash, after the bitstream.
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
    eye_clk_freqs : pair of float, Hz, of an emulator's SDRAM whose eye is found at start; and where none is found.
    eye_clock_steps : of its clock, as of `ReadEye`.
    with_late_sdram : bool, whether the SDRAM answers a cycle later, because its pins are far from the processor.
    clocks_kind, port_kind : classes of the family, of `ProbeClocks` and `RgmiiPort`.
    phy_times : dict, ``reset_s`` and ``start_s`` of `Mdio` where they differ: a simulation can't wait that long.
    """
    ports        = 2
    oscillator   = ("clk25", 25e6)
    reset_pin    = ""
    sys_clk_freq = 50e6
    two_way_clk_freq = None
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
    eye_clk_freqs   = EYE_CLK_FREQS
    eye_clock_steps = EYE_CLOCK_STEPS
    with_late_sdram = False
    phy_times    = {}

    def __init__(self, platform):
        self.platform = platform
        self.platform.add_extension(self.timing)
        for port, pins in enumerate(self.left_out):
            leave_out(self.platform, "eth", port, pins)

    def crg(self):
        """Return the clocks and resets."""
        pin, freq   = self.oscillator
        clock       = self.platform.request(pin)
        reset       = ~self.platform.request(self.reset_pin) if self.reset_pin else 0
        self.clocks = self.clocks_kind(clock, freq, self.sys_clk_freq, reset=reset)
        return self.clocks

    @property
    def device(self):
        """Return the name of the FPGA, as its maker orders it."""
        return self.platform.device

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
        return self.port_kind(
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

    def pps_out(self):
        """Return the pad of the PPS output."""
        return self.platform.request("pps_out")

    def gnss(self):
        """Return the pads of the GNSS receiver's UART, ``tx`` and ``rx`` as the probe sees them."""
        return self.platform.request("gnss")
