# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Gives a probe the RAM that firmware runs in, and the SDRAM its users: see docs/design/main-ram.md and docs/design/boot.md."""

from typing import NamedTuple

from migen import ClockDomainsRenamer

from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import wishbone

from liteprobe.cores.formats.emulate import TRACE_ENTRY_WORDS
from liteprobe.cores.formats.replay import RING_WORDS, TABLE_ENTRIES
from liteprobe.soc.boot import BootRegisters, Firmware, boot_program
from liteprobe.cores.memory.ports import BurstPorts, MemoryCrossing
from liteprobe.cores.memory.sdram import BANKS, COLUMNS, ROWS, SdramController

BANK_BYTES     = 4*ROWS*COLUMNS
FIRMWARE_BYTES = 1024*1024 # Of the SDRAM, where it is main RAM.
ORIGIN         = 0x48000000 # Of a SDRAM that isn't main RAM.

# SDRAM --------------------------------------------------------------------------------------------

class SdramPlace(NamedTuple):
    """A part of the SDRAM, octets from its beginning."""
    origin: int
    size:   int

def sdram_places(config, board):
    """Return who has which part of the SDRAM: those that are wanted, ``capture`` the rest."""
    wanted = {"firmware": FIRMWARE_BYTES} if config.main_ram_kind(board) == "sdram" else {}
    if config.replays:
        wanted |= {"sets": 4*TABLE_ENTRIES} if config.makes_sets else {}
        wanted |= {f"replay{port}": 4*RING_WORDS for port in range(config.ports)}
    if config.stores_in_sdram:
        wanted |= {f"emulate{number}": 4*config.store_words for number in range(config.directions)}
        if config.trace_entries:
            wanted |= {f"trace{number}": 4*TRACE_ENTRY_WORDS*config.trace_entries for number in range(config.directions)}
    places, at = {}, 0
    for name, size in wanted.items():
        places[name] = SdramPlace(at, size)
        at += size
    places["capture"] = SdramPlace(at, BANK_BYTES*sdram_banks(config, board) - at)
    if places["capture"].size < 0:
        raise ValueError(f"the SDRAM of {board.name} is {-places['capture'].size} bytes too small: lower store_words")
    return places

def sdram_banks(config, board):
    """Return the banks of the SDRAM that are used: two, which all boards have; of an emulator, all."""
    return board.sdram_banks if config.stores_in_sdram else BANKS

def add_sdram(soc, name, origin):
    """Give ``soc`` the board's SDRAM as a region of the bus; return whether it is ready.

    A probe whose ports share it has it run in a clock of its own where the board has one.
    """
    config, board = soc.probe_config, soc.board
    has_clock     = config.shares_sdram and board.memory_clk_freq is not None
    phy, clk_freq = board.sdram(has_clock)
    soc.sdram_phy = phy
    sdram = SdramController(phy, clk_freq,
        with_bursts      = config.monitors or config.shares_sdram,
        with_late_answer = board.with_late_sdram and not has_clock,
        banks            = sdram_banks(config, board))
    soc.sdram = ClockDomainsRenamer("memory")(sdram) if has_clock else sdram
    memory    = sdram
    if has_clock:
        soc.memory_crossing = memory = MemoryCrossing(sdram)
    if config.shares_sdram:
        soc.burst_ports = BurstPorts(memory.burst)
    soc.bus.add_slave(name, memory.bus, SoCRegion(origin=origin, size=BANK_BYTES*sdram.banks, mode="rwx"))
    soc.sdram_region = soc.bus.regions[name]
    soc.sdram_ready  = memory.ready
    return memory.ready

def behind_start(soc, host):
    """Return the bus of a host, whose accesses wait there until the SDRAM of ``soc`` is started.

    The interconnect answers what takes longer than its time-out, a write as if it were done, and the start takes longer.
    """
    bus = wishbone.Interface(data_width=32, address_width=32, addressing="word")
    soc.comb += [
        host.connect(bus, omit={"cyc"}),
        bus.cyc.eq(host.cyc & soc.sdram_ready),
    ]
    return bus

def burst_port(soc, writes=True):
    """Return a burst port to the SDRAM of ``soc``, which gets the SDRAM with it unless that is main RAM.

    ``writes``: it is not only for reading.
    """
    if not hasattr(soc, "sdram"):
        # BAR0 reaches main RAM, and what is in its place.
        origin = soc.mem_map["main_ram"] if soc.probe_config.link == "pcie" else ORIGIN
        add_sdram(soc, "sdram" if soc.probe_config.shares_sdram else "capture_ring", origin)
    # Else there is one user, and the controller's own port is enough.
    return soc.burst_ports.add_port(writes) if soc.probe_config.shares_sdram else soc.sdram.burst

def add_place(soc, name, part):
    """Let the host find a part of the SDRAM as the memory ``name``, within the SDRAM's region; return its `SdramPlace`."""
    place = sdram_places(soc.probe_config, soc.board)[part]
    soc.bus.add_region(name,
        SoCRegion(origin=soc.sdram_region.origin + place.origin, size=place.size, mode="rw", linker=True))
    return place

def ring_address(soc, number=0):
    """Return where the ring of a port that replays begins in the SDRAM, words."""
    return sdram_places(soc.probe_config, soc.board)[f"replay{number}"].origin//4

# Main RAM -----------------------------------------------------------------------------------------

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
