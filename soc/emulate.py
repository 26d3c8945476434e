# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Joins two ports by an emulated network."""

from migen import *

from litex.gen import *

from liteprobe.cores.emulate.arrive import ForwardPath
from liteprobe.cores.emulate.bypass import ReverseBypass
from liteprobe.cores.emulate.forward import ForwardSource
from liteprobe.cores.emulate.direction import EmulatedDirection, DirectionSizes, Origin
from liteprobe.cores.emulate.store import BlockStore, BlockTrace, SdramStore, SdramTrace
from liteprobe.cores.receive.filter.tables import FilterTables
from liteprobe.cores.transmit.due import DUE_TO_START, LEAD_TICKS
from liteprobe.cores.transmit.path import ForwardTransmit
from liteprobe.cores.transmit.pace import START_TO_SFD
from liteprobe.cores.transmit.stamp import STAMP_TICKS
from liteprobe.soc.main_ram import add_place, burst_port, sdram_places
from liteprobe.soc.config import LONGEST

BUFFER_WORDS = 1024 # That are read ahead of a direction.
# Of a frame that are here before it is shown: block RAM is faster than the line, the SDRAM may have others to serve.
SHOWN_WORDS  = {False: 16, True: 384}
MOVE_TICKS   = 3 # At most, in which a word goes to the store: a cycle of the slowest ``sys``.
# From the start to tick 0, as the MAC has it: the start is seen a tick later.
ORIGIN_TICKS = 1 + LEAD_TICKS + DUE_TO_START + START_TO_SFD - STAMP_TICKS # The path has no stamp.

# Directions ---------------------------------------------------------------------------------------

def add_leave(soc, number):
    """Send on a PHY what leaves the network, or what goes back where it has one direction: registers ``port<n>_tx``."""
    if number < 2 - soc.probe_config.directions:
        add_back(soc)
        return
    source = ForwardSource(BUFFER_WORDS, SHOWN_WORDS[soc.probe_config.stores_in_sdram])
    path   = ForwardTransmit(source, soc.carries_management(number), soc.phys[number].tx_ticks)
    path.add_csr()
    soc.join_transmit(number, path, soc.add_local_timebase(f"tx{number}"))

def add_back(soc):
    """Let the frames of port 1 leave by port 0 as they came."""
    limits = direction_limits(soc.probe_config)
    back   = ReverseBypass(limits.longest, staging_octets(limits), soc.carries_management(0))
    back.add_csr()
    names  = {"eth_rx": "eth_rx1", "timebase": soc.add_local_timebase("tx0")}
    soc.add_module(name="port0_tx", module=ClockDomainsRenamer(names)(back))
    soc.comb += [
        soc.phys[1].source.connect(back.sink),
        back.source.connect(soc.phys[0].sink),
        back.phy_link_up.eq(soc.phys[0].link_up),
    ]

def staging_octets(limits):
    """Return the size of a memory for frames as they come in."""
    return 1 << (2*limits.longest).bit_length()

def add_emulator(soc):
    """Give ``soc`` the filter that names classes, and each direction its network: registers ``direction<n>``."""
    config     = soc.probe_config
    soc.filter = FilterTables(config.directions)
    soc.filter.add_csr()
    soc.add_memory("filter", soc.filter.bus, soc.filter.words)
    soc.arrive_ports = [add_arrive(soc, number) for number in range(config.directions)]
    for number in range(config.directions):
        add_direction(soc, number)

def add_arrive(soc, number):
    """Take in the frames of a PHY: module ``port<n>_arrive``."""
    config = soc.probe_config
    phy    = soc.phys[number]
    limits = direction_limits(config)
    path   = ForwardPath(soc.timebase, soc.filter.matchers[number],
        config.mac_address if soc.carries_management(number) else None,
        longest        = limits.longest,
        staging_octets = staging_octets(limits),
        pad_ticks      = phy.rx_ticks)
    domain = soc.add_local_timebase(f"rx{number}")
    path   = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": domain})(path)
    soc.add_module(name=f"port{number}_arrive", module=path)
    soc.comb += phy.source.connect(path.sink)
    return path

def direction_limits(config):
    """Return the sizes of each direction of a probe."""
    longest = config.longest
    return DirectionSizes(
        waiting       = 512,
        entries       = config.entries,
        longest       = longest,
        # The frame, as many octets as its parser and the filter take, and what is counted of it meanwhile.
        arrival_ticks = longest + 4 + 512,
        lead_ticks    = 4096 if config.stores_in_sdram else 512,
        engine_ticks  = 256,
        # The words of a frame of 1536 octets are moved in the ticks above.
        move_ticks    = MOVE_TICKS*(longest - LONGEST[0])//4,
    )

def add_direction(soc, number):
    """Emulate a network from port ``number`` to the other one."""
    config   = soc.probe_config
    out      = 1 - number
    transmit = getattr(soc, f"port{out}_tx")
    store    = frame_store(soc, number)
    trace    = add_trace(soc, number) if config.trace_entries else None
    port     = EmulatedDirection(soc.arrive_ports[number], transmit, store, direction_limits(config), trace)
    port.add_csr()
    soc.add_module(name=f"direction{number}", module=port)
    origin = Origin(ORIGIN_TICKS + soc.phys[out].tx_ticks)
    origin = ClockDomainsRenamer({"timebase": soc.add_local_timebase(f"origin{number}")})(origin)
    soc.add_module(name=f"direction{number}_origin", module=origin)
    soc.comb += [
        origin.ticks.eq(soc.timebase.ticks),
        origin.strobe.eq(soc.gate.strobe[out]),
        port.origin.eq(origin.origin),
    ]
    emulation = port.emulation
    soc.add_memory(f"direction{number}_settings", emulation.settings_bus, emulation.settings.words_count)
    soc.add_memory(f"direction{number}_counts", emulation.counts_bus, emulation.counts.words)

def frame_store(soc, number):
    """Return where the octets of a direction wait."""
    config = soc.probe_config
    if not config.stores_in_sdram:
        return BlockStore(config.store_words, BUFFER_WORDS)
    place = sdram_places(config, soc.board)[f"emulate{number}"]
    return SdramStore(burst_port(soc), burst_port(soc, writes=False), place.origin//4, place.size//4, BUFFER_WORDS)

def add_trace(soc, number):
    """Give a direction a bandwidth trace, memory ``direction<n>_trace``; return what reads it."""
    config, name = soc.probe_config, f"direction{number}_trace"
    if not config.stores_in_sdram:
        trace = BlockTrace(config.trace_entries)
        soc.add_memory(name, trace.bus, trace.words)
        return trace
    port  = burst_port(soc, writes=False)
    place = add_place(soc, name, f"trace{number}")
    return SdramTrace(port, place.origin//4, config.trace_entries)
