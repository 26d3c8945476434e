# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Meters of streams, and ports that have nothing else to receive with."""

from migen import *

from litex.gen import *

from liteprobe.cores.measure.port import PortMeter
from liteprobe.cores.receive.path import MeasurePath

# Meter --------------------------------------------------------------------------------------------

def add_meter(soc, number, path):
    """Measure the frames of a port's ``path``, and the streams of them.

    Registers ``port<n>_measure``; memories ``port<n>_snapshot``, ``port<n>_streams``, ``port<n>_bins``, and ``port<n>_places``
    where ports send streams.
    """
    config = soc.probe_config
    meter  = PortMeter(slots=config.slots(soc.board), with_fields=config.sends_streams)
    soc.add_module(name=f"port{number}_measure", module=meter)
    soc.comb += path.measured.connect(meter.measured)
    soc.add_memory(f"port{number}_snapshot", path.tally.bus, path.tally.words)
    soc.add_memory(f"port{number}_streams", meter.streams.bus, meter.streams.bus_words)
    soc.add_memory(f"port{number}_bins", meter.histograms.bus, meter.histograms.bus_words)
    soc.snapshots[f"port{number}"] = path.tally.layout
    if config.sends_streams:
        soc.comb += meter.fields.passing.eq(path.arrivals.passing)
        soc.add_memory(f"port{number}_places", meter.fields.bus, meter.fields.bus_words)

# Ports --------------------------------------------------------------------------------------------

def add_measure_ports(soc):
    """Measure what each PHY receives, and keep nothing."""
    for number in range(soc.probe_config.ports):
        add_measure_port(soc, number)

def add_measure_port(soc, number):
    """Measure what a PHY receives: registers ``port<n>_rx``, and those of the meter."""
    phy    = soc.phys[number]
    path   = MeasurePath(soc.timebase, soc.carries_management(number), phy.rx_ticks)
    path.add_csr()
    if soc.probe_config.with_discipline:
        path.add_line_clock()
    domain = soc.add_local_timebase(f"rx{number}")
    path   = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": domain})(path)
    soc.add_module(name=f"port{number}_rx", module=path)
    soc.comb += [
        phy.source.connect(path.sink),
        path.link_up.eq(phy.link_up),
    ]
    add_meter(soc, number, path)
