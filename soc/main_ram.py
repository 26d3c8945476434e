# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The RAM that firmware runs in, and how firmware gets there: see docs/design/main-ram.md and docs/design/boot.md."""

from litex.soc.integration.soc import SoCRegion

from liteprobe.soc.boot import BootRegisters, Firmware, boot_program
from liteprobe.cores.memory.sdram import BANKS, COLUMNS, ROWS, SdramController

RING_ORIGIN = 0x48000000 # Of a SDRAM that isn't main RAM.

def add_sdram(soc, name, origin):
    """Give ``soc`` the board's SDRAM as a region of the bus; return whether it is ready."""
    phy, clk_freq = soc.board.sdram()
    soc.sdram_phy = phy
    soc.sdram     = sdram = SdramController(phy, clk_freq,
        with_bursts      = soc.probe_config.monitors,
        with_late_answer = soc.board.with_late_sdram)
    region = SoCRegion(origin=origin, size=4*BANKS*ROWS*COLUMNS, mode="rwx")
    soc.bus.add_slave(name, sdram.bus, region)
    return sdram.ready

def add_main_ram(soc):
    """Give ``soc`` the main RAM that is asked for; return whether it is ready, a signal or 1.

    Main RAM of block RAM is LiteX's own (`processor_parameters`).
    """
    return add_sdram(soc, "main_ram", soc.mem_map["main_ram"]) if soc.probe_config.main_ram_kind(soc.board) == "sdram" else 1

def add_boot(soc):
    """Give ``soc`` the registers that start firmware; from flash too, where there is main RAM to copy it to."""
    ready = add_main_ram(soc)
    flash = None
    if soc.board.flash_offset is not None and "main_ram" in soc.bus.regions:
        soc.flash_pins = flash = soc.board.flash()
    soc.boot = BootRegisters(ready, flash)

def write_boot_program(soc, registers):
    """Write the program into the ROM of ``soc``, whose registers are where the map ``registers`` says."""
    def address(name):
        return registers[name]["addr"]
    firmware = None
    if "boot_flash" in registers:
        ram = soc.bus.regions["main_ram"]
        firmware = Firmware(soc.board.flash_offset, ram.origin, ram.size,
            map_hash  = address("probe_map_hash"),
            ram_ready = address("boot_ram"),
            flash     = address("boot_flash"),
        )
    soc.init_rom("rom", boot_program(address("boot_entry"), address("boot_state"), firmware), auto_size=False)
