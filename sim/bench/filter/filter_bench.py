# This file is part of LiteProbe.
# SPDX-License-Identifier: BSD-2-Clause

"""The filter of two ports as a Verilog module with plain pins, for a compiled bench."""

from migen import *

from litex.gen import *

from liteprobe.cores.receive.filter import FilterTables
from liteprobe.sim.bench.tools.module import write_module

PORTS = 2

# Filter Bench -------------------------------------------------------------------------------------

class FilterBench(LiteXModule):
    """Tables and matchers on pins: ``sys_clk``, ``sys_rst``, ``control``, ``bus_*``, and of each port ``key<n>`` and its like.

    An answer: ``passed`` (bit 0), ``matched`` (1), ``names_channel`` (2), ``channel`` (5..3), ``rule`` (15..8).
    """
    def __init__(self):
        self.cd_sys = ClockDomain("sys")
        self.pins   = {self.cd_sys.clk, self.cd_sys.rst}
        self.tables = tables = FilterTables(PORTS)
        bus = tables.bus
        self.comb += [
            Cat(tables.enable, tables.drop).eq(self.add_pin("control", 2)),
            bus.adr.eq(self.add_pin("bus_adr", 13)),
            bus.dat_w.eq(self.add_pin("bus_dat_w", 32)),
            bus.we.eq(self.add_pin("bus_we", 1)),
            Cat(bus.cyc, bus.stb).eq(Replicate(self.add_pin("bus_stb", 1), 2)),
            self.add_pin("bus_dat_r", 32).eq(bus.dat_r),
            self.add_pin("bus_ack", 1).eq(bus.ack),
        ]
        for port, matcher in enumerate(tables.matchers):
            self.comb += [
                matcher.key.raw_bits().eq(self.add_pin(f"key{port}", len(matcher.key))),
                matcher.start.eq(self.add_pin(f"start{port}", 1)),
                self.add_pin(f"done{port}", 1).eq(matcher.done),
                self.add_pin(f"answer{port}", 16).eq(Cat(matcher.passed, matcher.matched, matcher.names_channel,
                    matcher.channel, Constant(0, 2), matcher.rule)),
            ]

    def add_pin(self, name, width):
        """Return a new pin of that name."""
        pin = Signal(width, name=name, name_override=name)
        self.pins.add(pin)
        return pin

def write_verilog(path):
    """Write the bench to ``path`` as module ``filter_bench``."""
    bench = FilterBench()
    write_module(bench, "filter_bench", path)
