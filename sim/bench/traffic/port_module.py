# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""A transmit port with its source of streams as a Verilog module with plain pins, from the bus to the PHY's octets."""

from migen import *

from litex.gen import *

from liteprobe.cores.timebase.clock import ProbeClock
from liteprobe.cores.transmit.path import TransmitPath
from liteprobe.cores.transmit.sources.streams.streams import StreamSource
from liteprobe.cores.transmit.pace import StartGate
from liteprobe.sim.bench.tools.module import write_module
from liteprobe.sim.system.build import own_combinatorial_blocks

MEMORIES = ["schedule", "modifiers", "lists", "header", "sent"] # In the order of bits 31..28 of an address.
INPUTS         = [("stop", 1), ("clear", 1)]
OUTPUTS        = [("state", 3), ("sent", 32), ("late", 32), ("underruns", 16)]
STREAM_INPUTS  = {"mask": "mask", "hold": "hold", "arm": "request", "begin": "begin", "end": "end"} # Pins begin with ``streams_``.
STREAM_OUTPUTS = ("active",)

# Port Bench ---------------------------------------------------------------------------------------


class PortBench(LiteXModule):
    """A port of `TransmitPath` with `StreamSource`, and one bus for all of its memories.

    Parameters
    ----------
    pad_ticks : int
    sets : SetsSource, or None
        Beside it; the rest of its pins is the business of whoever gives it.
    with_streams : bool

    Pins: ``<domain>_clk``, ``<domain>_rst`` of ``sys`` and ``timebase``; INPUTS, OUTPUTS and those of streams; ``adr``,
    ``dat_w``, ``we``, ``stb``, ``ack``, ``dat_r``; ``start_request``; ``now``; ``tx_valid``, ``tx_data``.
    """

    def __init__(self, pad_ticks=0, sets=None, with_streams=True):
        self.pins = set()
        for name in ["sys", "timebase"]:
            domain = ClockDomain(name)
            setattr(self, f"cd_{name}", domain)
            self.pins |= {domain.clk, domain.rst}
        self.clock = clock = ProbeClock()
        self.gate  = gate  = StartGate(1)
        beside     = [] if sets is None else [sets]
        streams    = [StreamSource([one.user for one in beside])] if with_streams else []
        self.path  = path  = TransmitPath(clock, pad_ticks=pad_ticks, sources=[*streams, *beside])
        for name, width in INPUTS:
            self.comb += getattr(path, name).eq(self.pin(name, width))
        for name, width in OUTPUTS:
            self.comb += self.pin(name, width).eq(getattr(path, name))
        for source in streams:
            for name, port in STREAM_INPUTS.items():
                signal     = getattr(source, port)
                self.comb += signal.eq(self.pin(f"streams_{name}", len(signal)))
            for name in STREAM_OUTPUTS:
                signal     = getattr(source, name)
                self.comb += self.pin(f"streams_{name}", len(signal)).eq(signal)
        self.add_bus(path.sources)
        self.comb += [
            gate.mask.eq(1),
            gate.request.eq(self.pin("start_request", 1)),
            path.start_strobe.eq(gate.strobe[0]),
            gate.ready[0].eq(path.ready),
            self.pin("now", 64).eq(clock.now),
            self.pin("tx_valid", 1).eq(path.source.valid),
            self.pin("tx_data", 8).eq(path.source.data),
        ]

    def add_bus(self, sources):
        """Let one bus reach each memory."""
        adr, dat_w, we, stb = self.pin("adr", 32), self.pin("dat_w", 32), self.pin("we", 1), self.pin("stb", 1)
        ack, dat_r = self.pin("ack", 1), self.pin("dat_r", 32)
        if "streams" in sources:
            streams = sources["streams"]
            buses   = dict(enumerate([streams.streams_bus, streams.modifiers_bus, streams.lists_bus, streams.headers_bus,
                streams.sent_counters.bus]))
        else:
            buses   = {3: sources["sets"].headers_bus}
        for number, bus in buses.items():
            is_chosen = Signal(name=f"chooses_{MEMORIES[number]}")
            self.comb += [
                is_chosen.eq(adr[28:] == number),
                bus.adr.eq(adr[:28]),
                bus.dat_w.eq(dat_w),
                bus.sel.eq(0xF),
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
