# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Ports that classify, measure and capture what they receive, and what collects it from all of them."""

from migen import *

from litex.gen import *

from liteprobe.cores.capture.ring_memory import BlockRamRing, BurstRing
from liteprobe.cores.capture.capture import BlockCapture
from liteprobe.cores.capture.export import BlockExport, FrameArbiter
from liteprobe.cores.formats import BLOCK_WORDS
from liteprobe.cores.measure.rate import RateMeter
from liteprobe.cores.receive.filter import FilterTables
from liteprobe.cores.receive.monitor.registers import MonitorPort
from liteprobe.cores.transmit.management.to_line import ManagementTransmit
from liteprobe.soc.main_ram import burst_port, sdram_places
from liteprobe.soc.measure import add_meter

# Ports --------------------------------------------------------------------------------------------

def add_monitor_ports(soc):
    """Give ``soc`` the filter, and a monitor path on each PHY; port 0 carries management too when it is in band."""
    config     = soc.probe_config
    soc.filter = FilterTables(config.ports)
    soc.filter.add_csr()
    soc.add_memory("filter", soc.filter.bus, soc.filter.words)
    if config.counts_rates:
        soc.rates = RateMeter(soc.timebase, config.ports)
    soc.monitor_ports = [add_monitor_port(soc, number) for number in range(config.ports)]

def add_monitor_port(soc, number):
    """Monitor what a PHY receives; return the port. One that sends nothing else sends management by itself.

    Registers ``port<n>_monitor``, and those of the meter.
    """
    config    = soc.probe_config
    is_shared = soc.carries_management(number)
    phy       = soc.phys[number]
    port   = MonitorPort(soc.timebase, soc.filter.matchers[number], number, config.mac_address if is_shared else None,
        with_line_clock = config.with_discipline and config.generates,
        pad_ticks       = phy.rx_ticks,
        with_fields     = config.sends_streams,
        with_hash       = config.with_hash)
    domain = soc.add_local_timebase(f"rx{number}")
    port   = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": domain})(port)
    soc.add_module(name=f"port{number}_monitor", module=port)
    soc.comb += [
        phy.source.connect(port.sink),
        port.link_up.eq(phy.link_up),
    ]
    if config.counts_rates:
        parser, ended = port.path.parser, soc.rates.ended[number]
        soc.comb += [
            ended.valid.eq(parser.seen),
            ended.length.eq(parser.frame.length),
        ]
    add_meter(soc, number, port.path)
    if is_shared and not config.generates:
        soc.port0_transmit = transmit = ManagementTransmit()
        soc.comb += transmit.source.connect(phy.sink)
    return port

# Capture ------------------------------------------------------------------------------------------

def ring_memory(soc):
    """Return where a capture waits for the host, and its address on the bus."""
    config = soc.probe_config
    if config.ring_kind(soc.board) == "sdram":
        place = sdram_places(config, soc.board)["capture"]
        port  = burst_port(soc)
        return BurstRing(port, place.size//(4*BLOCK_WORDS), place.origin//4), soc.sdram_region.origin + place.origin
    memory = BlockRamRing(config.capture_blocks)
    soc.add_memory("capture_ring", memory.bus, memory.words)
    return memory, soc.bus.regions["capture_ring"].origin

def add_capture(soc):
    """Keep the records of all ports: registers ``capture``; the management link adds the memory ``capture_channels``."""
    memory, address = ring_memory(soc)
    soc.capture = capture = BlockCapture(soc.probe_config.ports, memory, soc.sys_clk_freq)
    capture.add_csr(address)
    for port, to in zip(soc.monitor_ports, capture.ports):
        path = port.path
        soc.comb += [
            path.descriptor.connect(to.descriptor),
            path.header.connect(to.header),
            path.data.connect(to.data),
            path.skip.eq(to.skip),
        ]

def add_export(soc, transmit, has_room):
    """Send blocks beside the answers of the management stack on ``transmit``, to whoever asked for them."""
    request = soc.management.request
    config = soc.probe_config
    soc.export = export = BlockExport(config.mac_address, config.ip_address)
    export.add_csr()
    soc.export_arbiter = arbiter = FrameArbiter(is_quiet=not config.replays)
    soc.comb += [
        soc.capture.block.connect(export.sink),
        soc.capture.send.eq(export.send),
        export.peer_mac.eq(request.peer_mac),
        export.peer_ip.eq(request.peer_ip),
        soc.management.source.connect(arbiter.first),
        export.source.connect(arbiter.second),
        arbiter.source.connect(transmit),
        arbiter.has_room.eq(has_room),
    ]
