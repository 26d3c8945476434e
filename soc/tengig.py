# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""Builds a probe of 10 Gb/s: the same identity, time, management and registers, with ports of XGMII."""

from migen import *

from litex.gen import *

from litex.soc.interconnect.csr import *

from liteprobe.cores.formats import LIST_WORDS, PRESETS, RING_WORDS, SENT_WORDS, STREAM_WORDS, STREAMS, Part
from liteprobe.cores.formats.xgmii import CYCLE_PS, LANES
from liteprobe.cores.memory.ports import BurstPorts
from liteprobe.cores.timebase.clock import FRACTION_BITS, TimebaseClock
from liteprobe.cores.xgmii.mac import XgmiiMAC
from liteprobe.cores.xgmii.meter import XgmiiPortMeter
from liteprobe.cores.xgmii.path import XgmiiMeasurePath, XgmiiReceivePath, XgmiiTransmitPath
from liteprobe.cores.xgmii.replay import XgmiiReplaySource
from liteprobe.cores.xgmii.replay_port import XgmiiReplayPort
from liteprobe.cores.xgmii.streams import XgmiiStreamSource
from liteprobe.cores.xgmii.train import DUE_BITS
from liteprobe.soc.probe import ProbeSoC, ring_address

CLOCK_HZ  = 10**12//CYCLE_PS                      # Of the timebase.
INCREMENT = round(2**FRACTION_BITS*CYCLE_PS/1000) # ns a cycle, 8.40 fixed point.

# Port ---------------------------------------------------------------------------------------------

class XgmiiPort(LiteXModule):
    """Joins a MAC to the XGMII of a transceiver.

    Parameters
    ----------
    pads : Record with ``tx_data``, ``tx_control``, ``rx_data``, ``rx_control``
        Of 64 and 8 bits; transmit in ``timebase``, receive in ``eth_rx``.

    Attributes
    ----------
    mac : XgmiiMAC
    """
    def __init__(self, pads):
        self.mac = mac = XgmiiMAC()
        self.comb += [
            pads.tx_data.eq(mac.transmit.data),
            pads.tx_control.eq(mac.transmit.control),
            mac.receive.data.eq(pads.rx_data),
            mac.receive.control.eq(pads.rx_control),
        ]

# Replay -------------------------------------------------------------------------------------------

