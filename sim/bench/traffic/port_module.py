# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A transmit port with its source of streams as a Verilog module with plain pins, from the bus to the PHY's octets."""

from migen import *

from litex.gen import *

from liteprobe.cores.formats import STREAMS
from liteprobe.cores.timebase.clock import Clock
from liteprobe.cores.transmit import TransmitPath
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.system.build import own_combinatorial_blocks

MEMORIES = ["schedule", "modifiers", "lists", "header", "sent"] # In the order of bits 31..28 of an address.
INPUTS = [
    ("streams_mask", STREAMS), ("streams_hold", 1), ("streams_arm", 1), ("streams_begin", STREAMS), ("streams_end", STREAMS),
    ("stop", 1), ("clear", 1),
]
OUTPUTS = [("state", 3), ("sent", 32), ("late", 32), ("underruns", 16), ("streams_active", STREAMS)]

# Port Bench ---------------------------------------------------------------------------------------

class PortBench(LiteXModule):
    """A port of `TransmitPath` with `StreamSource`, and one bus for all of its memories.

    Parameters
    ----------
    pad_ticks : int
    sets : SetsSource, or None
        Beside it; the rest of its pins is the business of whoever gives it.
    with_streams : bool

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``timebase``; INPUTS, OUTPUTS; ``adr``, ``dat_w``, ``we``, ``stb``,
    ``ack``, ``dat_r``; ``start_request``; ``now``; ``tx_valid``, ``tx_data``.
    """
    def __init__(self, pad_ticks=0, sets=None, with_streams=True):
        self.pins = set()
        for name in ["sys", "timebase"]:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        self.clock = clock = Clock()
        self.gate  = gate  = StartGate(1)
        streams    = StreamSource([] if sets is None else [sets.user]) if with_streams else None
        self.path  = path  = TransmitPath(clock, pad_ticks=pad_ticks, streams=streams, sets=sets)
        for name, width in INPUTS:
            if hasattr(path, name):
                self.comb += getattr(path, name).eq(self.pin(name, width))
        for name, width in OUTPUTS:
            if hasattr(path, name):
                self.comb += self.pin(name, width).eq(getattr(path, name))
        self.add_bus()
        self.comb += [
            gate.mask.eq(1),
            gate.request.eq(self.pin("start_request", 1)),
            path.start_strobe.eq(gate.strobe[0]),
            gate.ready[0].eq(path.ready),
            self.pin("now", 64).eq(clock.now),
            self.pin("tx_valid", 1).eq(path.source.valid),
            self.pin("tx_data", 8).eq(path.source.data),
        ]

    def add_bus(self):
        """Let one bus reach each memory."""
        adr, dat_w, we, stb = self.pin("adr", 32), self.pin("dat_w", 32), self.pin("we", 1), self.pin("stb", 1)
        ack, dat_r = self.pin("ack", 1), self.pin("dat_r", 32)
        streams    = self.path.streams
        buses      = {3: self.path.headers.bus} if streams is None else dict(enumerate([
            streams.streams_bus, streams.modifiers_bus, streams.lists_bus, streams.headers_bus, self.path.sent_counters.bus]))
        for number, bus in buses.items():
            is_chosen = Signal(name=f"chooses_{MEMORIES[number]}")
            self.comb += [
                is_chosen.eq(adr[28:] == number),
                bus.adr.eq(adr[:28]),
                bus.dat_w.eq(dat_w),
                bus.sel.eq(0xf),
                bus.we.eq(we),
                bus.stb.eq(stb & is_chosen),
                bus.cyc.eq(stb & is_chosen),
                If(is_chosen, ack.eq(bus.ack), dat_r.eq(bus.dat_r)),
            ]

    def pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

def write_verilog(path, pad_ticks=0):
    """Write the bench to ``path`` as module ``port_bench``."""
    bench = PortBench(pad_ticks)
    with own_combinatorial_blocks():
        write_module(bench, "port_bench", path)