def replay_source(soc, number):
    """Return what replays on a port; the board's memory of rings comes with it, where `burst_port` looks for a SDRAM."""
    if not hasattr(soc, "sdram"):
        soc.sdram       = memory = soc.board.ring_memory(soc.probe_config.ports, soc.probe_config.ports*RING_WORDS)
        soc.burst_ports = BurstPorts(memory.burst)
        soc.sdram_ready = Constant(1)
    return XgmiiReplaySource(soc.sdram.ports[number], ring_address(soc, number)//2, RING_WORDS)

# Probe --------------------------------------------------------------------------------------------

class TenGigabitSoC(ProbeSoC):
    """Builds a probe of 10 Gb/s for a board; management has a port of its own.

    Its preset is ``train``, or ``generator``, which sends trains and streams, and measures streams with histograms. With either
    it may replay, but not make frames of configuration sets.

    Parameters
    ----------
    board : as of `ProbeSoC`
        Its ``crg()`` gives ``timebase`` 156.25 MHz; beside ``phy(number)``, which it has for management alone, it gives
        ``xgmii(number)``: pads as of `XgmiiPort`, and the clock of what comes in. For replay ``ring_memory(ports, words)``: a
        module with ``ports``, a `PairPort` each, and ``burst``, a `BurstPort` that writes; what is read after ``takes`` of a word
        is that word.
    config : ProbeConfig

    Raises ValueError, before anything is built, for what there isn't at 10 Gb/s.
    """
    def __init__(self, board, config):
        if config.parts & ~Part.REPLAY not in (PRESETS["train"], PRESETS["generator"], PRESETS["generator"] & ~Part.STREAMS):
            raise ValueError(
                "a probe of 10 Gb/s sends and measures trains and streams, and replays, alone so far: set preset to train or "
                "generator, and with_sets=False with with_replay")
        if config.link != "own" or config.with_cpu or config.with_discipline:
            raise ValueError("a probe of 10 Gb/s has management on a port of its own, and no processor: set link=own, "
                "with_cpu=False and with_discipline=False")
        ProbeSoC.__init__(self, board, config)
        self.probe.octets_per_tick = CSRStatus(8, reset=LANES, description="Of the line, in a tick of the timebase.")
        self.probe.ticks_per_second.status.reset = Constant(CLOCK_HZ, 32)
        self.probe.data_width.status.reset       = Constant(8*LANES, 8)

    def add_timebase(self):
        """Keep the one time of all ports, by ticks of 6.4 ns."""
        self.last_timebase = "timebase"
        clock = TimebaseClock(INCREMENT)
        clock.add_csr()
        self.timebase = ClockDomainsRenamer({"timebase": self.add_local_timebase("clock")})(clock)

    def add_phy(self, number):
        """Add the MAC of a test port, and return it."""
        pads, clock = self.board.xgmii(number)
        domain      = ClockDomain(f"eth_rx{number}")
        setattr(self, f"cd_eth_rx{number}", domain)
        self.comb += [
            domain.clk.eq(clock),
            domain.rst.eq(ResetSignal("timebase")),
        ]
        names = {"eth_rx": f"eth_rx{number}", "timebase": self.add_local_timebase(f"mac{number}")}
        port  = ClockDomainsRenamer(names)(XgmiiPort(pads))
        self.add_module(name=f"port{number}_phy", module=port)
        return port

    def add_transmit(self, number, phy):
        """Send programs on a port: registers ``port<n>_tx``, memory ``port<n>_header``, and those of streams and of a replay."""
        domains = {"timebase": self.add_local_timebase(f"tx{number}")}
        replays = self.probe_config.replays
        streams = XgmiiStreamSource(DUE_BITS) if self.probe_config.sends_streams else None
        path    = XgmiiTransmitPath(self.timebase, phy.mac, streams, [replay_source(self, number)] if replays else [])
        path.add_csr()
        if replays:
            port = XgmiiReplayPort(path)
            port.add_csr()
            self.add_module(name=f"port{number}_replay", module=ClockDomainsRenamer(domains)(port))
        path = ClockDomainsRenamer(domains)(path)
        self.add_module(name=f"port{number}_tx", module=path)
        bus = path.header.bus
        self.add_memory(f"port{number}_header", bus, 2*path.port.header.depth)
        if streams is not None:
            self.add_memory(f"port{number}_schedule", streams.streams_bus, STREAMS*STREAM_WORDS)
            self.add_memory(f"port{number}_lists", streams.lists_bus, LIST_WORDS)
            self.add_memory(f"port{number}_sent", streams.sent_counters.bus, STREAMS*SENT_WORDS)
        self.comb += [
            path.header_write.eq(bus.cyc & bus.stb & bus.we & bus.ack),
            path.start_strobe.eq(self.gate.strobe[number]),
            path.lease_ended.eq(self.probe.lease.ended),
            self.gate.ready[number].eq(path.ready),
        ]

    def add_receive(self, number, phy):
        """Measure what a port receives, and record its probe frames.

        Registers ``port<n>_rx``; memories ``port<n>_records``, ``port<n>_streams``, ``port<n>_snapshot``.
        """
        path = XgmiiReceivePath(self.timebase, phy.mac, self.probe_config.record_depth)
        path.add_csr()
        path = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": self.add_local_timebase(f"rx{number}")})(path)
        self.add_module(name=f"port{number}_rx", module=path)
        self.add_memory(f"port{number}_records", path.records.bus, path.records.words)
        self.add_memory(f"port{number}_streams", path.streams.bus, path.streams.bus_words)
        self.add_snapshot(number, path)

    def add_measure_port(self, number, phy):
        """Measure what a port receives, and keep nothing.

        Registers ``port<n>_rx``, ``port<n>_measure``; memories ``port<n>_snapshot``, ``port<n>_streams``, ``port<n>_bins``.
        """
        meter = XgmiiPortMeter(self.probe_config.slots(self.board))
        path  = XgmiiMeasurePath(self.timebase, phy.mac, meter)
        path.add_csr()
        path = ClockDomainsRenamer({"eth_rx": f"eth_rx{number}", "timebase": self.add_local_timebase(f"rx{number}")})(path)
        self.add_module(name=f"port{number}_rx", module=path)
        self.add_module(name=f"port{number}_measure", module=meter)
        self.add_snapshot(number, path)
        self.add_memory(f"port{number}_streams", meter.streams.bus, meter.streams.bus_words)
        self.add_memory(f"port{number}_bins", meter.histograms.bus, meter.histograms.bus_words)

    def add_replays(self):
        """Give the link the ports whose rings it fills."""
        self.replay_ports = [getattr(self, f"port{number}_replay") for number in range(self.probe_config.ports)]
